"""Turns that a tool carried out are paid only in attempts that succeed in the end.

Title: Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards
Paper: arXiv 2508.10548 (2025)
Claim: Where step rewards are added up as they are, outcomes fall; gated, completion of software tasks goes from 47.6 to
    93.8 %.
Reading: No release was found; a note and a re-implementation agree. The gate is 0, what an attempt without success is
    paid, and it is passed by more than that; a closed one shuts out penalties, too. Attempts are compared by the whole
    return. The bonus of a turn is ours, as is GRPO with one optimizer step per draw.
Left out: Containers with repositories, and rewards for the form of a patch: a store behind tool calls stands for them.
Acts: open_share > 0 and reward/gated > 0
"""

from __future__ import annotations

from strop.filter.rewards.gated import Gated
from strop.filter.rewards.valid_action_bonus import CarriedOut
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def g_ra(
    setting: Setting = Setting(world="keyvalue:2"),
    bonus: float = 0.1,  # of a turn that a tool carried out
    gate: float = 0.0,  # that the outcome must pass before turns count
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """The outcome is always paid; what it is without turns is logged beside it and weighs nothing."""
    run = setting.run("g_ra", GroupStandard(), (Clip(clip, clip),))
    run.rewards = (Gated((CarriedOut(bonus), run.rewards[0]), (gate,)), measured(run.worlds))
    return run
