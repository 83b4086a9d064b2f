"""Plans of studies: every entry can be run and drawn, seeds are balanced, other settings are refused."""

import dataclasses
import json

import pytest

from flashbulb.algorithms.registry import ALGORITHMS, configure, get_algorithm
from flashbulb.cli.options import parse_train
from flashbulb.config import flat_settings
from flashbulb.envs.registry import env_ids
from flashbulb.errors import UsageError
from flashbulb.plots.study_figures import KINDS
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.studies.catalogue import STUDIES
from flashbulb.studies.plan import SCALES, StudyRequest, last_request, make_plan, save_plan
from flashbulb.studies.run_process import run_options
from tests.training.small_run import made_run

GYM = {"SafetyPointGoal1-v0", "SafetyCarGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarCircle1-v0"}


def test_there_is_a_study_for_every_figure_with_results():
    figures = " ".join(study.figure for study in STUDIES.values())
    for number in (2, 3, 4, 5, "6 (a, b)", "6 (c, d)", 7, 8, 9, 10, 11, 12, 13):
        assert f"Figure {number}" in figures or f"and {number}" in figures or f"Figures {number} " in figures


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_every_entry_can_be_run_and_drawn(study):
    for variant in study.variants:
        get_algorithm(variant.algorithm)  # or `UsageError`
    assert set(study.tasks) <= set(env_ids())
    assert set(study.kinds) <= set(KINDS)
    assert study.summary.endswith(".")
    assert study.claim.endswith(".")


@pytest.mark.parametrize(("name", "scale"), list(zip(STUDIES, 4 * list(SCALES), strict=False)))
def test_a_job_is_what_its_command_line_says(name, scale, tmp_path):
    plan = make_plan(name, scale, tmp_path)
    assert len({job.name for job in plan.jobs}) == len(plan.jobs) == len(plan.labels)
    words = {job.name: run_options(job.config) for job in plan.jobs}
    one_of_each = {tuple(word for word in words[job.name] if word.startswith("--")): job for job in plan.jobs}
    for job in one_of_each.values():  # each set of options once: to parse a command line takes a while
        assert parse_train([job.config.algorithm, job.config.env, *words[job.name]]) == job.config


@pytest.mark.parametrize(
    ("algorithm", "settings", "words"),
    [
        ("trpo-pid", {"near_lidar": False, "policy": {"share_noise": False}}, {"--no-near-lidar"}),
        ("cpo", {"critic": {"decay": False}}, {"--critic.no-decay"}),
        ("trpo-lag", {"cost_limit": {"hazards": 25.0, "vases": 5.0}}, {"hazards=25.0", "vases=5.0"}),
    ],
)
def test_flags_and_limits_of_a_run_are_on_its_command_line(algorithm, settings, words):
    config = configure(algorithm, "SafetyPointGoal2-v0", **settings)
    assert words <= set(run_options(config))
    assert parse_train([algorithm, "SafetyPointGoal2-v0", *run_options(config)]) == config


def test_a_label_means_its_variant_alone_and_an_algorithm_all_that_vary_it(tmp_path):
    def chosen(study, *names):
        return list(make_plan(study, "smoke", tmp_path, StudyRequest(algorithms=names, seeds=(0,))).labels.values())

    assert set(chosen("limit", "trpo-pid", "cpo, near lidar")) == {"trpo-pid", "cpo, near lidar"}
    assert set(chosen("thresholds", "mice-cpo")) == {f"mice-cpo d={limit}" for limit in (0, 15, 25)}
    assert set(chosen("constants", "constant-3-cpo", "constant 5")) == {"constant 3", "constant 5"}


def test_the_study_of_baselines_has_every_algorithm_but_ablations():
    ablations = {name for name in ALGORITHMS if name.startswith("constant-") or name.endswith("-no-projection")}
    variants = [variant.algorithm for variant in STUDIES["baselines"].variants]
    assert len(variants) == len(set(variants))
    assert set(variants) == set(ALGORITHMS) - ablations


def test_scales_are_those_of_the_paper_and_a_tenth_of_it(tmp_path):
    for scale, steps, seeds in (("paper", 10_000_000, 6), ("short", 1_000_000, 3)):
        jobs = make_plan("safety-gym", scale, tmp_path).jobs
        assert {job.config.env for job in jobs} == GYM
        assert len(jobs) == 6 * 4 * seeds
        assert {job.config.steps for job in jobs} == {steps}
        assert {job.config.threads for job in jobs} == {1}
        assert {job.config.cost_limit for job in jobs} == {25.0}
        assert {job.config.bias_every for job in jobs} == {0}


