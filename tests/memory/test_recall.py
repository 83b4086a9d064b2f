"""Which unsafe states a state is compared with: its own batch's, those of iterations before, or its own past's."""

import numpy as np
import pytest

from flashbulb.algorithms.registry import configure
from flashbulb.algorithms.stream_registry import make_cost_stream
from flashbulb.batch import Batch
from flashbulb.errors import UsageError
from flashbulb.memory import Balance, FlashbulbMemory
from flashbulb.normaliser import Normaliser

UNIT = Normaliser.empty(1).frozen()
PLAIN = {"embedding": 0, "neighbours": 1, "xi": 1.0, "normalise": "none"}


class Remembering:
    """A memory cost stream, batch after batch."""

    def __init__(self, **memory):
        config = configure("mice-cpo", "E", memory=PLAIN | memory)
        self.stream, self.balance = make_cost_stream("memory", config, workers=1), Balance.start(config.balance)
        self.memory, self.iteration = FlashbulbMemory.empty(1, config.memory, np.random.default_rng(0)), 0

    def batch(self, places, unsafe):
        """c^I (time, env) of states on a line."""
        observations, unsafe = np.asarray(places, np.float32)[:, :, None], np.asarray(unsafe, bool)
        nothing = np.zeros(0)
        samples = observations, nothing, nothing, nothing, unsafe.astype(np.float32), nothing, nothing
        batch = Batch(self.iteration, *samples, UNIT, unsafe=unsafe)
        self.memory, batch, _ = self.stream.add_intrinsic_cost(self.memory, self.balance, batch, None)
        self.iteration += 1
        return batch.intrinsic


def column(*values):
    return np.array(values)[:, None]


def near(*distances):
    """c^I of one neighbour at each distance."""
    return column(*(np.sqrt(1 / (1 + d * d)) for d in distances))


def test_of_the_previous_iteration_only():
    """An unsafe state counts for nothing in its own batch, and for the next batch alone."""
    run = Remembering(recall="previous")
    np.testing.assert_array_equal(run.batch(column(0.0, 5.0), column(True, False)), column(0.0, 0.0))
    np.testing.assert_allclose(run.batch(column(0.0, 3.0, 7.0), column(False, False, True)), near(0, 3, 7), rtol=1e-6)
    np.testing.assert_allclose(run.batch(column(0.0, 7.0), column(False, False)), near(7, 0), rtol=1e-6)
    np.testing.assert_array_equal(run.batch(column(7.0), column(False)), column(0.0))


def test_of_as_many_previous_iterations_as_the_window_says():
    run = Remembering(recall="previous", window=2)
    for place in (0.0, 8.0):
        run.batch(column(place), column(True))
    np.testing.assert_allclose(run.batch(column(1.0, 9.0), column(False, False)), near(1, 1), rtol=1e-6)
    np.testing.assert_allclose(run.batch(column(1.0, 9.0), column(False, False)), near(7, 1), rtol=1e-6)


def test_of_its_own_batch_a_state_sees_the_future():
    found = Remembering().batch(column(1.0, 0.0), column(False, True))
    np.testing.assert_allclose(found, near(1, 0), rtol=1e-6)


def test_causal_by_hand():
    """More than one entry is needed for k = 1; then the nearest of those met so far, the state itself included."""
    run = Remembering(recall="causal", queue=2)
    found = run.batch(column(0.0, 0.0, 4.0, 1.0, 9.0, 0.0), column(True, False, True, False, True, False))
    # queues: [0], [0], [0 4], [0 4], [4 9], [4 9]
    np.testing.assert_allclose(found, column(0, 0, *near(0, 1, 0, 4)[:, 0]), rtol=1e-6)
    np.testing.assert_allclose(run.batch(column(8.0), column(False)), near(1), rtol=1e-6)  # it goes on: [4 9]
    run = Remembering(recall="causal", queue=2, exclude_self=True)
    found = run.batch(column(0.0, 4.0, 9.0), column(True, True, True))
    np.testing.assert_allclose(found, column(0, 0, *near(5)[:, 0]), rtol=1e-6)


def test_causal_is_a_queue_per_environment_followed_step_by_step():
    """Against queues that are filled while walking through time; several batches, longer than a block of steps."""
    rng, k, capacity, envs = np.random.default_rng(0), 3, 7, 3
    run = Remembering(recall="causal", queue=capacity, neighbours=k)
    queues = [[] for _ in range(envs)]
    for steps in (40, 300, 5):
        places, unsafe = rng.normal(size=(steps, envs)).astype(np.float32), rng.random((steps, envs)) < 0.2
        expected = np.zeros((steps, envs))
        for t in range(steps):
            for env, queue in enumerate(queues):
                if unsafe[t, env]:
                    queue.append(places[t, env])
                    del queue[:-capacity]
                if len(queue) > k:
                    nearest = sorted((x - places[t, env]) ** 2 for x in queue)[:k]
                    expected[t, env] = np.sqrt(sum(1 / (1 + square) for square in nearest))
        np.testing.assert_allclose(run.batch(places, unsafe), expected, rtol=1e-5)
    assert run.memory.size == sum(map(len, queues))


def test_what_a_queue_does_not_allow():
    with pytest.raises(UsageError, match=r"memory\.queue: 10 is not allowed; it must be above memory\.neighbours"):
        configure("mice-cpo", "E", memory={"recall": "causal", "queue": 10})
    with pytest.raises(UsageError, match=r"memory\.recall: 'causal' is not allowed"):
        configure("mice-cpo", "E", memory={"recall": "causal", "offline": "data.npz"})
