"""Operations on turns as token sequences: cut, convert to a prefix, join, insert, extend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.backends import ORDER
from strop.errors import ConfigurationError
from strop.types import IntArray, Message, Sampling, Turn

NOBODY = -1  # version of tokens that no policy wrote
LOST = -1  # engine statistic of tokens unmasked in the same step as tokens that were cut off


def cut(turns: Sequence[Turn], at: int) -> tuple[Turn, ...]:
    """The turns up to the first `at` written tokens; the last completion is unfinished unless it ends there."""
    written = sum(len(turn.tokens) for turn in turns)
    if not 0 <= at <= written:
        raise ValueError(f"cannot continue after {at} written tokens of a rollout that has {written}")
    kept: list[Turn] = []
    for turn in turns:
        if at <= 0 and (kept or len(turn.tokens)):
            break
        kept.append(turn if at >= len(turn.tokens) else shortened(turn, at))
        at -= len(turn.tokens)
    return tuple(kept)


def as_prefix(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The same turns as a prefix: a rollout that continues from them neither trains on nor counts their tokens."""
    return tuple(
        replace(
            turn,
            prompt=np.concatenate([turn.prompt, turn.tokens]),
            tokens=turn.tokens[:0],
            logprobs=turn.logprobs[:0],
            versions=turn.versions[:0],
            num_prefix=turn.num_prefix + len(turn.tokens),
        )
        for turn in turns
    )


def joined(before: Sequence[Turn], after: Sequence[Turn]) -> tuple[Turn, ...]:
    """`after`, which has all of `before` as its prefix, with these tokens as written: the inverse of `as_prefix`."""
    pairs = zip(before, after[: len(before)], strict=True)
    return (*(_joined(first, then) for first, then in pairs), *after[len(before) :])


def noted(turns: Sequence[Turn], name: str, values: NDArray[Any]) -> tuple[Turn, ...]:
    """The turns with a statistic [N] under this name: one value per written token, 0 for read tokens."""
    parts = np.split(values, np.cumsum([len(turn.tokens) for turn in turns])[:-1])
    return tuple(
        replace(turn, aux={**turn.aux, name: np.concatenate([np.zeros(len(turn.prompt), part.dtype), part])})
        for turn, part in zip(turns, parts, strict=True)
    )


def _joined(first: Turn, then: Turn) -> Turn:
    return replace(
        then,
        prompt=first.prompt,
        tokens=np.concatenate([first.tokens, then.tokens]),
        logprobs=np.concatenate([first.logprobs, then.logprobs]),
        versions=np.concatenate([first.versions, then.versions]),
        num_prefix=first.num_prefix,
    )


def handed_on(turn: Turn, size: int) -> Turn:
    """A turn whose first written tokens now belong to another rollout: they become a prefix here."""
    return replace(
        turn,
        prompt=np.concatenate([turn.prompt, turn.tokens[:size]]),
        tokens=turn.tokens[size:],
        logprobs=turn.logprobs[size:],
        versions=turn.versions[size:],
        num_prefix=turn.num_prefix + size,
        aux=out_of_order(turn.aux),
    )


def shortened(turn: Turn, size: int) -> Turn:
    """A turn cut to `size` tokens. Its message is emptied: a stop string in it would make it look finished."""
    rows = len(turn.prompt) + size
    return replace(
        turn,
        tokens=turn.tokens[:size],
        logprobs=turn.logprobs[:size],
        versions=turn.versions[:size],
        message=Message("assistant", ""),
        aux={name: array if len(array) == 1 else array[:rows] for name, array in out_of_order(turn.aux).items()},
    )


def out_of_order(aux: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    """Engine statistics of a masked diffusion completion that lost tokens.

    Tokens unmasked together with lost ones can be read but not trained on: their context is no longer known.
    """
    if ORDER not in aux:
        return aux
    order_rows = aux[ORDER].copy()
    order_rows[order_rows[:, 0] > 0] = LOST
    return {**aux, ORDER: order_rows}


def as_context(turns: Sequence[Turn]) -> list[Turn]:
    """Turns of which the first opens a context."""
    return [replace(turn, fresh=True) if index == 0 else turn for index, turn in enumerate(turns)]


def said(turn: Turn, tokens: IntArray) -> Turn:
    """A turn followed by tokens that no policy wrote."""
    if ORDER in turn.aux and len(turn.tokens) and len(tokens):
        raise ConfigurationError("tokens cannot be inserted into a completion of a masked diffusion model")
    return replace(
        turn,
        tokens=np.concatenate([turn.tokens, tokens]),
        logprobs=np.concatenate([turn.logprobs, np.zeros(len(tokens), np.float32)]),
        versions=np.concatenate([turn.versions, np.full(len(tokens), NOBODY, np.int64)]),
        aux=extended(turn, {}, len(tokens)),
    )


def by_nobody(turn: Turn) -> Turn:
    """The same tokens as if no weights of this run wrote them: neither their logprobs nor their number count."""
    return replace(turn, versions=np.full(len(turn.tokens), NOBODY, dtype=np.int64))


def unwritten(prompt: IntArray, tokens: IntArray, sampling: Sampling) -> Turn:
    """An unfinished completion whose first tokens no policy wrote."""
    none = np.zeros(0, dtype=np.int64)
    turn = Turn(prompt, none, none.astype(np.float32), none, Message("assistant", ""), sampling)
    return said(turn, tokens)


def extended(turn: Turn, more: Mapping[str, NDArray[Any]], count: int) -> dict[str, NDArray[Any]]:
    """Engine statistics of a turn extended by `count` rows; rows that no engine provided are 0.

    Statistics of a whole context also fill the earlier rows that are still empty.
    """
    rows = len(turn.prompt) + len(turn.tokens)
    found: dict[str, NDArray[Any]] = {}
    for name in dict.fromkeys((*turn.aux, *more)):
        old, new = turn.aux.get(name), more.get(name)
        if old is not None and len(old) == 1 and new is None:
            found[name] = old  # one row for the whole turn
            continue
        like = new if new is not None else old
        assert like is not None
        before = old if old is not None else np.zeros((rows, *like.shape[1:]), like.dtype)
        behind = new if new is not None else np.zeros((count, *like.shape[1:]), like.dtype)
        if len(behind) > count:
            before = np.where(before == 0, behind[len(behind) - count - rows : len(behind) - count], before)
        found[name] = np.concatenate([before, behind[len(behind) - count :]])
    return found


def read_to_the_end(turn: Turn, more: Mapping[str, NDArray[Any]], count: int) -> Turn:
    """A turn whose statistics include its last token, which an engine reads only when it continues after it."""
    lacking = {
        name: told
        for name, told in turn.aux.items()
        if len(more.get(name, ())) > count and len(told) and not told[-1].any()
    }
    if not lacking:
        return turn
    read = {name: more[name][len(more[name]) - count - 1 :][:1] for name in lacking}
    return replace(turn, aux={**turn.aux, **{n: np.concatenate([told[:-1], read[n]]) for n, told in lacking.items()}})


def retold(turn: Turn, size: int) -> dict[str, NDArray[Any]]:
    """Engine statistics of a turn after its prompt changed to `size` tokens."""
    behind = turn.num_prefix + len(turn.tokens)
    found: dict[str, NDArray[Any]] = {}
    for name, array in turn.aux.items():
        front = np.zeros((size - turn.num_prefix, *array.shape[1:]), array.dtype)
        found[name] = array if len(array) == 1 else np.concatenate([front, array[len(array) - behind :]])
    return found
