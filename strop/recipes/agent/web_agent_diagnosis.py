"""A few demonstrations first, then on-policy RL from there; which settings matter, `strop diagnose` says of its runs.

Title: How to Train Your LLM Web Agent: A Statistical Diagnosis
Paper: arXiv 2507.04103 (2025)
Claim: Supervised training and RL together beat either alone, and reach the best of pure imitation on MiniWob++ with
    55 % of its compute; 1,370 configurations were compared by resampling them.
Reading: `branch` is the step of supervised training at which RL begins: the share of compute that the teacher gets. A
    environment that knows right completions is the teacher. GRPO with groups of equal rewards left out. The paper's
    best values are those of models of 8 billion parameters: train with several of each setting (`branch`,
    `temperature`, `learning_rate`), then ask `strop diagnose FOLDER`. The environment is one that imitation leaves
    unsolved: one level lower 84 of the first 100 groups after it had equal rewards.
Left out: Compute in FLOPs; a summary says tokens. A curriculum over tasks, error messages put back into the prompt.
Acts: warmup/nll > 0 and turns > 1 and kept_share < 1 and advantage > 0 with branch=1, steps=1
"""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def web_agent_diagnosis(
    setting: Setting = Setting(env="keyvalue:5"),
    branch: int = 4,  # steps of supervised training before RL begins; 0: RL alone
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 2,  # optimizer steps per batch
) -> Run:
    """RL that branches off imitation after `branch` steps."""
    parts = {"gates": (ZeroVariance(),), "minibatches": minibatches}
    run = setting.run("web_agent_diagnosis", GroupStandard(), (Clip(clip, clip),), **parts)
    run.warmup = shown(setting, "web_agent_diagnosis", branch)
    return run
