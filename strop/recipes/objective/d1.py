"""d1 (diffu-GRPO): GRPO for masked diffusion LMs; log-probabilities from one pass over a fully masked completion.

Title: d1: Scaling Reasoning in Diffusion Large Language Models via Reinforcement Learning
Paper: arXiv 2504.12216 (2025)
Claim: Supervised training on masked completions, then RL without a critic, reason better than either alone at 8B.
Reading: As released: 12 optimizer steps per batch, each with its own random mask of 15 % of the prompt tokens, which
    the policy before the step and the reference see as well; clip 0.5, KL 0.04 (k3), rewards centred and not scaled,
    groups of 6, temperature 0.9, two tokens unmasked per step. Here completions have 32 positions and blocks of 8, not
    256 and 32. The bundled model is autoregressive, so 200 steps on masked demonstrations teach it to unmask first. EOS
    tokens after the first are trained like any others; the release leaves them out. Logits are divided by the
    temperature, as everywhere here; the release does not divide, and updates its reference every 64 steps.
Left out: Adapters (`trainer.lora` adds them) and supervised training on recorded long reasoning.
Acts: clipped_share > 0 and kl > 0 and warmup/nll > 0 with shown=120, env=arithmetic:1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.recipes.diffusion import ALL_ALIKE, filling, reading, taught_to_fill
from strop.recipes.setting import Setting
from strop.roles import View
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.canvases import Glance, WrittenCanvas
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl

# d1's one-step estimate (2504.12216): all completion tokens are masked, and a random part of the prompt.
#
# One forward pass gives each token's probability without the others: a product of marginals, not the probability of the
# completion. A new prompt mask in every epoch keeps many steps on one batch from overfitting one estimate.


@dataclass(frozen=True)
class AllHidden(View):
    """View with the whole completion masked, and a random share of the prompt."""

    prompt_share: float = 0.15  # share of the prompt tokens that are masked as well

    is_random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.prompt_share < 1:
            raise ConfigurationError(f"AllHidden needs 0 <= prompt_share < 1, got {self.prompt_share}")

    def __call__(self, canvas: WrittenCanvas) -> list[Glance]:
        is_after_prompt = np.arange(len(canvas.tokens)) >= canvas.start
        return [Glance(is_after_prompt | (canvas.probabilities() < self.prompt_share), canvas.is_completion)]


def d1(
    setting: Setting = Setting(
        env="arithmetic:2", group_size=6, learning_rate=3e-5, max_tokens=32, temperature=0.9, steps=40
    ),
    hidden: float = 0.15,  # share of the prompt tokens that are masked
    clip: float = 0.5,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
    epochs: int = 12,  # optimizer steps per batch, each with its own prompt mask
    block: int = 8,  # block size: positions that are unmasked before any later ones
    shown: int = 200,  # supervised steps on masked demonstrations before RL; 0: the model can unmask already
) -> Run:
    """Supervised training on masked completions, then RL; `strop train d1` runs both."""
    engine = filling(setting, block, least=2)
    return setting.run(
        "d1",
        GroupMean(),
        (Clip(clip, clip, anchor="proximal"), Kl("k3", kl)),
        engine=engine,
        trainer=reading(setting, AllHidden(hidden), clip_norm=0.2),
        correction=ALL_ALIKE,
        epochs=epochs,
        warmup=taught_to_fill(setting, "d1", engine, shown),
    )
