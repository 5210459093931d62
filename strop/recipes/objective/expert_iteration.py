"""Expert iteration: SFT on the policy's own correct rollouts.

Title: Teaching Large Language Models to Reason with Reinforcement Learning
Paper: arXiv 2403.04642 (2024)
Claim: Expert iteration does best in most settings and needs about as many samples as PPO, of the order of a million.
Reading: Two rollouts are duplicates if they make the same calculations in the same order. The paper fits all successes
    of all rounds at once. Here a round is a training step, and half of its batch are new successes.
Left out: Rounds that restart from the initial weights.
Acts: kept_share < 1 and replayed_share > 0
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from strop.filter.gates.successes_only import Successes
from strop.recipes.setting import Setting
from strop.replay.mostly_recent import MostlyRecent
from strop.roles import Gate
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.means import SequenceMean
from strop.types import GateResult, Group, Rollout

# De-duplication (2403.04642): without it easy tasks outweigh the others.

# a whole chain such as (12+3)*4-30; possessive and from the start of a number, so that matching is linear in the text
_NUMBER = r"\d++(?:\.\d++)?"
_CHAIN = re.compile(rf"(?<![\d.(])\(*+{_NUMBER}\)*+(?:\s*+[-+*/]\s*+\(*+-?{_NUMBER}\)*+)++")


@dataclass(frozen=True)
class Distinct(Gate):
    """Gate that keeps the first rollout of each sequence of calculations; without calculations, of each completion.

    It does not compare with rollouts of earlier rounds; that is up to the buffer.
    """

    def __call__(self, group: Group) -> GateResult:
        first: dict[tuple[str, ...], Rollout] = {}
        for rollout in group.scored:
            first.setdefault(calculations(rollout), rollout)
        kept = list(first.values())
        if not kept:
            return GateResult(None, "no rollout counts")
        return GateResult(replace(group, rollouts=kept), f"kept {len(kept)} of {len(group.rollouts)} rollouts")


def calculations(rollout: Rollout) -> tuple[str, ...]:
    """Calculations of all turns in order, without spaces; the completions themselves where there are none."""
    completions = [turn.message.content for turn in rollout.turns]
    chains = [re.sub(r"\s", "", found) for completion in completions for found in _CHAIN.findall(completion)]
    return tuple(chains or completions)


def expert_iteration(
    setting: Setting = Setting(),
    distinct: bool = True,  # whether duplicates are dropped
    recent: float = 0.5,  # share of new successes in a training batch
) -> Run:
    """Likelihood of correct rollouts, all with the same weight.

    A share `recent` of each training batch is new; the rest are successes of earlier steps.
    """
    gates = (Successes(), Distinct()) if distinct else (Successes(),)
    parts = {"gates": gates, "reduction": SequenceMean(), "buffer": MostlyRecent(recent, seed=setting.seed)}
    return setting.run("expert_iteration", Constant(), (Likelihood(),), **parts)
