"""Transition memory of a simulated environment (DreamGym, 2511.03773): actions and the observations that followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.capabilities import Learns, Remembers
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.types import Group, Metrics, Task

_MOST = 4096  # transitions


@dataclass
class Experiences(Learns, Remembers):
    """Transitions (task, action, observation); those of a batch become visible at the next step, for determinism."""

    top: int = 3  # that are shown

    _kept: list[tuple[str, str, str]] = field(default_factory=list, init=False, repr=False, compare=False)
    _num_real: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.top < 0:
            raise ConfigurationError(f"Experiences needs top >= 0, got {self.top}")

    @property
    def is_empty(self) -> bool:
        return not self._kept

    def add(self, task: Task, action: str, followed: str, is_real: bool = False) -> None:
        """Beyond the most, the oldest that is not real is forgotten; where all are, the newest."""
        self._kept.insert(self._num_real if is_real else len(self._kept), (prompt_of(task), action, followed))
        self._num_real += is_real
        if len(self._kept) > _MOST:
            del self._kept[min(self._num_real, _MOST)]
            self._num_real = min(self._num_real, _MOST)

    def similar(self, task: Task, action: str) -> list[tuple[str, str]]:
        """Actions and what followed: those that share most words with the action, then with the task, newest first."""
        words, asked = set(_words(action)), set(prompt_of(task).split())

        def nearness(entry: tuple[int, tuple[str, str, str]]) -> tuple[float, float, int]:
            place, (prompt, done, _) = entry
            return _overlap(words, set(_words(done))), _overlap(asked, set(prompt.split())), place

        ranked = sorted(enumerate(self._kept), key=nearness, reverse=True)
        return [(done, followed) for _, (_, done, followed) in ranked[: self.top]]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        for rollout in (rollout for group in groups for rollout in group.scored):
            for turn, after in zip(rollout.turns, rollout.turns[1:], strict=False):
                if after.told:
                    self.add(rollout.task, turn.message.content, after.told[-1].content)
        new = float(len(self._kept) - self._num_real)
        return {"experiences_real": float(self._num_real), "experiences_new": new}

    def state(self) -> dict[str, Any]:
        return {"kept": [list(each) for each in self._kept], "real": self._num_real}

    def restore(self, state: dict[str, Any]) -> None:
        self._kept = [(str(prompt), str(done), str(followed)) for prompt, done, followed in state["kept"]]
        self._num_real = int(state["real"])


def _words(text: str) -> list[str]:
    return text.replace("<", " ").replace(">", " ").split()


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)
