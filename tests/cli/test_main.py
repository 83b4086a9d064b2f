"""The command line as a user sees it: fast help, errors in one sentence, exit codes, old spellings."""

import os
import subprocess
import sys

import pytest

from flashbulb.algorithms.registry import configure
from flashbulb.cli.main import main, run
from flashbulb.cli.options import parse_train
from flashbulb.errors import UsageError

TRAIN = ["train", "cpo", "HazardField-v0"]


def flashbulb(*arguments, cwd=None, **environment):
    command = [sys.executable, "-m", "flashbulb", *arguments]
    env = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, env=env)


def test_help_names_the_commands_and_imports_nothing_heavy():
    done = flashbulb("--help")
    assert done.returncode == 0
    assert "flashbulb train ALGORITHM TASK" in done.stdout
    heavy = "import sys, flashbulb.cli.main; print({'jax', 'mujoco', 'numba', 'scipy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True).stdout.strip() == "set()"


def test_help_of_an_algorithm_shows_options_and_bounds():
    done = flashbulb("train", "mice-cpo", "--help")
    assert done.returncode == 0
    for option in ("--cost-limit", "--memory.neighbours", "--trust-region.kl", "--balance.initial"):
        assert option in done.stdout
    assert "--cost-limit FLOAT>=0" in done.stdout


BAD_INPUT = pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "mice-cp", "HazardField-v0"], ["algorithm", "'mice-cp'", "mice-cpo"]),
        (["train", "cpo", "SafetyPointGoal"], ["env", "'SafetyPointGoal'", "SafetyPointGoal1-v0"]),
        ([*TRAIN, "--steps", "0"], ["steps", "0", "at least 1"]),
        ([*TRAIN, "--steps", "many"], ["--steps", "'many'", "whole number"]),
        ([*TRAIN, "--steps", "1.5"], ["--steps", "'1.5'", "whole number"]),
        ([*TRAIN, "--num-envs", "0"], ["num_envs", "0", "at least 1"]),
        ([*TRAIN, "--cost-limit", "-1"], ["cost_limit", "-1.0", "at least 0"]),
        ([*TRAIN, "--cost-limit", "nan"], ["cost_limit", "nan", "finite"]),
        ([*TRAIN, "--runs-dir", "/proc/nowhere"], ["runs_dir", "/proc/nowhere", "writable"]),
        ([*TRAIN, "--trust-region.recover", "never"], ["recover", "'never'", "violated"]),
        ([*TRAIN, "--gamma", "2"], ["gamma", "2.0", "at least 0 and at most 1"]),
        ([*TRAIN, "--cost-gamma", "1"], ["cost_gamma", "1.0", "below 1"]),
        ([*TRAIN, "--policy.hidden", "64", "0"], ["policy.hidden", "0", "whole number of at least 1"]),
        ([*TRAIN, "--nonsense", "1"], ["--nonsense"]),
        (["check", "os:getcwd", "--steps", "0"], ["steps", "0", "at least 1"]),
        (["resume", "runs/NAME", "--threads", "0"], ["threads", "0", "at least 1"]),
        (["evaluate", "runs/NAME", "--episodes", "0"], ["episodes", "0", "at least 1"]),
        (["bias", "runs/NAME", "--states", "1"], ["states", "1", "at least 2"]),
        (["memory", "runs/NAME", "--seed", "-1"], ["seed", "-1", "at least 0"]),
        (["report", "runs/NAME", "--episodes", "21"], ["episodes", "21", "at most 20"]),
        (["study", "versus-base", "--seeds", "-1"], ["seeds", "-1", "at least 0"]),
        (["train"], ["algorithm", "missing"]),
        (["train", "cpo"], ["env", "missing"]),
        (["trian"], ["command", "'trian'", "train"]),
        (["envs", "all"], ["envs", "'all'"]),
    ],
)


@BAD_INPUT
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, says, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert_one_sentence(*capfd.readouterr(), says)
    assert list(tmp_path.iterdir()) == [], "a refused run leaves nothing behind"


@pytest.mark.parametrize("arguments", [["train", "cpo"], [*TRAIN, "--steps", "0"], [*TRAIN, "--nonsense", "1"]])
def test_bad_input_of_a_program_of_its_own(arguments):
    done = flashbulb(*arguments)
    assert done.returncode == 2
    assert_one_sentence(done.stdout, done.stderr, [])


def assert_one_sentence(output, errors, says):
    assert "Traceback" not in errors + output
    assert len(errors.strip().splitlines()) == 1
    for part in says:
        assert part in errors


def test_the_sentence_survives_a_terminal_without_unicode():
    done = flashbulb(*TRAIN, "--cost-limt", "3", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert done.stderr == "flashbulb: Unrecognized options: --cost-limt, 3; perhaps you meant --cost-limit.\n"


def test_lists_of_algorithms_and_tasks():
    assert "mice-cpo" in flashbulb("algorithms").stdout
    assert "SafetyHalfCheetahVelocity-v1" in flashbulb("envs").stdout.splitlines()
    assert flashbulb("--version").stdout.startswith("flashbulb ")


def test_large_seeds_are_exact():
    assert parse_train(["cpo", "HazardField-v0", "--seed", "9007199254740993"]).seed == 2**53 + 1
    assert configure("cpo", "HazardField-v0", seed=2**53 + 1).seed == 2**53 + 1
    assert parse_train(["cpo", "HazardField-v0", "--seed", "1e3"]).seed == 1000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["recipes"], ["algorithms"]),
        (
            ["study", "versus-base", "--recipes", "cpo", "--tasks", "HazardField-v0", "--status"],
            ["study", "versus-base", "--algorithms", "cpo", "--tasks", "HazardField-v0", "--status"],
        ),
    ],
)
def test_old_spellings_work_with_a_note(old, new, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(new) == 0
    expected = capsys.readouterr()
    assert run(old) == 0
    found = capsys.readouterr()
    assert found.out == expected.out
    assert expected.err == ""
    (note,) = found.err.splitlines()
    assert "deprecated" in note


def test_a_taken_name_is_refused_before_anything_heavy_is_imported(tmp_path):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "config.json").write_text("{}")
    code = (
        "import sys; from flashbulb.cli.main import run\n"
        "from flashbulb.errors import UsageError\n"
        f"try: run({[*TRAIN, '--name', 'mine']!r})\n"
        "except UsageError as error: print(error, 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "name: 'mine' is taken in runs; choose another name. False\n"


def test_evaluate_on_a_file_that_is_no_checkpoint(tmp_path):
    (tmp_path / "data.npz").touch()
    with pytest.raises(UsageError, match=r"data\.npz is not allowed; it must be the directory of a run"):
        run(["evaluate", str(tmp_path / "data.npz")])


def test_python_refuses_a_taken_name_before_it_prepares_anything(tmp_path, monkeypatch):
    import flashbulb
    from flashbulb.training import loop

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").touch()
    monkeypatch.setattr(loop, "run_parts", lambda *_: pytest.fail("the environment was made first"))
    with pytest.raises(UsageError, match="name: 'mine' is taken"):
        flashbulb.train("cpo", "HazardField-v0", steps=400, name="mine", runs_dir=tmp_path, verbose=False)


def test_a_file_that_is_no_checkpoint_is_named_itself(tmp_path):
    stray = tmp_path / "stray.safetensors"
    stray.write_bytes(b"")
    with pytest.raises(
        UsageError, match=r"stray\.safetensors is not allowed; it must be the directory of a run or one"
    ):
        run(["evaluate", str(stray)])
