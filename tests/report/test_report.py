"""The data of the page: the numbers of the CSV files, evaluation episodes, escaped names."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest

from flashbulb.analysis.evaluation import evaluation_env, evaluation_seed, run_episodes
from flashbulb.analysis.intrinsic_map import intrinsic_cost_map, map_env, observe_layout, remembered_positions
from flashbulb.analysis.memory_snapshots import load_memory_snapshots
from flashbulb.analysis.trained_policy import load_policy
from flashbulb.cli.main import run
from flashbulb.envs.hazard_field import HAZARD_RADIUS
from flashbulb.errors import UsageError
from flashbulb.plots.learning_curves import COLOURS
from flashbulb.report import curves, encoding, page, tables
from flashbulb.report.replay import replay
from flashbulb.report.run_groups import find_sources, group_runs, read_source
from flashbulb.storage.csv_log import read_csv
from tests.report.example_report import ATTACK, IMAGE, ITERATIONS, example_run, example_study
from tests.studies.written_run import written_run


def decoded(packed):
    raw = base64.b64decode(packed.get("floats", packed.get("codes")))
    if "floats" in packed:
        return np.frombuffer(raw, "<f4").reshape(packed["shape"])
    return (packed["low"] + packed["step"] * np.frombuffer(raw, "<u2")).reshape(packed["shape"])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return example_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def data(study):
    return page.report_data([study], 1, None)


def task_of(data, name):
    return next(task for task in data["tasks"] if name in task["name"])


def report_runs(*paths):
    return [run for source in find_sources(list(paths)) for run in read_source(source, with_name=False)]


# Curves.


def test_a_seed_is_drawn_as_its_csv_says(study, data):
    written = read_csv(study / "runs" / "user_env" / "metrics.csv")
    charts = {chart["column"]: chart["series"][0] for chart in task_of(data, "gym_examples")["charts"]}
    for column in ("return", "cost"):
        assert charts[column]["steps"] == written["steps"].tolist()
        np.testing.assert_allclose(charts[column]["value"], written[column], rtol=5e-6)
        assert "low" not in charts[column], "one seed has no band"


def test_two_seeds_are_their_mean_and_their_range(study, data):
    both = [read_csv(study / "runs" / name / "metrics.csv")["cost"] for name in ("mice0", "mice1")]
    chart = next(chart for chart in task_of(data, "HazardField")["charts"] if chart["column"] == "cost")
    series = next(series for series in chart["series"] if ATTACK in series["label"])
    np.testing.assert_allclose(series["value"], np.mean(both, axis=0), rtol=5e-6)
    np.testing.assert_allclose([series["low"], series["high"]], [np.min(both, axis=0), np.max(both, axis=0)], rtol=5e-6)
    assert series["seeds"] == 2


def test_columns_that_an_algorithm_does_not_have_are_not_drawn(data):
    charts = task_of(data, "HazardField")["charts"]
    labels = {chart["column"]: [series["label"] for series in chart["series"]] for chart in charts}
    assert labels["beta"] == labels["memory_size"] == [f"mice {ATTACK}"]
    assert "critic_bias_rollout_risky" not in labels, "no run measured it"
    assert "beta" not in [chart["column"] for chart in task_of(data, "HalfCheetah")["charts"]]


def test_iterations_without_a_value_are_left_out(data):
    charts = {chart["column"]: chart["series"][0] for chart in task_of(data, "HazardField")["charts"]}
    assert charts["critic_bias_rollout"]["steps"] == [1200, 2400, 3600]
    assert charts["critic_bias_sampled_unsafe"]["steps"] == [300 * (n + 1) for n in range(ITERATIONS) if n != 2]


def test_seeds_of_different_lengths_are_aligned():
    fine = {"steps": np.arange(1.0, 11), "cost": np.arange(1.0, 11) ** 2}
    short = {"steps": np.arange(1.0, 6), "cost": np.ones(5)}
    coarse = {"steps": np.array([3.0, 6, 9]), "cost": np.array([30.0, 60, 90])}
    steps, values = curves.align([fine, short], "cost")
    assert steps.tolist() == [1, 2, 3, 4, 5]
    assert values.tolist() == [[1, 4, 9, 16, 25], [1] * 5]
    steps, values = curves.align([fine, coarse], "cost")
    assert steps.tolist() == [3, 6, 9]
    assert values.tolist() == [[9, 36, 81], [30, 60, 90]]


def test_long_runs_are_thinned_evenly_to_their_end():
    kept = curves._thin(12_345)
    assert len(kept) == curves.MAX_POINTS
    assert (kept[0], kept[-1]) == (0, 12_344)
    assert set(np.diff(kept)) <= {24, 25}
    assert curves._thin(500).tolist() == list(range(500))
    assert curves._thin(1).tolist() == [0]


def test_shares_of_cases_are_counted():
    case = np.array([0, 0, 3, 2, 1, 0])
    found = curves.case_shares(np.array([10.0, 20, 30, 10, 20, 30]), case)
    assert found["edges"] == [0, 10, 20, 30]
    assert found["shares"] == [[0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0], [0.5, 0, 0, 0.5]]


# Numbers.


def test_the_table_has_the_numbers_of_the_csv(study, data):
    written = read_csv(study / "runs" / "cpo1" / "metrics.csv")
    rows = {row[0]: row for _, group in data["tables"]["runs"]["groups"] for row in group}
    mine = dict(zip(data["tables"]["runs"]["headings"], rows["cpo1"], strict=True))
    assert mine["return"] == f"{written['return'][-1]:.2f}", "a tenth of twelve iterations is one"
    assert mine["cost"] == f"{written['cost'][-1]:.2f}"
    assert mine["cost rate"] == f"{written['cost_rate'][-1]:.4f}"
    assert mine["violation rate"] == f"{100 * np.mean(written['cost'] > 25):.0f} %"
    assert (mine["seed"], mine["steps"], mine["limit"], mine["status"]) == ("1", "3,600", "25", "finished")
    (row,) = [row for _, group in data["tables"]["summary"]["groups"] for row in group if row[:2] == ["cpo", "2"]]
    ends = sorted(read_csv(study / "runs" / name / "metrics.csv")["return"][-1] for name in ("cpo0", "cpo1"))
    assert row[3] == [f"{np.mean(ends):.2f}", f"[{ends[0]:.2f}, {ends[1]:.2f}]"]


def test_colours_are_those_of_the_figures(data):
    """Labels that are the only one of their algorithm have the algorithm's colour."""
    assert data["colours"]["pid-lag"] == COLOURS["pid-lag"]
    assert data["colours"][f"mice {ATTACK}"] == COLOURS["mice-cpo"]
    assert len(set(data["colours"].values())) == len(data["colours"])


