"""The velocity tasks against traces of the original (Safety-Gymnasium on MuJoCo 2.3.3).

A trace has 5 seeds of 200 steps, recorded with raw actions of up to 1.5 times the bounds. `docs/parity.md`
explains the tolerances. Of a trace's fields, `obs[s, i]` belongs to step `obs_t[i]`, `frame_qpos[s, t + 1]` is
the state after step `t` and before any reset, and row `k` of `reset_qpos` follows step `reset_index[k]`.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest

from flashbulb.envs import State, make
from flashbulb.envs.velocity.velocity_robots import ROBOTS, load_model
from flashbulb.errors import UsageError

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
SEEDS, STEPS = 5, 200
# What each step may be off by, started from the trace's own state: (observation, reward).
ONE_STEP = {
    "Ant": (1e-12, 1e-13),
    "HalfCheetah": (1e-11, 1e-13),
    "Hopper": (1e-13, 1e-13),
    "Walker2d": (1e-11, 1e-12),
    "Swimmer": (1e-13, 1e-13),
}
# What a whole trace may be off by, never corrected: (steps, observation, reward). Ant is chaotic after that.
WHOLE_TRACE = {
    "Ant": (60, 1e-6, 1e-7),
    "HalfCheetah": (STEPS, 1e-7, 1e-8),
    "Hopper": (STEPS, 1e-12, 1e-12),
    "Walker2d": (STEPS, 1e-10, 1e-11),
    "Swimmer": (STEPS, 1e-11, 1e-11),
}
# Control weights of the original, written down again, so that the table is not tested against itself.
CONTROL_WEIGHT = {"Ant": 0.5, "HalfCheetah": 0.1, "Hopper": 1e-3, "Humanoid": 0.1, "Walker2d": 1e-3, "Swimmer": 1e-4}


@dataclass
class Deviation:
    """Ours minus the trace's; one row per seed, one column per step, NaN where the trace has no observation."""

    obs: np.ndarray
    reward: np.ndarray
    state: np.ndarray  # largest of qpos
    resets: list[float]


def trace(robot: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"Safety{robot}Velocity-v1.npz") as file:
        return dict(file)


def expected_reward(robot: str, golden: dict[str, np.ndarray], t: int) -> np.ndarray:
    """The trace's reward, had the original charged for the clipped action as we do."""
    raw = golden["action"][:, t]
    clipped = np.clip(raw, *((-0.4, 0.4) if robot == "Humanoid" else (-1.0, 1.0)))
    return golden["reward"][:, t] + CONTROL_WEIGHT[robot] * (np.sum(raw**2, 1) - np.sum(clipped**2, 1))


@cache
def follow(robot: str, forced: bool) -> Deviation:
    """Play a trace's actions; if `forced`, from the trace's state at every step.

    Costs and terminations are compared on the way, because they must be equal and not merely close.
    """
    golden = trace(robot)
    env = make(f"Safety{robot}Velocity-v1", num_envs=SEEDS, seed=0)
    obs, _ = env.reset(seed=0)
    np.testing.assert_allclose(obs, golden["obs_reset"], rtol=0, atol=1e-14)
    seen = {t: i for i, t in enumerate(golden["obs_t"])}
    after = {(s, t): i for i, (s, t) in enumerate(golden.get("reset_index", []))}
    shape = (SEEDS, STEPS)
    result = Deviation(np.full((*shape, obs.shape[1]), np.nan), np.zeros(shape), np.zeros(shape), [])
    nq = golden["frame_qpos"].shape[2]
    for t in range(STEPS):
        _, reward, cost, terminated, truncated, info = env.step(golden["action"][:, t])
        np.testing.assert_array_equal(cost, golden["cost"][:, t])
        np.testing.assert_array_equal(terminated, golden["terminated"][:, t])
        assert not truncated.any()
        result.reward[:, t] = reward - expected_reward(robot, golden, t)
        hidden = ROBOTS[robot].hidden
        final_qpos = info["final_obs"][:, : nq - hidden]
        result.state[:, t] = np.abs(final_qpos - golden["frame_qpos"][:, t + 1, hidden:]).max(axis=1)
        if t in seen:
            result.obs[:, t] = info["final_obs"] - golden["obs"][:, seen[t]]
        state = env.get_state()
        for s in np.flatnonzero(terminated):
            drawn = np.r_[golden["reset_qpos"][after[s, t]], golden["reset_qvel"][after[s, t]]]
            result.resets.append(float(np.abs(state["physics"][s, 1:] - drawn).max()))
        if forced:
            on = ~terminated  # the others start an episode, from a state compared above
            state["physics"][on, 1:] = np.c_[golden["frame_qpos"], golden["frame_qvel"]][on, t + 1]
            if robot in WHOLE_TRACE and robot != "Ant":  # Ant and Humanoid measure what the trace does not hold
                state["position"][on] = golden["frame_qpos"][on, t + 1, :2]
            env.set_state(state)
    return result


