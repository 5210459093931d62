"""Reward-model training data: one-token verdicts on recorded completions.

Papers: axiomatic-preference, principled-rlhf, secrets-of-rlhf-ii, goal-conditioned-rm
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strop.concurrency import together
from strop.environments.judging.preferences import asked_of, completions_of
from strop.environments.judging.verdict_questions import BAD, GOOD
from strop.errors import ConfigurationError
from strop.generate.policy import Policy
from strop.generate.strategies.support.forced_completion import ForcedCompletion
from strop.generate.verdict_tokens import as_verdict, has_verdict, word_ids
from strop.roles import Player, Strategy
from strop.types import Group, IntArray, Rollout, Start


@dataclass
class RecitedVerdicts(Strategy):
    """One rollout per completion of a task of `Preferences`: the verdict token after that completion.

    The best completion has reward 1, the worst 0, those between them equally spaced: losses use only their order. The
    ids of both verdict words are in `Turn.aux["verdicts"]`. With `says_completions` the completion is a turn of the
    rollout too, for losses that use its hidden states.
    """

    says_completions: bool = False

    _ids: IntArray | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._ids = word_ids(policy.template)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        completions, asked = completions_of(group.task), asked_of(group.task)
        if len(starts) != len(completions):
            raise ConfigurationError(
                f"a task here has {len(completions)} completions: set group_size={len(completions)}"
            )
        lowest = len(completions) - 1
        begun = [replace(start, messages=asked) for start in starts]
        agents = [
            ForcedCompletion(BAD if place else GOOD, (lowest - place) / lowest, completion)
            for place, completion in enumerate(completions)
        ]
        said = await together(play(start, agent) for start, agent in zip(begun, agents, strict=True))
        if not all(map(has_verdict, said)):
            most = max(len(completion) for completion in completions)
            raise ConfigurationError(
                f"task {group.task.id}: after a completion of {most} characters the context has no room for a "
                "verdict: set a larger context"
            )
        return [as_verdict(rollout, self._ids, self.says_completions) for rollout in said]