def test_facts_say_what_was_run(data):
    facts = dict(data["facts"])
    assert facts["runs"] == "7"
    assert facts["algorithms"] == "cpo, mice-cpo, pid-lag"
    assert (facts["seeds"], facts["steps"], facts["cost limit"]) == ("0, 1", "3,600", "25")
    assert (facts["commit"], facts["command"]) == ("1f90df2", "flashbulb study x")
    assert data["title"] == f"{IMAGE} smoke"


# Episodes.


def test_episodes_are_the_evaluation_episodes(study):
    path = study / "runs" / "cpo0"
    found = replay("cpo", report_runs(path), 2)
    policy = load_policy(path)
    env = evaluation_env(policy, 2)
    truth = run_episodes(env, policy, 2, deterministic=False)
    env.close()
    episodes = found["episodes"]
    assert [episode["length"] for episode in episodes] == truth.lengths.tolist()
    np.testing.assert_allclose([decoded(e["return"])[-1] for e in episodes], truth.returns, rtol=1e-6)
    assert [sum(cost for _, cost in episode["costs"]) for episode in episodes] == truth.costs.tolist()


def test_a_cost_occurs_where_the_robot_is_in_a_hazard(data):
    """Positions and hazards give the steps with a cost, except the last, whose position is not recorded."""
    (recording,) = next(r for r in task_of(data, "HazardField")["replays"] if r["label"] == "cpo")["episodes"]
    path, hazards = decoded(recording["agent"])[:, :2], np.array(recording["hazards"])
    inside = (np.linalg.norm(path[:, None] - hazards, axis=-1) <= HAZARD_RADIUS).any(axis=1)
    costly = np.zeros(recording["length"] + 1, bool)
    costly[[t for t, _ in recording["costs"]]] = True
    assert costly.any()
    near = np.abs(np.linalg.norm(path[:, None] - hazards, axis=-1) - HAZARD_RADIUS).min(axis=1) < 2e-3  # rounding
    np.testing.assert_array_equal(costly[1:-1][~near[1:-1]], inside[1:-1][~near[1:-1]])


