"""Four plain steps, no critic, and figures of how training goes: length, reflection, whether reflecting pays.

Title: Rethinking RL Scaling for Vision Language Models: A Transparent, From-Scratch Framework and Comprehensive
    Evaluation Scheme
Paper: arXiv 2504.02587 (2025)
Claim: Lengths depend on the seed, reflection goes with length, and RL carries over further than supervised training.
Reading: The script's setting: a right answer is worth 1, one closed thought 1 (with nothing before it and an answer
    behind it, which the release does not ask), foreign script costs; what has no end is worth -0.1, whatever it says.
    Returns of tokens without a KL, standardised over the draw: the release adds the mean again after it divided, so
    that its credit is not centred, and divides by the spread of a sample. A penalty to the reference in the loss. 4
    optimizer steps per draw are ours, 32 the release's. Rate and lengths are those of the bundled model. It never
    reflects by itself, so demonstrations with "wait" before one of their steps are shown first. Several seeds are
    `strop compare`'s work.
Left out: Images, and the vision tower that does not learn.
Acts: reflecting > 0 and reward/whole_or_less > 0 and reference_kl != 0 and clipped_share > 0
    and warmup/nll > 0 with taught=8
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.format import Formatted
from strop.filter.rewards.wording.foreign_script import ForeignScript
from strop.filter.rewards.wording.reflects import Reflects
from strop.filter.rewards.wording.whole_or_less import WholeOrLess
from strop.generate.agents.demonstrate_reflection import DemonstrateReflection
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def rl_scaling_vlm(
    setting: Setting = Setting(),
    layout: float = 1.0,  # for exactly one closed thought
    foreign: float = 0.1,  # price of a reply that is Chinese throughout
    instead: float = -0.1,  # of a reply without an end
    least: int = 1,  # tokens of an attempt that is judged at all
    kl: float = 0.001,  # weight of the penalty to the reference
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    minibatches: int = 4,  # optimizer steps per draw
    taught: int = 4,  # steps of supervised training on reflections first
) -> Run:
    """What is right, laid out and whole is paid; who reflects is counted."""
    run = setting.run("rl_scaling_vlm", TokenReturns(kl=0.0), (Clip(clip, clip), Kl("k3", kl)), minibatches=minibatches)
    (judged,) = run.rewards
    parts = (judged, Formatted(weight=layout), ForeignScript(-foreign))
    run.rewards = (WholeOrLess(parts, instead, least), replace(judged, weight=0.0), Reflects())  # type: ignore[type-var]
    if (examples := shown(setting, "rl_scaling_vlm", taught)) is not None:
        run.warmup = replace(examples, agent=DemonstrateReflection(examples.agent, "wait "))
    return run
