"""Streamed training step: gradients of a step's groups as they arrive, before the batch is complete.

Micro-batches are trained while slow siblings are still being sampled (AsyncFlow, 2507.01663; FlexMARL, 2602.09578).
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
    """Accumulated gradient of a step whose groups arrive one after the other."""

    run: Run
    version: int
    learners: Sequence[Learns]  # parts that learn from the whole batch
    prove: Callable[
        [Run, Sequence[Batch], int, Sequence[Group]], Metrics
    ]  # the check that tokens come from the weights they claim
    mass: float = field(default=0.0, init=False)
    parts: int = field(default=0, init=False)  # number of parts that were accumulated
    _groups: list[Group] = field(default_factory=list, init=False)  # comparison groups, in order of arrival
    _taught: list[Group] = field(default_factory=list, init=False)  # groups of demonstrations alone
    _proof: Metrics = field(default_factory=dict, init=False)  # logprob check of the first part that has one

    def add(self, batch_groups: Sequence[Group]) -> None:
        """Advantages, forward and backward of some groups; `pipeline.learn` does the same for a whole batch."""
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
        """The optimizer step, and a last one for demonstrations.

        Metrics are means over the parts, weighted like their gradients.
        """
        taught = self._packed(
            self._taught
        )  # before the step, so that statistics use the same weights as the rest of the batch
        rows = [self._step()] if self.mass else []
        if taught:
            self._accumulate(self._taught, taught)
            rows.append(self._step())
        if not rows:
            raise ConfigurationError(
                "a step needs at least 1 completion token, got 0: every rollout failed or was empty"
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
        assert isinstance(run.reduction, Weighs) and isinstance(run.trainer, Streams)  # `problems` refuses other runs
        mass = run.reduction.mass(groups)
        if batches:
            run.trainer.accumulate(batches, Objective(run.losses, run.correction), mass)
        self.mass += mass

    def _step(self) -> Metrics:
        assert isinstance(self.run.trainer, Streams)
        mass, self.mass = self.mass, 0.0
        return self.run.trainer.finish(mass)


def problems(run: Run) -> list[str]:
    """Reasons why this run cannot be streamed."""
    found = []
    if not run.admission.is_waved:
        found.append(f"it needs lag=0, so that every group belongs to the next step, got {run.admission}")
    if run.minibatches != 1 or run.epochs != 1:
        found.append(
            f"it makes one optimizer step per batch, got {run.minibatches} minibatches and {run.epochs} epochs"
        )
    if run.values is not None or not all(each.is_local for each in inside(run.advantage, Advantage)):
        found.append(f"{type(run.advantage).__name__} needs the whole batch")
    for part, capability in ((run.reduction, Weighs), (run.trainer, Streams)):
        if not isinstance(part, capability):
            found.append(f"{type(part).__name__} cannot train on parts of a batch")
    return [f"streams=True: {problem}" for problem in found]
