"""GRPO for a model that fills masks: a completion's probability is estimated in one look, with other words hidden in
every epoch.

Title: d1: Scaling Reasoning in Diffusion Large Language Models via Reinforcement Learning
Paper: arXiv 2504.12216 (2025)
Claim: Supervised training on masked replies, then RL without a critic, reason better than either alone at 8B.
Reading: As released: 12 optimizer steps per batch, each with its own hidden prompt tokens (15 %), under which the
    policy
    before the step and the reference are asked as well; clip 0.5, KL 0.04 (k3), rewards centred and not scaled, groups
    of 6, temperature 0.9, two tokens a look. Completions here have 32 places and blocks of 8, not 256 and 32. The
    bundled
    model writes from left to right, so 200 steps on masked demonstrations make it fill masks first. Ends behind the
    first are tokens as any other; the release leaves them out. Logits of an estimate are divided by the temperature, as
    those of all tokens are here; the release takes them plain, and moves its reference every 64 steps.
Left out: Adapters (`trainer.lora` adds them) and supervised training on recorded long reasoning.
Acts: clipped_share > 0 and kl > 0 and warmup/nll > 0 with shown=120, env=arithmetic:1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.backends import View
from strop.errors import ConfigurationError
from strop.recipes.diffusion import ALL_ALIKE, filling, reading, taught_to_fill
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.canvases import Glance, WrittenCanvas
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl

# d1's estimate (2504.12216): every token of a completion hidden at once, and some of the prompt, by chance.
#
# One look says how likely each token is where none of the others is known: a product of marginals, not the probability
# with
# which the completion was drawn. Hiding some of the prompt, other tokens in every epoch, keeps many steps on one batch
# from
# fitting one estimate.


@dataclass(frozen=True)
class AllHidden(View):
    """The whole canvas behind the prompt is hidden."""

    prompt_share: float = 0.15  # of the prompt's tokens that are hidden as well

    is_random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.prompt_share < 1:
            raise ConfigurationError(f"AllHidden needs 0 <= prompt_share < 1, got {self.prompt_share}")

    def __call__(self, canvas: WrittenCanvas) -> list[Glance]:
        is_behind = np.arange(len(canvas.tokens)) >= canvas.start
        return [Glance(is_behind | (canvas.probabilities() < self.prompt_share), canvas.is_completion)]


def d1(
    setting: Setting = Setting(
        env="arithmetic:2", group_size=6, learning_rate=3e-5, max_tokens=32, temperature=0.9, steps=40
    ),
    hidden: float = 0.15,  # share of the prompt's tokens that an estimate hides
    clip: float = 0.5,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.04,  # weight of the penalty to the reference
    epochs: int = 12,  # optimizer steps per batch, each with an estimate of its own
    block: int = 8,  # places that are filled before any behind them
    shown: int = 200,  # steps on masked demonstrations first; 0: the model fills masks already
) -> Run:
    """Supervised training on masked completions, then RL; `strop train d1` does both."""
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
