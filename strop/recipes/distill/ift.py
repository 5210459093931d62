"""IFT (intuitive fine-tuning): SFT on inputs mixed with the policy's own greedy tokens, weighted by later errors.

Title: Intuitive Fine-Tuning: Towards Unifying SFT and RLHF into a Single Process
Paper: arXiv 2405.11870 (2024)
Claim: From demonstrations alone it is as good as fine-tuning followed by preference alignment, or better.
Reading: As in the release, the gradient also flows through the token weights. Where the policy predicts every token
    correctly, as the bundled model does in arithmetic, this equals plain SFT.
Left out: RMSprop: the trainer has Adam.
Acts: guessed_share < 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.siblings import num_tokens
from strop.training.batch import Batch, Output
from strop.training.reductions.means import SequenceMean
from strop.types import Metrics

# IFT's loss (2405.11870).


@dataclass(frozen=True)
class Intuitive(Loss):
    """w_n * u_n, u = -log policy with input embeddings (1 - share) * true + share * the policy's greedy token.

    w_n ~ sum over i >= n of decay^(i - n) u_i, with mean 1 over the rollout: a token's weight includes later errors.
    As in the release the gradient also flows through w, unless `is_detached`; mixed embeddings have no gradient. decay
    0 gives equal weights; with share 0 as well it is plain SFT.
    """

    share: float = 0.2  # share of the policy's greedy token in the input embeddings
    decay: float = 0.95  # discount of later errors in a token's weight
    is_detached: bool = False  # no gradient through the weights
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"

    def __post_init__(self) -> None:
        if not (0 <= self.share <= 1 and 0 <= self.decay <= 1):
            raise ConfigurationError(f"Intuitive needs share and decay in [0, 1], got {self.share} and {self.decay}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        with torch.no_grad():
            guess = output.over_logits(lambda logits, tokens: logits.argmax(-1).to(logits.dtype))  # [T]
        others = torch.where(batch.trainable, guess.long(), batch.tokens)
        read = output.reread(others, self.share) if self.share else output
        error = torch.where(batch.trainable, -read.logprobs, 0.0)  # [T]
        weights = self._propagated(error, batch)
        loss = (weights.detach() if self.is_detached else weights) * error
        hits = (others == batch.tokens).to(loss.dtype)
        return loss, {"nll": batch.metric(error), "guessed_share": batch.metric(hits)}

    def _propagated(self, error: Tensor, batch: Batch) -> Tensor:
        """N * c_n / sum c with c_n = sum over later tokens of the rollout of decay^(i - n) u_i: [T]."""
        if self.decay == 0:
            return torch.ones_like(error)
        ahead = torch.zeros_like(error)
        for index in range(batch.num_rollouts):
            rows = (batch.trainable & (batch.rollouts == index)).nonzero().squeeze(1)
            order = torch.arange(len(rows), device=rows.device)
            distance = order.unsqueeze(0) - order.unsqueeze(1)  # [N, N], i - n
            powers = torch.where(distance >= 0, self.decay ** distance.clamp(min=0).to(error.dtype), 0.0)
            ahead = ahead.index_add(0, rows, powers @ error[rows])
        total = batch.per_rollout(ahead).clamp(min=1e-12)  # [A]
        return ahead * batch.on_tokens(num_tokens(batch, error) / total)


def ift(
    setting: Setting = Setting(env="countdown:3", group_size=1, groups_per_step=64),
    share: float = 0.2,  # share of the policy's greedy token in the input embeddings
    decay: float = 0.95,  # discount of later errors in a token's weight
) -> Run:
    """IFT on one demonstration per task."""
    losses = (Intuitive(share, decay),)
    return setting.run("ift", Constant(), losses, agent=Demonstrate(), reduction=SequenceMean())