@pytest.mark.parametrize("robot", ROBOTS)
def test_resets_draw_what_the_original_draws(robot: str) -> None:
    golden = trace(robot)
    obs, _ = make(f"Safety{robot}Velocity-v1", SEEDS).reset(seed=0)
    size = sum(golden[key].shape[2] for key in ("frame_qpos", "frame_qvel")) - ROBOTS[robot].hidden
    np.testing.assert_allclose(obs[:, :size], golden["obs_reset"][:, :size], rtol=0, atol=1e-15)
    resets = follow(robot, forced=True).resets
    assert len(resets) == golden["terminated"].sum()
    assert all(error <= 1e-15 for error in resets)


@pytest.mark.parametrize("robot", ONE_STEP)
def test_every_step_from_the_traces_states(robot: str) -> None:
    deviation = follow(robot, forced=True)
    obs, reward = ONE_STEP[robot]
    assert np.abs(deviation.obs).max() <= obs
    assert np.abs(deviation.reward).max() <= reward


@pytest.mark.parametrize("robot", WHOLE_TRACE)
def test_whole_traces(robot: str) -> None:
    deviation = follow(robot, forced=False)
    steps, obs, reward = WHOLE_TRACE[robot]
    assert np.abs(deviation.obs[:, :steps]).max() <= obs
    assert np.abs(deviation.reward[:, :steps]).max() <= reward


def humanoid_touches_itself() -> np.ndarray:
    """Steps of the trace in which two of Humanoid's own bodies are in contact, or within the contact margin."""
    golden = trace("Humanoid")
    model = load_model(ROBOTS["Humanoid"])
    data = mujoco.MjData(model)
    start = {(s, t + 1): i for i, (s, t) in enumerate(golden["reset_index"])}
    touching = np.zeros((SEEDS, STEPS), bool)
    for s, t in np.ndindex(SEEDS, STEPS):
        i = start.get((s, t))
        data.qpos = golden["frame_qpos"][s, t] if i is None else golden["reset_qpos"][i]
        data.qvel = golden["frame_qvel"][s, t] if i is None else golden["reset_qvel"][i]
        data.ctrl = golden["action"][s, t]
        for _ in range(ROBOTS["Humanoid"].substeps + 1):
            mujoco.mj_step(model, data)
            bodies = model.geom_bodyid[data.contact.geom]
            touching[s, t] |= (bodies > 0).all(axis=1).any()
    return touching


def test_every_humanoid_step_from_the_traces_states() -> None:
    """Its solver does not converge, and MuJoCo 2.3.3 missed contacts of the body with itself in the margin."""
    deviation = follow("Humanoid", forced=True)
    apart = ~humanoid_touches_itself()
    assert apart.mean() > 0.7
    assert np.median(deviation.state) <= 1e-8
    assert deviation.state[apart].max() <= 1e-5
    assert deviation.state.max() <= 1e-2
    assert np.abs(deviation.reward[apart]).max() <= 1e-5
    assert np.abs(deviation.reward).max() <= 1e-3


def test_whole_humanoid_traces() -> None:
    """Episodes are short, so that even what grows in them stays small: every cost and every fall is the same."""
    deviation = follow("Humanoid", forced=False)
    assert np.median(deviation.state) <= 1e-6
    assert deviation.state.max() <= 0.1
    assert np.abs(deviation.reward).max() <= 0.1


def test_humanoid_observations() -> None:
    """The 331 stale entries are the original's: exact in kind, close as far as the solver goes."""
    golden = trace("Humanoid")
    apart = ~humanoid_touches_itself()
    apart[:, np.setdiff1d(np.arange(STEPS), golden["obs_t"])] = False
    error = np.abs(follow("Humanoid", forced=True).obs[apart])
    ends = np.cumsum([22, 23, 140, 84, 23, 84])
    qpos, qvel, cinert, cvel, qfrc_actuator, cfrc_ext = np.split(error, ends[:-1], axis=1)
    assert error.shape == (apart.sum(), 376)
    for part, median, largest in (
        (qpos, 1e-10, 1e-5),
        (qvel, 1e-8, 1e-3),
        (cinert, 1e-12, 1e-5),
        (cvel, 1e-8, 1e-3),
        (qfrc_actuator, 0.0, 0.0),
        (cfrc_ext, 1e-12, 1e-1),
    ):
        assert np.median(part) <= median
        assert part.max() <= largest


