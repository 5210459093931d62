"""Generation and training decoupled, on tasks that come back: few attempts at easy ones, old successes for hard ones.

Title: Efficient Multi-turn RL for GUI Agents via Decoupled Training and Adaptive Data Curation
Paper: arXiv 2509.23866 (2025)
Claim: 42.13 % on OSWorld, 14.61 points above the base model, at 1.9 times the training throughput.
Reading: Of the limit on turns only the idea is published: those of the longest success so far. The share of 80 % of
    steps could not be checked, and the release has it commented out; turns left out keep their place in the mean. A
    group is what a task got at once, at most 8 attempts and at least 2, so that none has to be cut to 8; the release
    collects a task's attempts over versions, and lets an easy one have a single one. Optimizer steps
    per draw were not found: four.
Left out: Screens: the worlds here are the package's own. Engines replaced one at a time.
Acts: correction < 1 and credit_beside_rewards > 0 and clipped_share > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.budgets.by_success import BySuccess
from strop.control.samplers.few import Few
from strop.filter.gates.success_pool import SuccessPool
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.advantages.high_entropy_steps import HighEntropySteps
from strop.training.corrections.truncated import Truncated
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def dart(
    setting: Setting = Setting(lag=1),
    tasks: int = 64,  # of each world, over and over
    easy: float = 0.6,  # success from which a task gets fewer attempts
    least: int = 2,  # attempts at any task
    share: float = 0.8,  # of turns that are credited: those of the highest entropy
    kl: float = 0.1,  # weight of the penalty to the reference
) -> Run:
    """`tasks` of each world over and over; clip 0.1/0.28 from the weights before the step, weights cut at 1."""
    run = setting.run(
        "dart",
        HighEntropySteps(GroupStandard(), share),
        (Clip(0.1, 0.28, dual=10.0, anchor="proximal"), Kl("k3", kl)),
        budget=BySuccess(setting.group_size, easy, least),
        gates=(SuccessPool(),),
        correction=Truncated(1.0, target="proximal"),
        reduction=SequenceMean(),
        minibatches=4,  # or the clip, whose ratio begins at the weights before the step, never acts
    )
    return replace(run, sampler=Few(run.worlds, tasks))
