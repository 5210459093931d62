"""A critic whose Q has the frozen model's logits as its shape, backed up conservatively.

Title: B-Coder: Value-Based Deep Reinforcement Learning for Program Synthesis
Paper: arXiv 2310.03173 (2023)
Claim: Better than policy-based methods in program synthesis, with little reward engineering.
Left out: Programs, compilers and their graded rewards.
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.gae import Gae
from strop.train.losses.clip import Clip
from strop.train.values.conservative import Conservative


def b_coder(
    setting: Setting = Setting(),
    alpha: float = 1.0,  # scale of the frozen model's logits in Q
    trace: float = 0.95,  # lambda of generalized advantage estimation
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """The policy learns from its values by clipped steps."""
    critic = Conservative(alpha, device=setting.device)
    return setting.run("b_coder", Gae(trace=trace), (Clip(clip, clip),), values=critic)
