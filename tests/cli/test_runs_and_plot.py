"""`flashbulb runs`, `flashbulb plot` and Weights & Biases: what there is to look at."""

import shutil
import subprocess
import sys
import types

import numpy as np
import pytest

from flashbulb.algorithms.registry import configure
from flashbulb.analysis.experiment import distinct_labels
from flashbulb.cli.main import run
from flashbulb.errors import UsageError
from flashbulb.plots.learning_curves import gather_curves
from flashbulb.storage.loggers import WandbLogger
from flashbulb.storage.run_directory import RunDirectory, load_config
from flashbulb.storage.run_list import list_runs
from tests.training.small_run import made_run

HOLD = """
import sys, flashbulb.storage.run_directory as d
with d.RunDirectory(sys.argv[1]).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    parent = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        made_run(parent, f"cpo{seed}", seed=seed)
    made_run(parent, "mice", "mice-cpo", done=2)
    made_run(parent, "other", "cpo", "tests.envs.gym_examples:make_six", cost_limit=3.0)
    made_run(parent, "fresh", done=0)
    (parent / "notes").mkdir()
    (parent / "a.txt").write_text("not a run")
    return parent


def test_runs_are_listed_with_their_state_and_numbers(runs):
    listed = {row.name: row for row in list_runs(runs)[0]}
    assert set(listed) == {"cpo0", "cpo1", "cpo2", "mice", "other", "fresh"}
    assert listed["cpo1"].status == "finished"
    assert listed["mice"].status == listed["fresh"].status == "interrupted"
    assert (listed["cpo1"].steps, listed["cpo1"].returns, listed["cpo1"].cost) == (1200, 1 + 3, 1 + 6)
    assert listed["cpo1"].violation_rate == 1 + 9
    assert np.isnan(listed["fresh"].returns)


def test_a_run_that_a_process_writes_is_running(runs):
    command = [sys.executable, "-c", HOLD, str(runs / "mice")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "held\n"
        assert {row.name: row.status for row in list_runs(runs)[0]}["mice"] == "running"
        writer.stdin.close()
    assert not RunDirectory(runs / "mice").is_locked()


def test_the_list_on_the_command_line(runs, capsys, tmp_path, monkeypatch):
    assert run(["runs", str(runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    (mine,) = [line for line in lines if line.startswith("other")]
    assert mine.split()[1:] == [
        "cpo",
        "tests.envs.gym_examples:make_six",
        "finished",
        "1,200",
        "3.00",
        "6.00",
        "3",
        "900%",
    ]
    assert run(["runs", str(tmp_path)]) == 0
    assert "No runs" in capsys.readouterr().out
    with pytest.raises(UsageError, match="cannot be listed"):
        run(["runs", str(tmp_path / "nowhere")])
    monkeypatch.chdir(tmp_path)  # where nothing was trained yet
    assert run(["runs"]) == 0
    assert capsys.readouterr().out == "No runs here yet; `flashbulb train` makes the first.\n"


def test_damaged_runs_are_named_and_the_others_shown(tmp_path, capsys):
    """A torn configuration and torn metrics: one line each, in `runs`, `plot` and `report`."""
    good, torn, odd = (made_run(tmp_path, name, seed=k) for k, name in enumerate(("good", "torn", "odd")))
    (torn / "metrics.csv").write_text("iteration,steps\n0,many\n")
    (odd / "config.json").write_text('{"config": ')
    figure, page = tmp_path / "c.png", tmp_path / "r.html"
    everything = [str(run) for run in (torn, good, odd)]
    for command in (
        ["runs", str(tmp_path)],
        ["plot", *everything, "-o", str(figure)],
        ["report", *everything, "-o", str(page), "--episodes", "0"],
    ):
        assert run(command) == 0
        said = capsys.readouterr()
        lines = said.err.splitlines()
        assert len(lines) == 2, said.err
        assert sum(f"{torn} is left out: {torn / 'metrics.csv'} cannot be read" in line for line in lines) == 1
        assert sum(f"{odd} is left out: {odd / 'config.json'} cannot be read" in line for line in lines) == 1
    assert figure.exists()
    assert "good" in page.read_text()
    assert "torn is left out" in page.read_text()
    with pytest.raises(UsageError, match="none of the 2 can be read"):
        run(["plot", str(torn), str(odd)])
    with pytest.raises(UsageError, match=r"^run: .*metrics\.csv cannot be read"):
        run(["plot", str(torn)])


def test_a_copy_of_a_run_is_no_other_seed(tmp_path, capsys, monkeypatch):
    from flashbulb.plots import learning_curves

    first, other = made_run(tmp_path, "first"), made_run(tmp_path, "other", seed=1)
    copy = shutil.copytree(first, tmp_path / "copy")
    drawn = []
    monkeypatch.setattr(learning_curves, "draw_panel", lambda axes, group, name, colours: drawn.append(group))
    assert run(["plot", *map(str, (first, copy, other)), "-o", str(tmp_path / "c.png")]) == 0
    assert drawn[1]["cpo"].values["cost"][:, 0].tolist() == [0.0, 1.0]
    said = f"flashbulb: {copy} is left out: it has the settings and the seed of {first}, so it is no other sample.\n"
    assert capsys.readouterr().err == said
    assert run(["report", *map(str, (first, copy, other)), "-o", str(tmp_path / "r.html"), "--episodes", "0"]) == 0
    assert capsys.readouterr().err == said


def test_seeds_are_grouped_and_brought_to_common_steps(runs):
    tasks = gather_curves([runs / name for name in ("cpo0", "cpo1", "cpo2", "mice", "other")])
    assert set(tasks) == {"HazardField-v0", "tests.envs.gym_examples:make_six"}
    curves = tasks["HazardField-v0"]["cpo"]
    np.testing.assert_array_equal(curves.steps, [300, 600, 900, 1200])
    np.testing.assert_array_equal(curves.values["cost"], np.arange(3)[:, None] + 2.0 * np.arange(4))
    assert tasks["HazardField-v0"]["mice-cpo"].steps.tolist() == [300, 600]


def test_runs_of_other_lengths_meet_where_both_are(runs, tmp_path):
    short = made_run(tmp_path, "short", done=2, seed=5)
    curves = gather_curves([runs / "cpo0", short])["HazardField-v0"]["cpo"]
    np.testing.assert_array_equal(curves.steps, [300, 600])


def test_runs_of_other_settings_are_no_seeds_of_each_other(tmp_path, capsys, monkeypatch):
    from flashbulb.plots import learning_curves

    paths = [made_run(tmp_path, f"run{seed}", seed=seed) for seed in range(2)]
    paths.append(made_run(tmp_path, "loose", seed=0, cost_limit=40.0))
    assert distinct_labels([load_config(path) for path in paths]) == ["cpo, cost_limit 25.0"] * 2 + [
        "cpo, cost_limit 40.0"
    ]
    assert distinct_labels([load_config(path) for path in paths[:2]]) == ["cpo", "cpo"]
    drawn = []
    monkeypatch.setattr(learning_curves, "draw_panel", lambda axes, group, name, colours: drawn.append(group))
    assert run(["plot", str(paths[0]), f"{paths[0]}/../run0", str(paths[1]), "-o", str(tmp_path / "c.png")]) == 0
    assert len(drawn[1]["cpo"].values["cost"]) == 2, "the same run twice is one"


def test_two_seeds_show_their_range(monkeypatch):
    from flashbulb.plots import learning_curves

    values = {"cost": np.array([[1.0, 2.0], [3.0, 6.0]])}
    curves = learning_curves.Curves("cpo", np.array([1.0, 2.0]), values, {"cost": {25.0}})
    axes = learning_curves.new_figure(3, 3).subplots()
    bands = []
    monkeypatch.setattr(axes, "fill_between", lambda steps, low, high, **_: bands.append((low.tolist(), high.tolist())))
    learning_curves.draw_panel(axes, {"cpo": curves}, "cost", {"cpo": "black"})
    assert bands == [([1.0, 2.0], [3.0, 6.0])]


def test_the_picture_has_the_limit_dashed_and_a_band(runs, tmp_path, capsys, monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (drawn.append(self), save(self, *a, **k))[1])
    names = ("cpo0", "cpo1", "cpo2", "mice", "other")
    assert run(["plot", *(str(runs / name) for name in names), "-o", str(tmp_path / "c.png")]) == 0
    assert str(tmp_path / "c.png") in capsys.readouterr().out
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    (figure,) = drawn
    assert len(figure.axes) == 4
    cost = figure.axes[1]
    (dashed,) = [line for line in cost.lines if line.get_linestyle() == "--"]
    assert set(dashed.get_ydata()) == {25.0}
    assert len(cost.collections) == 1, "three seeds of CPO have a band, one seed of MICE-CPO has none"
    labels = [text.get_text() for text in cost.get_legend().get_texts()]
    assert labels == ["cpo (3 seeds)", "mice-cpo", "limit 25"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "none named"),
        (["nowhere"], "not the directory of a run"),
        (["fresh"], "no finished iteration"),
        (["cpo0", "-o", "/nowhere/a.png"], "cannot be written"),
        (["cpo0", "-o", "a.docx"], "cannot be written"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(runs, arguments, says, monkeypatch):
    monkeypatch.chdir(runs)
    with pytest.raises(UsageError, match=says) as caught:
        run(["plot", *arguments])
    assert "\n" not in str(caught.value)


def test_weights_and_biases_get_the_names_of_the_csv(tmp_path, monkeypatch):
    told = []
    server_run = types.SimpleNamespace(
        log=lambda row, step: told.append((row, step)), finish=lambda: told.append("finished")
    )
    fake = types.SimpleNamespace(init=lambda **settings: told.append(settings) or server_run)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    config = configure("cpo", "HazardField-v0", wandb=True)
    writer = WandbLogger(tmp_path, config)
    writer.write({"iteration": 0, "steps": 300, "cost": 2.0, "anticipation": float("nan")}, 300)
    writer.close()
    settings, row, end = told
    assert (settings["id"], settings["dir"], settings["resume"]) == (tmp_path.name, str(tmp_path), "allow")
    assert settings["config"]["algorithm"] == "cpo"
    assert row == ({"cost": 2.0}, 300)
    assert end == "finished"


def test_without_the_package_a_run_says_so_before_it_begins(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=r"flashbulb\[wandb\]"):
        run(["train", "cpo", "HazardField-v0", "--wandb", "--runs-dir", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []
