"""Asking for a task by name."""

import pytest

from flashbulb.envs import make
from flashbulb.errors import UsageError


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("SafetyHalfCheetaVelocity-v1", "SafetyHalfCheetahVelocity-v1"),
        ("safetyhoppervelocity-v1", "SafetyHopperVelocity-v1"),
        ("HazardField", "HazardField-v0"),
    ],
)
def test_an_unknown_id_names_the_nearest(wrong: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=nearest) as caught:
        make(wrong)
    assert repr(wrong) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", ["num_envs", "threads"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_counts_must_be_whole_and_positive(field: str, value: float) -> None:
    with pytest.raises(UsageError, match=field):
        make("HazardField-v0", **{field: value})