def test_moving_objects_are_recorded_per_frame_and_others_once(tmp_path):
    path = example_run(tmp_path, "r", "cpo", "SafetyCarButton1-v0")
    (recording,) = replay("cpo", report_runs(path), 1)["episodes"]
    assert decoded(recording["gremlins"]).shape == (recording["length"] + 1, 4, 3)
    assert recording["vases"]["shape"] == [1, 0, 3]
    assert (recording["robot"], len(recording["buttons"]), len(recording["hazards"])) == ("Car", 4, 4)
    goal = recording["goals"][0][1]
    assert goal in recording["buttons"]
    orbit = decoded(recording["gremlins"])[:, :, :2] - np.array(recording["paths"])
    assert np.linalg.norm(orbit[1:-1], axis=-1).max() < 0.6, "gremlins stay near their paths"


def test_a_velocity_task_has_a_cost_above_the_speed_limit(data):
    (recording,) = task_of(data, "HalfCheetah")["replays"][0]["episodes"]
    speed = decoded(recording["speed"])
    costly = np.zeros(recording["length"] + 1, bool)
    costly[[t for t, _ in recording["costs"]]] = True
    np.testing.assert_array_equal(costly[1:-1], speed[1:-1] > recording["speed_limit"])
    limbs = decoded(recording["limbs"])
    assert limbs.shape[1:] == (8, 2, 2)
    lengths = np.linalg.norm(limbs[:, :, 1] - limbs[:, :, 0], axis=-1)
    assert np.ptp(lengths, axis=0).max() < 1e-3, "limbs keep their length"
    assert limbs[..., 1].min() > -0.05, "and stay above the ground"
    at = decoded(recording["along"])
    covered = 0.05 * np.nansum(speed)
    assert abs(at[-1] - at[0] - covered) < 0.7, "and the body moves as the speed says"


def test_the_map_is_the_intrinsic_cost_of_the_memory(study, data):
    path = study / "runs" / "mice0"
    (recording,) = next(r for r in task_of(data, "HazardField")["replays"] if "mice" in r["label"])["episodes"]
    first = recording["maps"][0]
    (report_run,) = report_runs(path)
    (snapshot,) = load_memory_snapshots(path, report_run.config)
    env = map_env("HazardField-v0", evaluation_seed(0))
    arena = observe_layout(env)
    heat, places = intrinsic_cost_map(arena, snapshot, report_run.config.memory), remembered_positions(arena, snapshot)
    env.close()
    assert first["frame"] == 0
    np.testing.assert_allclose(decoded(first["heat"]), heat, atol=first["heat"]["step"])
    assert {tuple(place) for place in first["remembered"]} == {tuple(place) for place in encoding.points(places)}
    assert len(recording["maps"]) <= 4


def test_a_missing_replay_has_a_reason(data):
    reasons = {
        replay["label"]: replay["reason"] for task in data["tasks"] for replay in task["replays"] if "reason" in replay
    }
    assert "no checkpoint" in reasons["pid-lag"]
    assert "not one of Flashbulb's own tasks" in reasons["cpo"]


def test_encoded_numbers_can_be_decoded():
    values = np.random.default_rng(0).normal(size=(50, 3)) * 100
    packed = encoding.quantised(values)
    np.testing.assert_allclose(decoded(packed), values, atol=packed["step"] / 2 + 1e-12)
    assert packed["step"] < np.ptp(values) / 60_000
    np.testing.assert_array_equal(decoded(encoding.quantised(np.full((2, 2), 7.0))), 7)
    np.testing.assert_array_equal(decoded(encoding.floats(values)), values.astype(np.float32))
    assert encoding.rounded([1 / 3, np.nan, 12_345_678]) == [0.333333, None, 12_345_700]


# Which runs.


