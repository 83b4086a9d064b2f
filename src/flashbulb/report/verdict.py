"""The verdict on a task in one line: who keeps the limit at the end, and who of these has the highest return."""

from __future__ import annotations

import math

from flashbulb.analysis.run_table import ALL_TASKS, TableRow
from flashbulb.cost_limits import CostLimit, limit_columns, limit_text

RANGE_SEEDS = 3  # up to which a bootstrap interval is the range of the seeds (analysis/statistics.py)


def verdicts(rows: list[TableRow], limits: dict[tuple[str, str], CostLimit]) -> list[list[str]]:
    """Pairs of a task and a sentence; `rows` are statistics by task and label, `limits` their cost limits."""
    tasks: dict[str, list[TableRow]] = {}
    for row in rows:
        if row["task"] != ALL_TASKS and not math.isnan(float(row["cost"])):
            tasks.setdefault(str(row["task"]), []).append(row)
    return [[task, _verdict(own, [limits[task, str(row["label"])] for row in own])] for task, own in tasks.items()]


def _excess(row: TableRow, limit: CostLimit) -> float:
    """How far the cost is above its limit; of several costs the one that is furthest, in units of its limit."""
    over = [(float(row[column]) - own, own) for column, own in limit_columns(limit).items()]
    return over[0][0] if len(over) == 1 else max(above / (own or 1) for above, own in over)


def _verdict(rows: list[TableRow], limits: list[CostLimit]) -> str:
    excess = [_excess(row, limit) for row, limit in zip(rows, limits, strict=True)]
    kept = [row for row, over in zip(rows, excess, strict=True) if over <= 0]
    texts = {limit_text(limit) for limit in limits}
    what = f"limit of {texts.pop()}" if len(texts) == 1 else "limit"
    if len(rows) == 1:
        does = f"keeps the {what}" if kept else f"is over the {what}"
        return f"{rows[0]['label']} {does} at the end: {_numbers(rows[0])}; {_violations(rows[0])}{_seeds(rows)}."
    if not kept:
        nearest = rows[excess.index(min(excess))]
        return (
            f"None of {len(rows)} algorithms keeps the {what} at the end; {nearest['label']} is nearest "
            f"({_numbers(nearest)}){_seeds(rows)}."
        )
    best, *others = sorted(kept, key=lambda row: -float(row["return"]))
    during = _violations(best) + _fewest_violations(best, rows) + _seeds(rows)
    if not others:
        return (
            f"Only {best['label']} of {len(rows)} algorithms keeps the {what} at the end: {_numbers(best)}; {during}."
        )
    count = "All" if len(kept) == len(rows) else f"{len(kept)} of"
    clear = _clearly_above(best, others[0])
    rank = "has the highest return" if clear else "has the highest mean return, not clearly"
    return (
        f"{count} {len(rows)} algorithms keep the {what} at the end; of these {best['label']} {rank} "
        f"({_numbers(best)}; next {others[0]['label']}, {_numbers(others[0])}); {during}."
    )


def _clearly_above(best: TableRow, other: TableRow) -> bool:
    """Whether both have several seeds and their intervals do not overlap."""
    return float(best["return_low"]) > float(other["return_high"])  # NaN, of a single seed, is not


def _numbers(row: TableRow) -> str:
    return f"return {float(row['return']):.4g}, cost {float(row['cost']):.4g}"


def _violations(row: TableRow) -> str:
    return f"above it in {100 * float(row['violation_rate']):.0f} % of all iterations"


def _fewest_violations(best: TableRow, rows: list[TableRow]) -> str:
    """Who was above the limit least often during training, if that is another."""
    least = min(rows, key=lambda row: float(row["violation_rate"]))
    if float(least["violation_rate"]) >= float(best["violation_rate"]):
        return ""
    return f", {least['label']} in {100 * float(least['violation_rate']):.0f} %"


def _seeds(rows: list[TableRow]) -> str:
    counts = sorted({int(row["runs"]) for row in rows})
    text = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    each = " each" if len(rows) > 1 else ""
    return f" ({text} seed{'s' if counts[-1] > 1 else ''}{each})"
