"""What is in a figure, read back from matplotlib's objects."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from flashbulb.errors import UsageError
from flashbulb.plots.learning_curves import COLOURS, Curves, choose_colours
from flashbulb.plots.study_figures import BIAS, coarsen, draw_study_figure, short_task
from flashbulb.studies.catalogue import STUDIES
from flashbulb.training.bias_monitor import COLUMNS
from tests.studies.written_run import written_run

NAN = float("nan")
TASKS = ("HazardField-v0", "SafetyPointGoal1-v0")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Returns rise from the seed on, costs fall; the bias is measured once and is minus the seed."""
    parent = tmp_path_factory.mktemp("runs")
    found = []
    for task in TASKS:
        for algorithm in ("cpo", "mice-cpo"):
            for seed in range(3):
                bias = [NAN, NAN, -float(seed), NAN]
                columns = {"return": [seed + n for n in range(4)], "cost": [30.0 - n - seed for n in range(4)]}
                for name in ("critic_bias_rollout", "critic_bias_rollout_risky"):
                    columns |= {name: bias, f"{name}_low": [b - 1 for b in bias], f"{name}_high": [b + 2 for b in bias]}
                name = f"{algorithm}_{task}_{seed}"
                found.append(written_run(parent, name, columns, algorithm, task, seconds=seed + 1.0, seed=seed))
    return found


def draw(kind, runs, output, labels=None):
    draw_study_figure(kind, runs, output, labels)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    figures, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), save(self, *a, **k))[1])
    return figures


