"""A model that fills masks learns along the way in which it filled them, with a critic of canvases.

Title: Revolutionizing Reinforcement Learning Framework for Diffusion Large Language Models
Paper: arXiv 2509.06949 (2025)
Claim: A 4B model beats a 7B one that writes from left to right in mathematics, and a critic makes training steadier.
Reading: One glance for each step of filling, as the paper has it for attention by blocks, and full attention: the eight
    steps that share a glance there are a whole reply here. As with blocks, tokens that are 0.9 sure are kept at once,
    a reply's sum is divided by its room, and a critic of canvases says what was expected; discounts of 1, so that
    credit is the standardised reward minus its value. Clip 0.2 and a KL of 0.01 (k3) to the policy before the step;
    four optimizer steps per draw, so that both act. Groups of which more than 0.8 or fewer than 0.2 are right are
    dropped. Ends behind the first are tokens as any other. Without the critic credit is the reward standardised within
    the group.
Left out: Attention by blocks with a cache of keys, larger blocks than a model began with, and the rule that replies
    within five tokens of their limit are wrong.
Acts: credit_within > 0 and value_grad_norm > 0 and proximal_kl != 0 and warmup/nll > 0 with shown=150
"""

from __future__ import annotations

from strop.filter.gates.accuracy_band import AccuracyBand
from strop.recipes.diffusion import ALL_ALIKE, filling, reading, taught_to_fill
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.advantages.trace_returns import TraceReturns
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.constant_length import ConstantLength
from strop.training.values.canvas_critic import CanvasCritic
from strop.training.views.in_order import InOrder


def tracerl(
    setting: Setting = Setting(world="arithmetic:2", max_tokens=32, steps=60),
    critic: bool = True,  # credit by the critic's values; no: by the group
    merged: int = 1,  # neighbouring steps of filling that share a glance
    discount: float = 1.0,  # from step to step
    trace: float = 1.0,  # lambda: 1 trusts rewards alone, 0 the critic alone
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.01,  # weight of the penalty to the policy before the step
    sure: float = 0.9,  # tokens of this probability are kept at once
    block: int = 8,  # places that are filled before any behind them
    minibatches: int = 4,
    shown: int = 200,  # steps on masked demonstrations first; 0: the model fills masks already
) -> Run:
    """Supervised training on masked replies, then RL; `strop train tracerl` does both."""
    engine, view = filling(setting, block, least=1, sure=sure), InOrder(merged)
    credit: Advantage = TraceReturns(discount, trace, merged) if critic else GroupStandard()
    return setting.run(
        "tracerl",
        credit,
        (Clip(clip, clip, anchor="proximal"), Kl("k3", kl, policy="proximal")),
        engine=engine,
        trainer=reading(setting, view),
        values=CanvasCritic(view, device=setting.device) if critic else None,
        gates=(AccuracyBand(0.2, 0.8),),
        correction=ALL_ALIKE,
        reduction=ConstantLength(setting.max_tokens),
        minibatches=minibatches,
        warmup=taught_to_fill(setting, "tracerl", engine, shown),
    )