def test_only_the_varied_setting_differs(tmp_path):
    for name, field, values in (("thresholds", "cost_limit", [0, 15, 25]), ("neighbours", "memory.neighbours", None)):
        jobs = make_plan(name, "short", tmp_path, StudyRequest(tasks=("SafetyPointGoal1-v0",), seeds=(0,))).jobs
        settings = [flat_settings(job.config) for job in jobs]
        assert [row[field] for row in settings] == (values or [1, 5, 10, 20])
        assert {key for row in settings for key in row if row[key] != settings[0][key]} == {field, "name"}
    for name in ("underestimation", "bias", "twin-critics"):
        assert all(job.config.bias_every == 50 for job in make_plan(name, "paper", tmp_path).jobs)


def test_any_study_measures_the_bias_if_asked(tmp_path):
    request = StudyRequest(("HazardField-v0",), ("cpo",), (0,), bias_every=7)
    plan = make_plan("versus-base", "paper", tmp_path, request)
    assert [job.config.bias_every for job in plan.jobs] == [7]
    assert plan.kinds == ("curves", "bars", "bias")
    save_plan(plan, "asked")
    assert last_request("versus-base", "paper", tmp_path) == request
    assert make_plan("bias", "short", tmp_path, request).kinds == ("bias",)


def test_the_first_seed_of_everything_comes_first(tmp_path):
    plan = make_plan("versus-base", "short", tmp_path)
    assert [job.config.seed for job in plan.jobs] == sorted(job.config.seed for job in plan.jobs)
    first = [(plan.labels[job.name], job.config.env) for job in plan.jobs[:48]]
    assert len(set(first)) == 48 == 6 * 8


def test_a_request_may_select_and_add_algorithms_and_tasks(tmp_path):
    request = StudyRequest(("HazardField-v0", "SafetyPointGoal1-v0"), ("cpo", "mice-cup"), (7, 3), 5_000)
    plan = make_plan("versus-base", "short", tmp_path, request)
    assert [job.name for job in plan.jobs][:3] == [
        "cpo_HazardField-v0_seed7",
        "mice-cup_HazardField-v0_seed7",
        "cpo_SafetyPointGoal1-v0_seed7",
    ]
    assert {job.config.steps for job in plan.jobs} == {5_000}
    assert plan.labels["mice-cup_HazardField-v0_seed3"] == "mice-cup"
    one = make_plan("neighbours", "short", tmp_path, StudyRequest(algorithms=("mice-cpo k=5",), seeds=(0,)))
    assert {job.config.memory.neighbours for job in one.jobs} == {5}
    assert one.jobs[0].name == "mice-cpo-k-5_SafetyPointGoal1-v0_seed0"


@pytest.mark.parametrize(
    ("name", "request_", "message"),
    [
        ("nonsense", StudyRequest(), "study: unknown study 'nonsense'; the known ones are underestimation, "),
        ("bias", StudyRequest(tasks=("SafetyPointGaol1-v0",)), "env: unknown task 'SafetyPointGaol1-v0'; the nearest"),
        ("bias", StudyRequest(algorithms=("cpp",)), "algorithm: unknown algorithm 'cpp'"),
        ("bias", StudyRequest(seeds=(-1,)), "seed: -1 is not allowed"),
        ("bias", StudyRequest(steps=0), None),
    ],
)
def test_unknown_names_are_refused_in_one_sentence(name, request_, message, tmp_path):
    if message is None:  # 0 steps mean the scale's
        assert make_plan(name, "short", tmp_path, request_).jobs[0].config.steps == 1_000_000
        return
    with pytest.raises(UsageError) as error:
        make_plan(name, "short", tmp_path, request_)
    assert str(error.value).startswith(message)


