"""UFO's reward (2507.14295): a right answer is worth less with every try before it, and the same answer again costs.

Papers: ufo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import world_of
from strop.errors import ConfigurationError
from strop.roles import Reward, World
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class Tries(Reward):
    """decay ** (answers before) * what a try was paid, summed, less price * (1 - distinct answers / answers).

    Replies without an answer count nowhere. Answers are one where the world spells them alike.
    """

    worlds: tuple[World, ...]
    decay: float = 0.5  # of a right answer's worth, with each answer before it
    price: float = 0.5  # of an attempt that gives one answer again and again, in the limit

    is_inline: ClassVar[bool] = True  # worlds are only asked how they spell answers

    def __post_init__(self) -> None:
        if not 0 <= self.decay <= 1 or self.price < 0:
            raise ConfigurationError(f"Tries needs 0 <= decay <= 1 and price >= 0, got {self.decay} and {self.price}")

    def __call__(self, group: Group) -> list[float]:
        world = world_of(self.worlds, group.task)
        return [self._of(attempt, world) for attempt in group.trajectories]

    def _of(self, attempt: Trajectory, world: World) -> float:
        given = [world.answer(turn.message.content) for turn in attempt.turns]
        paid = zip(given, attempt.turn_rewards, strict=False)
        tries = [pay for answer, pay in paid if answer]
        answers = [answer for answer in given if answer]
        repeated = 1 - len(set(answers)) / len(answers) if answers else 0.0
        return sum(self.decay**before * pay for before, pay in enumerate(tries)) - self.price * repeated
