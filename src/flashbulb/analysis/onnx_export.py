"""Export of a trained policy to ONNX: normaliser, network, scaling and clipping in one graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from flashbulb.algorithms.networks import Network
from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.errors import UsageError
from flashbulb.normaliser import CLIP, NEAR

OPSET = 17  # of 2022; older runtimes are rare
IR_VERSION = 8  # the file format that came with it


def export_onnx(policy: TrainedPolicy, path: Path) -> None:
    """Write the deterministic policy: `observation` (batch, n) float32 -> `action`, inside the bounds."""
    try:
        import onnx
    except ImportError:
        raise UsageError(
            "export: the package onnx is missing; install it with pip install flashbulb[export]."
        ) from None
    graph = _Graph(onnx)
    x = graph.normalise("observation", policy)
    network: Network = policy.params.mean if hasattr(policy.params, "mean") else policy.params
    x = graph.network(x, network)
    action = graph.to_box(x, policy) if isinstance(policy.action_space, spaces.Box) else graph.to_choice(x, policy)
    model = graph.model(action, policy)
    onnx.checker.check_model(model, full_check=True)
    try:
        onnx.save(model, str(path))
    except OSError as error:
        raise UsageError(
            f"output: cannot write {path} ({error.strerror}); name a file in a writable directory."
        ) from None


class _Graph:
    """Nodes and constants of a graph, added from input to output."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def apply(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def normalise(self, x: str, policy: TrainedPolicy) -> str:
        near = policy.normalise.near
        if len(near):
            readings = self.apply("Gather", x, self.constant(near, np.int64), axis=1)
            beyond = self.apply("Min", self.apply("Sub", readings, self.constant(1.0)), self.constant(0.0))
            x = self.apply("Concat", x, self.apply("Exp", self.apply("Div", beyond, self.constant(NEAR))), axis=1)
        x = self.apply("Sub", x, self.constant(policy.normalise.mean))
        x = self.apply("Mul", x, self.constant(policy.normalise.scale))
        return self.apply("Clip", x, self.constant(-CLIP), self.constant(CLIP))

    def network(self, x: str, network: Network) -> str:
        for k, layer in enumerate(network):
            x = self.apply("Add", self.apply("MatMul", x, self.constant(layer.weight)), self.constant(layer.bias))
            if k < len(network) - 1:
                x = self.apply("Tanh", x)
        return x

    def to_box(self, x: str, policy: TrainedPolicy) -> str:
        space, gaussian = policy.action_space, policy.policy
        assert isinstance(space, spaces.Box)
        if gaussian.bounded:  # type: ignore[attr-defined]
            x = self.apply("Clip", x, self.constant(-1.0), self.constant(1.0))
        x = self.apply("Mul", x, self.constant(gaussian.half_width))  # type: ignore[attr-defined]
        x = self.apply("Add", x, self.constant(gaussian.centre))  # type: ignore[attr-defined]
        x = self.apply("Max", x, self.constant(space.low.ravel()))
        x = self.apply("Min", x, self.constant(space.high.ravel()))
        return self.apply("Reshape", x, self.constant([-1, *space.shape], np.int64), output="action")

    def to_choice(self, x: str, policy: TrainedPolicy) -> str:
        assert isinstance(policy.action_space, spaces.Discrete)
        best = self.apply("ArgMax", x, axis=1, keepdims=0)
        return self.apply("Add", best, self.constant(int(policy.action_space.start), np.int64), output="action")

    def model(self, action: str, policy: TrainedPolicy) -> Any:
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        (size,), discrete = policy.observation_space.shape, isinstance(policy.action_space, spaces.Discrete)
        given = helper.make_tensor_value_info("observation", kinds.FLOAT, ["batch", size])
        kind, shape = (kinds.INT64, []) if discrete else (kinds.FLOAT, list(policy.action_space.shape or ()))
        taken = helper.make_tensor_value_info(action, kind, ["batch", *shape])
        graph = helper.make_graph(self.nodes, "policy", [given], [taken], self.constants)
        model = helper.make_model(
            graph, producer_name="flashbulb", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        config = policy.config
        about = {"algorithm": config.algorithm, "task": config.env, "seed": config.seed, "steps": policy.steps}
        helper.set_model_props(model, {name: str(value) for name, value in about.items()})
        return model
