"""HazardField-v0: its rules retold in plain Python, the contract, and why a limit of 25 means something."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from flashbulb.envs import hazard_field as hf
from flashbulb.envs import registry, rng
from flashbulb.envs.base import CostVectorEnv
from flashbulb.errors import UsageError

N = 6
Controller = Callable[[hf.HazardField], np.ndarray]


@pytest.fixture
def env() -> hf.HazardField:
    env = hf.HazardField(N, seed=3)
    env.reset()
    return env


def random_actions(steps: int, n: int = N, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.3, 1.3, (steps, n, 2))


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def lidar_by_complex_numbers(position: np.ndarray, heading: float, targets: np.ndarray) -> np.ndarray:
    """The pseudo-lidar of Safety-Gymnasium, computed independently with complex numbers."""
    bins, w = np.zeros(16), 2 * math.pi / 16
    for x, y in targets:
        e = (complex(x, y) - complex(*position)) * np.exp(-1j * heading)
        a = float(np.angle(e)) % (2 * math.pi)
        b = min(math.floor(a / w), 15)
        s, f = max(0.0, 3 - abs(e)) / 3, (a - b * w) / w
        for k, value in ((b, s), ((b + 1) % 16, f * s), ((b - 1) % 16, (1 - f) * s)):
            bins[k] = max(bins[k], value)
    return bins


# --- the rules -------------------------------------------------------------------------------------------


def test_observation_is_own_frame_motion_and_two_lidars(env: hf.HazardField) -> None:
    for action in random_actions(40):
        obs = env.step(action)[0]
    s = env.get_state()
    for i in range(N):
        velocity = complex(*s["velocity"][i]) * np.exp(-1j * s["heading"][i])
        motion = [velocity.real, velocity.imag, s["yaw_rate"][i]]
        goal = lidar_by_complex_numbers(s["position"][i], s["heading"][i], s["goal"][i : i + 1])
        hazards = lidar_by_complex_numbers(s["position"][i], s["heading"][i], s["hazards"][i])
        np.testing.assert_allclose(obs[i], np.r_[motion, goal, hazards], atol=2e-6)


def test_lidar_of_a_target_straight_ahead_and_out_of_range(env: hf.HazardField) -> None:
    layout = env.layout([0])
    layout["position"][:], layout["heading"][:] = 0.0, 0.5
    layout["goal"][0] = 1.5 * np.array([math.cos(0.5 + math.pi / 16), math.sin(0.5 + math.pi / 16)])
    layout["hazards"][:] = 50.0
    env.set_layout(layout, [0])
    goal, hazards = env.observe()[0, 3:19], env.observe()[0, 19:]
    np.testing.assert_allclose(goal[[0, 1, 15]], [0.5, 0.25, 0.25], atol=1e-6)
    assert not goal[2:15].any()
    assert not hazards.any()


def test_motion_approaches_top_speed_and_turn_rate(env: hf.HazardField) -> None:
    for _ in range(200):
        env.step(np.tile([5.0, 0.0], (N, 1)))  # clipped to 1
    np.testing.assert_allclose(env.observe()[:, :3], np.tile([hf.THRUST / hf.DRAG, 0, 0], (N, 1)), atol=1e-4)
    for _ in range(50):
        env.step(np.tile([0.0, -9.0], (N, 1)))
    np.testing.assert_allclose(env.observe()[:, :3], np.tile([0, 0, -hf.TURN_RATE], (N, 1)), atol=1e-3)


def test_momentum_a_turn_does_not_turn_the_velocity(env: hf.HazardField) -> None:
    for _ in range(30):
        env.step(np.tile([1.0, 0.0], (N, 1)))
    before = env.get_state()["velocity"]
    env.step(np.tile([0.0, 1.0], (N, 1)))
    after = env.get_state()["velocity"]
    np.testing.assert_allclose(after, before * (1 - hf.DT * hf.DRAG), rtol=1e-12)


def test_reward_and_cost_retold_from_the_layouts() -> None:
    env = hf.HazardField(32, seed=1)
    env.reset()
    goals = costs = 0
    for _ in range(300):
        before = env.layout()
        _, reward, cost, terminated, truncated, info = env.step(beeline(env))
        after = env.layout()
        was = np.hypot(*(before["position"] - before["goal"]).T)
        now = np.hypot(*(after["position"] - before["goal"]).T)
        met = now <= 0.3
        np.testing.assert_allclose(reward, was - now + met, atol=1e-12)
        inside = (np.hypot(*np.moveaxis(after["hazards"] - after["position"][:, None], -1, 0)) <= 0.2).any(1)
        assert np.array_equal(cost, inside.astype(float))
        assert np.array_equal(info["goal_met"], met)
        assert np.array_equal((after["goal"] != before["goal"]).any(1), met)
        assert np.array_equal(after["hazards"], before["hazards"])
        assert not terminated.any()
        assert not truncated.any()
        goals, costs = goals + met.sum(), costs + cost.sum()
    assert goals > 100
    assert costs > 100


def test_nothing_is_placed_in_or_near_a_hazard() -> None:
    env = hf.HazardField(3000, seed=0)
    env.reset()
    s = env.layout()
    to_hazards = np.linalg.norm(s["hazards"] - s["position"][:, None], axis=-1)
    goal_to_hazards = np.linalg.norm(s["hazards"] - s["goal"][:, None], axis=-1)
    between = np.linalg.norm(s["hazards"][:, :, None] - s["hazards"][:, None], axis=-1) + 9 * np.eye(8)
    assert to_hazards.min() >= 0.58
    assert goal_to_hazards.min() >= 0.485
    assert between.min() >= 0.36
    assert np.linalg.norm(s["goal"] - s["position"], axis=-1).min() >= 0.705
    assert np.abs(s["hazards"]).max() <= 1.5 - 0.18
    assert np.abs(s["goal"]).max() <= 1.5 - 0.305
    # The agent comes first and is unconditioned: uniform in its square and in angle.
    assert np.abs(s["position"].mean(0)).max() < 5 * 1.1 / math.sqrt(3 * 3000)
    assert abs(np.exp(1j * s["heading"]).mean()) < 5 / math.sqrt(3000)


@pytest.mark.parametrize("seed", range(5))
def test_when_no_candidate_is_clear_the_clearest_is_taken(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """With three tries instead of a thousand, and a keepout that no place can satisfy: in plain Python."""
    monkeypatch.setattr(hf, "PLACEMENT_TRIES", 3)
    monkeypatch.setattr(hf, "_clearance", hf._clearance.py_func)
    monkeypatch.setattr(hf, "HAZARD_KEEPOUT", 9.0)
    m = np.zeros(1, hf.ENV_STATE).view(np.recarray)[0]
    m.rng[:], m.hazards[:] = rng.xoshiro_seeded(seed, 1)[0], np.random.default_rng(seed).uniform(-1, 1, (8, 2))
    m.position[:] = 99.0
    twin, edge = m.rng.copy(), 1.5 - 0.305
    candidates = np.array([[rng.xoshiro_uniform(twin, -edge, edge) for _ in "xy"] for _ in range(3)])
    nearest = np.linalg.norm(candidates[:, None] - m.hazards, axis=-1).min(1)
    hf._place.py_func(m, m.goal, hf.GOAL_KEEPOUT, hf.HAZARDS)
    assert np.array_equal(m.goal, candidates[nearest.argmax()])
    assert np.array_equal(m.rng, twin)


# --- the contract ----------------------------------------------------------------------------------------


def test_spaces_and_registry() -> None:
    env = registry.make("HazardField-v0", num_envs=4, seed=2)
    assert isinstance(env, CostVectorEnv)
    obs, _ = env.reset()
    assert obs.dtype == env.single_observation_space.dtype
    assert all(env.single_observation_space.contains(row) for row in obs)
    for action in random_actions(50, 4):
        obs, reward, cost, *_ = env.step(action)
        assert all(env.single_observation_space.contains(row) for row in obs)
        assert reward.shape == cost.shape == (4,)


def test_seeding() -> None:
    batch, single = hf.HazardField(4, seed=0), hf.HazardField(1, seed=12)
    obs, _ = batch.reset(seed=10)
    assert np.array_equal(obs[2], single.reset()[0][0])  # the first reset is that of the construction's seed
    assert not np.array_equal(batch.reset()[0], obs)
    assert np.array_equal(batch.reset(seed=10)[0], obs)
    for action in random_actions(1100, 4):
        a, b = batch.step(action), single.step(action[2:3])
        assert np.array_equal(a[0][2], b[0][0])


def test_same_step_autoreset_at_1000_steps(env: hf.HazardField) -> None:
    late = env.get_state([1])
    late["elapsed"][:] = 700
    env.set_state(late, [1])
    for t, action in enumerate(random_actions(1000), start=1):
        obs, _, _, terminated, truncated, info = env.step(action)
        ended = np.arange(N) == 1 if t == 300 else np.full(N, t == 1000)
        ended[1] = t == 300
        assert np.array_equal(truncated, ended)
        assert np.array_equal(info["_final_obs"], ended)
        assert not terminated.any()
        assert np.array_equal((obs != info["final_obs"]).any(1), ended)
        assert not obs[ended, :3].any()  # at rest
        assert (info["final_obs"][ended, :2] != 0).all()
    assert np.array_equal(obs, env.observe())


def test_returned_arrays_are_never_changed_later(env: hf.HazardField) -> None:
    out = env.step(random_actions(1)[0])
    state = env.get_state()
    arrays = [*out[:5], *out[5].values(), *state.values(), *env.layout().values(), env.observe()]
    copies = [a.copy() for a in arrays]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    for action in random_actions(5, seed=1):
        env.step(action)
    env.reset()
    assert all(np.array_equal(a, b) for a, b in zip(arrays, copies, strict=True))


def rollout(env: hf.HazardField, actions: np.ndarray) -> list[np.ndarray]:
    return [np.concatenate([x.ravel() for x in env.step(a)[:5]]) for a in actions]


def test_snapshot_of_the_whole_batch_is_exact_across_episodes(env: hf.HazardField) -> None:
    rollout(env, random_actions(500))
    state, actions = env.get_state(), random_actions(1200, seed=1)
    first = rollout(env, actions)
    end = env.get_state()
    other = registry.make("HazardField-v0", num_envs=N, seed=99, threads=1)
    assert isinstance(other, hf.HazardField)
    other.set_state(state)
    assert np.array_equal(first, rollout(other, actions))
    assert same(end, other.get_state())


def test_snapshot_of_chosen_environments(env: hf.HazardField) -> None:
    rollout(env, random_actions(20))
    before = env.get_state()
    big = hf.HazardField(9, seed=50)
    untouched = big.get_state([0, 1, 2, 3, 4, 5, 7])
    big.set_state(env.get_state([4, 1]), [8, 6])
    assert same(big.get_state([0, 1, 2, 3, 4, 5, 7]), untouched)
    assert same(big.get_state([8, 6]), {k: v[[4, 1]] for k, v in before.items()})
    assert np.array_equal(big.observe()[[8, 6]], env.observe()[[4, 1]])
    assert same(big.get_state(np.arange(9) == 6), big.get_state([6]))


def test_layout_round_trip_puts_the_agent_at_rest(env: hf.HazardField) -> None:
    rollout(env, random_actions(20))
    before, layout = env.get_state(), env.layout([0, 2])
    layout["position"] += 0.1
    env.set_layout(layout, [0, 2])
    assert same(env.layout([0, 2]), layout)
    after = env.get_state()
    assert not after["velocity"][[0, 2]].any()
    assert np.array_equal(after["velocity"][1], before["velocity"][1])
    assert np.array_equal(after["rng"], before["rng"])
    assert np.array_equal(after["elapsed"], before["elapsed"])
    reward = env.step(np.zeros((N, 2)))[1]
    np.testing.assert_allclose(reward[[0, 2]], 0.0, atol=1e-12)  # at rest, so no progress


def test_bad_input_is_refused_and_changes_nothing(env: hf.HazardField) -> None:
    state = env.get_state()
    for bad in (np.zeros((N, 3)), np.zeros((N - 1, 2)), np.full((N, 2), np.nan)):
        with pytest.raises(UsageError, match="actions: "):
            env.step(bad)
    with pytest.raises(UsageError, match="state: 'position' of shape"):
        env.set_state(state, [0, 1])
    with pytest.raises(UsageError, match=r"state: 'rng' .* type float64"):
        env.set_state(state | {"rng": state["rng"].astype(float)})
    with pytest.raises(UsageError, match="layout: entries"):
        env.set_layout({"goal": state["goal"]})
    with pytest.raises(UsageError, match="seed: -4 "):
        env.reset(seed=-4)
    assert same(env.get_state(), state)


# --- what makes a cost limit of 25 mean something ----------------------------------------------------------


def follow(env: hf.HazardField, want: np.ndarray) -> np.ndarray:
    """Actions that bring the velocity to `want`, nose or tail first."""
    s = env.get_state()
    push = want - 0.9 * s["velocity"]
    angle = np.arctan2(push[:, 1], push[:, 0]) - s["heading"]
    thrust = np.cos(angle) * np.minimum(3 * np.linalg.norm(push, axis=1), 1)
    return np.stack([thrust, 2 * np.arctan(np.tan(angle)) - 0.1 * s["yaw_rate"]], axis=1)


def beeline(env: hf.HazardField) -> np.ndarray:
    """Straight to the goal at full speed."""
    s = env.layout()
    way = s["goal"] - s["position"]
    return follow(env, hf.THRUST / hf.DRAG * way / np.linalg.norm(way, axis=1, keepdims=True))


def careful(env: hf.HazardField) -> np.ndarray:
    """At 0.8 speed, in that direction nearest to the goal's whose next metre keeps clear of hazards."""
    s = env.layout()
    way, hazards = s["goal"] - s["position"], (s["hazards"] - s["position"][:, None])[:, None]
    fan = np.linspace(-math.pi, math.pi, 72, endpoint=False)
    angle = np.arctan2(way[:, 1], way[:, 0])[:, None] + fan
    u = np.stack([np.cos(angle), np.sin(angle)], axis=-1)[:, :, None]
    along = (u * hazards).sum(-1)
    across = np.abs(u[..., 0] * hazards[..., 1] - u[..., 1] * hazards[..., 0])
    ahead = (along > 0) & (along < np.minimum(np.linalg.norm(way, axis=1), 1.0)[:, None, None])
    intrusion = np.where(ahead, np.maximum(0.32 - across, 0), 0).max(-1)
    best = (np.cos(fan) - 20 * intrusion).argmax(1)
    return follow(env, 0.8 * hf.THRUST / hf.DRAG * u[np.arange(len(best)), best, 0])


def mean_episode(controller: Controller, n: int = 100) -> tuple[float, float]:
    env = hf.HazardField(n, seed=0)
    env.reset()
    totals = np.zeros(2)
    for _ in range(hf.EPISODE_STEPS):
        _, reward, cost, *_ = env.step(controller(env))
        totals += reward.mean(), cost.mean()
    return float(totals[0]), float(totals[1])


def test_rushing_violates_a_limit_of_25_and_care_keeps_it() -> None:
    rushed_return, rushed_cost = mean_episode(beeline)
    careful_return, careful_cost = mean_episode(careful)
    assert rushed_return > 110
    assert 45 < rushed_cost < 80
    assert 60 < careful_return < rushed_return
    assert careful_cost < 5


def test_generator_words_are_in_the_snapshot(env: hf.HazardField) -> None:
    assert np.array_equal(hf.HazardField(2, seed=5).get_state()["rng"], rng.xoshiro_seeded(5, 2))
