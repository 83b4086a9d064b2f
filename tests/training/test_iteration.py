"""What an iteration stores: the states that cost, or those whose discounted cost to go is above a threshold."""

from types import SimpleNamespace

import jax
import numpy as np

from flashbulb.algorithms.critics import init_critics
from flashbulb.algorithms.registry import configure
from flashbulb.batch import Batch
from flashbulb.config import CriticConfig
from flashbulb.normaliser import Normaliser
from flashbulb.training.iteration import _unsafe


def test_the_criterion_decides_what_is_stored():
    """Costs of 1, 0, 0, 2 in an episode that terminates: to go, at 0.5, are 1.25, 0.5, 1, 2."""
    costs = np.array([[1.0], [0.0], [0.0], [2.0]], np.float32)
    ended = np.array([[False], [False], [False], [True]])
    zeros = np.zeros((4, 1, 3), np.float32)
    batch = Batch(0, zeros, zeros, None, None, costs, ended, ended, Normaliser.empty(3).frozen())
    learner = SimpleNamespace(critics=init_critics(jax.random.key(0), 3, 1, CriticConfig(hidden=(4,))))
    by_cost = configure("mice-cpo", "E", cost_gamma=0.5)
    assert _unsafe(batch, learner, by_cost).ravel().tolist() == [True, False, False, True]
    by_return = configure("mice-cpo", "E", cost_gamma=0.5, memory={"criterion": "return", "threshold": 0.8})
    assert _unsafe(batch, learner, by_return).ravel().tolist() == [True, False, True, True]
