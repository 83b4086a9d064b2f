"""One iteration of MICE on a CMDP whose every number is known: each part of the method shows in one of them.

The places 0, 1, 2, 3 are walked in order whatever the action, acting in place 3 costs 1 and ends the episode. What is
checked here is then checked to notice: with any one part switched off, the same checks fail.
"""

import numpy as np
import pytest
from gymnasium import spaces

from flashbulb.algorithms import learner as learner_module
from flashbulb.algorithms.critics import values
from flashbulb.algorithms.registry import configure
from flashbulb.envs.base import final_info
from flashbulb.memory import Balance, FlashbulbMemory, flashbulb_memory, intrinsic_cost
from flashbulb.training.iteration import iterate, run_parts
from flashbulb.training.train_state import start

PLACES, ENVS, EPISODES = 4, 2, 2
GAMMA, BETA, RATE, DISCOUNT, XI, K, LIMIT = 0.9, 2.0, 0.05, 0.95, 0.5, 8, 0.25
SETTINGS = {
    "num_envs": ENVS,
    "steps_per_iteration": ENVS * EPISODES * PLACES,
    "steps": 3 * ENVS * EPISODES * PLACES,
    "cost_limit": LIMIT,
    "cost_gamma": GAMMA,
    "cost_lam": 1.0,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
    "memory": {"neighbours": K, "xi": XI, "embedding": 0, "window": 1},
    "balance": {"initial": BETA, "rate": RATE, "discount": DISCOUNT, "margin": 1.0},
}


class Line:
    env_id, num_envs, max_episode_steps = "Line", ENVS, PLACES
    single_observation_space = spaces.Box(0.0, 1.0, (PLACES,), np.float32)
    single_action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, seed=None):
        self.place = 0
        return self.observe(), {}

    def observe(self):
        return np.tile(np.eye(PLACES, dtype=np.float32)[self.place], (ENVS, 1))

    def step(self, actions):
        ended = np.full(ENVS, self.place == PLACES - 1)
        cost, final = ended.astype(float), self.observe()
        self.place = (self.place + 1) % PLACES
        return self.observe(), np.zeros(ENVS), cost, ended, ended & False, final_info(final, ended)

    def get_state(self, indices=None):
        return {"place": np.full(ENVS, self.place)}

    def set_state(self, state, indices=None):
        self.place = int(state["place"][0])

    def close(self):
        pass


def check_two_iterations():
    config = configure("mice-cpo", "Line", **SETTINGS)
    with run_parts(config, Line()) as parts:
        before = start(parts.env, parts.learner, config)
        state, batch, metrics = iterate(config, parts, before)
        _, second, _ = iterate(config, parts, state)

    # Memory: the states in which an action cost, and no others.
    stored = ENVS * EPISODES
    np.testing.assert_array_equal(state.memory.states, np.tile(np.eye(PLACES)[3], (stored, 1)))

    # Kernel and normalisation: l^2 is 0 from place 3 and 2 from the others; only 4 of the 8 neighbours exist.
    near, far = np.sqrt(stored / K), np.sqrt(stored * (XI / (2 + XI)) / K)
    c_i = np.array([far, far, far, near])
    expected = np.tile(c_i, EPISODES)
    np.testing.assert_allclose(batch.intrinsic, np.stack([expected] * ENVS, axis=1), rtol=1e-5)

    # Factor: the critic learns the discounted sum of c + beta c^I, which with lambda = 1 needs no value.
    costs = np.array([0, 0, 0, 1.0])
    assert batch.beta == BETA
    to_go = [sum(GAMMA ** (j - t) * (costs + BETA * c_i)[j] for j in range(t, PLACES)) for t in range(PLACES)]
    targets = np.asarray(batch.critic_targets[1]).reshape(EPISODES * PLACES, ENVS)
    np.testing.assert_allclose(targets, np.stack([np.tile(to_go, EPISODES)] * ENVS, axis=1), rtol=1e-4)

    # Margin: the constraint is J_C + I - d, with J_C = 1.
    spare = BETA * c_i.mean() / (1 - GAMMA)
    np.testing.assert_allclose(metrics["constraint"], 1 + spare - LIMIT, rtol=1e-4)

    # Correction: b_1 = b_0 - alpha sum(eps c^I) / sum((c^I)^2), eps = V_C - G_C; beta_1 is discounted once.
    v_c = np.asarray(values(before.learner.critics, np.eye(PLACES, dtype=np.float32))[1])
    eps = v_c - GAMMA ** np.arange(3, -1, -1)
    b_1 = BETA - RATE * (eps * c_i).sum() / np.square(c_i).sum()
    assert abs(b_1 - BETA) > 0.01
    np.testing.assert_allclose(state.balance.b, b_1, rtol=1e-4)
    np.testing.assert_allclose(second.beta, DISCOUNT * b_1, rtol=1e-4)


def test_every_number_of_two_iterations_is_the_papers():
    check_two_iterations()


def no_memory(patch):
    patch.setattr(FlashbulbMemory, "add", lambda self, unsafe, iteration, config: self)


def all_states_remembered(patch):
    patch.setattr("flashbulb.training.iteration.unsafe_states", lambda costs, to_go, config: costs >= 0)


def no_kernel(patch):
    patch.setattr(intrinsic_cost, "kernel", lambda squared, xi: np.ones_like(squared))


def no_normalisation(patch):
    patch.setattr(flashbulb_memory, "pseudo_count_cost", lambda s, k, xi, form: np.sqrt((xi / (s + xi)).sum(-1)))


def no_factor(patch):
    patch.setattr(Balance, "beta", lambda self, config: 1.0)


def no_intrinsic_cost_in_the_critic(patch):
    real = learner_module.estimate_advantages
    patch.setattr(
        learner_module,
        "estimate_advantages",
        lambda critics, batch, rewards, config: real(critics, batch._replace(beta=0.0), rewards, config),
    )


def no_correction(patch):
    patch.setattr(Balance, "correct", lambda self, bias, intrinsic, config: self._replace(updates=self.updates + 1))


def no_discount(patch):
    patch.setattr(Balance, "beta", lambda self, config: float(self.b))


def no_margin(patch):
    patch.setitem(SETTINGS["balance"], "margin", 0.0)


PARTS = [no_memory, all_states_remembered, no_kernel, no_normalisation, no_factor, no_intrinsic_cost_in_the_critic]
PARTS += [no_correction, no_discount, no_margin]


@pytest.mark.parametrize("switch_off", PARTS, ids=lambda part: part.__name__)
def test_a_part_that_is_switched_off_is_noticed(switch_off, monkeypatch):
    switch_off(monkeypatch)
    with pytest.raises(AssertionError):
        check_two_iterations()
