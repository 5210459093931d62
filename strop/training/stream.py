"""One step from groups that come one after the other: the trainer starts before the batch is whole.

Micro-batches are trained while slow siblings are still being written (AsyncFlow, 2507.01663; FlexMARL, 2602.09578).
Every average within a part is undone by the part's mass and made again over all of them, so the step's gradient is that
of the whole batch. Weights move once, at the end: nothing is off-policy.
Papers: asyncflow, flexmarl
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strop.capabilities import Learns, Streams, Weighs, inside
from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.batch import Batch
from strop.training.comparison_groups import comparison_groups, is_taught
from strop.training.learners import teach
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.policy_stats import statistics_needed
from strop.types import Group, Metrics

if TYPE_CHECKING:
    from strop.run import Run


@dataclass
class Stream:
    """The gradient of a step, as far as it has come."""

    run: Run
    version: int
    learners: Sequence[Learns]  # whoever is taught with the whole batch
    prove: Callable[
        [Run, Sequence[Batch], int, Sequence[Group]], Metrics
    ]  # that tokens come from the weights they claim
    mass: float = field(default=0.0, init=False)
    parts: int = field(default=0, init=False)  # of the batch that were trained one after the other
    _groups: list[Group] = field(default_factory=list, init=False)  # comparison groups, as they came
    _taught: list[Group] = field(default_factory=list, init=False)  # those of demonstrations alone
    _proof: Metrics = field(default_factory=dict, init=False)  # of the first part that has one

    def add(self, batch_groups: Sequence[Group]) -> None:
        """Advantage, forward and backward of some groups of the batch; as `pipeline.learn` does for the whole."""
        run, groups = self.run, comparison_groups(batch_groups)
        if noted := statistics_needed(run):
            run.trainer.policy_statistic(groups, noted)
        run.advantage(groups)
        self._groups += groups
        self._taught += [group for group in groups if is_taught(group)]
        own = [group for group in groups if not is_taught(group)]
        self._accumulate(own, self._packed(own))
        self.parts += 1

    def finish(self) -> Metrics:
        """The optimizer step, and a last one of its own for demonstrations.

        Metrics are means over the parts, weighed like their gradients.
        """
        taught = self._packed(self._taught)  # before weights move: by those the whole batch is judged
        rows = [self._step()] if self.mass else []
        if taught:
            self._accumulate(self._taught, taught)
            rows.append(self._step())
        if not rows:
            raise ConfigurationError(
                "a step needs at least 1 written token, got 0: every rollout failed or said nothing"
            )
        metrics = self._proof | {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
        return metrics | teach(self.learners, self._groups)

    def _packed(self, groups: Sequence[Group]) -> list[Batch]:
        run, objective = self.run, Objective(self.run.losses, self.run.correction)
        batches = pack(groups, run.reduction, self.version, run.trainer.max_tokens, objective.scope, objective.aux)
        run.trainer.annotate(batches, objective.needs)
        self._proof = self._proof or self.prove(run, batches, self.version, groups)
        return batches

    def _accumulate(self, groups: Sequence[Group], batches: Sequence[Batch]) -> None:
        run = self.run
        assert isinstance(run.reduction, Weighs) and isinstance(run.trainer, Streams)  # see `problems`
        mass = run.reduction.mass(groups)
        if batches:
            run.trainer.accumulate(batches, Objective(run.losses, run.correction), mass)
        self.mass += mass

    def _step(self) -> Metrics:
        assert isinstance(self.run.trainer, Streams)
        mass, self.mass = self.mass, 0.0
        return self.run.trainer.finish(mass)


def problems(run: Run) -> list[str]:
    """Why this run cannot be streamed."""
    found = []
    if not run.admission.is_waved:
        found.append(f"it needs lag=0, where all that comes belongs to the next step, not {run.admission}")
    if run.minibatches != 1 or run.epochs != 1:
        found.append(f"it makes one step of a batch, not {run.minibatches} minibatches in {run.epochs} epochs")
    if run.values is not None or not all(each.is_local for each in inside(run.advantage, Advantage)):
        found.append(f"{type(run.advantage).__name__} looks at the whole batch")
    for part, ability in ((run.reduction, Weighs), (run.trainer, Streams)):
        if not isinstance(part, ability):
            found.append(f"{type(part).__name__} cannot take a batch in parts")
    return [f"streams=True: {problem}" for problem in found]
