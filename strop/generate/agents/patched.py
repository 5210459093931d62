"""UI-S1's semi-online attempts (2509.11543): where a reply leaves the expert's path, the expert's own takes its place.

Papers: ui-s1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.actions import action_in
from strop.environments.format.demonstrations import demonstrating
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task

_FORM, _ACTION = 0.1, 0.9  # what format and action are worth
_KIND, _READ = 0.5, 0.1  # of the action's worth: the right kind, any other that can be read


@dataclass(frozen=True)
class Patched(Agent):
    """Every reply is paid by how it compares with what the world would do; the first `patches` mismatches are mended.

    From a mended step on the policy reads its own replies with the expert's in place of the wrong one, in a context of
    its own: what was wrong is trained, what was put there never. The next mismatch ends the attempt.
    """

    patches: int = 2  # mismatches that do not end an attempt
    repairs: bool = True  # False: the wrong reply stays and the world is told of it, for a control
    max_turns: int = 16  # of one attempt

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.patches < 0 or self.max_turns < 1:
            raise ConfigurationError(f"Patched needs patches >= 0 and max_turns >= 1, got {self}")

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        expert = demonstrating(environment)
        await environment.reset(task)
        heard, paid, left, is_open = list(task.messages), list[float](), self.patches, True
        while is_open and len(paid) < self.max_turns and not dialogue.is_cut:
            wanted = expert.demonstrate()
            reply = await dialogue.reply()
            paid.append(step_reward(reply, wanted))
            is_right = action_in(reply) == action_in(wanted)
            left -= not is_right
            if left < 0:
                break
            taken = reply if is_right or not self.repairs else wanted
            answer = await environment.step(taken)
            heard += [taken, *answer.messages]
            is_open = not answer.done
            if is_open:
                _tell(dialogue, answer.messages, heard, is_mended=taken is not reply)
        return tuple(paid)


def _tell(dialogue: Dialogue, answer: Sequence[Message], heard: Sequence[Message], is_mended: bool) -> None:
    """The next reply reads the answer, behind another past where that was mended."""
    if is_mended:
        dialogue.restart(heard)
    else:
        dialogue.hear(answer)


def step_reward(reply: Message, wanted: Message) -> float:
    """A tenth for the format; nine for the action, half of them for its kind, a tenth for any other; 1 is a match."""
    own, right = action_in(reply), action_in(wanted)
    if not own.is_formed:
        return 0.0
    return _FORM + _ACTION * (1.0 if own == right else _KIND if own.kind == right.kind else _READ)
