"""Statistics against numbers worked out by hand, and against every resample there is."""

import itertools

import numpy as np
import pytest

from flashbulb.analysis.statistics import RESAMPLES, area_under, improvement, iqm, iqm_band, iqm_interval


def middle_mean(values):
    """Interquartile mean without SciPy."""
    cut = len(values) // 4
    kept = sorted(values)[cut : len(values) - cut]
    return sum(kept) / len(kept)


def superiority(ours, theirs):
    """Share of all pairs that are won, ties as half, averaged over tasks; without ranks."""
    tasks = [
        sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in x for b in y) / (len(x) * len(y))
        for x, y in zip(ours, theirs, strict=True)
    ]
    return sum(tasks) / len(tasks)


def every_resample(samples):
    """All combinations of n^n resamples of each sample."""
    return itertools.product(*(list(itertools.product(sample, repeat=len(sample))) for sample in samples))


def assert_percentiles(interval, everything):
    """The ends have 2.5 % of the exact distribution beyond them, up to four standard errors of the resampling."""
    everything, error = np.array(everything), 4 * np.sqrt(0.025 * 0.975 / RESAMPLES)
    for sign, end in ((1, interval.low), (-1, interval.high)):
        outside = sign * (end - everything)
        assert (outside > 1e-9).mean() <= 0.025 + error
        assert (outside > -1e-9).mean() >= 0.025 - error


def test_interquartile_mean_by_hand():
    assert iqm(np.array([100.0, 3, 4, 5, 6, 7, 8, -100])) == pytest.approx((4 + 5 + 6 + 7) / 4)
    assert iqm(np.array([6.0, 1, 2, 3, 4, 50])) == pytest.approx((2 + 3 + 4 + 6) / 4)
    assert iqm(np.array([1.0, 2, 9])) == pytest.approx(4), "a quarter of three is none"
    assert iqm(np.array([1.0, 2]), np.array([9.0, 100])) == pytest.approx(5.5), "quarters are of all tasks together"


@pytest.mark.parametrize("sizes", [(4,), (5,), (3, 2), (3, 3), (2, 2, 2)])
def test_interval_against_every_resample(sizes):
    rng = np.random.default_rng(sum(sizes))
    tasks = [rng.normal(10 * task, 1 + task, size) for task, size in enumerate(sizes)]
    found = iqm_interval(tasks)
    assert found.value == pytest.approx(middle_mean(np.concatenate(tasks)))
    assert found.seeds == sum(sizes)
    assert_percentiles(found, [middle_mean(sum(resample, ())) for resample in every_resample(tasks)])


def test_interval_of_three_seeds_is_their_range():
    assert iqm_interval([np.array([4.0, 1.0, 2.5])])[1:3] == (1.0, 4.0)


def test_interval_is_stratified():
    """Seeds agree within each task, so nothing is uncertain, however far apart the tasks are."""
    found = iqm_interval([np.full(3, 1.0), np.full(3, 1000.0)])
    assert (found.low, found.high) == (found.value, found.value) == (500.5, 500.5)


def test_one_seed_has_no_interval_and_no_seed_no_value():
    alone = iqm_interval([np.array([7.0])])
    assert (alone.value, alone.seeds) == (7.0, 1)
    assert np.isnan([alone.low, alone.high]).all()
    assert np.isnan(iqm_interval([np.array([1.0, 2.0]), np.array([3.0])]).low), "one task of two has a single seed"
    nothing = iqm_interval([np.array([np.nan])])
    assert nothing.seeds == 0
    assert np.isnan(nothing[:3]).all()
    assert iqm_interval([np.array([np.nan, 1.0, 3.0])])[::3] == (2.0, 2)


def test_same_runs_same_interval():
    seeds = np.random.default_rng(1).normal(size=7)
    assert iqm_interval([seeds]) == iqm_interval([seeds])
    assert improvement([seeds], [seeds[:4]]) == improvement([seeds], [seeds[:4]])


def test_what_the_interval_is_worth_with_six_normal_seeds():
    """The claim in the module's first lines: about 90 %, less than what is asked for."""
    rng = np.random.default_rng(5)
    found = [iqm_interval([rng.normal(size=6)]) for _ in range(250)]
    assert np.mean([interval.low <= 0 <= interval.high for interval in found]) == pytest.approx(0.905, abs=0.055)


def test_probability_of_improvement_by_hand():
    # 1 beats 0; 2 beats 0 and ties twice; 3 beats all: 6 of 9. The other task is lost in every pair.
    assert improvement([np.array([1.0, 2, 3])], [np.array([2.0, 2, 0])]).value == pytest.approx(6 / 9)
    both = improvement([np.array([1.0, 2, 3]), np.zeros(2)], [np.array([2.0, 2, 0]), np.ones(2)])
    assert both.value == pytest.approx(3 / 9)
    assert both.seeds == 10
    assert improvement([np.ones(3)], [np.ones(4)])[:3] == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("sizes", [((3,), (3,)), ((4,), (2,)), ((2, 2), (2, 2))])
def test_probability_of_improvement_against_every_resample(sizes):
    rng = np.random.default_rng(len(sizes[0]))
    ours, theirs = ([rng.integers(0, 5, n) + 0.0 for n in side] for side in sizes)
    ours[0][0] = theirs[0][0]  # a tie
    found, tasks = improvement(ours, theirs), len(ours)
    assert found.value == pytest.approx(superiority(ours, theirs))
    everything = [superiority(both[:tasks], both[tasks:]) for both in every_resample([*ours, *theirs])]
    assert_percentiles(found, everything)


def test_improvement_over_nothing_is_unknown():
    assert np.isnan(improvement([np.array([1.0])], [np.array([])]).value)
    alone = improvement([np.array([2.0])], [np.array([1.0, 3.0])])
    assert alone.value == 0.5
    assert np.isnan([alone.low, alone.high]).all()


def test_band_is_the_interval_of_every_point():
    curves = np.random.default_rng(2).normal(size=(3, 5))
    band = iqm_band(curves)
    np.testing.assert_allclose(band.value, curves.mean(axis=0))
    np.testing.assert_allclose([band.low, band.high], [curves.min(axis=0), curves.max(axis=0)])
    curves = np.random.default_rng(2).normal(size=(6, 4))
    band = iqm_band(curves)
    for k in range(4):
        interval = iqm_interval([curves[:, k]])
        assert band.value[k] == pytest.approx(interval.value)
        np.testing.assert_allclose([band.low[k], band.high[k]], interval[1:3], atol=0.15)
    assert np.isnan(iqm_band(curves[:1]).low).all()


def test_area_by_hand():
    assert area_under(np.array([0.0, 2.0, 0.0]), np.array([1.0, 2.0, 3.0])) == 1.0
    # Trapezia of 100 * 1 and 300 * 3 over 400 steps.
    assert area_under(np.array([0.0, 2.0, 4.0]), np.array([100.0, 200.0, 500.0])) == 2.5
    assert area_under(np.full(9, 3.0), np.arange(9.0) ** 2) == pytest.approx(3.0)
    assert area_under(np.array([5.0]), np.array([10.0])) == 5.0
    assert np.isnan(area_under(np.array([]), np.array([])))