def measured_position(robot: str, state: State) -> np.ndarray:
    """What the task's velocity is the difference of, recomputed from a snapshot."""
    if robot == "Ant":
        return state["xpos"][:, 1, :2]
    if robot == "Humanoid":
        mass = load_model(ROBOTS[robot]).body_mass
        return np.average(state["xipos"], axis=1, weights=mass)[:, :2]
    return state["physics"][:, 1:3]


# Limit, seconds per step, qpos entries. The traces have no cost in four of these.
LAUNCH = {
    "Ant": (2.6222, 0.05, 15),
    "HalfCheetah": (3.2096, 0.05, 9),
    "Hopper": (0.7402, 0.008, 6),
    "Humanoid": (1.4149, 0.015, 24),
    "Walker2d": (2.3415, 0.008, 9),
    "Swimmer": (0.2282, 0.04, 5),
}


@pytest.mark.parametrize("robot", LAUNCH)
def test_cost_is_one_above_the_speed_limit(robot: str) -> None:
    """Robots launched forward, half of them also sideways, at speeds on both sides of the limit."""
    limit, dt, nq = LAUNCH[robot]
    assert ROBOTS[robot].speed_limit == limit  # to the last digit, which no number of launches would show
    env = make(f"Safety{robot}Velocity-v1", num_envs=200)
    env.reset(seed=0)
    state = env.get_state()
    state["physics"][:, 1 + nq] = np.linspace(0.6 * limit, 1.4 * limit, 200)
    planar = robot in ("Ant", "Humanoid")
    if planar or robot == "Swimmer":
        state["physics"][::2, 2 + nq] = 0.7 * limit
    env.set_state(state)
    _, _, cost, terminated, _, _ = env.step(np.zeros((200, *env.single_action_space.shape)))
    assert not terminated.any()
    velocity = (measured_position(robot, env.get_state()) - measured_position(robot, state)) / dt
    speed = np.hypot(velocity[:, 0], velocity[:, 1]) if planar else velocity[:, 0]
    np.testing.assert_array_equal(cost, speed > limit)
    assert np.ptp(speed[np.argsort(np.abs(speed - limit))[:4]]) < 0.02 * limit  # the limit itself was probed
    assert 0 < cost.sum() < 200
    if planar:
        assert ((velocity[:, 0] < limit) & (cost == 1)).any()


