"""Parts of a run sent to another process: pickled by the parent, read by the child, never the other way."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop import errors
from strop.errors import ConfigurationError, StropError


def packed(
    part: Any, name: str, where: str, remedy: str = "", kind: type[StropError] = ConfigurationError
) -> NDArray[np.uint8]:
    """A part as an array of a message, or an error of this kind that names it and what helps."""
    try:
        return np.frombuffer(pickle.dumps(part, protocol=5), np.uint8)
    except Exception as error:
        raise kind(
            f"{name} cannot be sent to {where} ({error}): define it at the top of an importable file{remedy}"
        ) from error


def unpacked(array: NDArray[np.uint8]) -> Any:
    """A part from an array that the parent of this process sent."""
    return pickle.loads(array.tobytes())


def told(name: str, message: str, who: str) -> StropError:
    """The error that was raised in another process, where it is one of ours."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, StropError):
        return kind(message)
    return StropError(f"{who} failed: {name}: {message}")
