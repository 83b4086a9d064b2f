"""Every task as an ordinary Gymnasium environment, `gymnasium.make("flashbulb/<id>")`.

One environment instead of a batch, five values instead of six: the cost is in `info["cost"]`. The batch behind it
resets itself within the step; here that stays unseen, and the observation of an episode's last step is its last.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from flashbulb.envs import registry
from flashbulb.envs.registry import NAMESPACE


def register_all() -> None:
    """Make the known tasks known to Gymnasium. Cheap: no task is imported before it is made."""
    for env_id in registry.env_ids():
        name = f"{NAMESPACE}/{env_id}"
        if name not in gymnasium.registry:
            entry_point = f"{__name__}:GymEnv"
            gymnasium.register(name, entry_point=entry_point, kwargs={"env_id": env_id})


class GymEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A batch of one, seen as Gymnasium's users expect."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own declaration)

    def __init__(self, env_id: str, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        entropy = np.random.SeedSequence().generate_state(1)[0]
        self.batch = registry.make(env_id, num_envs=1, seed=int(entropy), threads=1)
        self.observation_space = self.batch.single_observation_space
        self.action_space = self.batch.single_action_space
        self._at_start = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        # A batch whose episode just ended already stands at the start of the next: resetting it again would draw
        # twice from its generator and leave the stream of the original.
        if seed is not None or not self._at_start:
            self.batch.reset(seed)
        self._at_start = True
        return self.batch.observe()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        obs, reward, cost, terminated, truncated, info = self.batch.step(np.asarray(action)[None])
        ended = bool(terminated[0] or truncated[0])
        self._at_start = ended
        seen = info["final_obs"] if ended else obs
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {"cost": float(cost[0])}

    def close(self) -> None:
        self.batch.close()
