"""Semi-offline RL: imitation of demonstrations plus REINFORCE on sampled tokens in masked places, in one forward pass.

Title: Semi-Offline Reinforcement Learning for Optimized Text Generation
Paper: arXiv 2306.09712 (2023)
Claim: As good as the best offline and online methods at a small part of the cost of online ones.
Reading: A share of 0.4 of the tokens is masked; 64 fillings and the weight 20 of the reward's loss relative to
    imitation are the release's for news summaries. Demonstrations are the environment's own and stand in for target
    texts. The release encodes a source and decodes with masks; here one decoder-only model reads both. In the release's
    log-probabilities, tokens that were not sampled have a logit of 0; here the whole distribution counts. The loss is
    summed over fillings there and averaged here, so its weight is 64 times 20. A filling's log-probability is divided
    by its number of masked tokens to a power that was not found: 1 here, the mean over masked tokens.
Left out: Masks of whole words, and none after commas and full stops. ROUGE-L. Rewards other than overlap.
Acts: overlap < 1 and overlap_spread > 0 and gaps > 0
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
from strop.training.arithmetic.token_draws import drawn, token_keys, uniforms
from strop.training.batch import Batch, Output
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.means import SequenceMean
from strop.types import Metrics

# Semi-offline RL (2306.09712): a demonstration with masked tokens, and one pass that samples many fillings of them.
#
# Readings: gaps are single masked tokens, not whole words; in a causal model all later tokens read `mask` in a gap. The
# reward of a filling is the mean of ROUGE-1 and ROUGE-2 over its tokens; the release adds ROUGE-L. Fillings are
# averaged and not summed, so that `weight` does not depend on their number.


@dataclass(frozen=True)
class Filled(Loss):
    """Loss -(mean over fillings of (r - mean r) * log-probability of the filling, per gap); 0 at other tokens.

    Each token of the completion is a gap with probability `rate`. Gaps and fillings depend on seed, step, rollout and
    position only, not on how a step is split. The model is read once, whatever the number of fillings.
    """

    rate: float = 0.4  # of tokens that are masked
    fillings: int = 64  # of each demonstration
    mask: int = 0  # token id that replaces a gap
    seed: int = 0  # of gaps and fillings
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1 or self.fillings < 2 or self.mask < 0:
            raise ConfigurationError(
                "Filled needs 0 <= rate <= 1, fillings >= 2 and mask >= 0, got "
                f"{self.rate}, {self.fillings} and {self.mask}"
            )

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        keys = token_keys(batch, self.seed)
        gaps = batch.trainable & (uniforms(keys, 1).squeeze(1) < self.rate)  # [T]
        read = output.reread(torch.where(gaps, self.mask, batch.tokens), 1.0)
        both = read.over_logits(self._sampled, keys, where=gaps).view(-1, 2, self.fillings)  # [T, 2, F]
        rewards = self._rewards(both[:, 0].detach().long(), gaps, batch)  # [A, F]
        advantage = (rewards - rewards.mean(1, keepdim=True)) / self.fillings  # [A, F]
        gain = (both[:, 1] * batch.on_tokens(advantage)).sum(1)  # [T]
        loss = torch.where(gaps, -gain * batch.on_tokens(self._per_gap(gaps, batch)), 0.0)
        metrics = {"gaps": gaps.to(loss.dtype), "overlap": batch.on_tokens(rewards.mean(1))}
        metrics |= {"overlap_spread": batch.on_tokens(rewards.std(1))}
        return loss, {name: batch.metric(values.to(loss.dtype)) for name, values in metrics.items()}

    def _sampled(self, logits: Tensor, tokens: Tensor, keys: Tensor) -> Tensor:
        """Fillings of each gap, and their log-probabilities: [C, 2 F]."""
        logprobs = logits.log_softmax(-1)
        found = drawn(logprobs.detach(), uniforms(keys, self.fillings + 1)[:, 1:])  # [C, F]; the first one chose gaps
        # a token of probability 0 is never sampled, but one that rounds to 0 can be: 0 * -inf would be NaN
        return torch.cat([found.to(logprobs.dtype), logprobs.gather(1, found).clamp(min=-1e4)], 1)

    def _rewards(self, found: Tensor, gaps: Tensor, batch: Batch) -> Tensor:
        """Overlap of each filled completion with the demonstration: [A, F]."""
        texts = torch.where(gaps.unsqueeze(1), found, batch.tokens.unsqueeze(1))  # [T, F]
        rewards = batch.share.new_zeros(batch.num_rollouts, self.fillings)
        for index in batch.rollouts[batch.trainable].unique().tolist():  # type: ignore[no-untyped-call]
            own = batch.trainable & (batch.rollouts == index)
            rewards[index] = overlap(texts[own].T, batch.tokens[own])
        return rewards

    def _per_gap(self, gaps: Tensor, batch: Batch) -> Tensor:
        """Tokens over gaps of each rollout; it turns a mean over tokens into a mean over gaps: [A]."""
        counts = [batch.per_rollout(each.to(batch.share.dtype)) for each in (batch.trainable, gaps)]
        return counts[0] / counts[1].clamp(min=1.0)


def overlap(texts: Tensor, target: Tensor) -> Tensor:
    """Mean of ROUGE-1 and ROUGE-2 of texts [F, N] with a target of the same length [N], all as ids: [F]."""
    pairs, wanted = (each[..., :-1] * (1 << 32) + each[..., 1:] for each in (texts, target))
    return (_shared(texts, target) + _shared(pairs, wanted)) / 2 if len(target) > 1 else _shared(texts, target)


def _shared(texts: Tensor, target: Tensor) -> Tensor:
    """Share of the target's n-grams that a text has, counted as in ROUGE: [F]."""
    known, counts = target.unique(return_counts=True)  # type: ignore[no-untyped-call]
    has = (texts.unsqueeze(2) == known).sum(1)  # [F, U]
    shared: Tensor = torch.minimum(has, counts).sum(1).double() / len(target)
    return shared


def semi_offline(
    setting: Setting = Setting(env="countdown:4", group_size=1, groups_per_step=64),
    rate: float = 0.4,  # of tokens that are masked; 0 is imitation alone
    fillings: int = 64,  # of each demonstration
    reinforced: float = 1280.0,  # weight of the reward's loss relative to imitation
) -> Run:
    """Tokens are sampled within the loss alone; the run ends by steps, not by generated tokens."""
    losses = (Likelihood(), Filled(rate, fillings, seed=setting.seed, weight=reinforced))
    return setting.run("semi_offline", Constant(), losses, agent=Demonstrate(), reduction=SequenceMean())
