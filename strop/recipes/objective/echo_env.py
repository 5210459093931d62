"""An agent that also learns to predict what its environment answers.

Title: ECHO: Terminal Agents Learn World Models for Free
Paper: arXiv 2605.24517 (2026)
Claim: Success on TerminalBench 2.0 about doubles: 2.70 to 5.17 % at 8B, 5.17 to 10.79 % at 14B.
Reading: Every rollout teaches this, whatever its reward, so groups without contrast are kept.
Left out: Terminals: the environments here are the package's own, and none of them marks its warnings and format hints,
    which the paper does not learn (`Turn.aux["hints"]`).
Acts: env_nll > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.requirements import Aux, Need
from strop.types import Metrics

# ECHO (2605.24517): learn to predict what the environment answers, from rollouts that are read anyway.


@dataclass(frozen=True)
class Echo(Loss):
    """-log policy of what the environment said, a mean over all observed tokens of the rollout, whatever its reward.

    Tokens marked in `Turn.aux["hints"]` (a harness's warnings and format hints) are not learned but still counted.
    Above 0.05 the release saw learning stall, at 0.2 it turned to dull, predictable answers. A gate that drops groups
    without contrast drops what they teach here.
    """

    weight: float = 0.05

    needs: ClassVar[frozenset[Need]] = frozenset({Aux("hints")})
    scope: ClassVar[str] = "rollout"
    covers: ClassVar[str] = "observed"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        if batch.observed is None or batch.observed_share is None:
            raise ConfigurationError(
                "Echo learns what the environment said, and the batch does not say where that stands"
            )
        surprise = output.over_logits(_surprise, where=batch.observed)  # [T]
        if "hints" in batch.aux:
            surprise = torch.where(batch.aux["hints"] > 0, 0.0, surprise)
        loss = torch.where(batch.observed, surprise, 0.0)
        return loss, {"env_nll": float((batch.observed_share * loss.detach()).sum())}


def _surprise(logits: Tensor, tokens: Tensor) -> Tensor:
    """[C, V], [C] -> [C]."""
    return -logits.log_softmax(-1).gather(1, tokens.unsqueeze(1)).squeeze(1)


def echo_env(
    setting: Setting = Setting(env="guess:1"),
    prediction: float = 0.05,  # weight of the environment's words; above 0.05 learning stalled in the paper
) -> Run:
    """GRPO on what the policy wrote, likelihood on what the environment said; made for environments of several
    turns.
    """
    return setting.run("echo_env", GroupStandard(), (Clip(0.2, 0.28), Echo(prediction)))
