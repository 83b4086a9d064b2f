"""Register an algorithm of your own, here PPO whose weight of cost is a switch, and train it with MICE's cost.

python examples/own_algorithm.py [STEPS]
"""

import sys

import jax.numpy as jnp

import flashbulb
from flashbulb.algorithms.parts import MultiplierPart
from flashbulb.algorithms.registry import Algorithm


def step(state, cost, config):
    """lambda is `ascent.maximum` while the limit is exceeded, and 0 otherwise."""
    lam = jnp.where(cost > config.cost_limit, jnp.float32(config.ascent.maximum), jnp.float32(0))
    return state, lam, {"lambda": lam}


switch = MultiplierPart(start=lambda config: (), step=step, settings=("ascent",))
flashbulb.register_algorithm(
    "switch-ppo", Algorithm("PPO with a switch", "ppo", switch, settings={"ascent": {"maximum": 3.0}})
)

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
print(flashbulb.train("mice-switch-ppo", "HazardField-v0", steps=steps, ascent={"maximum": 5.0}))
