"""Our tasks as Gymnasium environments: a single one for `gymnasium.make`, a native batch for `gymnasium.make_vec`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from flashbulb.envs import registry
from flashbulb.errors import UsageError

RENDER_MODES = ["rgb_array", "human"]


class GymEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One of our tasks as `gymnasium.make("flashbulb/<id>")` returns it: a batch of one, the cost in `info["cost"]`.

    The batch resets itself within the step; here the observation of an episode's last step is its last one. It can be
    copied and pickled: its state is that of the batch.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 20}  # noqa: RUF012 (Gymnasium's form)

    def __init__(self, env_id: str, render_mode: str | None = None, **env_kwargs: Any) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise UsageError(f"render_mode: {render_mode!r} is not allowed; it must be rgb_array, human or None.")
        self.env_id, self.render_mode, self.env_kwargs = env_id, render_mode, env_kwargs
        entropy = np.random.SeedSequence().generate_state(1)[0]
        self.vector_env = registry.make(env_id, num_envs=1, seed=int(entropy), threads=1, env_kwargs=env_kwargs)
        self.observation_space = self.vector_env.single_observation_space
        self.action_space = self.vector_env.single_action_space
        self._at_start = False
        self._renderer: Any = None
        self._window: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        # After an episode's end the batch is already at the start of the next one. Another reset would draw from its
        # generator a second time and leave the random stream of the original task.
        if seed is not None or not self._at_start:
            self.vector_env.reset(seed)
        self._at_start = True
        self._show()
        return self.vector_env.observe()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        obs, reward, cost, terminated, truncated, info = self.vector_env.step(np.asarray(action)[None])
        self._at_start = bool(terminated[0] or truncated[0])
        last = info["final_obs"] if self._at_start else obs
        named = {
            name: {inner: float(own[0]) for inner, own in value.items()} if name == "costs" else value[0].item()
            for name, value in info.items()
            if "final_obs" not in name
        }
        self._show()
        return last[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {**named, "cost": float(cost[0])}

    def render(self) -> np.ndarray | None:
        """The task as an array (height, width, 3) with the mode "rgb_array"; "human" shows it by itself."""
        return self._picture() if self.render_mode == "rgb_array" else None

    def _picture(self) -> np.ndarray:
        from flashbulb.envs.task_views import renderer_of, rgb_array

        if self._renderer is None:
            self._renderer = renderer_of(self.vector_env) or False  # False: none can be had
        return rgb_array(self.vector_env, self._renderer or None)

    def _show(self) -> None:
        if self.render_mode != "human":
            return
        import matplotlib.pyplot as plt

        if self._window is None:
            axes = plt.figure(self.env_id).add_axes((0, 0, 1, 1), frameon=False)
            self._window = axes.imshow(self._picture())
        else:
            self._window.set_data(self._picture())
        plt.pause(1e-3)

    def close(self) -> None:
        if self._renderer:
            self._renderer.close()
        if self._window is not None:
            import matplotlib.pyplot as plt

            plt.close(self._window.figure)
        self.vector_env.close()

    def __getstate__(self) -> dict[str, Any]:
        """All but the simulator, which is built again, and windows."""
        kept = {name: value for name, value in vars(self).items() if name not in ("vector_env", "_renderer", "_window")}
        return kept | {"batch_state": self.vector_env.get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = dict(state)
        batch_state = kept.pop("batch_state")
        vars(self).update(kept, _renderer=None, _window=None)
        self.vector_env = registry.make(self.env_id, num_envs=1, threads=1, env_kwargs=self.env_kwargs)
        self.vector_env.set_state(batch_state)


class GymVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """One of our tasks as `gymnasium.make_vec("flashbulb/<id>", num_envs)` returns it: the batch itself.

    Episodes restart within the step (`AutoresetMode.SAME_STEP`): the last observation of an episode is in
    `info["final_obs"]` where `info["_final_obs"]` is true. The cost is in `info["cost"]`.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **env_kwargs: Any,
    ) -> None:
        if render_mode is not None:
            raise UsageError(f"render_mode: {render_mode!r} is not allowed for a batch; render a single environment.")
        entropy = np.random.SeedSequence().generate_state(1)[0]
        self.env_id, self.env_kwargs, self.num_envs = env_id, env_kwargs, num_envs
        self.batch = registry.make(env_id, num_envs, int(entropy), env_kwargs=env_kwargs)
        if max_episode_steps not in (None, self.batch.max_episode_steps):
            self.batch.close()
            raise UsageError(
                f"max_episode_steps: {max_episode_steps} is not allowed; {env_id} has {self.batch.max_episode_steps}."
            )
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = self.batch.single_observation_space
        self.single_action_space = self.batch.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all episodes. A seed `s` is `s + i` for environment `i`; a list has one for each."""
        if seed is None or isinstance(seed, int | np.integer):
            return self.batch.reset(None if seed is None else int(seed))
        if len(seed) != self.num_envs:
            raise UsageError(f"seed: a list of {len(seed)} is not allowed; it must have {self.num_envs} entries.")
        self.batch.reset()
        single = registry.make(self.env_id, 1, threads=1, env_kwargs=self.env_kwargs)
        for index, own in enumerate(seed):
            if own is not None:
                single.reset(int(own))
                self.batch.set_state(single.get_state(), np.array([index]))
        single.close()
        return self.batch.observe(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        obs, reward, cost, terminated, truncated, info = self.batch.step(actions)
        return obs, reward, terminated, truncated, info | {"cost": cost}

    def close_extras(self, **kwargs: Any) -> None:
        self.batch.close()
