"""One step from groups that come one after the other: the trainer starts before the draw is whole.

Micro-batches are trained while slow siblings are still being written (AsyncFlow, 2507.01663; FlexMARL, 2602.09578).
Every average within a part is undone by the part's mass and made again over all of them, so the step's gradient is that
of the whole draw. Weights move once, at the end: nothing is off-policy.
Papers: asyncflow, flexmarl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strop.abilities import Streams, Weighs, inside
from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.train.objective import Objective
from strop.train.pack import pack
from strop.types import Group, Metrics

if TYPE_CHECKING:
    from strop.run import Run


@dataclass
class Stream:
    """The gradient of a step, as far as it has come."""

    run: Run
    version: int
    mass: float = field(default=0.0, init=False)
    parts: int = field(default=0, init=False)  # of the draw that were trained one after the other

    def add(self, groups: Sequence[Group]) -> None:
        """Credit, forward and backward of some groups of the draw."""
        run, objective = self.run, Objective(self.run.losses, self.run.correction)
        run.advantage(groups)
        batches = pack(groups, run.reduction, self.version, run.trainer.max_tokens, objective.scope, objective.aux)
        run.trainer.annotate(batches, objective.needs)
        assert isinstance(run.reduction, Weighs) and isinstance(run.trainer, Streams)  # see `problems`
        mass = run.reduction.mass(groups)
        if batches:
            run.trainer.accumulate(batches, objective, mass)
        self.mass += mass
        self.parts += 1

    def finish(self) -> Metrics:
        """The optimizer step; figures are means over the parts, weighed like their gradients."""
        if not self.mass:
            raise ConfigurationError(
                "a step needs at least 1 written token, got 0: every attempt failed or said nothing"
            )
        assert isinstance(self.run.trainer, Streams)
        return self.run.trainer.finish(self.mass)


def problems(run: Run) -> list[str]:
    """Why this run cannot be streamed."""
    found = []
    if not run.pace.is_waved:
        found.append(f"it needs lag=0, where all that comes belongs to the next step, not {run.pace}")
    if run.minibatches != 1 or run.epochs != 1:
        found.append(f"it makes one step of a draw, not {run.minibatches} minibatches in {run.epochs} epochs")
    if run.values is not None or not all(each.is_local for each in inside(run.advantage, Advantage)):
        found.append(f"{type(run.advantage).__name__} looks at the whole draw")
    for part, ability in ((run.reduction, Weighs), (run.trainer, Streams)):
        if not isinstance(part, ability):
            found.append(f"{type(part).__name__} cannot take a draw in parts")
    return [f"streams=True: {problem}" for problem in found]
