"""Compare two algorithms over seeds: interquartile means with confidence intervals, curves and one page.

python examples/compare.py [STEPS [SEEDS]]
"""

import sys

import numpy as np

import flashbulb
from flashbulb.analysis.statistics import iqm_interval

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
runs = {
    name: [flashbulb.train(name, "HazardField-v0", seed=seed, steps=steps, verbose=False) for seed in range(seeds)]
    for name in ("cpo", "mice-cpo")
}
for name, results in runs.items():
    for measure in ("return", "cost", "violation_rate"):
        found = iqm_interval([np.array([result.metrics[measure][-10:].mean() for result in results])])
        print(f"{name:<10}{measure:<16}{found.value:8.2f}  [{found.low:.2f}, {found.high:.2f}]")
directories = [result.directory for results in runs.values() for result in results]
print(flashbulb.plot(directories, "compare.png"), flashbulb.report(directories, "compare.html", episodes=0))
