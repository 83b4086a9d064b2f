"""Which runs are seeds of one experiment: those that differ in nothing that matters but the seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flashbulb.algorithms.registry import get_algorithm
from flashbulb.config import Config, flat_settings
from flashbulb.errors import UsageError
from flashbulb.storage.run_identity import FREE_SETTINGS

# What is measured besides, and what algorithm and task say already. A shorter run is another experiment, as step sizes
# decay over a run.
_OTHER = FREE_SETTINGS | {"algorithm", "env", "plugins", "seed", "bias_every", "bias_states", "memory.snapshots"}


def experiment_settings(config: Config) -> dict[str, Any]:
    """The settings that the algorithm uses and that the results of a seed depend on."""
    try:
        unused = get_algorithm(config.algorithm).unused_settings
    except UsageError:  # it was registered by a module that is not loaded here
        unused = frozenset()
    return {
        field: value
        for field, value in flat_settings(config).items()
        if field not in _OTHER and field.partition(".")[0] not in unused
    }


def differences(found: Config, wanted: Config) -> dict[str, tuple[Any, Any]]:
    """The settings in which two runs of an algorithm are different experiments, with both values."""
    one, other = experiment_settings(found), experiment_settings(wanted)
    return {field: (one.get(field), value) for field, value in other.items() if one.get(field) != value}


def distinct_labels(configs: Sequence[Config]) -> list[str]:
    """Each run's algorithm, followed by those settings in which the runs of the algorithm on the task differ."""
    settings = [experiment_settings(config) for config in configs]
    kinds = [(config.algorithm, config.env) for config in configs]
    labels = []
    for kind, own in zip(kinds, settings, strict=True):
        others = [other for peer, other in zip(kinds, settings, strict=True) if peer == kind]
        differing = [field for field in own if any(other.get(field) != own[field] for other in others)]
        labels.append(", ".join([kind[0], *(f"{field} {own[field]}" for field in differing)]))
    return labels
