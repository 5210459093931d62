"""GRPO with rewards that are flipped for a share of the tasks, or that look at words of reasoning alone.

Title: The Climb Carves Wisdom Deeper Than the Summit: On the Noisy Rewards in Learning to Reason
Paper: arXiv 2505.22653 (2025)
Claim: With 40 % of the rewards flipped a 7B model still goes from 5 to 72 %, against 75 % without noise; words of
    reasoning alone bring it above 70 %.
Reading: Flips are by task, for all its rollouts, and never of a completion without an answer, as released; held-out
    tasks
    are judged without noise. `signal` patterns pays phrases in place of answers, calibrated lifts low scores of a noisy
    reward model by them, for which the flipped reward stands. The release's 40 phrases are English: the bundled model's
    are those of its workings, of which four are enough. Numbers of the optimizer were not found: one step per batch.
Left out: Reward models that are trained, and the open-ended tasks that they judge.
Acts: flipped_share > 0
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError, nearest
from strop.filter.reward_values import plain_scores
from strop.filter.rewards.flipped import Flipped
from strop.filter.rewards.format import Formatted
from strop.recipes.environment_specs import measured
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group

# A reward model's low scores raised where a completion reasons (2505.22653): what it calls wrong may be its own
# mistake.


@dataclass(frozen=True)
class LiftedScores(Reward):
    """s, what `model` says, or 0 where `layout` gives less than 1; below 1/2 it is min(1, s + gain * patterns)."""

    model: Reward  # scores from 0 to 1
    patterns: Reward  # from 0 to 1
    layout: Reward  # 1 where a completion is laid out as it must be
    gain: float = 0.1  # most that patterns add
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # if the rewards it holds are
    name: ClassVar[str] = "lifted_scores"

    def __post_init__(self) -> None:
        if self.gain < 0:
            raise ConfigurationError(f"LiftedScores needs a gain >= 0, got {self.gain}")

    def __call__(self, group: Group) -> list[float]:
        scores = (plain_scores(self, each, group) for each in (self.model, self.patterns, self.layout))
        return [self._score(score, pattern, layout) for score, pattern, layout in zip(*scores, strict=True)]

    def _score(self, score: float, pattern: float, layout: float) -> float:
        kept = score if layout >= 1 else 0.0
        return min(1.0, kept + self.gain * pattern) if kept < 0.5 else kept


# A reward for words of reasoning, whatever the answer (RPR, 2505.22653): how many of some phrases a completion holds.
#
# Reading: the release has 40 phrases, of planning, warning and connection; those here are ours. A phrase counts as
# whole
# words, or "thus" would stand in "enthusiasm". Repeated runs of words, and turns that a completion invents for the
# user,
# cost.

PHRASES = (
    *("first", "second", "next", "then", "finally", "step by step", "let us", "we need to", "we start", "the goal"),
    *("wait", "however", "but", "alternatively", "on second thought", "is that right", "check", "verify", "maybe"),
    *("let me", "try", "another way", "instead", "not quite", "mistake", "again", "since", "because", "so that"),
    *("so", "thus", "therefore", "hence", "which means", "it follows", "given that", "if", "suppose", "in total"),
    "in conclusion",
)
_USER = re.compile(r"<\|im_start\|>user|^(?:user|human):", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class ReasoningPatterns(Reward):
    """max(0, min(1, phrases that occur / enough) - repeated runs of words / all such runs - invented turns)."""

    phrases: tuple[str, ...] = PHRASES
    enough: int = 20  # different phrases that earn 1
    size: int = 20  # words of a run that must not come twice
    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "reasoning_patterns"

    def __post_init__(self) -> None:
        if not self.phrases or not all(self.phrases) or self.enough < 1 or self.size < 1:
            raise ConfigurationError(
                f"ReasoningPatterns needs phrases, enough >= 1 and size >= 1, got {len(self.phrases)} phrases, "
                f"enough {self.enough}, size {self.size}"
            )

    def __call__(self, group: Group) -> list[float]:
        return [self.of(rollout.completion) for rollout in group.rollouts]

    def of(self, completion: str) -> float:
        """From 0 to 1."""
        folded = completion.casefold()
        found = sum(_occurs(phrase.casefold(), folded) for phrase in self.phrases)
        earned = min(1.0, found / self.enough) - repeated(folded.split(), self.size) - len(_USER.findall(completion))
        return max(0.0, earned)


def repeated(words: list[str], size: int) -> float:
    """Different runs of `size` words that come more than once, as a share of all runs; 0 where there is none."""
    counts = Counter(tuple(words[start : start + size]) for start in range(len(words) - size + 1))
    return sum(count > 1 for count in counts.values()) / max(counts.total(), 1)


def _occurs(phrase: str, text: str) -> bool:
    """As whole words, where it begins and ends with letters."""
    before, after = (r"(?<!\w)" if phrase[0].isalnum() else ""), (r"(?!\w)" if phrase[-1].isalnum() else "")
    return re.search(before + re.escape(phrase) + after, text) is not None


_SIGNALS = ("flipped", "patterns", "calibrated")
_WORKINGS = ("<think>", "</think>", "=", "no", "+", "-", "*")  # of the bundled model; a / stands in every closing tag
_ENOUGH = 4  # of them


def noisy_rewards(
    setting: Setting = Setting(),
    share: float = 0.4,  # of the tasks, whose rewards are flipped; 0.5 is pure noise
    signal: str = "flipped",  # flipped, patterns or calibrated: what is paid
    gain: float = 0.1,  # most that patterns add to a low score, where calibrated
    clip: float = 0.2,  # PPO clip range of the importance ratio
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """What the environment says without noise is logged beside it and weighs nothing."""
    run = setting.run("noisy_rewards", GroupStandard(), (Clip(clip, clip), Kl("k3", kl)))
    flipped = Flipped(run.rewards[0], run.envs, share, setting.seed)
    run.rewards = (_signal(signal, setting.model, flipped, gain), measured(run.envs))
    return run


def _signal(signal: str, model: str, flipped: Flipped, gain: float) -> Reward:
    if signal not in _SIGNALS:
        raise ConfigurationError(f"noisy_rewards has no signal {signal!r}: {nearest(signal, _SIGNALS)}")
    is_bundled = model == "pocket"
    patterns = ReasoningPatterns(_WORKINGS, _ENOUGH) if is_bundled else ReasoningPatterns(PHRASES)
    paid = {"flipped": flipped, "patterns": patterns, "calibrated": LiftedScores(flipped, patterns, Formatted(), gain)}
    return paid[signal]
