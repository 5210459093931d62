"""Exceptions of strop: each message says what is wrong, with the numbers, and what to change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StropError(Exception):
    """Error that is shown without a traceback."""


class ConfigurationError(StropError):
    """Run that cannot work, refused before it starts."""


class ModelError(StropError):
    """Unusable model folder."""


class DataError(StropError):
    """Unreadable task file, with file and line."""


class RewardError(StropError):
    """Reward that returned something invalid."""


class EpisodeError(StropError):
    """Step or reset that the episode's state does not allow; no reward is paid for it."""


class LLMClientError(StropError):
    """LLM client that did not answer; the caller continues without the answer."""


class UnreadVerdictError(LLMClientError):
    """Judge answer without a recognizable verdict."""


class StarvationError(StropError):
    """No batch can be filled; the message lists what each gate dropped."""


class CheckpointError(StropError):
    """Truncated or modified checkpoint."""


class DeliveryError(StropError):
    """Engine that samples from other weights than the published ones."""


class EngineError(StropError):
    """Engine that is permanently lost; the message has the number of restarts and its last error."""


class RankError(StropError):
    """Trainer rank that died or hung; the message has its number and its last output."""


class NumericsError(StropError):
    """Loss or gradient that is not finite; the weights were not changed."""


class BusyError(StropError):
    """Run folder that another process uses."""


_FEW = 24  # names that can be listed; of more, the three nearest are named, however far


def nearest(name: str, valid: Iterable[str]) -> str:
    """Hint for a mistyped name."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.4 if len(names) <= _FEW else 0.0)
    return f"did you mean {' or '.join(close)}?" if close else f"valid: {', '.join(names)}"


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """First exception within nested exception groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
