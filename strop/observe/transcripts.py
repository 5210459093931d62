"""Attempts as people read them: who said what, from the task's messages and the tokens of each turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from strop.types import IntArray, Trajectory

Decode = Callable[[IntArray], str]


@dataclass(frozen=True)
class Utterance:
    """Something said; `role` is system, user, assistant, tool or world."""

    role: str
    text: str


def decoder(folders: Sequence[Path]) -> Decode:
    """Tokens as text, by the first tokenizer found; without one, how many there were."""
    found = next((folder / "tokenizer.json" for folder in folders if (folder / "tokenizer.json").is_file()), None)
    if found is None:
        return lambda tokens: f"({len(tokens)} tokens)"
    tokenizer = Tokenizer.from_file(str(found))
    return lambda tokens: str(tokenizer.decode(tokens.tolist(), skip_special_tokens=True))


def lines(trajectory: Trajectory, decode: Decode) -> list[Utterance]:
    """The whole conversation; what the world said later is known by its tokens only."""
    said = [Utterance(message.role, message.content) for message in trajectory.task.messages]
    for index, turn in enumerate(trajectory.turns):
        if index and len(turn.prompt) and (heard := decode(turn.prompt).strip()):
            said.append(_world_line(heard))
        said.append(Utterance("assistant", turn.message.content))
    return said


def _world_line(text: str) -> Utterance:
    """Templates that write roles as words leave them around the text: `user\\n...\\nassistant`."""
    found = re.fullmatch(r"(user|tool|system)\n(.*?)(?:\n+assistant)?", text, re.DOTALL)
    return Utterance(found[1], found[2]) if found else Utterance("world", text)


def telling(attempts: Sequence[Trajectory], count: int) -> list[Trajectory]:
    """A few that show the range: of each task the best, and the worst where it differs."""
    by_task: dict[str, list[Trajectory]] = {}
    for attempt in attempts:
        by_task.setdefault(attempt.task.id, []).append(attempt)
    chosen: list[Trajectory] = []
    for siblings in by_task.values():
        best = max(siblings, key=lambda attempt: attempt.reward)
        worst = min(siblings, key=lambda attempt: attempt.reward)
        chosen += [best] if best.reward == worst.reward else [best, worst]
    return chosen[:count]
