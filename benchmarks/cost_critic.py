"""How well a critic can know the cost to come in layouts that it was not fitted to, from what it sees of them.

    python -m benchmarks.cost_critic RUN            # a run on a task with lidars; it is played, not trained

Plays the run's policy, with its action noise, in 200 environments for some episodes, fits critics of the usual size to
the sampled discounted costs of four fifths of the environments, and prints the share of the variance explained in
the others: with the observation alone, and with lidar readings seen a second time (`normaliser.py`).
"""

from __future__ import annotations

import argparse

import jax
import numpy as np

import flashbulb
from flashbulb.algorithms.critics import fit, init_critics
from flashbulb.algorithms.networks import forward
from flashbulb.analysis.fresh_episodes import r_squared, returns
from flashbulb.config import CriticConfig
from flashbulb.envs.base import lidar_groups_of
from flashbulb.normaliser import Normaliser, near_entries

GAMMAS = (0.9, 0.97, 0.99, 0.998)
NUM_ENVS, FITTED = 200, 160
SETTINGS = CriticConfig(learning_rate=1e-3, passes=2, minibatch=256)


def play(run: str, episodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observations (time, env, n), costs and ends of episodes of the run's policy on seeds that nobody trains on."""
    policy = flashbulb.load_policy(run, seed=0)
    env = flashbulb.make(policy.config.env, num_envs=NUM_ENVS)
    obs, _ = env.reset(seed=2_000_000)
    steps = episodes * env.max_episode_steps
    observations = np.empty((steps, *obs.shape), np.float32)
    costs, ended = np.zeros((steps, NUM_ENVS)), np.zeros((steps, NUM_ENVS), bool)
    for t in range(steps):
        observations[t] = obs
        obs, _, costs[t], terminated, truncated, _ = env.step(policy.predict(obs, deterministic=False))
        ended[t] = terminated | truncated
    return observations, costs, ended


def explained(observations: np.ndarray, targets: np.ndarray, near: np.ndarray | tuple[()]) -> list[float]:
    """R^2 of a critic for each row of targets (gammas, time, env), in the environments that it was not fitted to."""
    normaliser = Normaliser.empty(observations.shape[-1], near).absorb(observations[:, :FITTED])
    fitted, fresh = (
        normaliser.frozen()(part).reshape(-1, normaliser.features)
        for part in (observations[:, :FITTED], observations[:, FITTED:])
    )
    scale = targets.std(axis=(1, 2), keepdims=True)
    known, asked = ((part / scale).reshape(len(targets), -1) for part in (targets[..., :FITTED], targets[..., FITTED:]))
    critics = init_critics(jax.random.key(0), normaliser.features, len(targets) - 1, SETTINGS)
    critics, _ = fit(critics, fitted, known.astype(np.float32), np.random.default_rng(0), 1e-3, SETTINGS)
    guesses = jax.vmap(forward, in_axes=(0, None))(critics.networks, fresh)[..., 0]
    return [r_squared(np.asarray(guess), truth) for guess, truth in zip(guesses, asked, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a cost critic can know of fresh layouts.")
    parser.add_argument("run")
    parser.add_argument("--episodes", type=int, default=3)
    given = parser.parse_args()
    observations, costs, ended = play(given.run, given.episodes)
    nothing = np.zeros_like(costs)
    targets = np.stack([returns(costs, ended, nothing, gamma) for gamma in GAMMAS])
    env = flashbulb.make(flashbulb.load_policy(given.run).config.env, num_envs=1)
    print(f"{observations.shape[0] * NUM_ENVS:,} steps, cost rate {costs.mean():.4f}")
    print("| what the critic sees | " + " | ".join(f"gamma {gamma}" for gamma in GAMMAS) + " |")
    print("| --- |" + " --- |" * len(GAMMAS))
    for name, wanted in (("the observation", False), ("and lidars a second time", True)):
        found = explained(observations, targets, near_entries(lidar_groups_of(env), wanted))
        print(f"| {name} | " + " | ".join(f"{share:.2f}" for share in found) + " |", flush=True)


if __name__ == "__main__":
    main()
