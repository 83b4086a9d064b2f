"""Train MICE-CPO, print the result, evaluate it on fresh seeds, and draw the curves.

python examples/train_and_look.py [STEPS]
"""

import sys

import flashbulb

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
result = flashbulb.train("mice-cpo", "HazardField-v0", steps=steps, cost_limit=25)
print(result)

measured = flashbulb.evaluate(result.directory, episodes=20, deterministic=True)["deterministic"]
for name, interval in measured.items():
    print(f"{name:<18}{interval.mean:8.2f}")
print(flashbulb.plot([result.directory], result.directory / "comparison.png"))
