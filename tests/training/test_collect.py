"""Accounting of episodes across iterations against a plain loop."""

import numpy as np

from flashbulb.training.collect import RunningEpisodes, account


def plain_loop(rewards, costs, ended):
    rows, sums = [], np.zeros((3, rewards.shape[1]))
    for t in range(len(rewards)):
        sums += [rewards[t], costs[t], np.ones(rewards.shape[1])]
        for m in np.flatnonzero(ended[t]):
            rows.append((t, m, *sums[:, m]))
            sums[:, m] = 0
    return rows, sums


def test_episodes_run_on_across_iterations_and_none_is_lost():
    rng = np.random.default_rng(0)
    shape = (90, 4)
    rewards, costs, ended = rng.standard_normal(shape), rng.random(shape), rng.random(shape) < 0.05
    running = RunningEpisodes.start(np.zeros((4, 2)))
    found = []
    for start in range(0, 90, 30):
        part = slice(start, start + 30)
        finished, running = account(rewards[part], costs[part], ended[part], running)
        found += [(start + row[0], *row[1:]) for row in zip(*finished, strict=True)]
    rows, sums = plain_loop(rewards, costs, ended)
    np.testing.assert_allclose(np.array(found), np.array(rows), rtol=1e-9)
    np.testing.assert_allclose([running.returns, running.costs, running.lengths], sums, rtol=1e-9)


def test_nothing_finished_is_an_empty_table_not_a_nan():
    finished, running = account(
        np.ones((5, 2)), np.ones((5, 2)), np.zeros((5, 2), bool), RunningEpisodes.start(np.zeros((2, 1)))
    )
    assert all(len(column) == 0 for column in finished)
    assert running.lengths.tolist() == [5, 5]
