"""Reward of the final response alone (RLMT, 2509.20357): the chain of thought is hidden from the judge.

Readings: the response is the text after the first </think>; the paper has tags of its own around it. In the strict
form, for models trained on the format, an ill-formed completion is shown as "[NULL]"; otherwise the judge reads all of
it, chain of thought included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.types import Group, Metrics, Rollout, Turn

NOTHING = "[NULL]"


@dataclass(frozen=True)
class ThoughtBlind(Reward):
    """Reward `inner` of rollouts without the chain of thought of every completion."""

    inner: Reward
    strict: bool = True  # or a completion without the layout is shown as it is
    weight: float = 1.0

    name: ClassVar[str] = "thought_blind"

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> RewardScores:
        blind = replace(group, rollouts=[self._blind(rollout) for rollout in group.rollouts])
        return shaped(self, blind, lambda scores: scores, self.inner)  # facts of a blind rollout are its own

    def _blind(self, rollout: Rollout) -> Rollout:
        return replace(rollout, turns=tuple(self._shown(turn) for turn in rollout.turns))

    def _shown(self, turn: Turn) -> Turn:
        response = response_of(turn.message.content)
        if response is None and self.strict:
            response = NOTHING
        return turn if response is None else replace(turn, message=replace(turn.message, content=response))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Shares of completions without the layout, and of all letters that were hidden; nothing is remembered."""
        completions = [t.message.content for group in groups for rollout in group.scored for t in rollout.turns]
        responses = [response_of(completion) for completion in completions]
        shown = sum(
            len(completion if response is None else response)
            for completion, response in zip(completions, responses, strict=True)
        )
        return {
            "malformed_share": sum(response is None for response in responses) / max(len(completions), 1),
            "hidden_share": 1 - shown / max(sum(map(len, completions)), 1),
        }


def response_of(completion: str) -> str | None:
    """What stands behind the first thought; None where a completion does not begin with one, or nothing follows it."""
    thought, closed, response = completion.partition(CLOSE)
    is_laid_out = thought.lstrip().startswith(OPEN) and closed and response.strip()
    return response.strip() if is_laid_out else None
