"""ECHO: GRPO plus a cross-entropy loss on the environment's observation tokens, a world-model objective.

Title: ECHO: Terminal Agents Learn World Models for Free
Paper: arXiv 2605.24517 (2026)
Claim: Success on TerminalBench 2.0 about doubles: 2.70 to 5.17 % at 8B, 5.17 to 10.79 % at 14B.
Reading: Every rollout trains the prediction loss, whatever its reward, so groups without contrast are kept.
Left out: Terminals: the environments are the package's own. None of them tags its warnings and format hints, which the
    paper does not train on (`Turn.aux["hints"]`).
Acts: env_nll > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.requirements import Aux, Need
from strop.types import Metrics


@dataclass(frozen=True)
class Echo(Loss):
    """-log policy of the environment's observation tokens, a mean over those of the rollout, whatever its reward.

    Tokens tagged in `Turn.aux["hints"]` (a harness's warnings and format hints) have no loss but count in the mean. In
    the release learning stalled with a weight above 0.05, and at 0.2 the policy turned to dull, predictable actions. A
    gate that drops groups without contrast also removes them from this loss.
    """

    weight: float = 0.05

    needs: ClassVar[frozenset[Need]] = frozenset({Aux("hints")})
    scope: ClassVar[str] = "rollout"
    covers: ClassVar[str] = "observed"
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        if batch.observed is None or batch.observed_share is None:
            raise ConfigurationError(
                "Echo needs the mask of observation tokens (batch.observed and batch.observed_share), the batch has "
                "none"
            )
        nll = output.over_logits(_nll, where=batch.observed)  # [T]
        if "hints" in batch.aux:
            nll = torch.where(batch.aux["hints"] > 0, 0.0, nll)
        loss = torch.where(batch.observed, nll, 0.0)
        return loss, {"env_nll": float((batch.observed_share * loss.detach()).sum())}


def _nll(logits: Tensor, tokens: Tensor) -> Tensor:
    """Negative log-likelihood: [C, V], [C] -> [C]."""
    return -logits.log_softmax(-1).gather(1, tokens.unsqueeze(1)).squeeze(1)


def echo_env(
    setting: Setting = Setting(env="guess:1"),
    prediction: float = 0.05,  # weight of the prediction loss; above 0.05 learning stalled in the paper
) -> Run:
    """GRPO on the policy's tokens, cross-entropy on the environment's; for multi-turn environments."""
    return setting.run("echo_env", GroupStandard(), (Clip(0.2, 0.28), Echo(prediction)))
