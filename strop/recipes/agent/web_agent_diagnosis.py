"""SFT-then-RL for web agents: supervised steps on demonstrations, then GRPO without groups of equal rewards.

Title: How to Train Your LLM Web Agent: A Statistical Diagnosis
Paper: arXiv 2507.04103 (2025)
Claim: Supervised training and RL together beat either alone, and reach the best of pure imitation on MiniWob++ with
    55 % of its compute; 1,370 configurations were compared by resampling them.
Reading: `branch` is the supervised step at which RL begins, which sets the teacher's share of the compute. The teacher
    is the environment's own demonstrations. GRPO without groups of equal rewards. The paper's best values are those of
    8B models: train with several values of each setting (`branch`, `temperature`, `learning_rate`), then run
    `strop diagnose FOLDER`. The environment is one that imitation does not solve: one level lower, 84 of the first 100
    groups after imitation had equal rewards.
Left out: Compute in FLOPs; a summary has tokens. A curriculum over tasks, error messages in the prompt.
Acts: warmup/nll > 0 and kept_share < 1 and advantage > 0 with warmup_steps=1, steps=1
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
    warmup_steps: int = 4,  # supervised steps on demonstrations before RL; 0: RL only
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 2,  # optimizer steps per training batch
) -> Run:
    """GRPO that branches off supervised training after `branch` steps."""
    parts = {"gates": (ZeroVariance(),), "minibatches": minibatches}
    run = setting.run("web_agent_diagnosis", GroupStandard(), (Clip(clip, clip),), **parts)
    run.warmup = shown(setting, "web_agent_diagnosis", warmup_steps)
    return run
