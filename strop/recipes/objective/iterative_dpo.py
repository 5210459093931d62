"""Iterative DPO (DPO-VP): rounds of DPO on verified pairs, each round against the weights it started from.

Title: Enhancing LLM Reasoning with Iterative DPO: A Comprehensive Empirical Investigation
Paper: arXiv 2503.12854 (2025)
Claim: Several rounds reach the accuracy of RL at far lower cost.
Reading: A round is `period` steps on pairs sampled by one version, which is also the reference policy. The release's
    script allows pairs of two wrong rollouts; here they make no pair. A completion that was cut off, or has nothing
    after its chain of thought, has no answer.
Left out: A temperature per round, and filtering by a process reward model.
Acts: kept_share < 1 and margin != 0 and lag > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.control.admission.periodic import Periodic
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.weighted_sum import as_one
from strop.recipes.setting import Setting
from strop.roles import Gate
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean
from strop.training.trainers.torch import TorchTrainer
from strop.types import GateResult, Group, Outcome, Rollout


@dataclass(frozen=True)
class LongestCorrectPair(Gate):
    """Gate that keeps [chosen, rejected], by the paper's scores: 1 right, 0 wrong, -1 no answer (`GradedAnswer`).

    Chosen is the longest right rollout that was not cut off, else the longest wrong one; the longest, so that DPO does
    not teach brevity. Rejected is a random rollout without an answer, else a wrong one; the choice depends on seed and
    group only. Two wrong rollouts make no pair, because that of the release's script rewards nothing but length.
    """

    seed: int = 0  # seed of the choice of the rejected rollout

    min_group: ClassVar[int] = 2

    needs_success: ClassVar[bool] = True

    def __call__(self, group: Group) -> GateResult:
        right = [a for a in group.scored if is_right(a) and a.outcome is Outcome.FINISHED]
        wrong = [a for a in group.scored if not is_right(a) and a.reward >= -0.5]
        unanswered = [a for a in group.scored if not is_right(a) and a.reward < -0.5]
        chosen = max(right or wrong, key=lambda rollout: rollout.num_tokens, default=None)
        others = unanswered or (wrong if right else [])
        if chosen is None or not others:
            return GateResult(
                None, f"no pair in {len(right)} right, {len(wrong)} wrong, {len(unanswered)} without answer"
            )
        pair = [chosen, self._one_of(others, group.number)]
        return GateResult(replace(group, rollouts=pair), "kept the longest of the best and one of the worst")

    def _one_of(self, rollouts: Sequence[Rollout], number: int) -> Rollout:
        return rollouts[int(np.random.default_rng([self.seed, number]).integers(len(rollouts)))]


def iterative_dpo(
    setting: Setting = Setting(),
    period: int = 10,  # training steps per round; all rollouts of a round come from one version
    beta: float = 0.1,  # scale of the implicit reward log(policy / reference)
) -> Run:
    """Rounds of `period` DPO steps; each round's first version samples its pairs and is the reference policy."""
    trainer = TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, snapshots=period)
    run = setting.run(
        "iterative_dpo",
        Constant(),
        (Dpo(beta, against="old"),),
        gates=(LongestCorrectPair(seed=setting.seed),),
        reduction=SequenceMean(),
        admission=Periodic(period, setting.steps),
        trainer=trainer,
    )
    run.rewards = (GradedAnswer(as_one(run.rewards), right=1.0, wrong=0.0, missing=-1.0),)
    return run
