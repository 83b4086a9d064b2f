"""Export a policy to ONNX and use the file without Flashbulb, as on a robot.

python examples/policy_as_onnx.py [STEPS]    (after: pip install ".[export]")
"""

import sys

import numpy as np
import onnxruntime

import flashbulb
from flashbulb.analysis.onnx_export import export_onnx

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
result = flashbulb.train("mice-pid", "HazardField-v0", steps=steps)
policy = flashbulb.load_policy(result.directory)
file = result.directory / "policy.onnx"
export_onnx(policy, file)

# From here on only the file is needed: observations go in, actions come out.
session = onnxruntime.InferenceSession(file)
name = session.get_inputs()[0].name
observation = np.zeros((1, *policy.observation_space.shape), np.float32)
action = session.run(None, {name: observation})[0]
print("action", action, "the same as in Python:", np.allclose(action, policy.predict(observation), atol=1e-5))
