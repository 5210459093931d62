"""GRPO with rewards that are flipped for a share of the tasks, or that look at words of reasoning alone.

Title: The Climb Carves Wisdom Deeper Than the Summit: On the Noisy Rewards in Learning to Reason
Paper: arXiv 2505.22653 (2025)
Claim: With 40 % of the rewards flipped a 7B model still goes from 5 to 72 %, against 75 % without noise; words of
    reasoning alone bring it above 70 %.
Reading: Flips are by task, for all its attempts, and never of a reply without an answer, as released; held-out tasks
    are judged without noise. `signal` patterns pays phrases in place of answers, calibrated lifts low marks of a noisy
    reward model by them, for which the flipped reward stands. The release's 40 phrases are English: the bundled model's
    are those of its workings, of which four are enough. Numbers of the optimizer were not found: one step per draw.
Left out: Reward models that are trained, and the open-ended tasks that they judge.
Acts: flipped_share > 0
"""

from __future__ import annotations

from strop.errors import ConfigurationError, nearest
from strop.filter.rewards.flipped import Flipped
from strop.filter.rewards.format import Formatted
from strop.filter.rewards.lifted_marks import LiftedMarks
from strop.filter.rewards.reasoning_patterns import PHRASES, ReasoningPatterns
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl

_SIGNALS = ("flipped", "patterns", "calibrated")
_WORKINGS = ("<think>", "</think>", "=", "no", "+", "-", "*")  # of the bundled model; a / stands in every closing tag
_ENOUGH = 4  # of them


def noisy_rewards(
    setting: Setting = Setting(),
    share: float = 0.4,  # of the tasks, whose rewards are flipped; 0.5 is pure noise
    signal: str = "flipped",  # flipped, patterns or calibrated: what is paid
    gain: float = 0.1,  # most that patterns add to a low mark, where calibrated
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """What the world says without noise is logged beside it and weighs nothing."""
    run = setting.run("noisy_rewards", GroupStandard(), (Clip(clip, clip), Kl("k3", kl)))
    flipped = Flipped(run.rewards[0], run.worlds, share, setting.seed)
    run.rewards = (_signal(signal, setting.model, flipped, gain), measured(run.worlds))
    return run


def _signal(signal: str, model: str, flipped: Flipped, gain: float) -> Reward:
    if signal not in _SIGNALS:
        raise ConfigurationError(f"noisy_rewards has no signal {signal!r}: {nearest(signal, _SIGNALS)}")
    is_bundled = model == "pocket"
    patterns = ReasoningPatterns(_WORKINGS, _ENOUGH) if is_bundled else ReasoningPatterns(PHRASES)
    paid = {"flipped": flipped, "patterns": patterns, "calibrated": LiftedMarks(flipped, patterns, Formatted(), gain)}
    return paid[signal]