def legend_of(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_curves(runs, tmp_path, drawn):
    draw("curves", runs, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    (figure,) = drawn
    assert legend_of(figure) == ["cpo", "mice-cpo", "cost limit"]
    assert [axes.get_title() for axes in figure.axes] == ["HazardField", "PointGoal1", "", ""]
    returns, _, cost, _ = figure.axes
    line = returns.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [100, 200, 300, 400])
    np.testing.assert_allclose(line.get_ydata(), [1, 2, 3, 4])
    assert [line.get_color() for line in returns.lines] == [COLOURS["cpo"], COLOURS["mice-cpo"]]
    low, high = np.ptp(returns.collections[0].get_paths()[0].vertices[:, 1]), returns.get_ylim()[1]
    assert low == 5, "from seed 0 at the start to seed 2 at the end"
    assert high > 5
    (dashed,) = [line for line in cost.lines if line.get_linestyle() == "--"]
    assert set(dashed.get_ydata()) == {25.0}


def test_the_words_below_are_inside_the_picture(runs, tmp_path, drawn):
    for kind in ("curves", "bias", "time", "bars"):
        draw(kind, runs, tmp_path / f"{kind}.png")
        legend, canvas = drawn[-1].legends[0].get_window_extent(), drawn[-1].bbox
        assert canvas.x0 <= legend.x0 < legend.x1 <= canvas.x1, kind
        assert canvas.y0 <= legend.y0 < legend.y1 <= canvas.y1, kind


def test_a_task_alone_has_its_panels_side_by_side(runs, tmp_path, drawn):
    draw("curves", [run for run in runs if TASKS[0] in run.name], tmp_path / "one.png")
    left, right = (axes.get_position() for axes in drawn[0].axes)
    assert left.x1 < right.x0
    assert left.y0 == pytest.approx(right.y0)


def test_bias(runs, tmp_path, drawn):
    draw("bias", runs, tmp_path / "bias.png")
    visited, _, risky, _ = drawn[0].axes
    for axes, words in ((visited, "visited states"), (risky, "risky states")):
        assert words in axes.get_ylabel()
        np.testing.assert_allclose(axes.lines[0].get_xydata(), [[300, -1]])
        assert [set(line.get_ydata()) for line in axes.lines if line.get_linestyle() == "--"] == [{0.0}]
        assert axes.get_ylim()[0] < -2
        assert axes.get_ylim()[1] > 0


def test_bias_of_one_seed_has_the_interval_over_states(runs, tmp_path, drawn):
    draw("bias", [run for run in runs if run.name == f"cpo_{TASKS[0]}_2"], tmp_path / "bias.png")
    heights = drawn[0].axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (-3, 0)
    assert "over the states" in drawn[0].legends[0].get_title().get_text()


def test_the_columns_that_are_drawn_are_those_that_runs_measure():
    assert {f"{name}{end}" for name in BIAS for end in ("", "_low", "_high")} <= set(COLUMNS)


def test_time_in_bars(runs, tmp_path, drawn):
    draw("time", runs, tmp_path / "time.png")
    (axes,) = drawn[0].axes
    assert [bar.get_height() for bar in axes.patches] == [8.0] * 4, "four iterations of 1, 2 and 3 seconds"
    spans = [segment[:, 1].tolist() for lines in axes.collections for segment in lines.get_segments()]
    assert spans == [[4.0, 12.0]] * 4
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["HazardField", "PointGoal1"]


def test_bars_of_the_table(runs, tmp_path, drawn):
    draw("bars", runs, tmp_path / "bars.png", {run.name: "ours" for run in runs if run.name.startswith("mice")})
    assert legend_of(drawn[0]) == ["cpo", "ours"]
    returns, violations, excess = drawn[0].axes
    assert [bar.get_height() for bar in returns.patches] == [1.0] * 4
    # Costs fall from 30, 29 and 28 by one in each of four iterations; the last of the third seed is at the limit.
    assert [bar.get_height() for bar in violations.patches] == pytest.approx([11 / 12] * 4)
    assert [bar.get_height() for bar in excess.patches] == pytest.approx([(3.5 + 2.5 + 1.5) / 3] * 4)


def test_labels_of_one_algorithm_have_colours_of_their_own():
    chosen = choose_colours({"k=1": "mice-cpo", "k=5": "mice-cpo", "k=10": "mice-cpo", "cpo": "cpo", "mine": "saute"})
    assert (chosen["cpo"], chosen["mine"]) == (COLOURS["cpo"], COLOURS["saute"])
    assert len(set(chosen.values())) == 5
    chosen = choose_colours({"mice-cpo": "mice-cpo", "k=1": "mice-cpo"})
    assert chosen["mice-cpo"] == COLOURS["mice-cpo"] != chosen["k=1"]


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_every_label_of_a_study_has_a_colour_of_its_own(study):
    chosen = choose_colours({variant.label: variant.algorithm for variant in study.variants})
    assert len({colour.lower() for colour in chosen.values()}) == len(study.variants)


def test_long_curves_become_means_of_neighbours():
    steps = np.arange(1.0, 12.0)
    curves = Curves("cpo", steps, {"cost": np.stack([steps, 2 * steps])}, {25.0})
    coarse = coarsen(curves, points=4)
    # Three by three from the end, the first two are left over.
    np.testing.assert_allclose(coarse.steps, [2, 5, 8, 11])
    np.testing.assert_allclose(coarse.values["cost"], [[1.5, 4, 7, 10], [3, 8, 14, 20]])
    same = coarsen(curves, points=11)
    np.testing.assert_array_equal(same.steps, steps)
    np.testing.assert_array_equal(same.values["cost"], curves.values["cost"])


def test_names_of_tasks_are_short():
    assert [short_task(name) for name in (*TASKS, "my.tasks:SafetyMaze-v12")] == ["HazardField", "PointGoal1", "Maze"]


@pytest.mark.parametrize(
    ("kind", "says"),
    [("pie", "unknown kind 'pie'"), ("bias", "--bias-every"), ("curves", "no run"), ("time", "no run")],
)
def test_what_cannot_be_drawn_is_one_sentence(tmp_path, kind, says):
    fresh = written_run(tmp_path, "fresh", {"return": []}, iterations=3)
    with pytest.raises(UsageError, match=says) as caught:
        draw(kind, [fresh], tmp_path / "a.png")
    assert "\n" not in str(caught.value)


def test_a_run_without_an_iteration_does_not_spoil_the_figure(runs, tmp_path, drawn):
    draw("curves", [*runs, written_run(tmp_path, "fresh", {"return": []}, iterations=3)], tmp_path / "a.png")
    assert legend_of(drawn[0])[:2] == ["cpo", "mice-cpo"]
