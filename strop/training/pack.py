"""Packing of groups with advantages into batches without padding; the split never changes the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from strop.backends import EXPERTS, ORDER
from strop.errors import ConfigurationError
from strop.roles import Advantage, Reduction
from strop.storage.named_files import place_of
from strop.training.batch import ORIGINS, Batch
from strop.types import FloatArray, Group, IntArray, Message, Rollout, Turn

_NOTHING = np.zeros(0, dtype=np.int64)
_FILLER = Turn(np.zeros(1, dtype=np.int64), _NOTHING, _NOTHING.astype(np.float32), _NOTHING, Message("user", ""))
Columns: TypeAlias = dict[str, NDArray[Any]]  # one array [T] per field of `Batch`


@dataclass(frozen=True, eq=False)
class Contexts:
    """Tokens that the policy read and sampled in A rollouts: T tokens."""

    tokens: IntArray  # [T]
    positions: IntArray  # [T], from 0 in every segment
    segments: IntArray  # [T], ascending
    rollouts: IntArray  # [T], ascending
    written: NDArray[np.bool_]  # [T], the tokens the policy sampled
    observed: NDArray[
        np.bool_
    ]  # [T], what the environment returned as text: neither sampled nor part of a first prompt

    @property
    def starts(self) -> list[int]:
        """Index at which each rollout starts, and the end: [A + 1]."""
        sizes = np.bincount(self.rollouts)
        return [0, *np.cumsum(sizes).tolist()]


def pack(
    groups: Sequence[Group],
    reduction: Reduction | None,
    version: int,
    max_tokens: int,
    scope: str = "rollout",
    aux: frozenset[str] = frozenset(),
) -> list[Batch]:
    """Batches of at most `max_tokens` tokens, or of one longer rollout (one group where `scope` is "group").

    Without a reduction all advantages and shares are 0: such batches serve forward passes only.
    """
    shares = None if reduction is None else reduction(groups)
    owners = [(index, rollout) for index, group in enumerate(groups) for rollout in group.scored if rollout.num_tokens]
    rollouts = [rollout for _, rollout in owners]
    if not rollouts:
        return []
    contexts = lay_out(rollouts)
    columns = _columns(contexts, rollouts, shares)
    columns |= {f"aux.{name}": _aux(name, rollouts) for name in aux | _replayed(rollouts)}
    names, columns["policy_indices"] = _policies(rollouts)
    group_of = np.array([index for index, _ in owners])  # [A]
    step_tokens = int(contexts.written.sum())
    bounds = _bounds(group_of, scope)  # rollouts at which a batch may start
    starts = contexts.starts
    batches = []
    for first, last in fill([starts[bound] for bound in bounds], max_tokens):
        low, high = bounds[first], bounds[last]
        batch = _batch(columns, starts[low], starts[high], rollouts[low:high], group_of[low:high], groups)
        batch.version, batch.step_tokens, batch.policy_names = version, step_tokens, names
        batches.append(batch)
    return batches


def lay_out(rollouts: Sequence[Rollout]) -> Contexts:
    """Prompt, completion, next prompt, ... of each rollout; a fresh turn opens a new segment."""
    turns = [(index, turn) for index, rollout in enumerate(rollouts) for turn in rollout.turns]
    pieces = [piece for _, turn in turns for piece in (_heard(turn), turn.prefix, turn.tokens)]
    sizes = np.array([len(piece) for piece in pieces])
    owner = np.array([index for index, _ in turns])  # by turn
    opens = np.array([turn.fresh for _, turn in turns]) | (np.diff(owner, prepend=-1) > 0)
    answers = np.stack([~opens, np.zeros_like(opens), np.zeros_like(opens)], 1).ravel()  # by piece
    segments = np.repeat(np.repeat(np.cumsum(opens) - 1, 3), sizes)
    segment_sizes = np.bincount(segments)
    segment_starts = np.cumsum(segment_sizes) - segment_sizes
    tokens = np.concatenate(pieces).astype(np.int64, copy=False)
    contexts = Contexts(
        tokens=tokens,
        positions=np.arange(len(segments)) - segment_starts[segments],
        segments=segments,
        rollouts=np.repeat(np.repeat(owner, 3), sizes),
        written=np.repeat(np.tile([False, False, True], len(turns)), sizes),
        observed=np.repeat(answers, sizes) & (tokens >= 0),  # nothing predicts a picture
    )
    _check_first_tokens(contexts, rollouts)
    return contexts


def closed(rollout: Rollout) -> Rollout:
    """The rollout with one filler token after each context, so that its last token's state is computed."""
    following = [*rollout.turns[1:], None]
    turns = [
        each
        for turn, after in zip(rollout.turns, following, strict=True)
        for each in ((turn, _FILLER) if after is None or after.fresh else (turn,))
    ]
    return replace(rollout, turns=tuple(turns))


