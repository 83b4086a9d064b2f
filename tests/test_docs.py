"""Commands and examples of README and docs run, made small; links, options and paths that they name exist."""

import re
import shlex
from pathlib import Path

import pytest

from flashbulb.cli.main import RENAMED_OPTIONS, run
from flashbulb.cli.options import parse_train

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs" / "notes").glob("*.md"))]
CODE = [path for part in ("src", "tests", "benchmarks") for path in sorted((ROOT / part).rglob("*.py"))]
OUTSIDE = (
    r"METHOD\.md|peers\.md|shared/|specification, section|\bissue \d+"  # documents that are not in this repository
)

SMALL = ["--steps", "400", "--num-envs", "2", "--steps-per-iteration", "200", "--critic.passes", "1"]
SMALL += ["--policy.hidden", "4", "--critic.hidden", "4"]
OWN_ENVIRONMENT = """
import gymnasium, numpy as np

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10, 10, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.x = 0, self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.x, {}
    def step(self, action):
        self.t += 1
        self.x = np.clip(self.x + 0.1 * action[0], -10, 10).astype(np.float32)
        return self.x, float(self.x[0]), False, self.t >= 50, {"cost": float(self.x[0] > 1)}

def make_env():
    return Env()
"""


def blocks(page: Path) -> list[str]:
    """The lines of a page's indented code."""
    return [line[4:] for line in page.read_text().splitlines() if line.startswith("    ")]


def commands() -> list[str]:
    found = [line for page in PAGES for line in blocks(page) if line.startswith("flashbulb ")]
    # A trailing comment says what a command is for; brackets show what may be left out.
    return sorted({re.sub(r"\s+#.*|\s*\[.*?\]", "", line).strip() for line in found})


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A directory with a small run and a user's package in it."""
    here = tmp_path_factory.mktemp("workspace")
    package = here / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "my_module.py").write_text(OWN_ENVIRONMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        assert run(["train", "mice-cpo", "SafetyPointGoal1-v0", *SMALL, "--name", "NAME"]) == 0
    for other in ("A", "B", "first", "without_limit"):
        (here / "runs" / other).symlink_to(here / "runs" / "NAME")
    return here


@pytest.mark.parametrize("command", [c for c in commands() if c != "flashbulb theory"])  # tests/theory runs it
def test_command(command, workspace, monkeypatch, capsys):
    monkeypatch.chdir(workspace)
    monkeypatch.syspath_prepend(str(workspace))
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    words = shlex.split(command)[1:]
    words = ["runs/NAME" if word == "RUN" else word for word in words]
    if "--plugin" in words:
        return  # tests/test_plugins.py runs them
    if words[0] == "train" and "--help" not in words:
        words = words[: words.index("--steps")] + SMALL
    if words[0] == "study" and len(words) > 1:  # tests/studies runs them
        words += ["--status"] * ("--status" not in words)
    if words[0] == "evaluate":
        words[words.index("--episodes") + 1] = "2"
    if words[0] == "bias":
        words += ["--states", "4", "--rollouts", "2"]
    if "--help" in words:
        with pytest.raises(SystemExit) as stop:
            run(words)
        assert not stop.value.code
    else:
        assert run(words) == 0
    assert capsys.readouterr().out.strip()


def python_blocks(page: Path) -> str:
    """The Python code of a page, in order, each line at its own line number. ```text blocks are only to be read."""
    text, code = page.read_text(), ""
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        code += "\n" * (text[: block.start(1)].count("\n") - code.count("\n")) + block[1]
    return code


WITH_PYTHON = [page for page in PAGES if python_blocks(page)]


def test_pages_with_python_are_found():
    assert {"README", "library", "add_an_algorithm", "compare", "own_environment"} <= {p.stem for p in WITH_PYTHON}


@pytest.mark.parametrize(
    "page",
    # What that page compares is trained for longest; its calls are those of the other pages.
    [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem == "compare" else []) for p in WITH_PYTHON],
)
def test_python_of_a_page_runs(page, tmp_path, monkeypatch):
    """All blocks of a page in one namespace, in an empty directory with one run, with small training."""
    import flashbulb
    from flashbulb.algorithms import registry, stream_registry
    from flashbulb.envs import registry as env_registry

    for module, name in (
        (registry, "_BASES"),
        (registry, "ALGORITHMS"),
        (stream_registry, "_STREAMS"),
        (env_registry, "_REGISTERED"),
    ):
        monkeypatch.setattr(module, name, dict(getattr(module, name)))
    real, trained = flashbulb.train, []

    def small_train(algorithm, env, **settings):
        small = {"steps": 400, "num_envs": 2, "steps_per_iteration": 200}
        small["critic"] = {"passes": 1, "hidden": (4,)}
        trained.append(real(algorithm, env, **(settings | small)))
        return trained[-1]

    monkeypatch.setattr(flashbulb, "train", small_train)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    if page.stem == "first_ten_minutes":  # the command before trained it
        real("ppo", "HazardField-v0", steps=400, num_envs=2, steps_per_iteration=200, name="first", verbose=False)
    code = python_blocks(page).replace("range(5)", "range(2)")  # seeds
    exec(compile(code, str(page), "exec"), {"__name__": "__main__"})
    assert len(trained) >= code.count("flashbulb.train(")


