"""Configurations as YAML: out of a run or a command line, and into one."""

import pytest

from flashbulb.cli.main import run
from flashbulb.cli.options import parse_train
from flashbulb.errors import UsageError
from tests.training.small_run import made_run

COMMAND = ["mice-cpo", "HazardField-v0", "--steps", "3e5", "--memory.xi", "0.5", "--policy.hidden", "8", "4"]


def test_what_is_written_is_read_again(tmp_path, capsys):
    assert run(["config", *COMMAND, "--env-kwargs.size", "3"]) == 0
    text = capsys.readouterr().out
    assert "steps: 300000\n" in text
    assert "pid:" not in text
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    config = parse_train([*COMMAND, "--env-kwargs.size", "3"])
    assert parse_train(["--config", str(file)]) == config
    assert parse_train([f"--config={file}", "--steps", "3e5"]) == config
    assert parse_train(["--config", str(file), "--seed", "4"]).seed == 4
    assert parse_train(["pcpo", "HazardField-v0", "--config", str(made(tmp_path, "cost_limit: 3\n"))]).cost_limit == 3.0


def made(place, text):
    file = place / "own.yaml"
    file.write_text(text)
    return file


def test_a_run_shows_its_configuration(tmp_path, capsys):
    path = made_run(tmp_path, "run", "ppo-lag", seed=5)
    assert run(["config", str(path)]) == 0
    text = capsys.readouterr().out
    assert "algorithm: ppo-lag\n" in text
    assert "seed: 5\n" in text
    assert "trust_region" not in text


def test_numbers_as_people_write_them(tmp_path):
    file = made(tmp_path, "algorithm: cpo\nenv: HazardField-v0\nsteps: 1e6\ntrust_region: {kl: 1e-2}\n")
    config = parse_train(["--config", str(file)])
    assert (config.steps, config.trust_region.kl) == (1_000_000, 0.01)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("algorithm: cpo\nenv: HazardField-v0\nstepz: 3\n", "stepz: there is no such setting"),
        ("algorithm: cpo\nenv: HazardField-v0\npid: {maximum: 3}\n", "pid: cpo does not use it"),
        ("algorithm: cpo\nenv: HazardField-v0\nseed: -1\n", "seed: -1 is not allowed"),
        ("- 1\n", "must be a table of settings"),
        ("a: [\n", "is not YAML"),
        ("env: HazardField-v0\n", "algorithm: missing"),
        ("!!python/object/apply:os.getcwd []\n", "is not YAML"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(text, says, tmp_path):
    with pytest.raises(UsageError, match=says) as refusal:
        parse_train(["--config", str(made(tmp_path, text))])
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        parse_train(["--config", str(tmp_path / "none.yaml")])
    with pytest.raises(UsageError, match="config: missing"):
        parse_train(["cpo", "HazardField-v0", "--config"])
