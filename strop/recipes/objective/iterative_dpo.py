"""Rounds of DPO on verifiable pairs, each against the weights it began with.

Title: Enhancing LLM Reasoning with Iterative DPO: A Comprehensive Empirical Investigation
Paper: arXiv 2503.12854 (2025)
Claim: Several rounds reach the accuracy of RL at far less computation.
Reading: A round is `period` steps on pairs of one version, which also is the reference. Two wrong attempts make no
    pair, where the script lets them. A reply that was cut off, or says nothing after its working, has no answer.
Left out: A temperature per round, and filtering by a process reward model.
Acts: kept_share < 1 and margin != 0 and lag > 0
"""

from __future__ import annotations

from strop.control.admission.periodic import Periodic
from strop.filter.gates.longest_right import LongestRight
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean
from strop.training.trainers.torch import TorchTrainer


def iterative_dpo(
    setting: Setting = Setting(),
    period: int = 10,  # steps on what one version wrote
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """A round is `period` steps on pairs of one version, which also is the reference."""
    trainer = TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, snapshots=period)
    run = setting.run(
        "iterative_dpo",
        Constant(),
        (Dpo(beta, against="old"),),
        gates=(LongestRight(seed=setting.seed),),
        reduction=SequenceMean(),
        pace=Periodic(period, setting.steps),
        trainer=trainer,
    )
    run.rewards = (GradedAnswer(run.rewards[0], right=1.0, wrong=0.0, missing=-1.0),)
    return run
