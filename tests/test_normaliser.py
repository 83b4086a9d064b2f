"""Running moments against NumPy's moments of everything seen, and the second copy of lidar readings."""

import jax.numpy as jnp
import numpy as np

import flashbulb
from flashbulb.normaliser import CLIP, Normaliser, near_entries, with_near, with_near_groups


def test_pooled_moments_are_the_moments_of_all_data():
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((n, 3)) * [1, 10, 0.1] + [5, -2, 1e3] for n in (7, 100, 1, 40)]
    normaliser = Normaliser.empty(3)
    for part in parts:
        normaliser = normaliser.absorb(part)
    everything = np.concatenate(parts)
    np.testing.assert_allclose(normaliser.mean, everything.mean(0), rtol=1e-12)
    np.testing.assert_allclose(normaliser.variance, everything.var(0), rtol=1e-9)
    whitened = normaliser.frozen()(everything.astype(np.float64))
    np.testing.assert_allclose(whitened.std(0), 1.0, rtol=1e-2)


def test_an_entry_that_never_varies_stays_harmless():
    normaliser = Normaliser.empty(2).absorb(np.array([[1.0, 5.0], [2.0, 5.0]]))
    assert np.isfinite(normaliser.frozen()(np.array([[1.5, 5.0]]))).all()
    assert abs(normaliser.frozen()(np.array([[1.5, 6.0]]))[0, 1]) <= 1.0


def test_before_any_data_it_is_the_identity_up_to_the_clip():
    identity = Normaliser.empty(2).frozen()
    assert identity(np.array([[0.5, -3.0]], np.float32)).tolist() == [[0.5, -3.0]]
    assert identity(np.array([[1e9, -1e9]], np.float32)).tolist() == [[CLIP, -CLIP]]


def test_absorbing_leaves_the_old_one_alone():
    old = Normaliser.empty(2)
    old.absorb(np.ones((5, 2)))
    assert old.mean.tolist() == [0, 0]


def test_near_readings_come_after_the_observation_on_their_own_scale():
    observation = np.array([[7.0, 1.0, 0.95, 0.9], [8.0, 0.0, 0.5, 300.0]])  # the last is no reading of a lidar
    seen = with_near(observation, np.array([1, 2, 3]))
    np.testing.assert_array_equal(seen[:, :4], observation)
    e = np.e  # 0.05 of the range farther away is a factor of e
    np.testing.assert_allclose(seen[:, 4:], [[1, 1 / e, 1 / e**2], [e**-20, e**-10, 1]], rtol=1e-9)
    again = with_near(jnp.asarray(observation, jnp.float32), np.array([1, 2, 3]))
    np.testing.assert_allclose(again, seen, rtol=1e-5)


def test_near_readings_have_moments_of_their_own():
    rng = np.random.default_rng(0)
    observations = rng.uniform(0.8, 1.0, (500, 3))
    normaliser = Normaliser.empty(3, np.array([0, 2])).absorb(observations[:100]).absorb(observations[100:])
    assert normaliser.features == 5
    near = np.exp(-(1 - observations[:, [0, 2]]) * 20)
    np.testing.assert_allclose(normaliser.mean, np.r_[observations.mean(0), near.mean(0)], rtol=1e-9)
    np.testing.assert_allclose(normaliser.variance, np.r_[observations.var(0), near.var(0)], rtol=1e-9)
    whitened = normaliser.frozen()(observations.astype(np.float32))
    np.testing.assert_allclose(whitened[:, 3:], (near - near.mean(0)) / near.std(0), atol=1e-4)


def test_which_entries_are_near_readings_and_where_they_end_up():
    groups = ((2, 4), (6, 9))
    assert near_entries(groups, True).tolist() == [2, 3, 6, 7, 8]
    assert near_entries(groups, False) == near_entries((), True) == ()
    assert with_near_groups(groups, 10, near_entries(groups, True)) == [(2, 4), (6, 9), (10, 12), (12, 15)]
    assert with_near_groups(groups, 10, ()) == [(2, 4), (6, 9)]


def test_near_readings_tell_which_states_of_point_goal_cost():
    """The reason for them: a linear function explains most of the cost with them, and little without."""
    env = flashbulb.make("SafetyPointGoal1-v0", num_envs=50)
    rng = np.random.default_rng(0)
    seen, costs = [env.reset(seed=0)[0]], []
    push = rng.uniform(-1, 1, (50, 2))
    for t in range(400):
        push = rng.uniform(-1, 1, (50, 2)) if t % 40 == 0 else push
        obs, _, cost, *_ = env.step(push)
        seen.append(obs)
        costs.append(cost)
    x, y = np.concatenate(seen[1:]), np.concatenate(costs)  # the cost of a step is that of the state that it leads to
    assert 0.01 < y.mean() < 0.2

    def explained(features):
        design = np.c_[np.ones(len(features)), features]
        return 1 - np.var(y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) / np.var(y)

    assert explained(with_near(x, near_entries(env.lidar_groups, True))) > 0.6
    assert explained(x) < 0.3


def test_a_normaliser_of_a_stranger_must_fit_the_observations():
    good = Normaliser.empty(3, np.array([0, 2])).frozen()
    assert good.fits(3)
    assert Normaliser.empty(3).frozen().fits(3)
    assert not good.fits(4)
    for near in ([0, 3], [-1, 0], [0.0, 2.0], [[0, 2]], [0, 1, 2]):
        assert not good._replace(near=np.array(near)).fits(3), near
    assert not good._replace(scale=np.ones(3)).fits(3)
