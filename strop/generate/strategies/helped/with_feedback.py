"""ThinkTuning's feedback (2508.07616): a teacher's words behind some replies, after which the policy goes on.

Readings: as in the paper the policy goes on behind the feedback; in the release nobody does. The token that ended the
reply is taken back and stands in no row; feedback is said by nobody (version -1). Chance chooses replies that ended by
themselves. The share of them falls linearly over the first third of the run, and once it is at most `least`, the
teacher is never asked again. A teacher that does not answer leaves the reply as it is.
Papers: thinktuning
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strop.concurrency import together
from strop.errors import AdviserError, ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.turn_ops import cut
from strop.roles import Adviser, Strategy
from strop.text.llm_prompt import question
from strop.types import Group, Message, Metrics, Origin, Outcome, Sampling, Start, Trajectory

FEEDBACK = "feedback"  # the fact of how many tokens a teacher said in an attempt
WANTED = (
    "Read the reply to the task as its author would read it again: say in a sentence what to doubt, and a phrase with "
    "which to go on. Do not give the answer away."
)


@dataclass
class WithFeedback(Strategy):
    """A share of the replies, `first` at version 0 and `last` after a third of the run, goes on behind feedback."""

    teacher: Adviser
    steps: int  # of the run
    first: float = 0.1  # share of replies that get feedback, at the beginning
    last: float = 0.01  # and after a third of the run
    least: float = 0.06  # the teacher leaves for good once the share is no more than this
    joint: str = "\n\n"  # before and behind the feedback

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.last <= self.first <= 1 or self.steps < 1:
            told = f"got {self.last}, {self.first} and {self.steps}"
            raise ConfigurationError(f"WithFeedback needs 0 <= last <= first <= 1 and steps >= 1, {told}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    def share(self, version: int) -> float:
        """Of replies that get feedback."""
        fallen = self.first - (self.first - self.last) * min(3 * version / self.steps, 1.0)
        return fallen if fallen > self.least else 0.0

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        return await together(self._attempt(start, play) for start in starts)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The share of trained attempts that hold feedback."""
        told = [attempt.facts.get(FEEDBACK, 0.0) > 0 for group in groups for attempt in group.scored]
        return {"feedback_share": sum(told) / max(len(told), 1)}

    async def _attempt(self, start: Start, play: Player) -> Trajectory:
        attempt = await play(start)
        is_chosen = np.random.default_rng(start.key).random() < self.share(start.version)
        if not is_chosen or attempt.outcome is not Outcome.FINISHED or not self._ended_itself(attempt):
            return attempt
        asked = question(WANTED, task=attempt.task.messages[-1].content, reply=attempt.reply)
        try:
            said = await self.teacher.ask([Message("user", asked)], Sampling(temperature=0.0), start.key)
        except AdviserError:
            return attempt
        return await self._extended(attempt, f"{self.joint}{said}{self.joint}", start, play)

    async def _extended(self, attempt: Trajectory, feedback: str, start: Start, play: Player) -> Trajectory:
        """The same attempt, gone on behind the feedback; there is room for as much as the first reply had."""
        policy = self._ready()
        count = len(policy.template.encode_reply(feedback))
        sampling = start.sampling or policy.sampling
        longer = replace(sampling, max_tokens=2 * sampling.max_tokens + count)
        turns = cut(attempt.turns, attempt.num_tokens - 1)
        begun = replace(start, turns=turns, begins=feedback, sampling=longer, origin=Origin.GUIDED)
        again = await play(begun)
        return replace(again, facts=again.facts | {FEEDBACK: float(count)})

    def _ended_itself(self, attempt: Trajectory) -> bool:
        tokens = attempt.turns[-1].tokens
        return len(tokens) > 1 and int(tokens[-1]) in self._ready().template.ends

    def _ready(self) -> Policy:
        if self._policy is None:
            raise ConfigurationError("WithFeedback does not know how replies are written: call meet(policy) first")
        return self._policy
