"""Running moments against NumPy's moments of everything seen."""

import numpy as np

from flashbulb.normaliser import CLIP, Normaliser


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
