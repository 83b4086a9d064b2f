"""The bias of the cost critic against exact values, and that measuring it leaves the run alone."""

import json

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import norm

from flashbulb.algorithms.critics import Critics
from flashbulb.algorithms.networks import Layer
from flashbulb.algorithms.policy import Gaussian, GaussianParams
from flashbulb.algorithms.registry import configure
from flashbulb.analysis.critic_bias import measure_bias, risky, state_bias
from flashbulb.analysis.fresh_episodes import FrozenAgent, play, r_squared
from flashbulb.analysis.statistics import CONFIDENCE
from flashbulb.cli.main import run as command
from flashbulb.cost_units import CostUnits
from flashbulb.envs import make
from flashbulb.errors import UsageError
from flashbulb.normaliser import Normaliser
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.bias_monitor import COLUMNS
from flashbulb.training.loop import train
from tests.training.slippery_row import COSTLY, PLACES, SlipperyRow, cost_values

GAMMA, MEAN = 0.9, 0.4  # discount; mean of the action, whose standard deviation is 1
EXACT = cost_values(norm.cdf(MEAN), GAMMA)


def agent(value_of_place, mean=MEAN):
    """A policy that ignores what it sees, and a tabular critic: a linear layer on one-hot observations."""
    env = SlipperyRow(1)
    params = GaussianParams([Layer(np.zeros((PLACES, 1), np.float32), np.full(1, mean, np.float32))], np.zeros(1))
    tables = np.stack([np.full(PLACES, 7.0), value_of_place])[:, :, None].astype(np.float32)
    critics = Critics([Layer(tables, np.zeros((2, 1), np.float32))], ())
    identity = Normaliser.empty(PLACES).frozen()
    return FrozenAgent(Gaussian(env.single_action_space), params, critics, identity, GAMMA)


def test_the_linear_system_is_what_a_long_simulation_pays():
    """The test's own truth, checked in a way of its own: plain sums of a walk without time limit."""
    rng, walks = np.random.default_rng(0), 20_000
    place, alive, total = np.full(walks, 2), np.ones(walks, bool), np.zeros(walks)
    right = norm.cdf(MEAN) * 0.8 + norm.cdf(-MEAN) * 0.2
    for t in range(80):
        place = np.minimum(place + np.where(rng.random(walks) < right, 1, -1), PLACES - 1)
        alive &= place >= 0
        total += GAMMA**t * (alive & (place >= COSTLY))
    assert total.mean() == pytest.approx(EXACT[2], abs=4 * total.std() / np.sqrt(walks))


@pytest.mark.parametrize("offset", [0.0, -1.0, 0.75])
def test_a_critic_that_is_off_by_a_constant_is_found_out_to_be_off_by_it(offset):
    """Despite episodes that end by their time limit long before the discount does."""
    found = measure_bias(agent(EXACT + offset), SlipperyRow(100), seed=1, steps=0, states=80, rollouts=60)
    for group in (found.all, found.risky, found.initial):
        assert group.states == 40
        assert group.bias.low - 0.05 < offset < group.bias.high + 0.05
        assert group.bias.high - group.bias.low < 0.5
        assert group.estimate - group.truth == pytest.approx(group.bias.mean)


def test_every_state_counts_with_its_own_truth():
    """A critic of zeros: bias is minus the mean true value, larger where it is dangerous."""
    found = measure_bias(agent(np.zeros(PLACES)), SlipperyRow(100), seed=2, steps=0, states=80, rollouts=40)
    assert found.risky.truth > found.all.truth > 0
    assert EXACT.min() < found.risky.truth < EXACT.max()
    assert found.all.bias.mean == pytest.approx(-found.all.truth)


def test_initial_states_are_those_of_a_reset():
    """Every place is equally likely at the start, so the mean truth there is the mean of the linear system."""
    found = measure_bias(agent(np.zeros(PLACES)), SlipperyRow(100), seed=6, steps=0, states=120, rollouts=6)
    assert found.initial.states == 60
    assert found.initial.truth == pytest.approx(EXACT.mean(), abs=0.7)
    assert found.initial.bias.mean == pytest.approx(-found.initial.truth)


def test_a_critic_of_normalised_costs_is_compared_with_normalised_costs():
    """c -> (c - 0.25) / 0.5 without termination: V -> (V - 0.25 / (1 - gamma)) / 0.5. A policy that goes right."""
    units = CostUnits(0.25, 0.5)
    exact = (cost_values(1.0, GAMMA) - 0.25 / (1 - GAMMA)) / 0.5
    right = agent(exact, mean=30.0)._replace(cost_units=units)
    found = measure_bias(right, SlipperyRow(50), 3, 0, states=40, rollouts=50)
    assert abs(found.all.bias.mean) < 0.6  # it rarely falls off the left end
    assert abs(measure_bias(right._replace(cost_units=CostUnits()), SlipperyRow(50), 3, 0, 40, 10).all.bias.mean) > 3


def test_fresh_episodes_have_the_discounted_costs_that_follow_each_state():
    noise = np.random.default_rng(0).standard_normal((40, 6, 1)).astype(np.float32)
    critic = agent(EXACT)
    fresh = play(critic, SlipperyRow(6), 7, noise)
    env = SlipperyRow(6)
    observations, steps = [env.reset(seed=7)[0]], []
    for t in range(40):
        steps.append(env.step(critic.actor(noise)(observations[-1], t)))
        observations.append(steps[-1][0])
    for m in range(6):
        for t in range(40):
            total, weight, u = 0.0, 1.0, t
            while True:
                following, _, cost, terminated, truncated, info = steps[u]
                total, weight = total + weight * cost[m], weight * GAMMA
                if terminated[m]:
                    break
                if truncated[m] or u == 39:
                    last = info["final_obs"][m] if truncated[m] else following[m]
                    total += weight * EXACT[int(np.argmax(last))]
                    break
                u += 1
            assert fresh.returns[t, m] == pytest.approx(total, abs=1e-4)
            assert fresh.estimate[t, m] == pytest.approx(EXACT[int(np.argmax(observations[t][m]))], abs=1e-4)


