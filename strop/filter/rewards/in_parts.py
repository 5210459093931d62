"""A reward for replies of several tagged parts: a plan, then a thought, then the answer (PTA-GRPO, 2510.01833).

Papers: pta-grpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class InParts(Reward):
    """1 where the last reply is `<tag>...</tag>` for each of the tags, each once, and then an answer; else 0."""

    tags: tuple[str, ...] = ("plan", "think")  # of the parts, in order
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.tags or not all(self.tags):
            raise ConfigurationError(f"InParts needs the names of tags, got {self.tags}")

    def __call__(self, group: Group) -> list[float]:
        return [float(self._is_laid_out(attempt.reply)) for attempt in group.trajectories]

    def _is_laid_out(self, reply: str) -> bool:
        left = reply.strip()
        for tag in self.tags:
            opening, closing = f"<{tag}>", f"</{tag}>"
            if not left.startswith(opening) or (reply.count(opening), reply.count(closing)) != (1, 1):
                return False
            left = left.partition(closing)[2].strip()
        return bool(left)
