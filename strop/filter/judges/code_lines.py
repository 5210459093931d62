"""Program lines within a completion, for line-level process reward models: positions, labels and rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.environments.code_execution import program_in
from strop.types import FloatArray, IntArray, Rollout

LABEL = "line_label"  # in `Turn.aux`: at the last token of each line that has a label 1 or -1, elsewhere 0


@dataclass(frozen=True)
class CodeLine:
    """Line with code: its number in the program, and its end in the completion."""

    number: int  # from 1
    start: int
    end: int


def lines_in(completion: str) -> list[CodeLine]:
    """All lines of its program but blank ones and comments, which are worth nothing."""
    program = program_in(completion)
    found, start = list[CodeLine](), program.start
    for number, text in enumerate(program.text.split("\n"), 1):
        if text.strip() and not text.strip().startswith("#"):
            found.append(CodeLine(number, start, start + len(text)))
        start += len(text) + 1
    return found


def last_tokens(lines: Sequence[CodeLine], ends: IntArray) -> list[int]:
    """The token that ends each line; `ends` are the characters of the completion after each token: [N]."""
    return [min(int(np.searchsorted(ends, line.end, "left")), len(ends) - 1) for line in lines]


def label_row(labels: Mapping[int, float], completion: str, ends: IntArray, given: int = 0) -> FloatArray:
    """Labels by number of the line as a row [N] over written tokens; `given` of the completion's are read."""
    row = np.zeros(len(ends), np.float32)
    lines = [line for line in lines_in(completion) if line.number in labels]
    for line, token in zip(lines, last_tokens(lines, ends) if lines else [], strict=True):
        row[token] = labels[line.number]
    return row[given:]


def labels_of(rollout: Rollout) -> NDArray[np.float32]:
    """The labels of a rollout's written tokens, 0 where there are none: [N]."""
    rows = [
        np.asarray(turn.aux[LABEL], np.float32)[len(turn.prompt) :]
        if LABEL in turn.aux
        else np.zeros(len(turn.tokens), np.float32)
        for turn in rollout.turns
    ]
    return np.concatenate([*rows, np.zeros(0, np.float32)])
