"""VAS: value-augmented sampling; a value model of the frozen policy is added to its logits at decoding.

Title: Value Augmented Sampling for Language Model Alignment and Personalization
Paper: arXiv 2405.06639 (2024)
Claim: As good as best-of-128 sampling at lower cost, without touching the weights.
Reading: Run it twice: the first run trains the value model with the policy frozen; the second, with
    values=RUN/checkpoints/step-N/values, guides decoding with it. The value model is not trained in the second run, as
    its labels must come from the unguided policy. The state after the end token learns the reward, because decoding
    queries it.
Left out: Several value models at once.
Acts: value_grad_norm > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from strop.generate.engines.wrappers.guided import Guided
from strop.recipes.setting import Setting
from strop.roles import Guidance
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.gae import Gae
from strop.training.losses.reinforce import Reinforce
from strop.training.values.critic import Critic

# VAS's guidance (2405.06639): linear in the value.


@dataclass(frozen=True)
class Vas(Guidance):
    """Adds strength * (V - mean V over the candidates) to the candidates' logits."""

    strength: float = 3.0

    file: ClassVar[str] = "critic_weights.safetensors"

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor:
        offsets = self.strength * (told - told.mean(-1, keepdim=True))  # [C]
        return base.index_add(0, candidates, offsets.to(base.dtype))


def vas(
    setting: Setting = Setting(),
    values: str = "",  # checkpoints/step-N/values of the first run; empty: train the value model
    strength: float = 3.0,  # of guidance
    trace: float = 0.95,  # lambda of GAE
) -> Run:
    """Trains a value model; with `values`, decodes with it. The policy stays frozen."""
    frozen_policy = (Reinforce(weight=0.0),)
    if values:
        engine = Guided(values, Vas(strength), device=setting.device)
        return setting.run("vas", Constant(), frozen_policy, engine=engine, rescore_every=0)
    critic = Critic(learns_ends=True, device=setting.device)
    return setting.run("vas", Gae(trace=trace, whiten=False), frozen_policy, values=critic)
