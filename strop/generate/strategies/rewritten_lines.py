"""Labels for lines of known programs (2502.01715): a teacher rewrites one line, and running it says what that did.

Readings, since only the abstract was found: the line is good where all tests still pass and bad where they do not. What
stands before it is good; what stands behind a bad line has no label.
Papers: prlcoder
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.concurrency import together
from strop.environments.code_execution import cases_of
from strop.environments.line_rules import rewritten
from strop.errors import ConfigurationError
from strop.filter.judges.code_lines import LABEL, label_row, lines_in
from strop.generate.interfaces import Dialogue, Player
from strop.generate.policy import Policy
from strop.generate.turn_ops import noted
from strop.roles import Agent, Environment, Strategy
from strop.success import is_right
from strop.types import Group, Message, Origin, Start, Task, Trajectory

_GOOD = "good_lines"


@dataclass(frozen=True)
class Recite(Agent):
    """Says this text, whatever the task, and hears what the world pays for it."""

    text: str
    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        await environment.reset(task)
        dialogue.say(message := Message("assistant", self.text))
        return ((await environment.step(message)).reward or 0.0,)


@dataclass
class RewrittenLines(Strategy):
    """Each attempt is the task's own program with one line rewritten, and bears labels of its lines in `Turn.aux`."""

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        known = cases_of(group.task).solution
        told = [rewritten(known, start.key) for start in starts]
        made = await together(play(start, Recite(text)) for start, (text, _) in zip(starts, told, strict=True))
        return [self._labelled(attempt, number) for attempt, (_, number) in zip(made, told, strict=True)]

    def _labelled(self, attempt: Trajectory, number: int) -> Trajectory:
        if self._policy is None:
            raise ConfigurationError("RewrittenLines does not know where tokens end: call meet(policy) first")
        if not attempt.is_scored:
            return attempt
        has_passed = is_right(sum(attempt.turn_rewards))
        lines = [line.number for line in lines_in(attempt.reply)]
        labels = {each: 1.0 for each in lines if has_passed or each < number}
        labels |= {number: 1.0 if has_passed else -1.0} if number in lines else {}
        row = label_row(labels, attempt.reply, self._policy.template.places(attempt.turns[-1].whole))
        good = sum(label > 0 for label in labels.values()) / max(len(labels), 1)
        return replace(attempt, turns=noted(attempt.turns, LABEL, row), facts=attempt.facts | {_GOOD: good})
