"""Nothing that a user can type or set brings up a traceback: every answer is a result, help, or one sentence."""

import dataclasses
import math

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import flashbulb.theory.statements
import flashbulb.training.loop
from flashbulb.algorithms.registry import ALGORITHMS, configure
from flashbulb.cli.main import COMMANDS, main
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.validation import rebuild

QUICK = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def leaves(part, prefix=""):
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            yield from leaves(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


FIELDS = [name for name in leaves(Config("cpo", "HazardField-v0")) if name not in ("algorithm", "env")]
OPTIONS = [f"--{name.replace('_', '-')}" for name in FIELDS]
# An argument of a process holds no NUL, and Python's own decoding leaves no lone surrogates in what we generate.
typed = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12)
numbers = st.one_of(
    st.integers().map(str), st.floats().map(str), st.sampled_from(["1e6", "1_000", "0x10", "-0", "nan"])
)
places = st.sampled_from([".", "/", "nowhere", "README.md", "tests", "/dev/null", "a/b:c", "os:getcwd", ":", "os:"])
words = st.sampled_from(
    [*ALGORITHMS, "mice-mice-cpo", "constant-x-cpo", "HazardField-v0", "CartPole-v1", "--help", "-o", "--"]
)
values = st.one_of(numbers, typed, places, words, st.sampled_from(["None", "True", "violated", "serial"]))
options = st.tuples(st.sampled_from(OPTIONS), values).map(list)
flags = st.sampled_from(
    ["--json", "--video", "--episodes", "--steps", "--to", "--output", "--deterministic", "--wandb"]
)


def commands():
    """Mostly well-formed, so that parsing gets further than the first word."""
    tail = st.lists(st.one_of(options, values.map(lambda v: [v]), flags.map(lambda f: [f])), max_size=5)
    flat = tail.map(lambda parts: [word for part in parts for word in part])
    heads = st.one_of(
        st.sampled_from([[command] for command in COMMANDS]),
        st.tuples(st.just("train"), words, st.just("HazardField-v0")).map(list),
        st.lists(typed, max_size=1),
    )
    return st.tuples(heads, flat).map(lambda pair: pair[0] + pair[1])


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch, tmp_path):
    """Whatever would take long, or write, stops short of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(flashbulb.training.loop, "train", lambda config: None)
    monkeypatch.setattr(flashbulb.theory.statements, "main", lambda arguments: 0)


@QUICK
@given(commands())
@example(["train", "cpo", "HazardField-v0", "--steps", "1e400"])
@example(["train", "cpo", "HazardField-v0", "--num-envs", "1" + "0" * 500])
@example(["check", "os:getcwd"])
@example(["evaluate", "/dev/null"])
@example(["plot", "/", "-o", "/dev/null"])
@example(["runs", "/proc/1/root"])
def test_no_command_line_ends_in_a_traceback(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    said = capsys.readouterr().err
    assert stop.value.code in (0, 1, 2, None)
    if stop.value.code == 2 and arguments:
        assert said.startswith("flashbulb: ")
        assert len(said.strip().splitlines()) == 1
        assert len(said) > len("flashbulb: ..")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=5,
)


def attempt(call):
    """What it returns and what it refuses; anything else it raises fails the test."""
    try:
        return call(), None
    except UsageError as error:
        return None, str(error)


def nested(name, value):
    part, _, field = name.partition(".")
    return {part: {field: value} if field else value}


@QUICK
@given(st.sampled_from(sorted(FIELDS)), anything, st.sampled_from(["cpo", "mice-pid", "simmer-pid"]))
@example("seed", 10**400, "cpo")
@example("cost_limit", math.inf, "cpo")
@example("name", "../elsewhere", "cpo")
@example("runs_dir", "\0", "cpo")
@example("policy.hidden", [1.5], "cpo")
@example("memory", {1: 2, "x": 3}, "cpo")
def test_no_setting_ends_in_a_traceback(name, value, algorithm):
    """A value is refused in a sentence that names its field, or taken, and then it has the field's type."""
    part = name.partition(".")[0]
    config, refusal = attempt(lambda: configure(algorithm, "HazardField-v0", **nested(name, value)))
    if config is None:
        assert part in refusal
        return
    assert config == rebuild(dataclasses.asdict(config))
    assert isinstance(config.steps, int)
    assert isinstance(config.cost_limit, float)


@QUICK
@given(anything | st.dictionaries(st.sampled_from([f for f in FIELDS if "." not in f]), anything, max_size=4))
def test_no_configuration_file_ends_in_a_traceback(plain):
    if isinstance(plain, dict):
        plain = {"algorithm": "cpo", "env": "HazardField-v0"} | plain
    config, refusal = attempt(lambda: rebuild(plain))
    assert config or refusal


def test_numbers_of_other_libraries_are_numbers():
    import numpy as np

    config = configure("cpo", "HazardField-v0", steps=1e6, seed=np.int64(3), gamma=np.float32(0.5), cost_limit=10)
    assert (config.steps, config.seed, config.gamma, config.cost_limit) == (1_000_000, 3, 0.5, 10.0)
    assert [type(value) for value in (config.steps, config.seed, config.gamma)] == [int, int, float]