def _heard(turn: Turn) -> IntArray:
    """The prompt without its prefix."""
    return turn.prompt[: len(turn.prompt) - turn.num_prefix]


def fill(starts: Sequence[int], max_tokens: int) -> list[tuple[int, int]]:
    """Ranges of consecutive units, each of at most `max_tokens` tokens or one unit; `starts` ends with the total."""
    ranges = []
    first = 0
    for unit in range(1, len(starts)):
        is_last = unit == len(starts) - 1
        if is_last or starts[unit + 1] - starts[first] > max_tokens:
            ranges.append((first, unit))
            first = unit
    return ranges


def _bounds(group_of: IntArray, scope: str) -> list[int]:
    if scope not in ("rollout", "group"):
        raise ConfigurationError(f"a loss's scope must be rollout or group, got {scope!r}")
    count = len(group_of)
    if scope == "rollout":
        return list(range(count + 1))
    return [*np.flatnonzero(np.diff(group_of, prepend=-1)).tolist(), count]


def _columns(contexts: Contexts, rollouts: Sequence[Rollout], shares: dict[str, FloatArray] | None) -> Columns:
    """Per-turn and per-rollout arrays, spread over their tokens."""
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    # temperature 0 is greedy and has no gradient: it is trained at temperature 1
    temperature = np.repeat([turn.sampling.temperature or 1.0 for turn in turns], [len(turn.tokens) for turn in turns])
    columns: Columns = {
        "tokens": contexts.tokens,
        "positions": contexts.positions,
        "segments": contexts.segments,
        "rollouts": contexts.rollouts,
        "trainable": contexts.written,
        "behavior_logprobs": _placed([turn.logprobs for turn in turns], contexts.written, np.float32),
        "versions": _placed([turn.versions for turn in turns], contexts.written, np.int64, -1),
        "temperature": _placed([temperature], contexts.written, np.float32, 1),
        "observed": contexts.observed,
        "observed_share": _observed_share(contexts),
    }
    if shares is None:
        return columns | dict.fromkeys(("advantages", "share"), np.zeros(len(contexts.tokens), dtype=np.float32))
    columns["advantages"] = _advantage("advantages", rollouts, lambda rollout: rollout.advantages, contexts)
    columns["share"] = _advantage("shares of the loss", rollouts, lambda rollout: shares.get(rollout.id), contexts)
    if any(rollout.returns is not None for rollout in rollouts):
        columns["returns"] = _advantage("returns", rollouts, lambda rollout: rollout.returns, contexts)
    if any(rollout.values is not None for rollout in rollouts):
        columns["values"] = _advantage("values", rollouts, lambda rollout: rollout.values, contexts)
    return columns


def _observed_share(contexts: Contexts) -> FloatArray:
    """1 / (rollouts * observed tokens of the rollout) at each of them: [T]."""
    counts = np.bincount(contexts.rollouts, contexts.observed)  # [A]
    each = 1 / (len(counts) * np.maximum(counts, 1))
    return np.where(contexts.observed, each[contexts.rollouts], 0).astype(np.float32)


def _replayed(rollouts: Sequence[Rollout]) -> frozenset[str]:
    """Aux that the forward pass replays, whether or not a part asks for it."""
    return frozenset(name for rollout in rollouts for turn in rollout.turns for name in turn.aux) & {EXPERTS, ORDER}


def _aux(name: str, rollouts: Sequence[Rollout]) -> NDArray[Any]:
    """The turns' aux values under this name for each token of their prompt and completion; 0 where absent: [T, ...]."""
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    shape = next((turn.aux[name].shape[1:] for turn in turns if name in turn.aux), ())
    empty = np.zeros(shape, dtype=np.float32)
    pieces = []
    for turn in turns:
        size = len(turn.prompt) + len(turn.tokens)
        piece = turn.aux.get(name, np.broadcast_to(empty, (size, *shape)))
        if len(piece) == 1:  # one row for the whole turn
            piece = np.broadcast_to(piece, (size, *shape))
        if len(piece) != size:
            raise ConfigurationError(f"aux {name!r} has {len(piece)} rows for a turn of {size} tokens, prompt included")
        pieces.append(piece.astype(np.float32))
    return np.concatenate(pieces)


