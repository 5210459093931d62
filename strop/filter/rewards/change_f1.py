"""A world model's reward (RLVR-World, 2505.13934): how well the changes it foretells match the true ones.

In the release the measure is 0 where nothing changes and nothing is foretold; here that is right, and 1.
Papers: rlvr-world
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from strop.environments.bundled.next_state import NextState, items_in
from strop.errors import ConfigurationError, nearest
from strop.roles import Reward
from strop.types import Group, Trajectory

if TYPE_CHECKING:
    from strop.run import Run

FORMS = ("f1", "exact")


@dataclass(frozen=True)
class ChangeF1(Reward):
    """2 * common / (foretold + true) over sets of changed items, or with form exact whether both are the same.

    A reply that cannot be read earns 0. For tasks of `NextState`.
    """

    form: str = "f1"  # f1 or exact
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigurationError(f"ChangeF1 has no form {self.form!r}: {nearest(self.form, FORMS)}")

    def problems(self, run: Run) -> list[str]:
        strange = [f"{world.name}:{world.level}" for world in run.worlds if not isinstance(world, NextState)]
        return [f"answers of {name} are no changes: name a world such as next_state:3" for name in strange]

    def __call__(self, group: Group) -> list[float]:
        return [self._mark(attempt) for attempt in group.trajectories]

    def _mark(self, attempt: Trajectory) -> float:
        foretold, true = items_in(attempt.reply), items_in(attempt.task.answer)
        assert true is not None
        if foretold is None:
            return 0.0
        return overlap(foretold, true) if self.form == "f1" else float(foretold == true)


def overlap(foretold: Set[str], true: Set[str]) -> float:
    """The harmonic mean of precision and recall; of two empty sets 1."""
    total = len(foretold) + len(true)
    return 2 * len(foretold & true) / total if total else 1.0
