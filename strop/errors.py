"""Errors a user can act on: each says what is wrong, with the numbers, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StropError(Exception):
    """Shown without a traceback."""


class ConfigurationError(StropError):
    """A run that cannot work, refused before anything starts."""


class ModelError(StropError):
    """A model folder that cannot be used."""


class DataError(StropError):
    """A task file that cannot be read, with file and line."""


class RewardError(StropError):
    """A reward that broke its contract."""


class EpisodeError(StropError):
    """A step or reset that the state of its episode does not allow; nothing is paid for it."""


class LLMClientError(StropError):
    """Somebody who was asked for advice did not answer; whatever asked goes without."""


class UnreadVerdictError(LLMClientError):
    """A judge's answer in which nothing is certainly its own verdict."""


class StarvationError(StropError):
    """No batch can be filled; says which gate dropped what."""


class CheckpointError(StropError):
    """A checkpoint that is cut short or changed."""


class DeliveryError(StropError):
    """An engine samples from other weights than the published ones."""


class EngineError(StropError):
    """An engine is lost for good; says how often it was started again and what it said last."""


class RankError(StropError):
    """A rank of the trainer died or hung; says which, with its last words."""


class NumericsError(StropError):
    """The loss or a gradient is not finite; the weights were not touched."""


class BusyError(StropError):
    """Another process uses this run folder."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint for a mistyped name."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    return f"did you mean {' or '.join(close)}?" if close else f"valid: {', '.join(names)}"


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error within a group of them."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
