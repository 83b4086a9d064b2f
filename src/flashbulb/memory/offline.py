"""Unsafe states from a data set, for where it is too dear to meet them first-hand (the paper's Discussion).

A data set is an .npz or .hdf5 file with the arrays `observations` (N, n), `actions` (N, ...) and `costs` (N,), row
for row (that is also how DSRL's files are laid out), or a Minari data set whose infos hold `cost`. Read once, when a
run starts; h5py and Minari are imported only if they are needed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flashbulb.cores import most_bytes
from flashbulb.errors import UsageError

NAMES = ("observations", "actions", "costs")
HDF5 = (".hdf5", ".h5")


class Transitions(NamedTuple):
    """States as they were observed, what was done in them, and what it cost."""

    observations: np.ndarray  # (N, n)
    actions: np.ndarray  # (N, ...) in the environment's units
    costs: np.ndarray  # (N,)


def load_transitions(source: str, observation_size: int, action_shape: tuple[int, ...]) -> Transitions:
    """All of a data set, checked against the task's spaces."""
    suffix = Path(source).suffix.lower()
    if suffix == ".npz":
        arrays = _read_npz(source)
    elif suffix in HDF5:
        arrays = _read_hdf5(source)
    else:
        arrays = _read_minari(source)
    rows = len(arrays["observations"])
    wanted = {"observations": (rows, observation_size), "actions": (rows, *action_shape), "costs": (rows,)}
    for name, shape in wanted.items():
        found = np.asarray(arrays[name])
        if name == "costs" and found.shape == (rows, 1):
            arrays[name] = found = found[:, 0]
        if found.shape != shape:
            raise _refuse(source, f"its {name} have shape {found.shape} and must have {shape}")
        if found.dtype.kind not in "fiub" or not np.isfinite(found).all():
            raise _refuse(source, f"its {name} must be finite numbers")
    transitions = Transitions(
        np.asarray(arrays["observations"], np.float32), np.asarray(arrays["actions"]), np.asarray(arrays["costs"])
    )
    if not (transitions.costs > 0).any():
        raise _refuse(source, "none of its states has a cost above 0, so there is nothing to remember")
    return transitions


def _read_npz(source: str) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(source) as packed:
            _check_size(source, sum(member.file_size for member in packed.infolist()))
        with np.load(source, allow_pickle=False) as file:
            return _named(source, {name: file[name] for name in NAMES if name in file})
    except FileNotFoundError:
        raise _refuse(source, "there is no such file") from None
    except UsageError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _refuse(source, f"it cannot be read ({error})") from None


def _read_hdf5(source: str) -> dict[str, Any]:
    try:
        import h5py
    except ImportError:
        raise _refuse(source, "h5py is missing; pip install flashbulb[offline]") from None
    try:
        with h5py.File(source, "r") as file:
            found = {name: file[name] for name in NAMES if isinstance(file.get(name), h5py.Dataset)}
            _check_size(source, sum(int(data.size or 0) * data.dtype.itemsize for data in found.values()))
            return _named(source, {name: data[()] for name, data in found.items()})
    except FileNotFoundError:
        raise _refuse(source, "there is no such file") from None
    except (OSError, RuntimeError, KeyError) as error:
        raise _refuse(source, f"it cannot be read ({error})") from None


def _read_minari(source: str) -> dict[str, Any]:
    try:
        import minari
    except ImportError:
        ways = "it is no .npz or .hdf5 file, and for a Minari data set Minari is missing"
        raise _refuse(source, f"{ways}; pip install flashbulb[offline]") from None
    try:
        data = minari.load_dataset(source)
        rows = list(_episodes(source, data.iterate_episodes()))
    except (FileNotFoundError, ImportError, ValueError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise _refuse(source, f"Minari cannot load it ({reason}); try `minari download {source}`") from None
    return {name: np.concatenate(parts) for name, parts in zip(NAMES, zip(*rows, strict=True), strict=True)}


def _episodes(source: str, episodes: Any) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    for episode in episodes:
        steps = len(episode)
        if "cost" not in (episode.infos or {}):
            raise _refuse(source, "its infos hold no `cost`; it must be recorded with record_infos=True")
        # The observation after the last step, and the info of the reset, belong to no step.
        yield np.asarray(episode.observations)[:steps], np.asarray(episode.actions), episode.infos["cost"][-steps:]


def _check_size(source: str, size: int) -> None:
    """Packed, an array of any size fits into a few bytes."""
    if size > most_bytes():
        raise _refuse(source, f"unpacked, it has {size:,} bytes, more than {most_bytes():,}")


def _named(source: str, arrays: dict[str, Any]) -> dict[str, Any]:
    missing = [name for name in NAMES if name not in arrays]
    if missing:
        raise _refuse(source, f"it has no array called {missing[0]}; it must hold {', '.join(NAMES)}")
    return arrays


def _refuse(source: str, reason: str) -> UsageError:
    return UsageError(f"memory.offline: {source!r} is not allowed; {reason}.")
