"""A reward for words of reasoning, whatever the answer (RPR, 2505.22653): how many of some phrases a reply holds.

Reading: the release has 40 phrases, of planning, doubt and connection; those here are ours. A phrase counts as whole
words, or "thus" would stand in "enthusiasm". Repeated runs of words, and turns that a reply invents for the user, cost.
Papers: noisy-rewards
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group

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
        return [self.of(attempt.reply) for attempt in group.trajectories]

    def of(self, reply: str) -> float:
        """From 0 to 1."""
        folded = reply.casefold()
        found = sum(_occurs(phrase.casefold(), folded) for phrase in self.phrases)
        earned = min(1.0, found / self.enough) - repeated(folded.split(), self.size) - len(_USER.findall(reply))
        return max(0.0, earned)


def repeated(words: list[str], size: int) -> float:
    """Different runs of `size` words that come more than once, as a share of all runs; 0 where there is none."""
    counts = Counter(tuple(words[start : start + size]) for start in range(len(words) - size + 1))
    return sum(count > 1 for count in counts.values()) / max(counts.total(), 1)


def _occurs(phrase: str, text: str) -> bool:
    """As whole words, where it begins and ends with letters."""
    before, after = (r"(?<!\w)" if phrase[0].isalnum() else ""), (r"(?!\w)" if phrase[-1].isalnum() else "")
    return re.search(before + re.escape(phrase) + after, text) is not None