def test_options_named_in_the_docs_exist(capsys):
    for name in (
        "trpo-pid",
        "mice-cpo",
        "pid-lag",
        "ppo-lag",
        "saute",
        "constant-3-cpo",
        "focops",
        "p3o",
        "crpo",
        "ipo",
    ):
        with pytest.raises(SystemExit):
            parse_train([name, "TASK", "--help"])
    known = set(re.findall(r"--[a-z][a-z0-9.-]*", capsys.readouterr().out))
    elsewhere = {"--episodes", "--to", "--json", "--video", "--states", "--rollouts", "--checkpoint", "--help"}
    elsewhere |= {"--algo", "--env-id", "--omnisafe-python", "--seed", "--turns", "--iterations", "--no-parts"}
    elsewhere |= {"--env", "--cost"}  # of evaluate, bias and resume; of memory
    elsewhere |= {"--scale", "--status", "--tasks", "--algorithms", "--seeds", "--on", "--ray-address"}  # of study
    elsewhere |= {
        "--plugin",
        "--env-kwargs.edge",
        "--env-kwargs.mark",
        "--config",
    }  # of every command; of an environment
    elsewhere |= {"--head", "--port", "--address", "--generate"}  # of Ray's commands
    elsewhere |= set(RENAMED_OPTIONS)
    for page in PAGES:
        shown = re.sub(
            r"<!--.*?-->", "", page.read_text()
        )  # without the commands of tables, which tests/test_results.py runs
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9.-]*[a-z0-9]", shown):
            assert option in known | elsewhere, f"{page.name}: {option}"


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_nothing_refers_to_documents_outside_the_repository():
    found = {
        relative(path) for path in [*TEXTS, *CODE] if path != Path(__file__) and re.search(OUTSIDE, path.read_text())
    }
    assert not found


def missing_references(path: Path) -> list[str]:
    """Paths of files that a text names and that do not exist, or do not contain the symbol named after a colon."""
    missing = []
    suffixes = "py|md" if path.suffix == ".py" else "py|md|csv"  # a test's own files are not references
    pattern = rf"(?<![\w./~-])(?!runs/)((?:[\w.-]+/)+[\w-]+\.(?:{suffixes}))(?::+(\w+))?"
    for name, symbol in re.findall(pattern, path.read_text()):
        places = [root / name for root in (ROOT, ROOT / "src", ROOT / "src" / "flashbulb", path.parent)]
        found = next((place for place in places if place.exists()), None)
        if found is None or (symbol and not re.search(rf"\b{symbol}\b", found.read_text())):
            missing.append(f"{name}:{symbol}" if symbol else name)
    return missing


def test_paths_named_in_docs_and_code_exist():
    missing = {relative(path): missing_references(path) for path in [*TEXTS, *CODE] if path != Path(__file__)}
    assert {path: names for path, names in missing.items() if names} == {}


def test_links_lead_somewhere():
    for page in TEXTS:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_algorithms_of_the_readme_are_those_of_the_table():
    from flashbulb.algorithms.registry import ALGORITHMS, get_algorithm

    section = (ROOT / "README.md").read_text().split("## Algorithms")[1].split("##")[0]
    named = set(re.findall(r"`([a-z0-9-]+)`", section)) - {"flashbulb"}
    assert set(ALGORITHMS) <= named
    for name in named:
        get_algorithm(name)


def test_make_runs_what_the_readme_says():
    makefile = (ROOT / "Makefile").read_text()
    assert "train mice-salient SafetyPointGoal1-v0" in makefile
    assert "make test" in (ROOT / ".ci" / "run").read_text()
