"""Mid-training on worked answers at one learning rate, then on short or long ones while it decays; then RL.

Title: OctoThinker: Mid-training Incentivizes Reinforcement Learning Scaling
Paper: arXiv 2506.20512 (2025)
Claim: After such mid-training a Llama base model gains as much from RL as a Qwen model does.
Reading: The schedule of the branches was not found: half a cosine to a tenth. 20 stable steps to 10 of a branch, where
    the paper has 200 to 20 billion tokens. Short and long are the world's own working with and without behaviours that
    make it longer (`Injected`); hybrid has half of each. All branches begin with the very same stable checkpoint, if
    seed and `stable` are the same; a warm-up hands on weights and not the moments of Adam, which begin anew.
Left out: The corpus, and a cap on length that grows with RL.
Acts: learning_rate > 0 and warmup/learning_rate < 5e-4 with stable=2, decay=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.errors import ConfigurationError, nearest
from strop.generate.agents.behavior_injection import Injected
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.trainers.stable_then_decay import StableThenDecay
from strop.training.trainers.torch import TorchTrainer

_BRANCHES = {"short": 0.0, "hybrid": 0.5, "long": 1.0}  # how likely a behaviour comes before each step


def octothinker(
    setting: Setting = Setting(world="arithmetic:5"),
    branch: str = "hybrid",  # short, long or hybrid: the answers of the decay
    stable: int = 20,  # steps of mid-training at one learning rate
    decay: int = 10,  # steps of the branch
) -> Run:
    """Two stages of mid-training as warm-ups, then GRPO without a penalty."""
    if branch not in _BRANCHES:
        raise ConfigurationError(f"octothinker has no branch {branch!r}: {nearest(branch, _BRANCHES)}")
    run = setting.run("octothinker", GroupStandard(), (Clip(),))
    return replace(run, warmup=_mid_training(setting, _BRANCHES[branch], stable, decay))


def _mid_training(setting: Setting, chance: float, stable: int, decay: int) -> Run | None:
    first, branch = shown(setting, "octothinker", stable), shown(setting, "octothinker", decay)
    if branch is None:
        return first
    if not isinstance(branch.trainer, TorchTrainer):
        raise ConfigurationError(f"octothinker's schedule is for one process: set ranks=1, got {setting.ranks}")
    agent = Injected(Demonstrate(least=1.0), chance, chance, setting.seed)
    return replace(branch, agent=agent, trainer=StableThenDecay(branch.trainer, decay), warmup=first)
