"""Callbacks: when they are called, what they may do, and that they change nothing of what is learned."""

import numpy as np
import pytest
from rich.console import Console

import flashbulb
from flashbulb.algorithms.registry import configure
from flashbulb.errors import UsageError
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.callbacks import Callback, EvaluateEvery, ProgressHook, StopWhenLimitIsKept
from flashbulb.training.loop import resume, train

SMALL = {
    "num_envs": 2,
    "steps_per_iteration": 200,
    "checkpoint_every": 2,
    "threads": 1,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
}
QUIET = Console(quiet=True)


def settings(place, name, iterations=5, **more):
    return configure(
        "ppo-lag", "HazardField-v0", runs_dir=place, name=name, steps=200 * iterations, **(SMALL | {"seed": 1} | more)
    )


class Diary(Callback):
    def __init__(self):
        self.entries = []

    def on_start(self, run):
        self.entries.append(("start", run.iteration, len(run.metrics().get("cost", ()))))

    def on_iteration_end(self, run, metrics):
        self.entries.append(("iteration", run.iteration, int(metrics["iteration"])))
        observation = np.zeros(run.policy().observation_space.shape, np.float32)
        return {"first_action": run.policy().predict(observation)[0]}

    def on_checkpoint(self, run, path):
        assert path.exists()
        self.entries.append(("checkpoint", run.iteration, path.name))

    def on_end(self, run):
        self.entries.append(("end", run.iteration, None))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return train(settings(tmp_path_factory.mktemp("runs"), "plain"), QUIET)


def test_they_are_called_in_order_and_the_metrics_stay_those_of_a_run_without(plain, tmp_path):
    diary, shown = Diary(), []
    hook = ProgressHook(lambda done, iterations, metrics: shown.append((done, iterations)))
    told = [diary, EvaluateEvery(2, episodes=2), hook]
    result = train(settings(tmp_path, "told"), QUIET, callbacks=told)
    assert diary.entries[:3] == [("start", 0, 0), ("iteration", 1, 0), ("iteration", 2, 1)]
    assert diary.entries[3] == ("checkpoint", 2, "000002.safetensors")
    assert diary.entries[-2:] == [("checkpoint", 5, "000005.safetensors"), ("end", 5, None)]
    assert shown == [(n, 5) for n in range(1, 6)]
    for name, column in plain.metrics.items():
        np.testing.assert_array_equal(result.metrics[name], column, err_msg=name)
    np.testing.assert_array_equal(np.isnan(result.metrics["evaluation_cost"]), [True, False, True, False, True])
    policy = flashbulb.load_policy(result.directory)
    zeros = np.zeros(policy.observation_space.shape, np.float32)
    assert result.metrics["first_action"][-1] == pytest.approx(float(policy.predict(zeros)[0]))

    before = (result.directory / "metrics.csv").read_bytes()
    (result.directory / "checkpoints" / "000005.safetensors").unlink()
    diary.entries.clear()
    resume(result.directory, QUIET, callbacks=told)
    assert diary.entries[0] == ("start", 4, 4)
    assert (result.directory / "metrics.csv").read_bytes() == before


def test_a_run_stops_when_the_limit_was_kept_and_goes_on_exactly(plain, tmp_path, capsys):
    config = settings(tmp_path, "early", cost_limit=1e9)
    result = train(config, Console(width=200), callbacks=[StopWhenLimitIsKept(3)])
    assert len(result.metrics["cost"]) == 3
    assert "Stopped after 3 iterations: the limit was kept for 3 iterations" in capsys.readouterr().out
    assert (result.directory / "checkpoints" / "000003.safetensors").exists()
    # What counts is also what was recorded before a resumed run went on.
    assert len(resume(result.directory, QUIET, callbacks=[StopWhenLimitIsKept(4)]).metrics["cost"]) == 4
    resume(result.directory, QUIET)
    whole = train(settings(tmp_path, "whole", cost_limit=1e9), QUIET)
    np.testing.assert_array_equal(read_csv(result.directory / "metrics.csv")["return"], whole.metrics["return"])


def test_an_exceeded_limit_begins_the_count_again():
    class Run:
        iteration, stop_reason = 4, None
        config = configure("cpo", "HazardField-v0", cost_limit=10)

        def metrics(self):
            return {"cost": np.array([1.0, 20.0, 3.0, 4.0])}

        def stop(self, reason):
            self.stop_reason = reason

    run, callback = Run(), StopWhenLimitIsKept(3)
    callback.on_start(run)
    callback.on_iteration_end(run, {"cost": 11.0})
    for cost in (1.0, 2.0):
        callback.on_iteration_end(run, {"cost": cost})
    assert run.stop_reason is None
    callback.on_start(run)  # two were kept
    callback.on_iteration_end(run, {"cost": 10.0})
    assert run.stop_reason == "the limit was kept for 3 iterations"


def test_an_environment_of_the_user_is_evaluated_as_well(tmp_path):
    small = SMALL | {"runs_dir": tmp_path, "steps": 200, "vectorise": "serial"}
    config = configure("ppo-lag", "tests.envs.gym_examples:make_six", **small)
    result = train(config, QUIET, callbacks=[EvaluateEvery(1, episodes=1)])
    assert np.isfinite(result.metrics["evaluation_cost"]).all()


class Thief(Callback):
    def on_iteration_end(self, run, metrics):
        return {"cost": 0.0}


def test_what_is_refused(tmp_path):
    with pytest.raises(UsageError, match="the column 'cost' of Thief is taken"):
        train(settings(tmp_path, "thief", 1), QUIET, callbacks=[Thief()])
    with pytest.raises(UsageError, match="callbacks: the class Thief is not allowed"):
        train(settings(tmp_path, "class", 1), QUIET, callbacks=[Thief])
    with pytest.raises(UsageError, match="iterations: 0 is not allowed"):
        StopWhenLimitIsKept(0)


def test_verbose(tmp_path, capsys):
    flashbulb.train(
        "ppo-lag", "HazardField-v0", steps=200, runs_dir=tmp_path, verbose=False, callbacks=[ProgressHook()], **SMALL
    )
    out = capsys.readouterr().out
    assert out.startswith("\riteration 1/1  return")
    assert "Curves" not in out
