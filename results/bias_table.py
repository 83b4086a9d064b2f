"""The cost critic against rollouts: `python -m results.bias_table LABEL,LABEL... [--tasks TASK,TASK...]`.

A row per task and label: V_C minus the true cost to go, with the truth in brackets, at visited, initial and risky
states, and R^2, the share of the variance of the costs to go in fresh episodes that V_C explains. All are means over
the measurements in the second half of a run, then over seeds; the range of several seeds follows.
"""

from __future__ import annotations

import argparse

import numpy as np

from results.tables import Row, curve, gather, print_head, print_row, spread

STATES = {"": "visited states", "_initial": "initial states", "_risky": "risky states"}


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description="The cost critic against rollouts.")
    parser.add_argument("labels", type=lambda text: text.split(","))
    parser.add_argument("--tasks", type=lambda text: text.split(","), help="only these (default: all)")
    options = parser.parse_args(arguments or None)
    print_head("task", "algorithm", "seeds", *STATES.values(), "R²")
    order = {label: place for place, label in enumerate(options.labels)}
    runs = {
        cell: measured
        for cell, seeds in gather().items()
        if cell.label in order and cell.task in (options.tasks or [cell.task])
        if (measured := {seed: row for seed, row in seeds.items() if curve(row, "critic_bias_rollout").size})
    }
    for cell in sorted(runs, key=lambda cell: (-cell.steps, cell.task, order[cell.label])):
        rows = [*runs[cell].values()]
        biases = [bias(rows, state) for state in STATES]
        print_row(cell.place, f"`{cell.label}`", str(len(rows)), *biases, spread(late_means(rows, "critic_r2"), "+.2f"))


def bias(runs: list[Row], state: str) -> str:
    found = late_means(runs, f"critic_bias_rollout{state}")
    truth = np.nanmean(late_means(runs, f"true_cost_value{state}"))
    return f"{spread(found, '+.1f')} ({truth:.1f})"


def late_means(runs: list[Row], name: str) -> np.ndarray:
    """The mean of each run over the measurements in its second half; NaN where it has none."""
    found = []
    for run in runs:
        steps, values = curve(run, name)
        late = values[steps > float(run["steps"]) / 2]
        found.append(late.mean() if len(late) else np.nan)
    return np.array(found)


if __name__ == "__main__":
    main()
