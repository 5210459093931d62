"""Rollouts as rows of other libraries, and back: TRL's rollout functions, verifiers' results, Tinker's datums.

A row has what its library names, and beside it what strop needs to train on it again: weight versions, outcome,
origin. Rewards, tokens and log-probabilities are exact, so the gradient of what comes back is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from strop.errors import ConfigurationError, DataError
from strop.types import FloatArray, Group, IntArray, Message, Origin, Outcome, Rollout, Sampling, Task, Turn

Library: TypeAlias = Literal["verifiers", "trl", "tinker"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
Row: TypeAlias = dict[str, Any]


def rows_of(groups: Iterable[Group], library: str) -> Iterator[Row]:
    """One row per context of a rollout: most rollouts have one."""
    if library not in LIBRARIES:
        raise ConfigurationError(f"rollouts can be written as {', '.join(LIBRARIES)}, not as {library!r}")
    make = {"trl": _trl, "verifiers": _verifiers, "tinker": _tinker}[library]
    for group in groups:
        for rollout in group.rollouts:
            for number, turns in enumerate(_contexts(rollout)):
                yield make(rollout, _Sequence(turns), group) | _beside(rollout, group, number, turns)


def groups_of(path: Path) -> list[Group]:
    """Groups from a file of such rows; which library's, its fields say."""
    groups: dict[int, Group] = {}
    contexts: dict[tuple[int, str], list[Row]] = {}
    for row in _read(path):
        contexts.setdefault((int(row["group"]), str(row["id"])), []).append(row)
    for (number, _), rows in contexts.items():
        rollout = _rollout(rows)
        group = groups.setdefault(number, Group(number, rollout.task, [], int(rows[0]["group_version"])))
        group.rollouts.append(rollout)
    return list(groups.values())


class _Sequence:
    """Tokens of one context with what is known of each; log-probability 0 and version -1 where nobody sampled."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        if any(turn.aux for turn in turns):
            raise DataError("a turn holds what its engine must see again (experts, unmasking order), which no row has")
        kinds = [part for turn in turns for part in ((turn.prompt, False), (turn.tokens, True))]
        self.turns = turns
        self.tokens = np.concatenate([part for part, _ in kinds])  # [T]
        self.mask = np.concatenate([np.full(len(part), is_own) for part, is_own in kinds])  # [T]
        self.logprobs, self.versions = np.zeros(len(self.mask), np.float32), np.full(len(self.mask), -1)
        self.logprobs[self.mask] = np.concatenate([turn.logprobs for turn in turns])
        self.versions[self.mask] = np.concatenate([turn.versions for turn in turns])
        self.start = len(turns[0].prompt)  # of the first completion


def _contexts(rollout: Rollout) -> list[list[Turn]]:
    found: list[list[Turn]] = []
    for turn in rollout.turns:
        if turn.fresh or not found:
            found.append([])
        found[-1].append(turn)
    return found


def _messages(messages: Iterable[Message]) -> list[dict[str, str]]:
    return [{"role": each.role, "content": each.content} for each in messages]


def _said(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """What follows the task: completions, and what the environment answered between them."""
    return _messages(
        message for place, turn in enumerate(turns) for message in (*(turn.told if place else ()), turn.message)
    )


def _beside(rollout: Rollout, group: Group, context: int, turns: Sequence[Turn]) -> Row:
    """What strop needs to have the rollout back."""
    return {
        "id": rollout.id,
        "group": group.number,
        "group_version": group.version,
        "context": context,
        "sampling": [asdict(turn.sampling) for turn in turns],  # the temperature is part of a probability
        "task": rollout.task.id,
        "source": rollout.task.source,
        "level": rollout.task.level,
        "answer": rollout.task.answer,
        "reward": rollout.reward if rollout.is_scored else None,
        "rewards": dict(rollout.rewards),
        "outcome": rollout.outcome.value,
        "origin": rollout.origin.value,
    }


def _trl(rollout: Rollout, sequence: _Sequence, group: Group) -> Row:
    start = sequence.start
    return {
        "prompt": _messages(rollout.task.messages),
        "completion": _said(sequence.turns),
        "prompt_ids": sequence.tokens[:start].tolist(),
        "completion_ids": sequence.tokens[start:].tolist(),
        "logprobs": _exact(sequence.logprobs[start:]),
        "env_mask": sequence.mask[start:].astype(int).tolist(),
        "versions": sequence.versions[start:].tolist(),
    }


def _verifiers(rollout: Rollout, sequence: _Sequence, group: Group) -> Row:
    steps = []
    before: list[int] = []  # a step of verifiers repeats the whole prompt
    for turn in sequence.turns:
        before = [*before, *turn.prompt.tolist()]
        tokens = {
            "prompt_ids": before,
            "prompt_mask": [0] * len(before),
            "completion_ids": turn.tokens.tolist(),
            "completion_mask": [1] * len(turn.tokens),
            "completion_logprobs": _exact(turn.logprobs),
        }
        steps.append({"completion": _messages([turn.message]), "tokens": tokens, "versions": turn.versions.tolist()})
        before = [*before, *turn.tokens.tolist()]
    return {
        "example_id": group.number,
        "prompt": _messages(rollout.task.messages),
        "completion": _said(sequence.turns),
        "metrics": dict(rollout.rewards),
        "trajectory": steps,
    }


def _tinker(rollout: Rollout, sequence: _Sequence, group: Group) -> Row:
    """Inputs and targets are one token apart; without advantages of a run, rewards minus the group's mean."""
    advantages = np.zeros(len(sequence.tokens), np.float32)
    if rollout.advantages is not None and len(sequence.turns) == len(rollout.turns):
        advantages[sequence.mask] = rollout.advantages
    elif rollout.is_scored:
        scored = [each.reward for each in group.rollouts if each.is_scored]
        advantages[sequence.mask] = rollout.reward - sum(scored) / len(scored)
    return {
        "prompt": _messages(rollout.task.messages),
        "completion": _said(sequence.turns),
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": sequence.tokens[:-1].tolist()}]},
        "loss_fn_inputs": {
            "target_tokens": _tensor(sequence.tokens[1:].tolist(), "int64"),
            "logprobs": _tensor(_exact(sequence.logprobs[1:]), "float32"),
            "advantages": _tensor(_exact(advantages[1:]), "float32"),
            "mask": _tensor(sequence.mask[1:].astype(int).tolist(), "float32"),
        },
        "versions": sequence.versions[1:].tolist(),
    }


