"""What a person reads at the end of a run, and what is said when its files cannot be written."""

import errno

import numpy as np
import pytest

from flashbulb.algorithms.registry import configure
from flashbulb.errors import RunError
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.training.recorder import Result, summary_text, writing

N = 40  # iterations: a tenth are 4
COSTS = np.r_[np.full(10, 30.0), np.full(25, 20.0), np.full(5, 28.0)]  # 10 and 5 above 25 in the halves
METRICS = {
    "steps": 1000.0 * np.arange(1, N + 1),
    "return": np.r_[np.zeros(36), [1.0, 2.0, 3.0, 6.0]],
    "cost": COSTS,
    "violation_rate": np.cumsum(COSTS > 25) / np.arange(1, N + 1),
    "mean_excess": np.full(N, 1.25),
    "cost_rate": np.full(N, 0.0345),
}


def summary(tmp_path, metrics=METRICS, cost_limit=25.0, **settings):
    config = configure("pid-lag", "HazardField-v0", cost_limit=cost_limit, **settings)
    return summary_text(metrics, config, RunDirectory(tmp_path))


def test_the_summary_is_over_the_last_tenth_and_over_all_of_it(tmp_path):
    text = summary(tmp_path)
    assert "After 40,000 steps (mean of the last 4 iterations)" in text
    assert "episode return   3.00" in text
    assert "episode cost     28.00  (OVER the limit of 25)" in text
    assert "38 % of iterations above the limit, 25 % in the second half\n" in text  # 15 of 40, 5 of 20
    assert "1.25 above the limit per episode" in text
    assert "0.0345 per step" in text
    assert str(tmp_path / "metrics.csv") in text
    assert "episode cost     28.00  (under the limit of 28)" in summary(tmp_path, cost_limit=28.0)


def test_what_was_asked_for_stands_beside_what_came_of_it(tmp_path):
    assert "25 % in the second half, asked for 10 % in the long run\n" in summary(tmp_path, violations=0.1)


def test_several_costs_have_a_line_and_a_rate_each(tmp_path):
    several = METRICS | {
        "limit": np.full(N, 25.0),
        "cost_a": COSTS,
        "cost_b": np.full(N, 2.0),
        "violation_rate_a": METRICS["violation_rate"],
        "violation_rate_b": np.full(N, 0.05),
    }
    text = summary(tmp_path, several, {"a": 25.0, "b": 3.0}, violations=0.2)
    assert "episode cost a   28.00  (OVER the limit of 25)" in text
    assert "episode cost b   2.00  (under the limit of 3)" in text
    assert "above a limit, 25 % in the second half, asked for 20 % in the long run of each\n" in text
    assert "(a 38 %, b 5 %)" in text
    shown = repr(Result(tmp_path, several, {"violation_rate": 0.375}))
    assert "cost a 28.00, cost b 2.00" in shown
    assert "38 % of iterations above a limit" in shown


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_called_that(number, tmp_path):
    with pytest.raises(RunError, match=r"no space left to write to \(full\)"), writing(RunDirectory(tmp_path)):
        raise OSError(number, "full")


def test_another_fault_of_a_file_names_it(tmp_path):
    with pytest.raises(RunError, match=r"^metrics\.csv cannot be written \(denied\)"), writing(RunDirectory(tmp_path)):
        raise OSError(errno.EACCES, "denied", "metrics.csv")


def test_a_directory_that_is_gone_is_missed(tmp_path):
    with pytest.raises(RunError, match="its directory is gone"), writing(RunDirectory(tmp_path / "gone")):
        raise OSError(errno.ENOSPC, "full")