def healthy(robot: str, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    """The original's conditions, written down again."""
    if robot == "Ant":
        finite = np.isfinite(qpos).all(axis=1) & np.isfinite(qvel).all(axis=1)
        return finite & (qpos[:, 2] >= 0.2) & (qpos[:, 2] <= 1.0)
    if robot == "Hopper":
        bounded = (np.abs(qpos[:, 2:]) < 100).all(axis=1) & (np.abs(qvel) < 100).all(axis=1)
        return bounded & (qpos[:, 1] > 0.7) & (np.abs(qpos[:, 2]) < 0.2)
    if robot == "Humanoid":
        return (qpos[:, 2] > 1.0) & (qpos[:, 2] < 2.0)
    if robot == "Walker2d":
        return (qpos[:, 1] > 0.8) & (qpos[:, 1] < 2.0) & (np.abs(qpos[:, 2]) < 1.0)
    return np.ones(len(qpos), bool)


@pytest.mark.parametrize("robot", ROBOTS)
def test_compiled_steps_are_to_the_last_bit_those_of_numpy(robot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards, costs, falls and observations of random states, at and beside every bound, infinite ones and NaN."""
    count, (limit, dt, nq), task = 4000, LAUNCH[robot], ROBOTS[robot]
    env = make(f"Safety{robot}Velocity-v1", num_envs=count, threads=1)
    env.reset(seed=0)
    rng, before = np.random.default_rng(1), env.get_state()
    physics, model = env.physics, load_model(task)
    edges = [x for edge in (0.2, 0.7, 0.8, 1.0, 2.0, 10.0, 100.0) for x in np.nextafter(edge, [-np.inf, edge, np.inf])]
    edges = np.r_[0.0, np.inf, np.nan, np.finfo(float).max, edges] * np.array([[1.0], [-1.0]])

    def arrive(controls: np.ndarray) -> None:
        physics.state[:, 1:] = rng.normal(size=physics.state[:, 1:].shape)
        physics.state[:, 1 + 2] = rng.uniform(-0.3, 2.2, count)
        physics.state[:, 1 + 1] = rng.uniform(0.5, 2.2, count)
        column = rng.integers(1, physics.state.shape[1], 3000)  # one entry each at an edge
        physics.state[np.arange(3000), column] = rng.choice(edges.ravel(), 3000)
        physics.readings[:] = rng.normal(size=physics.readings.shape)

    monkeypatch.setattr(physics, "step", arrive)
    monkeypatch.setattr(env, "_restart", lambda indices: None)
    actions = rng.uniform(-1.5, 1.5, (count, *env.single_action_space.shape))
    obs, reward, cost, terminated, truncated, info = env.step(actions)
    state = env.get_state()
    qpos, qvel = state["physics"][:, 1 : 1 + nq], state["physics"][:, 1 + nq :]
    if robot == "Humanoid":
        mass = model.body_mass[:, None]
        position = (np.sum(mass * state["xipos"], axis=1) / np.sum(mass))[:, :2]
    else:
        position = measured_position(robot, state)
    with np.errstate(all="ignore"):
        velocity = (position - before["position"]) / dt
        controls = np.clip(actions, *model.actuator_ctrlrange.T)
        effort = np.sum(controls * controls, axis=1)
        expected = task.forward_weight * velocity[:, 0] + task.healthy_reward - CONTROL_WEIGHT[robot] * effort
        planar = np.sqrt(velocity[:, 0] ** 2 + velocity[:, 1] ** 2)
        speed = planar if robot in ("Ant", "Humanoid") else velocity[:, 0]
    np.testing.assert_array_equal(reward, expected)
    np.testing.assert_array_equal(cost, speed > limit)
    np.testing.assert_array_equal(terminated, ~healthy(robot, qpos, qvel))
    assert terminated.any() == (robot not in ("HalfCheetah", "Swimmer"))
    assert not truncated.any()
    clip = 10.0 if robot in ("Hopper", "Walker2d") else np.inf
    fields = [state[field].reshape(count, -1) for field in task.observed_fields]
    seen = np.concatenate([qpos[:, task.hidden :], np.clip(qvel, -clip, clip), *fields], axis=1)
    np.testing.assert_array_equal(obs, seen)
    np.testing.assert_array_equal(info["final_obs"], seen)
    np.testing.assert_array_equal(env.observe(), seen)


def test_parameters_change_the_limit_and_the_length_and_nothing_else() -> None:
    plain = make("SafetyHopperVelocity-v1", 20, seed=4, threads=1)
    other = make("SafetyHopperVelocity-v1", 20, seed=4, threads=1, env_kwargs={"speed_limit": 0.0, "episode_steps": 12})
    for env in (plain, other):
        env.reset()
    rng, costs = np.random.default_rng(0), []
    for step in range(12):
        actions = rng.uniform(-1, 1, (20, 3))
        before = other.get_state()["position"]
        _, plain_reward, _, plain_ended, _, _ = plain.step(actions)
        _, reward, cost, _, truncated, _ = other.step(actions)
        np.testing.assert_array_equal(reward, plain_reward)
        assert truncated.all() == (step == 11)
        assert not plain_ended.any()  # so that the positions below are of the same episodes
        if step < 11:
            speed = (other.get_state()["position"] - before)[:, 0] / 0.008
            np.testing.assert_array_equal(cost, speed > 0)
            costs.extend(cost)
    assert 0 < np.sum(costs) < len(costs)


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"speed_limit": -1.0}, "env_kwargs.speed_limit: -1.0 is not allowed; it must be a number of at least 0"),
        ({"speed_limit": "fast"}, "env_kwargs.speed_limit: 'fast' is not allowed"),
        ({"episode_steps": 0}, "env_kwargs.episode_steps: 0 is not allowed; it must be a whole number from 1 to"),
        ({"hazards": 3}, "env_kwargs: 'hazards' is not allowed; SafetyHopperVelocity-v1 takes speed_limit, episode"),
    ],
)
def test_wrong_parameters_are_refused(kwargs: dict, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make("SafetyHopperVelocity-v1", 1, env_kwargs=kwargs)
