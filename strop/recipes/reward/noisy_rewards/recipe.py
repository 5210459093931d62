"""GRPO with rewards flipped for a share of the tasks, or with rewards for reasoning phrases alone.

Title: The Climb Carves Wisdom Deeper Than the Summit: On the Noisy Rewards in Learning to Reason
Paper: arXiv 2505.22653 (2025)
Claim: With 40 % of the rewards flipped a 7B model still goes from 5 to 72 %, against 75 % without noise; words of
    reasoning alone bring it above 70 %.
Reading: A flip applies to all rollouts of a task, but never to a completion without an answer, as released; held-out
    tasks are judged without noise. `signal=patterns` rewards phrases instead of answers; `signal=calibrated` uses them
    to raise low scores of a noisy reward model, for which the flipped reward stands in. The release's 40 phrases are
    English: the bundled model's are those of its chains of thought, of which four are enough. The optimizer's
    hyperparameters were not found: one optimizer step per batch.
Left out: Reward models that are trained, and the open-ended tasks that they judge.
Acts: flipped_share > 0
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError, nearest
from strop.filter.reward_values import RewardScores, shaped
from strop.filter.rewards.format import Formatted
from strop.filter.rewards.weighted_sum import as_one
from strop.recipes.environment_specs import measured
from strop.recipes.reward.noisy_rewards.reward import Flipped
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group

# Calibration of a reward model (2505.22653): low scores, which may be its own mistakes, are raised for reasoning.


@dataclass(frozen=True)
class LiftedScores(Reward):
    """Score s of `model`, 0 if `layout` is less than 1; a score s below 1/2 becomes min(1, s + gain * patterns)."""

    model: Reward  # scores from 0 to 1
    patterns: Reward  # from 0 to 1
    layout: Reward  # 1 if a completion has the required layout
    gain: float = 0.1  # largest amount that patterns add
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # if the rewards it holds are
    name: ClassVar[str] = "lifted_scores"

    def __post_init__(self) -> None:
        if self.gain < 0:
            raise ConfigurationError(f"LiftedScores needs a gain >= 0, got {self.gain}")

    def __call__(self, group: Group) -> RewardScores:
        def lifted(*scores: Sequence[float]) -> list[float]:
            return [self._score(score, pattern, layout) for score, pattern, layout in zip(*scores, strict=True)]

        return shaped(self, group, lifted, self.model, self.patterns, self.layout)

    def _score(self, score: float, pattern: float, layout: float) -> float:
        kept = score if layout >= 1 else 0.0
        return min(1.0, kept + self.gain * pattern) if kept < 0.5 else kept


# Reasoning pattern reward (RPR, 2505.22653): the number of reasoning phrases in a completion, whatever its answer.
#
# Reading: the release has 40 phrases, of planning, warning and connection; those here are ours. A phrase counts as
# whole words only, or "thus" would match in "enthusiasm". Repeated runs of words and invented user turns are penalized.

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
    """max(0, min(1, phrases that occur / enough) - repeated runs of words / all runs - invented user turns)."""

    phrases: tuple[str, ...] = PHRASES
    enough: int = 20  # different phrases that earn 1
    size: int = 20  # words of a run that counts as repeated
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
        """Score of one completion, from 0 to 1."""
        folded = completion.casefold()
        found = sum(_occurs(phrase.casefold(), folded) for phrase in self.phrases)
        earned = min(1.0, found / self.enough) - repeated(folded.split(), self.size) - len(_USER.findall(completion))
        return max(0.0, earned)


def repeated(words: list[str], size: int) -> float:
    """Distinct runs of `size` words that occur more than once, as a share of all runs; 0 if there is no run."""
    counts = Counter(tuple(words[start : start + size]) for start in range(len(words) - size + 1))
    return sum(count > 1 for count in counts.values()) / max(counts.total(), 1)


def _occurs(phrase: str, text: str) -> bool:
    """Whether `phrase` occurs, bounded by word boundaries where it starts or ends with a letter or digit."""
    before, after = (r"(?<!\w)" if phrase[0].isalnum() else ""), (r"(?!\w)" if phrase[-1].isalnum() else "")
    return re.search(before + re.escape(phrase) + after, text) is not None


_SIGNALS = ("flipped", "patterns", "calibrated")
_POCKET_PHRASES = (
    "<think>",
    "</think>",
    "=",
    "no",
    "+",
    "-",
    "*",
)  # of the bundled model; no /, which is in every closing tag
_ENOUGH = 4  # of these phrases for a reward of 1


def noisy_rewards(
    setting: Setting = Setting(),
    share: float = 0.4,  # share of the tasks whose rewards are flipped; 0.5 is pure noise
    signal: str = "flipped",  # reward: flipped, patterns or calibrated
    gain: float = 0.1,  # signal=calibrated: largest amount that patterns add to a low score
    clip: float = 0.2,  # PPO clip range of the importance ratio
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """The environment's reward without noise is logged with weight 0."""
    run = setting.run("noisy_rewards", GroupStandard(), (Clip(clip, clip), Kl("k3", kl)))
    flipped = Flipped(as_one(run.rewards), run.envs, share, setting.seed)
    run.rewards = (_signal(signal, setting.model, flipped, gain), measured(run.envs))
    return run


def _signal(signal: str, model: str, flipped: Flipped, gain: float) -> Reward:
    if signal not in _SIGNALS:
        raise ConfigurationError(f"noisy_rewards has no signal {signal!r}: {nearest(signal, _SIGNALS)}")
    is_bundled = model == "pocket"
    patterns = ReasoningPatterns(_POCKET_PHRASES, _ENOUGH) if is_bundled else ReasoningPatterns(PHRASES)
    paid = {"flipped": flipped, "patterns": patterns, "calibrated": LiftedScores(flipped, patterns, Formatted(), gain)}
    return paid[signal]
