"""Cores are counted by affinity, as SLURM and taskset set it."""

import os
import subprocess
import sys

import pytest

from flashbulb.cores import thread_count, usable_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_only_the_cores_of_the_affinity_mask_count():
    one = usable_cores()[:1]
    script = (
        f"import os; os.sched_setaffinity(0, {one})\n"
        "from flashbulb.cores import thread_count, usable_cores\nprint(usable_cores(), thread_count(None))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(one), "1"]


def test_threads_as_asked_for_up_to_the_limit():
    assert thread_count(5) == 5
    assert thread_count(5, 3) == 3
    assert thread_count(None, 1) == 1
    assert thread_count(None) == len(usable_cores())