def test_labels_name_the_settings_that_differ(tmp_path):
    rows = {"return": [1.0], "cost": [2.0]}
    made = [written_run(tmp_path, f"a{limit}", rows, cost_limit=limit) for limit in (5.0, 25.0)]
    made += [written_run(tmp_path, f"b{seed}", rows, "pid-lag", seed=seed, threads=seed + 1) for seed in (1, 0)]
    made.append(written_run(tmp_path, "c", rows, "pid-lag", seed=2, balance={"rate": 0.5}))  # unused without a memory
    groups = group_runs(report_runs(*made))["HazardField-v0"]
    assert {label: [run.config.seed for run in runs] for label, runs in groups.items()} == {
        "cpo, cost_limit 5.0": [0],
        "cpo, cost_limit 25.0": [0],
        "pid-lag": [0, 1, 2],
    }


def test_every_run_is_read_once(study, tmp_path):
    (tmp_path / "link").symlink_to(study / "runs" / "cpo0")
    sources = find_sources([study, study / "runs" / "cpo0", tmp_path / "link", study / "runs"])
    assert [len(source.runs) for source in sources] == [7]


def test_a_study_keeps_its_order(tmp_path):
    rows = {"return": [1.0], "cost": [2.0]}
    for name in ("a", "b", "c"):
        written_run(tmp_path / "runs", name, rows)
    (tmp_path / "study.json").write_text('{"labels": {"c": "first", "a": "then"}}')
    (source,) = find_sources([tmp_path])
    assert [path.name for path in source.runs] == ["c", "a", "b"]
    assert [run.label for run in read_source(source, with_name=True)] == ["first", "then", "cpo"]


def test_runs_of_two_studies_are_not_mixed(study, tmp_path):
    rows = {"return": [1.0], "cost": [2.0], "cost_rate": [0.1]}
    written_run(tmp_path / "runs", "cpo0", rows)
    (tmp_path / "study.json").write_text('{"name": "other", "scale": "smoke", "labels": {"cpo0": "cpo"}}')
    both = page.report_data([study, tmp_path], 0, "mine")
    assert "cpo (other smoke)" in both["colours"]
    assert f"cpo ({IMAGE} smoke)" in both["colours"]
    assert both["title"] == "mine"
    assert dict(both["facts"])["runs"] == "8"


def test_two_different_runs_of_one_name_are_refused(tmp_path):
    rows = {"return": [1.0], "cost": [2.0]}
    made = [written_run(tmp_path / str(limit), "same", rows, cost_limit=limit) for limit in (5.0, 25.0)]
    with pytest.raises(UsageError, match="two different ones are called 'same'"):
        tables.result_tables([(find_sources(made)[0], report_runs(*made))])


# The file.


def test_data_is_escaped(data):
    text = page.embedded_json(data)
    assert not set("<>&") & set(text)
    assert json.loads(text) == json.loads(json.dumps(data))
    html = page.render_page(data)
    assert html.count("<script") == html.count("</script>") == 2
    assert "window.attacked" in html, "it is shown as text"
    assert "&lt;img src=x onerror=&quot;window.attacked=1&quot;&gt; smoke</title>" in html


def test_the_page_needs_no_network_and_forbids_it(data):
    html = page.render_page(data | {"title": "", "tasks": [], "tables": {}, "facts": [], "colours": {}})
    assert not re.search(r"https?:|//\w|\bsrc=|@import|url\(|<link|<iframe", html.split("<style>")[1])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#x27;", "'")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[1]
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"


def test_on_the_command_line(study, tmp_path, capsys):
    output = tmp_path / "r.html"
    assert run(["report", str(study / "runs" / "cpo0"), "-o", str(output), "--episodes", "0", "--title", "A & B"]) == 0
    assert str(output) in capsys.readouterr().out
    assert "<title>A &amp; B</title>" in output.read_text()
    assert '"replays":[]' in output.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "none named"),
        (["nowhere"], "must be a run, a study or a directory of runs"),
        (["RUN", "--episodes", "-1"], "episodes: -1"),
        (["RUN", "--episodes", "21"], "from 0 to 20"),
        (["RUN", "-o", "a.pdf"], r"\.html"),
        (["RUN", "-o", "nowhere/a.html"], "does not exist"),
    ],
)
def test_bad_arguments_are_one_sentence(study, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [str(study / "runs" / "cpo0") if word == "RUN" else word for word in arguments]
    with pytest.raises(UsageError, match=message) as caught:
        run(["report", *words])
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
