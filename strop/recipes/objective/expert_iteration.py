"""Imitate the rollouts that were right, each way to the answer once, and nothing else.

Title: Teaching Large Language Models to Reason with Reinforcement Learning
Paper: arXiv 2403.04642 (2024)
Claim: Expert iteration does best in most settings and needs about as many samples as PPO, of the order of a million.
Reading: Two rollouts are the same way to an answer if they make the same calculations in the same order. The paper fits
    all successes of all rounds at once; here a round is a step, and half of what it fits are new successes.
Left out: Rounds that start again from the first weights.
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
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import GateResult, Group, Rollout

# Expert iteration's de-duplication (2403.04642): the same way to an answer counts once, or easy tasks drown the rest.

# a whole chain such as (12+3)*4-30; possessive and from the start of a number, so that no text takes long to read
_NUMBER = r"\d++(?:\.\d++)?"
_CHAIN = re.compile(rf"(?<![\d.(])\(*+{_NUMBER}\)*+(?:\s*+[-+*/]\s*+\(*+-?{_NUMBER}\)*+)++")


@dataclass(frozen=True)
class Distinct(Gate):
    """Keep the first of the rollouts that made the same sequence of calculations, or said the same where there is none.

    Duplicates from earlier rounds are a buffer's question, not this gate's.
    """

    def __call__(self, group: Group) -> GateResult:
        first: dict[tuple[str, ...], Rollout] = {}
        for rollout in group.scored:
            first.setdefault(way(rollout), rollout)
        kept = list(first.values())
        if not kept:
            return GateResult(None, "no rollout counts")
        return GateResult(replace(group, rollouts=kept), f"kept {len(kept)} of {len(group.rollouts)} rollouts")


def way(rollout: Rollout) -> tuple[str, ...]:
    """The calculations of all turns in their order, each as a whole and without spaces; else the completions
    themselves.
    """
    completions = [turn.message.content for turn in rollout.turns]
    calculations = [re.sub(r"\s", "", found) for completion in completions for found in _CHAIN.findall(completion)]
    return tuple(calculations or completions)


def expert_iteration(
    setting: Setting = Setting(),
    distinct: bool = True,  # each way to an answer once
    recent: float = 0.5,  # share of new successes in what a step fits
) -> Run:
    """Keep what succeeded and raise its likelihood; every kept rollout counts the same. `distinct` drops duplicates.

    Of what a step fits, a share `recent` is new, and the rest are successes of earlier steps.
    """
    gates = (Successes(), Distinct()) if distinct else (Successes(),)
    parts = {"gates": gates, "reduction": SequenceMean(), "buffer": MostlyRecent(recent, seed=setting.seed)}
    return setting.run("expert_iteration", Constant(), (Likelihood(),), **parts)
