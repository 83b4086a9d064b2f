"""The contract of `base.py`, tested on every task."""

import numpy as np
import pytest

from flashbulb.envs import CostVectorEnv, State, env_ids, make
from flashbulb.errors import UsageError

pytestmark = pytest.mark.parametrize("env_id", env_ids())


def begin(env_id: str, num_envs: int, seed: int = 0, threads: int | None = None) -> CostVectorEnv:
    """A batch at the start of its first episodes."""
    env = make(env_id, num_envs, seed, threads)
    env.reset()
    return env


def random_actions(env: CostVectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    """Uniform in the action box, of shape (steps, num_envs, action size)."""
    low, high = env.single_action_space.low, env.single_action_space.high
    rng = np.random.default_rng(seed)
    return rng.uniform(low, high, (steps, env.num_envs, *low.shape)).astype(env.single_action_space.dtype)


def play(env: CostVectorEnv, actions: np.ndarray) -> list[np.ndarray]:
    """All that the steps return, one array per quantity."""
    results = [env.step(row) for row in actions]
    plain = [np.stack([result[k] for result in results]) for k in range(5)]
    return [*plain, np.stack([result[5]["final_obs"] for result in results])]


def assert_identical(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_shapes_and_types(env_id: str) -> None:
    env = begin(env_id, 3, threads=2)
    assert isinstance(env, CostVectorEnv)
    assert (env.env_id, env.num_envs) == (env_id, 3)
    obs, info = env.reset(seed=1)
    assert info == {}
    space = env.single_observation_space
    assert obs.shape == (3, *space.shape)
    assert obs.dtype == space.dtype
    assert all(space.contains(row) for row in obs)
    obs, reward, cost, terminated, truncated, info = env.step(random_actions(env, 1)[0])
    assert obs.shape == info["final_obs"].shape == (3, *space.shape)
    assert obs.dtype == space.dtype
    for array in (reward, cost):
        assert array.shape == (3,)
        assert array.dtype == np.float64
    for array in (terminated, truncated, info["_final_obs"]):
        assert array.shape == (3,)
        assert array.dtype == bool
    assert set(np.unique(cost)) <= {0.0, 1.0}
    np.testing.assert_array_equal(obs, env.observe())
    env.close()


def test_returned_arrays_are_the_callers_own(env_id: str) -> None:
    env, twin = begin(env_id, 2, seed=0), begin(env_id, 2, seed=0)
    actions = random_actions(env, 2)
    obs, *_, info = env.step(actions[0])
    kept = twin.step(actions[0])[0]
    obs[:] = info["final_obs"][:] = 7.0
    np.testing.assert_array_equal(env.observe(), kept)
    assert_identical(play(env, actions[1:]), play(twin, actions[1:]))


def test_episodes_end_and_begin_within_a_step(env_id: str) -> None:
    env = begin(env_id, 2, seed=0)
    length = np.zeros(2, int)
    endings = 0
    for actions in random_actions(env, env.max_episode_steps):
        obs, _, _, terminated, truncated, info = env.step(actions)
        length += 1
        ended = terminated | truncated
        np.testing.assert_array_equal(info["_final_obs"], ended)
        np.testing.assert_array_equal(truncated, length == env.max_episode_steps)
        assert (info["final_obs"][ended] != obs[ended]).any(axis=1).all()
        np.testing.assert_array_equal(info["final_obs"][~ended], obs[~ended])
        length[ended] = 0
        endings += ended.sum()
    assert endings >= 2


def test_environment_i_has_the_generator_of_seed_plus_i(env_id: str) -> None:
    env = make(env_id, 3, seed=5)
    first, _ = env.reset()
    second, _ = env.reset()
    assert (first != second).any(axis=1).all()
    assert (first[0] != first[1]).any()
    other = make(env_id, 3, seed=0)
    np.testing.assert_array_equal(other.reset(seed=5)[0], first)
    np.testing.assert_array_equal(other.reset()[0], second)
    np.testing.assert_array_equal(begin(env_id, 1, seed=7).observe()[0], first[2])


def test_actions_are_clipped(env_id: str) -> None:
    env, twin = begin(env_id, 4, seed=3), begin(env_id, 4, seed=3)
    wild = 3.0 * random_actions(env, 12)
    space = env.single_action_space
    assert ((wild < space.low) | (wild > space.high)).any()
    assert_identical(play(env, wild), play(twin, np.clip(wild, space.low, space.high)))


def test_actions_of_another_shape_are_refused(env_id: str) -> None:
    env = begin(env_id, 2)
    with pytest.raises(UsageError, match="actions"):
        env.step(random_actions(env, 1)[0][:1])


def test_nan_actions_are_refused(env_id: str) -> None:
    env = begin(env_id, 2)
    actions = random_actions(env, 1)[0]
    actions[1, 0] = np.nan
    with pytest.raises(UsageError, match="actions"):
        env.step(actions)


def test_threads_do_not_matter(env_id: str) -> None:
    runs = []
    for threads in (1, 2, 3):
        env = begin(env_id, 5, seed=11, threads=threads)
        runs.append(play(env, random_actions(env, 40)))
    assert_identical(runs[0], runs[1])
    assert_identical(runs[0], runs[2])


def test_a_snapshot_brings_everything_back(env_id: str) -> None:
    env = begin(env_id, 4, seed=2, threads=2)
    actions = random_actions(env, 60)
    play(env, actions[:20])
    state = env.get_state()
    assert all(isinstance(rows, np.ndarray) and len(rows) == 4 for rows in state.values())
    kept = {name: rows.copy() for name, rows in state.items()}
    seen, future = env.observe(), play(env, actions[20:])
    after = env.reset()[0]  # the generators, too
    for name, rows in state.items():
        np.testing.assert_array_equal(rows, kept[name], err_msg=f"{name} is no copy")

    env.set_state(state)
    np.testing.assert_array_equal(env.observe(), seen)
    assert_identical(play(env, actions[20:]), future)
    np.testing.assert_array_equal(env.reset()[0], after)


def test_chosen_environments_move_between_batches(env_id: str) -> None:
    env = begin(env_id, 4, seed=2, threads=2)
    actions = random_actions(env, 60)
    play(env, actions[:20])
    chosen = np.array([3, 1])
    state: State = env.get_state(chosen)
    future = [rows[:, chosen] for rows in play(env, actions[20:])]

    other = begin(env_id, 5, seed=90, threads=1)
    undisturbed = begin(env_id, 5, seed=90, threads=1)
    places = np.array([0, 4])
    other.set_state(state, places)
    rest = [1, 2, 3]
    np.testing.assert_array_equal(other.observe()[rest], undisturbed.observe()[rest])
    mixed = random_actions(other, 40, seed=1)
    mixed[:, places] = actions[20:, chosen]
    ours, theirs = play(other, mixed), play(undisturbed, mixed)
    assert_identical([rows[:, places] for rows in ours], future)
    assert_identical([rows[:, rest] for rows in ours], [rows[:, rest] for rows in theirs])


def test_a_snapshot_of_another_size_is_refused(env_id: str) -> None:
    env = begin(env_id, 3)
    state = env.get_state(np.array([0, 1]))
    with pytest.raises(UsageError, match="state"):
        env.set_state(state)