def _tensor(data: list[Any], dtype: str) -> Row:
    return {"data": data, "dtype": dtype, "shape": [len(data)]}


def _exact(values: FloatArray) -> list[float]:
    return [float(each) for each in values]


def _read(path: Path) -> Iterator[Row]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                row = json.loads(line)
                if not isinstance(row, dict) or not {"id", "group", "outcome"} <= set(row):
                    raise DataError(f"{path}:{number} is no row of `strop rollouts --as {'|'.join(LIBRARIES)}`")
                yield row
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path} cannot be read as JSON lines: {error}") from None


def _rollout(rows: Sequence[Row]) -> Rollout:
    """One rollout from the rows of its contexts."""
    first = rows[0]
    try:
        task = Task(
            tuple(Message(each["role"], each["content"]) for each in first["prompt"]),
            str(first["answer"]),
            str(first["source"]),
            int(first["level"]),
            str(first["task"]),
        )
        turns = [turn for number, row in enumerate(rows) for turn in _turns(row, is_fresh=number > 0)]
        found = Rollout(str(first["id"]), task, tuple(turns), Outcome(first["outcome"]), origin=Origin(first["origin"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"rollout {first['id']}: {type(error).__name__} {error} in its row") from None
    found.rewards = {name: float(value) for name, value in first["rewards"].items()}
    if first["reward"] is not None:
        found.reward = float(first["reward"])
    return found


def _turns(row: Row, is_fresh: bool) -> list[Turn]:
    """The turns of one context: each stretch of sampled tokens ends one."""
    tokens, mask, logprobs, versions = _sequence_of(row)
    said = [each["content"] for each in row["completion"] if each["role"] == "assistant"]
    stretches = [
        (is_own, [place for place, _ in both]) for is_own, both in groupby(enumerate(mask), lambda each: each[1])
    ]
    if not stretches or stretches[0][0]:
        stretches.insert(0, (False, []))
    found: list[Turn] = []
    for (_, prompt), (_, own) in zip(stretches[::2], stretches[1::2], strict=False):
        text = said[len(found)] if len(found) < len(said) else ""
        asked = row["sampling"][min(len(found), len(row["sampling"]) - 1)]
        found.append(
            Turn(
                tokens[prompt],
                tokens[own],
                logprobs[own],
                versions[own],
                Message("assistant", text, is_completion=True),
                Sampling(**{**asked, "stop": tuple(asked["stop"])}),
                fresh=is_fresh and not found,
            )
        )
    return found


def _sequence_of(row: Row) -> tuple[IntArray, list[bool], FloatArray, IntArray]:
    """Tokens, whether each was sampled, log-probabilities and versions, whichever library's row it is."""
    if "trajectory" in row:
        last = row["trajectory"][-1]["tokens"]
        tokens = [*last["prompt_ids"], *last["completion_ids"]]
        mask, logprobs, versions = [False] * len(tokens), [0.0] * len(tokens), [-1] * len(tokens)
        for step in row["trajectory"]:
            start = len(step["tokens"]["prompt_ids"])
            own = slice(start, start + len(step["tokens"]["completion_ids"]))
            mask[own] = [True] * (own.stop - own.start)
            logprobs[own], versions[own] = step["tokens"]["completion_logprobs"], step["versions"]
    elif "model_input" in row:
        given = {name: tensor["data"] for name, tensor in row["loss_fn_inputs"].items()}
        tokens = [row["model_input"]["chunks"][0]["tokens"][0], *given["target_tokens"]]
        mask = [False, *(each > 0 for each in given["mask"])]
        logprobs, versions = [0.0, *given["logprobs"]], [-1, *row["versions"]]
    else:
        before = len(row["prompt_ids"])
        tokens = [*row["prompt_ids"], *row["completion_ids"]]
        mask = [*[False] * before, *(each > 0 for each in row["env_mask"])]
        logprobs, versions = [*[0.0] * before, *row["logprobs"]], [*[-1] * before, *row["versions"]]
    if not len(tokens) == len(mask) == len(logprobs) == len(versions):
        raise ValueError(f"{len(tokens)} tokens with {len(logprobs)} log-probabilities")
    return (
        np.asarray(tokens, np.int64),
        mask,
        np.asarray(logprobs, np.float32),
        np.asarray(versions, np.int64),
    )
