"""Behaviour injection: SFT on demonstrations with exploratory and exploitative steps, then GRPO.

Title: Behavior Injection: Preparing Language Models for Reinforcement Learning
Paper: arXiv 2505.18917 (2025)
Claim: Models taught such behaviours gain far more from the same RL than those taught plain solutions.
Reading: The chains of thought of the bundled environments are graphs of steps already; in prose a step needs the
    numbers that earlier ones found. The frequency of the behaviours was not found: 0.25 each. The RL stage is GRPO.
Left out: The diagnosis by co-influence, a kernel of gradients between rollouts, and with it the readiness report.
Acts: warmup/explored_share > 0 and warmup/nll > 0 with shown=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.behavior_injection import Injected
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean


def behavior_injection(
    setting: Setting = Setting(env="arithmetic:5"),
    shown: int = 20,  # supervised steps on demonstrations before RL
    explore: float = 0.25,  # probability of attempting a step too early and backtracking
    exploit: float = 0.25,  # probability of restating what a step needs
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
) -> Run:
    """SFT on demonstrations with behaviours, then GRPO."""
    run = setting.run("behavior_injection", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), reduction=SequenceMean())
    before = taught(setting, "behavior_injection", shown)
    if before is not None:
        before = replace(before, agent=Injected(Demonstrate(least=1.0), explore, exploit, setting.seed))
    return replace(run, warmup=before)
