"""What is asked about an attempt after it, and what the answer says: good as it is, or from which turn to try again."""

from __future__ import annotations

import json
from dataclasses import dataclass

from strop.environments.data.heldout_split import prompt_of
from strop.text.sanitize import set_in
from strop.types import Trajectory

REWARD = "[reward]"  # before what an attempt earned
_ASKED = (
    'Look back at this attempt. Answer in JSON: "outcome" (success, inefficient or failure), "retry_from_step" (how '
    'many of its steps are good), "guidance" (what to do differently from there).'
)


@dataclass(frozen=True)
class Reflection:
    """What was said about an attempt."""

    is_perfect: bool  # nothing is to be tried again
    turns: int = 0  # that are good and are kept
    guidance: str = ""


def question(attempt: Trajectory, reward: float) -> str:
    """What whoever reflects reads: the task, each turn, and what it earned."""
    lines = [f"task: {set_in(prompt_of(attempt.task))}"]
    for number, turn in enumerate(attempt.turns):
        lines += [f"[world] {set_in(message.content)}" for message in turn.told]
        lines.append(f"[step {number}] {set_in(turn.message.content)}")
    return "\n".join([*lines, f"{REWARD} {reward:g}", "", _ASKED])


def read(text: str, num_turns: int) -> Reflection | None:
    """None: it is no reflection, or wants to go on from behind the end of an attempt of so many turns."""
    try:
        said = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
    match said:
        case {"outcome": "success"}:
            return Reflection(is_perfect=True)
        case {"outcome": "inefficient" | "failure", "retry_from_step": int(turns), "guidance": str(guidance)}:
            is_possible = 0 <= turns < num_turns and not isinstance(turns, bool) and guidance != ""
            return Reflection(False, turns, guidance) if is_possible else None
    return None
