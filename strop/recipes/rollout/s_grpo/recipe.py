"""S-GRPO: one chain of thought per task with early exits forced at random points; the earliest right answer earns most.

Title: S-GRPO: Early Exit via Reinforcement Learning in Reasoning Models
Paper: arXiv 2505.07686 (2025)
Claim: Completions shorter by 35 to 61 %, accuracy better by 0.7 to 6.1 points.
Reading: Rewards minus their mean, one mean per rollout, no KL penalty. The n-th right answer earns 1 / 2^(n - 1),
    counted from the earliest exit. group_size counts the full rollout and its exits; their number was not found (a port
    has 4). The chain of thought is trained once, in the full rollout. The inducer is the closing tag alone: the bundled
    model does not read the paper's sentence before it, "Time is limited, stop thinking and start answering." Optimizer
    steps per batch are not known: one.
Acts: share/branched > 0 and reward/decaying > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strop.concurrency import together
from strop.environments.format.think_tags import CLOSE
from strop.errors import ConfigurationError
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.policy import Policy
from strop.generate.turn_ops import as_prefix, cut
from strop.recipes.rollout.s_grpo.reward import EXIT, Decaying
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Origin, Rollout, Start

# S-GRPO's serial group (2505.07686): one full rollout, and answers forced after a part of its chain of thought.
#
# Readings: the prefix of an early exit is the chain of thought up to its cut plus the inducer, so an exit is trained on
# its answer alone, and the chain of thought once, in the full rollout. Cuts are uniform over the tokens of the chain of
# thought.


@dataclass
class SerialExits(Strategy):
    """Strategy whose first start thinks to the end; the others answer after 1 to n of its n tokens of thought."""

    inducer: str = CLOSE  # inserted after a cut; the answer follows it

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.inducer:
            raise ConfigurationError("SerialExits needs an inducer, got an empty one")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        first, *others = starts
        whole = await play(first)
        size = self._thought_length(whole)
        if not size or not whole.is_scored:
            return [whole]
        places = np.random.default_rng(first.key).integers(1, size + 1, len(others))
        exits = zip(others, sorted(places.tolist()), strict=True)
        return [whole, *await together(self._exit(whole, start, at, play) for start, at in exits)]

    async def _exit(self, whole: Rollout, start: Start, at: int, play: Player) -> Rollout:
        prefix = as_prefix(cut(whole.turns[:1], at))
        branch = replace(start, turns=prefix, prefill=self.inducer, origin=Origin.BRANCHED, parent=whole.id)
        rollout = await play(branch)
        return replace(rollout, facts=rollout.facts | {EXIT: float(at)})

    def _thought_length(self, rollout: Rollout) -> int:
        """Tokens of the first completion before its closing tag; without one, all but the last."""
        if self._policy is None:
            raise ConfigurationError("SerialExits has no tokenizer yet: call meet(policy) first")
        if not rollout.turns:
            return 0
        completion = rollout.turns[0]
        text, tokens = self._policy.template.text(completion.tokens), self._policy.template.places(completion.tokens)
        end = text.find(CLOSE)
        return int((tokens <= end).sum()) if end >= 0 else max(len(tokens) - 1, 0)


def s_grpo(
    setting: Setting = Setting(group_size=4),
    inducer: str = "</think>",  # inserted after a cut; the answer follows it
) -> Run:
    """A group is one full rollout and group_size - 1 early exits from it."""
    run = setting.run(
        "s_grpo",
        GroupMean(),
        (Clip(0.2, 0.2),),
        strategy=SerialExits(inducer),
        reduction=SequenceMean(),
    )
    judged = as_one(run.rewards)
    run.rewards = (Decaying(judged),)
    return run