def test_r_squared_by_hand():
    sampled = np.array([[0.0, 2.0], [4.0, 6.0]])  # a variance of 5
    assert r_squared(sampled, sampled) == 1.0
    assert r_squared(np.full((2, 2), 3.0), sampled) == 0.0
    assert r_squared(sampled + 1.0, sampled) == pytest.approx(1 - 1 / 5)
    assert r_squared(np.zeros((2, 2)), sampled) == pytest.approx(1 - 14 / 5)
    assert np.isnan(r_squared(np.zeros(3), np.ones(3)))


def test_copies_of_a_state_have_futures_of_their_own():
    """A policy without noise: all that is left to differ is the environment's randomness."""
    silent = agent(EXACT, mean=30.0)
    exact = cost_values(1.0, GAMMA)
    found = measure_bias(silent._replace(critics=agent(exact).critics), SlipperyRow(50), 3, 0, states=40, rollouts=50)
    assert abs(found.all.bias.mean) < 0.2
    assert found.all.bias.high > found.all.bias.low


def test_the_same_again_for_the_same_seed_and_progress_only():
    results = [
        measure_bias(agent(EXACT), SlipperyRow(20), seed, steps, states=10, rollouts=4)
        for seed, steps in ((1, 0), (1, 0), (1, 500), (2, 0))
    ]
    assert results[0] == results[1]
    assert results[0] != results[2] != results[3]


def test_an_environment_without_clock_or_generator_of_ours():
    """Snapshots by replay, with histories of unequal length; its time limit bootstraps with V_C."""
    env = make("tests.envs.gym_examples:make_walk", 6, 0, vectorise="serial")
    try:
        params = GaussianParams([Layer(np.zeros((3, 2), np.float32), np.zeros(2, np.float32))], np.zeros(2))
        critics = Critics([Layer(np.zeros((2, 3, 1), np.float32), np.full((2, 1), 3.0, np.float32))], ())
        walker = FrozenAgent(Gaussian(env.single_action_space), params, critics, Normaliser.empty(3).frozen(), 0.8)
        found = measure_bias(walker, env, 0, 0, states=6, rollouts=2)
    finally:
        env.close()
    assert found.all.estimate == pytest.approx(3.0)
    assert 0 <= found.all.truth <= 5  # a cost of 1 for ever
    assert found.all.states == 3


def test_risky_looks_ten_steps_ahead_within_the_episode():
    rng = np.random.default_rng(0)
    costs, ended = (rng.random((40, 3)) < 0.05).astype(float), rng.random((40, 3)) < 0.08
    expected = np.zeros((40, 3), bool)
    for t in range(40):
        for m in range(3):
            for u in range(t, min(t + 10, 40)):
                expected[t, m] |= costs[u, m] > 0
                if ended[u, m]:
                    break
    np.testing.assert_array_equal(risky(costs, ended), expected)


def test_intervals_cover_the_truth_as_often_as_they_claim():
    rng, covered = np.random.default_rng(4), 0
    for _ in range(400):
        low, high = state_bias(2.0 + rng.standard_normal(12), np.zeros(12)).bias[1:]
        covered += low < 2.0 < high
    assert covered / 400 == pytest.approx(CONFIDENCE, abs=0.035)


def test_where_nothing_is_risky_there_is_no_number():
    group = state_bias(np.zeros(0), np.zeros(0))
    assert group.states == 0
    assert np.isnan(group.bias.mean)


SMALL = {
    "steps": 1_500,
    "num_envs": 2,
    "steps_per_iteration": 500,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
    "cost_gamma": 0.8,  # short rollouts
    "checkpoint_every": 1,
    "seed": 5,
}


def test_a_run_that_measures_goes_the_same_way_and_agrees_with_the_command(tmp_path, capsys):
    rows = {}
    for every in (0, 2):
        measuring = {"name": f"every{every}", "bias_every": every, "bias_states": 6}
        config = configure("mice-cpo", "HazardField-v0", runs_dir=tmp_path, **measuring, **SMALL)
        rows[every] = read_csv(train(config, Console(quiet=True)).directory / "metrics.csv")
    assert set(rows[2]) - set(rows[0]) == set(COLUMNS)
    for name, column in rows[0].items():
        np.testing.assert_array_equal(column, rows[2][name], err_msg=name)
    assert np.isfinite(rows[2]["critic_bias_rollout"]).tolist() == [False, False, True]

    assert command(["bias", str(tmp_path / "every2"), "--checkpoint", "2", "--states", "6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["all"]["states"] == found["risky"]["states"] == found["initial"]["states"] == 3
    assert found["initial"]["mean"] == pytest.approx(rows[2]["critic_bias_rollout_initial"][2])
    assert found["r2"] == pytest.approx(rows[2]["critic_r2"][2])
    assert found["all"]["mean"] == pytest.approx(rows[2]["critic_bias_rollout"][2])
    assert found["risky"]["truth"] == pytest.approx(rows[2]["true_cost_value_risky"][2])
    assert command(["bias", str(tmp_path / "every2"), "--states", "4", "--rollouts", "2"]) == 0
    assert "risky (cost within 10 steps)" in capsys.readouterr().out
    with pytest.raises(UsageError, match="checkpoint: 77"):
        command(["bias", str(tmp_path / "every2"), "--checkpoint", "77"])
