"""One attempt per task, against the task's own running success rate, shaped by entropy.

Title: Stable and Efficient Single-Rollout RL for Multimodal Reasoning
Paper: arXiv 2512.18215 (2025)
Claim: The accuracy of group-based training in half the steps.
Reading: The entropy is that of the whole distribution, as the paper means it. Its rule of forgetting is not monotone
    in the KL. Tasks come again, or no success rate would ever be known. A task's first outcome in training is its first
    estimate; the release samples it from the first policy before training.
Left out: Images.
Acts: known_share > 0 and credit_within > 0 with tasks=32
"""

from __future__ import annotations

from strop.control.samplers.few import Few
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.beta_baseline import BetaBaseline
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def mssr(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    tasks: int = 256,  # of each world, over and over
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.01,  # weight of the penalty to the reference
) -> Run:
    """Tasks come again, or no success rate would ever be known."""
    run = setting.run("mssr", BetaBaseline(), (Clip(clip, clip), Kl("k3", kl)))
    run.sampler = Few(run.worlds, tasks)
    return run
