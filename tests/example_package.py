"""A package of somebody else, of the examples of docs/add_an_algorithm.md and a task, as if installed by pip."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "add_an_algorithm.md"
TASK = """
import flashbulb
import gymnasium
import numpy as np


class Slope(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10, 10, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.x = 0, self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self.x, {}

    def step(self, action):
        self.t += 1
        self.x = np.clip(self.x + 0.2 * action, -10, 10).astype(np.float32)
        return self.x, float(self.x[0]), False, self.t >= 20, {"cost": float(self.x[0] > 0.5)}


flashbulb.register_env("Slope-v0", Slope)
"""


def examples() -> dict[str, str]:
    """The modules of the page by their names."""
    found = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return dict(found)


def install(place: Path, entry_points: bool = True) -> Path:
    """Write the package to a directory of the search path, with the metadata of an installed one."""
    package = place / "outside"
    package.mkdir(parents=True)
    modules = {name: text for name, text in examples().items() if name != "my_task"} | {"slope": TASK}
    (package / "__init__.py").write_text("".join(f"from outside import {name} as {name}\n" for name in modules))
    for name, text in modules.items():
        (package / f"{name}.py").write_text(text)
    if entry_points:
        metadata = place / "outside-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[flashbulb.plugins]\nall = outside\n")
    return place