def _policies(rollouts: Sequence[Rollout]) -> tuple[tuple[str, ...], IntArray]:
    """Policy names, and for each token the index of its turn's name: [T]."""
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    names = tuple(sorted({turn.sampling.policy_name for turn in turns}))
    places = np.array([names.index(turn.sampling.policy_name) for turn in turns], dtype=np.int64)
    return names, np.repeat(places, [len(turn.prompt) + len(turn.tokens) for turn in turns])


def check_advantages(advantage: Advantage, groups: Sequence[Group]) -> None:
    """Refuse advantages that are not one number for each completion token, and name who set them."""
    for rollout in (each for group in groups for each in group.scored):
        found, count = rollout.advantages, rollout.num_tokens
        if found is None or (isinstance(found, np.ndarray) and found.shape == (count,) and found.dtype.kind in "fiu"):
            continue
        shape = f"of shape {found.shape}" if isinstance(found, np.ndarray) else f"{found!r:.40}"
        place = place_of(type(advantage))
        raise ConfigurationError(
            f"{type(advantage).__name__}{place and f' ({place})'} set rollout.advantages to {type(found).__name__} "
            f"{shape}, and needs an array with one float for each of its {count} completion tokens: "
            "rollout.set_advantage(number) gives all of them the same"
        )


def _advantage(
    what: str, rollouts: Sequence[Rollout], of: Callable[[Rollout], FloatArray | None], contexts: Contexts
) -> NDArray[Any]:
    """A quantity that every rollout has, one number per completion token: [T]."""
    found: list[FloatArray] = []
    for rollout in rollouts:
        array = of(rollout)
        if array is None or len(array) != rollout.num_tokens:
            missing = sum(of(other) is None for other in rollouts)
            raise ConfigurationError(
                f"rollout {rollout.id} of task {rollout.task.id} has {rollout.num_tokens} completion tokens and "
                f"{0 if array is None else len(array)} {what}; {missing} of {len(rollouts)} rollouts have none"
            )
        found.append(array)
    return _placed(found, contexts.written, np.float32)


def _placed(
    parts: Sequence[NDArray[Any]], written: NDArray[np.bool_], dtype: DTypeLike, elsewhere: float = 0
) -> NDArray[Any]:
    placed = np.full(len(written), elsewhere, dtype=dtype)
    placed[written] = np.concatenate(parts)
    return placed


def _check_first_tokens(contexts: Contexts, rollouts: Sequence[Rollout]) -> None:
    first = np.flatnonzero(contexts.written & (contexts.positions == 0))
    if len(first):
        rollout = rollouts[int(contexts.rollouts[first[0]])]
        raise ConfigurationError(
            f"rollout {rollout.id} of task {rollout.task.id} has no prompt before its first completion token, whose "
            "logprob is then undefined: give it at least 1 prompt token"
        )


def _batch(
    columns: Columns, low: int, high: int, rollouts: Sequence[Rollout], group_of: IntArray, groups: Sequence[Group]
) -> Batch:
    found = {name: torch.from_numpy(column[low:high]) for name, column in columns.items()}
    tensors = {name: tensor for name, tensor in found.items() if "." not in name}
    for name in ("segments", "rollouts"):
        tensors[name] = tensors[name] - tensors[name][0]
    present, group_index = np.unique(group_of, return_inverse=True)
    return Batch(
        **tensors,  # type: ignore[arg-type]
        aux={name.removeprefix("aux."): tensor for name, tensor in found.items() if "." in name},
        groups=torch.from_numpy(group_index.astype(np.int64)),
        rewards=torch.tensor([rollout.reward for rollout in rollouts], dtype=torch.float32),
        successes=torch.tensor([_success(rollout) for rollout in rollouts], dtype=torch.float32),
        origins=torch.tensor([ORIGINS.index(rollout.origin) for rollout in rollouts]),
        group_numbers=tuple(groups[index].number for index in present),
        rollout_ids=tuple(rollout.id for rollout in rollouts),
        task_ids=tuple(rollout.task.id for rollout in rollouts),
    )


def _success(rollout: Rollout) -> float:
    return math.nan if rollout.success is None else rollout.success
