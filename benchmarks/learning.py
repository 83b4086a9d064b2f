"""What every algorithm learns at one length, beside what others publish: a table against regressions of learning.

    make bench-learning            # 1,000,000 steps, 3 seeds; SCALE=paper for 10,000,000 steps, 6 seeds

It runs `flashbulb study baselines`, which goes on where it was stopped, plays fifty episodes of every trained policy
with its most likely actions (evaluations.csv), and writes learning.md, all into the study's directory. Published are
only runs of 10,000,000 steps: at a smaller scale they are a goal and no comparison.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev

from flashbulb.plots.study_figures import short_task

POINT, BUTTON = "SafetyPointGoal1-v0", "SafetyPointButton1-v0"
CHEETAH, HOPPER = "SafetyHalfCheetahVelocity-v1", "SafetyHopperVelocity-v1"
EPISODES = 50
# OmniSafe's table of on-policy algorithms: 1e7 steps, limit 25, five seeds; mean and standard deviation of return and
# cost. Its evaluator takes the most likely actions, and costs on PointGoal1 are multiples of 1/50: they compare with
# our evaluation of fifty episodes, not with the noisy policy of training. It has neither IPO nor CRPO.
_TABLE = """
cpo            20.46 ± 1.38 / 28.84 ± 7.76     2786.48 ± 173.45 / 4.70 ± 6.72
pcpo           18.57 ± 1.71 / 22.98 ± 6.56     1677.93 ± 217.31 / 19.06 ± 15.26
trpo-pid       19.24 ± 3.94 / 21.38 ± 6.96     2796.75 ± 190.84 / 11.16 ± 9.80
trpo-lag       18.51 ± 3.83 / 22.98 ± 8.45     2884.68 ± 77.47 / 9.04 ± 11.83
rcpo           15.27 ± 4.05 / 30.56 ± 19.15    2440.97 ± 451.88 / 9.02 ± 9.34
pid-lag        8.43 ± 3.43 / 25.74 ± 7.83      2837.89 ± 398.52 / 8.06 ± 9.62
ppo-lag        12.96 ± 6.95 / 25.80 ± 34.99    2946.15 ± 306.35 / 3.44 ± 4.77
cup            14.42 ± 6.74 / 19.02 ± 20.08    2850.60 ± 244.65 / 4.27 ± 4.46
focops         14.97 ± 9.01 / 33.72 ± 42.24    2965.20 ± 290.43 / 2.37 ± 3.50
p3o            1.60 ± 3.01 / 31.10 ± 80.03     2117.84 ± 313.55 / 27.60 ± 8.36
saute          7.06 ± 5.85 / 20.04 ± 21.91     2901.40 ± 25.49 / 16.20 ± 0.60
simmer-pid     8.30 ± 6.03 / 25.32 ± 31.91     2922.17 ± 24.84 / 16.14 ± 0.14
ppo-early-end  16.03 ± 8.60 / 19.17 ± 9.42     2447.25 ± 346.84 / 3.47 ± 4.90
trpo           27.20 ± 0.44 / 45.88 ± 11.27    6490.76 ± 2507.18 / 734.26 ± 321.88
ppo            25.44 ± 5.43 / 55.72 ± 35.55    6921.83 ± 1721.79 / 919.20 ± 173.08
"""
# Of other tasks only what results/ has at that length.
_MORE = {
    HOPPER: """
cpo            1713.71 ± 18.26 / 13.40 ± 5.82
pid-lag        1713.29 ± 10.21 / 8.96 ± 4.28
cup            1716.08 ± 5.93 / 7.48 ± 5.54
saute          1650.91 ± 152.65 / 17.87 ± 1.33
simmer-pid     1699.94 ± 24.25 / 17.04 ± 0.41
""",
    BUTTON: """
cpo            4.04 ± 4.54 / 40.00 ± 4.52
pid-lag        1.18 ± 1.02 / 29.42 ± 12.10
cup            3.50 ± 7.07 / 39.56 ± 54.26
saute          -1.47 ± 0.98 / 22.60 ± 13.91
simmer-pid     -1.97 ± 1.41 / 12.80 ± 7.84
""",
}


def published() -> dict[tuple[str, str], str]:
    """(task, algorithm) -> "return / cost" as OmniSafe publishes them."""
    found = {}
    for tasks, table in (((POINT, CHEETAH), _TABLE), *(((task,), table) for task, table in _MORE.items())):
        for line in table.strip().splitlines():
            name, *numbers = line.split()
            for k, task in enumerate(tasks):
                found[task, name] = " ".join(numbers[7 * k : 7 * k + 7])
    return found


Rows = Iterable[dict[str, str]]


def learning_table(measures: Rows, evaluations: Rows = ()) -> str:
    """Markdown: mean and standard deviation over seeds of each run's last tenth, and of its policy's evaluation."""
    runs: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in measures:
        runs[row["task"], row["label"]].append(row)
    played = {row["run"]: row for row in evaluations}
    lines = [
        "| task | algorithm | steps | seeds | last tenth: return / cost | violation rate | evaluation | published |"
    ]
    lines.append("| --- | --- | ---: | ---: | --- | ---: | --- | --- |")
    for (task, label), found in runs.items():
        steps = sorted({int(float(row["steps"])) for row in found})
        length = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
        violated = mean(float(row["violation_rate"]) for row in found)
        evaluated = [played[row["run"]] for row in found if row["run"] in played]
        known = published().get((task, label), "-")
        cells = (
            short_task(task),
            label,
            length,
            str(len(found)),
            _pair(found),
            f"{violated:.2f}",
            _pair(evaluated),
            known,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _pair(rows: list[dict[str, str]]) -> str:
    return " / ".join(_spread([float(row[name]) for row in rows]) for name in ("return", "cost")) if rows else "-"


def _spread(values: list[float]) -> str:
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def evaluate_runs(place: Path, names: Iterable[str]) -> list[dict[str, str]]:
    """A row of evaluations.csv for each run: those that are there, and those that are missing are played."""
    import flashbulb

    path = place / "evaluations.csv"
    rows = list(csv.DictReader(path.open(newline=""))) if path.exists() else []
    done = {row["run"] for row in rows}
    for name in names:
        if name in done:
            continue
        found = flashbulb.evaluate(place / "runs" / name, episodes=EPISODES, deterministic=True)["deterministic"]
        numbers = {key: f"{found[key].mean:.6g}" for key in ("return", "cost")}
        rows.append({"run": name, "episodes": str(EPISODES), **numbers})
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return rows


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
        measures = list(csv.DictReader(file))
    table = learning_table(measures, evaluate_runs(place, [row["run"] for row in measures]))
    (place / "learning.md").write_text(table, encoding="utf-8")
    print(f"{table}\n{place / 'learning.md'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
