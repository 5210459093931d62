"""Verdicts on known replies, recited: the attempts from which a language model learns to be a reward model.

Papers: axiomatic-preference, principled-rlhf, secrets-of-rlhf-ii, goal-conditioned-rm
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strop.concurrency import together
from strop.environments.judging.preferences import asked_of, replies_of
from strop.environments.judging.verdict import BAD, GOOD
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.strategies.support.forced_reply import Saying
from strop.generate.verdict_tokens import as_verdict, has_verdict, word_ids
from strop.roles import Strategy
from strop.types import Group, IntArray, Start, Trajectory


@dataclass
class RecitedVerdicts(Strategy):
    """One attempt per reply of a task of `Preferences`, each behind its own reply, one token long.

    The best reply is paid 1, the worst 0, those between them in equal steps: who is better is all that losses read.
    The ids of both verdicts stand in `Turn.aux["verdicts"]`. With `says_replies` the reply is a turn of the attempt,
    too, for losses that look at the states in which it was written.
    """

    says_replies: bool = False

    _ids: IntArray | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._ids = word_ids(policy.template)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        replies, asked = replies_of(group.task), asked_of(group.task)
        if len(starts) != len(replies):
            raise ConfigurationError(f"a task here has {len(replies)} replies: set group_size={len(replies)}")
        lowest = len(replies) - 1
        begun = [replace(start, messages=asked) for start in starts]
        agents = [
            Saying(BAD if place else GOOD, (lowest - place) / lowest, reply) for place, reply in enumerate(replies)
        ]
        said = await together(play(start, agent) for start, agent in zip(begun, agents, strict=True))
        if not all(map(has_verdict, said)):
            most = max(len(reply) for reply in replies)
            raise ConfigurationError(
                f"task {group.task.id}: behind a reply of {most} characters the context has no room for a verdict: set "
                "a larger context"
            )
        return [as_verdict(attempt, self._ids, self.says_replies) for attempt in said]
