"""Format is shown, then single actions are paid by what an expert would do, then whole tasks by their outcome.

Title: Mobile-R1: Towards Interactive Reinforcement Learning for VLM-Based Mobile Agent via Task-Level Rewards
Paper: arXiv 2506.20332 (2025)
Claim: Three stages, the last with rewards for whole tasks, beat two of them on 500 recorded trajectories.
Reading: No formula was found. An action earns 1 for its format, 1 for its kind, 1 for its arguments; a task earns its
    outcome and the share of well-formed replies, with one advantage for all its tokens. Stages two and three are
    versions of one run. The action stage reads what an expert did before, and is trained on none of it.
Left out: Screens, and a judge of the outcome: the world judges.
Acts: warmup/nll > 0 and share/branched > 0 and reward/step_format > 0 and turns > 1 with shown=2, until=1
"""

from __future__ import annotations

from strop.filter.rewards.conversation.step_format import StepFormat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.single_action import OneAction
from strop.generate.strategies.actions_first import ActionsFirst
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean


def mobile_r1(
    setting: Setting = Setting(world="keyvalue:5"),
    shown: int = 4,  # steps of demonstrations before
    until: int = 20,  # versions of the action stage
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    minibatches: int = 2,
) -> Run:
    """GRPO, first on single steps, then on whole attempts."""
    run = setting.run(
        "mobile_r1",
        GroupStandard(),
        (Clip(clip, clip),),
        strategy=ActionsFirst(Demonstrate(), OneAction(), until),
        reduction=SequenceMean(),
        minibatches=minibatches,
        warmup=taught(setting, "mobile_r1", shown),
    )
    run.rewards = (*run.rewards, StepFormat())
    return run
