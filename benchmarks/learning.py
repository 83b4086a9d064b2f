"""What every algorithm learns at one length, beside what others publish: a table against regressions of learning.

    make bench-learning            # 1,000,000 steps, 3 seeds; SCALE=paper for 10,000,000 steps, 6 seeds

It runs `flashbulb study baselines`, which goes on where it was stopped, and then writes learning.md into the study's
directory. Published are only runs of 10,000,000 steps: at a smaller scale they are a goal and no comparison.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev

POINT, CHEETAH = "SafetyPointGoal1-v0", "SafetyHalfCheetahVelocity-v1"
# OmniSafe's table of on-policy algorithms: 1e7 steps, limit 25, five seeds; mean and standard deviation.
PUBLISHED: dict[tuple[str, str], str] = {
    (POINT, "cpo"): "20.46 ± 1.38 / 28.84 ± 7.76",
    (POINT, "pid-lag"): "8.43 ± 3.43 / 25.74 ± 7.83",
    (POINT, "cup"): "14.42 ± 6.74 / 19.02 ± 20.08",
    (POINT, "saute"): "7.06 ± 5.85 / 20.04 ± 21.91",
    (POINT, "simmer-pid"): "8.30 ± 6.03 / 25.32 ± 31.91",
    (CHEETAH, "cpo"): "2786.48 ± 173.45 / 4.70 ± 6.72",
    (CHEETAH, "pid-lag"): "2837.89 ± 398.52 / 8.06 ± 9.62",
    (CHEETAH, "cup"): "2850.60 ± 244.65 / 4.27 ± 4.46",
    (CHEETAH, "saute"): "2901.40 ± 25.49 / 16.20 ± 0.60",
    (CHEETAH, "simmer-pid"): "2922.17 ± 24.84 / 16.14 ± 0.14",
}


def learning_table(measures: Iterable[dict[str, str]]) -> str:
    """Markdown: return and cost of the last tenth of each run, mean and standard deviation over seeds."""
    runs: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in measures:
        runs[row["task"], row["label"]].append(row)
    lines = ["| task | algorithm | steps | seeds | return / cost | violation rate | published: return / cost |"]
    lines.append("| --- | --- | ---: | ---: | --- | ---: | --- |")
    for (task, label), found in runs.items():
        steps = sorted({int(float(row["steps"])) for row in found})
        length = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
        ours = " / ".join(_spread([float(row[name]) for row in found]) for name in ("return", "cost"))
        violated = mean(float(row["violation_rate"]) for row in found)
        cells = task, label, length, str(len(found)), ours, f"{violated:.2f}", PUBLISHED.get((task, label), "-")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _spread(values: list[float]) -> str:
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def main() -> int:
    from flashbulb.cli.main import run

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learning", description="The table of `make bench-learning`."
    )
    parser.add_argument("--scale", default="short", choices=("smoke", "short", "medium", "paper"))
    parser.add_argument("--directory", type=Path, default=Path("studies"))
    known, rest = parser.parse_known_args()  # what else there is goes to the study, such as --seeds 0
    code = run(["study", "baselines", "--scale", known.scale, "--directory", str(known.directory), *rest])
    place = known.directory / f"baselines-{known.scale}"
    with (place / "measures.csv").open(newline="") as file:
        table = learning_table(csv.DictReader(file))
    (place / "learning.md").write_text(table, encoding="utf-8")
    print(f"{table}\n{place / 'learning.md'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
