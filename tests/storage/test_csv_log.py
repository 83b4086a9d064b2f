"""Rows follow the file's header, whichever version wrote it."""

import numpy as np
import pytest

from flashbulb.errors import UsageError
from flashbulb.storage.csv_log import CsvLog, check_rows, read_csv, recorded_iterations
from flashbulb.storage.run_list import last_tenth, read_columns


def test_rows_are_written_in_the_order_of_the_header(tmp_path):
    path = tmp_path / "a.csv"
    CsvLog(path).write([{"iteration": 0, "x": 1.5, "y": 2}])
    CsvLog(path).write([{"iteration": 1, "y": 4, "x": 3.5}])
    assert path.read_bytes() == b"iteration,x,y\r\n0,1.5,2\r\n1,3.5,4\r\n"


@pytest.mark.parametrize("name", [b"\xff", b"x" * 200_000])
def test_a_header_that_is_no_text_or_has_no_end_is_one_sentence(name, tmp_path):
    log = CsvLog(tmp_path / "metrics.csv")
    log.write([{"iteration": 0, "cost": 0.5}])
    sealed = log.seal()
    log.path.write_bytes(log.path.read_bytes().replace(b"cost", name))
    for use in (read_csv, read_columns, CsvLog, lambda path: check_rows(path, sealed, "it")):
        with pytest.raises(
            UsageError, match=r"^run: .*metrics.csv is damaged \(it is no CSV file: .*\); put it back"
        ) as error:
            use(log.path)
        assert "\n" not in str(error.value)


def test_a_new_column_is_added_and_empty_in_older_rows(tmp_path):
    path = tmp_path / "a.csv"
    CsvLog(path).write([{"iteration": 0, "x": 1.5, "gone": 7}])
    log = CsvLog(path)
    log.write([{"iteration": 1, "x": 2.5, "new": 9}])
    log.write([{"iteration": 2, "x": 3.5, "new": 10}])
    assert path.read_text().splitlines() == ["iteration,x,gone,new", "0,1.5,7,", "1,2.5,,9", "2,3.5,,10"]
    found = read_csv(path)
    np.testing.assert_array_equal(found["new"], [np.nan, 9, 10])
    np.testing.assert_array_equal(found["gone"], [7, np.nan, np.nan])
    assert recorded_iterations(path) == 3
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_rewrite_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    CsvLog(path).write([{"iteration": 0, "x": 1.5}])
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    log = CsvLog(path)
    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space"):
        log.write([{"iteration": 1, "x": 2.5, "new": 9}])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    log.write([{"iteration": 1, "x": 2.5, "new": 9}])
    np.testing.assert_array_equal(read_csv(path)["new"], [np.nan, 9])


def test_old_names_of_columns_are_read_and_continued(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("iteration,cost_bias,critic_bias_low_risky\n0,-1.5,nan\n")
    log = CsvLog(path)
    log.write([{"iteration": 1, "critic_bias_sampled": -2.5, "critic_bias_rollout_risky_low": 0.5}])
    assert path.read_text().splitlines()[0] == "iteration,cost_bias,critic_bias_low_risky", "as it was"
    found = read_csv(path)
    assert list(found) == ["iteration", "critic_bias_sampled", "critic_bias_rollout_risky_low"]
    np.testing.assert_array_equal(found["critic_bias_sampled"], [-1.5, -2.5])
    log.write([{"iteration": 2, "critic_bias_sampled": 1.0, "more": 3}])
    assert path.read_text().splitlines()[0] == "iteration,critic_bias_sampled,critic_bias_rollout_risky_low,more"
    np.testing.assert_array_equal(read_csv(path)["critic_bias_sampled"], [-1.5, -2.5, 1.0])


def test_episodes_of_format_1(tmp_path):
    path = tmp_path / "episodes.csv"
    path.write_text("iteration,steps,member,return\n0,20,3,1.0\n")
    CsvLog(path).write([{"iteration": 0, "steps": 20, "env": 4, "return": 2.0}])
    np.testing.assert_array_equal(read_csv(path)["env"], [3, 4])


def test_a_torn_last_row_is_not_read_and_not_continued(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"iteration,x\r\n0,1.5\r\n1,2")
    assert read_csv(path)["x"].tolist() == [1.5]
    log = CsvLog(path)
    log.forget_from(5)
    log.write([{"iteration": 1, "x": 2.5}])
    assert read_csv(path)["x"].tolist() == [1.5, 2.5]
    log.forget_from(0)
    assert not path.exists()
    log.write([{"iteration": 0, "other": 1}])
    assert list(read_csv(path)) == ["iteration", "other"]


@pytest.mark.parametrize(("length", "count"), [(1, 1), (9, 1), (19, 1), (20, 2), (500, 50)])
def test_the_last_tenth(length, count):
    np.testing.assert_array_equal(last_tenth(np.arange(length)), np.arange(length)[length - count :])
