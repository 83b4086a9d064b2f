"""Long free runs drift apart (the Point's yaw servo is chaotic) but must not differ in what they amount to."""

import numpy as np
import pytest

from flashbulb.envs.navigation import Navigation
from tests.envs.navigation.golden import TASKS
from tests.envs.navigation.stepwise import Stepwise

NUM_ENVS, STEPS = 8, 150


def _policy(t: int, env: np.ndarray) -> np.ndarray:
    """Forward with swerves, differently in each environment; a function of time alone."""
    return np.stack([np.cos(0.05 * t + env), 0.6 * np.sin(0.11 * t + 2.0 * env)], axis=-1)


@pytest.mark.parametrize("env_id", TASKS)
def test_free_runs_agree_within_their_standard_error(env_id):
    robot = next(r for r in ("Point", "Car") if r in env_id)
    aim = next(a for a in ("Goal", "Circle", "Button") if a in env_id)
    env = Navigation(env_id, NUM_ENVS, seed=0, threads=1)
    env.reset()
    slow = [Stepwise(robot, aim, seed=s) for s in range(NUM_ENVS)]
    ours, theirs = np.zeros((STEPS, NUM_ENVS, 4)), np.zeros((STEPS, NUM_ENVS, 4))
    for t in range(STEPS):
        actions = _policy(t, np.arange(NUM_ENVS))
        obs, reward, cost, *_ = env.step(actions)
        ours[t] = np.c_[np.hypot(*env.state.physics[:, env.rules.velocity :][:, :2].T), obs[:, 8], reward, cost]
        theirs[t] = [one.step(a) for one, a in zip(slow, actions, strict=True)]
    assert (np.std(theirs[..., :3], axis=(0, 1)) > 1e-4).all()  # there is something to compare
    error = np.sqrt(ours.mean(0).var(0, ddof=1) + theirs.mean(0).var(0, ddof=1)) / np.sqrt(NUM_ENVS)
    assert (np.abs(ours.mean((0, 1)) - theirs.mean((0, 1))) <= error + 1e-6).all()
    # The first steps have not drifted apart yet (a Car at rest may start differently).
    if robot == "Point":
        np.testing.assert_allclose(ours[:3], theirs[:3], rtol=0, atol=1e-6)