def test_a_second_request_adds_runs_to_the_study(tmp_path):
    small = StudyRequest(("HazardField-v0",), ("cpo",), (0,))
    save_plan(make_plan("versus-base", "smoke", tmp_path, small), "first")
    assert last_request("versus-base", "smoke", tmp_path) == small
    more = StudyRequest(("HazardField-v0",), ("mice-cpo",), (0,), 4_000)
    plan = save_plan(make_plan("versus-base", "smoke", tmp_path, more), "second")
    assert plan.labels == {"cpo_HazardField-v0_seed0": "cpo", "mice-cpo_HazardField-v0_seed0": "mice-cpo"}
    about = json.loads((tmp_path / "versus-base-smoke/study.json").read_text())
    assert about["labels"] == plan.labels
    assert (about["name"], about["scale"], about["command"]) == ("versus-base", "smoke", "second")
    assert {"versions", "machine", "commit", "python"} <= set(about)
    assert last_request("versus-base", "smoke", tmp_path) == more
    assert last_request("versus-base", "paper", tmp_path) == StudyRequest()


def test_requests_of_older_studies_are_read(tmp_path):
    """Their study.json has "recipes" for "algorithms"."""
    (tmp_path / "bias-short").mkdir()
    old = {"request": {"tasks": ["HazardField-v0"], "recipes": ["cpo"], "seeds": [1], "steps": None}, "labels": {}}
    (tmp_path / "bias-short/study.json").write_text(json.dumps(old))
    assert last_request("bias", "short", tmp_path) == StudyRequest(("HazardField-v0",), ("cpo",), (1,))


def test_an_existing_run_with_other_settings_is_refused(tmp_path):
    plan = make_plan("versus-base", "smoke", tmp_path, StudyRequest(("HazardField-v0",), ("cpo",), (0,)))
    made_run(tmp_path / "versus-base-smoke/runs", plan.jobs[0].name, num_envs=4, steps_per_iteration=2_000, steps=9_000)
    with pytest.raises(UsageError, match=r"^steps: .*cpo_HazardField-v0_seed0 was made with 9000, not with 8000; name"):
        save_plan(plan, "")


def test_a_seed_of_an_earlier_request_with_other_settings_is_refused(tmp_path):
    """Both would be one row of the table."""
    runs, sizes = tmp_path / "versus-base-smoke/runs", {"num_envs": 4, "steps_per_iteration": 2_000}
    earlier = make_plan("versus-base", "smoke", tmp_path, StudyRequest(("HazardField-v0",), ("cpo",), (0,), 16_000))
    save_plan(earlier, "")
    made_run(runs, earlier.jobs[0].name, steps=16_000, **sizes)
    later = make_plan("versus-base", "smoke", tmp_path, StudyRequest(("HazardField-v0",), ("cpo",), (1,)))
    with pytest.raises(UsageError, match=r"^steps: .*_seed0 was made with 16000, not with 8000; name another"):
        save_plan(later, "")
    save_plan(make_plan("versus-base", "smoke", tmp_path, StudyRequest(("HazardField-v0",), ("mice-cpo",), (1,))), "")


def test_a_run_without_staggering_is_of_its_study_where_the_environment_has_no_clock(tmp_path):
    request = StudyRequest(("tests.envs.gym_examples:make_six",), ("trpo-pid",), (0,))
    plan = make_plan("limit", "smoke", tmp_path, request)
    (job,) = plan.jobs
    config = dataclasses.replace(job.config, stagger=False, cost_estimate="episodes")  # as training makes it
    RunDirectory.create(config)
    save_plan(plan, "")
    RunDirectory(plan.run_path(job)).path.rename(tmp_path / "away")
    RunDirectory.create(dataclasses.replace(config, cost_lam=0.5))
    with pytest.raises(UsageError, match=r"^cost_lam: .* was made with 0.5, not with 0.95"):
        save_plan(plan, "")


def test_every_run_that_measures_the_bias_does_so_at_least_once(tmp_path):
    one = StudyRequest(("HazardField-v0",), ("cpo",), (0,), 100_000)  # five iterations
    assert make_plan("bias", "short", tmp_path, one).jobs[0].config.bias_every == 4
    with pytest.raises(UsageError, match=r"^bias_every: 5 is not allowed; it must be less than 5, the iterations of a"):
        make_plan("bias", "short", tmp_path, one._replace(bias_every=5))


def test_an_invalid_study_json_is_refused(tmp_path):
    place = tmp_path / "bias-short"
    place.mkdir()
    for text in ("{", "[]", '{"labels": 3}'):
        (place / "study.json").write_text(text)
        with pytest.raises(
            UsageError, match=r"^directory: .*study\.json (cannot be read|is not the study.json of a study)"
        ):
            last_request("bias", "short", tmp_path)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"^directory: cannot make .* \(Not a directory\); name a writable place\.$"):
        save_plan(make_plan("bias", "short", tmp_path / "file"), "")
