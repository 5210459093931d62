"""Training loop of a simulated learner: tasks are sampled, simulated, observed by all parts, and trained on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from strop.capabilities import Observes, inside, learners_in
from strop.control.seeded_choice import Doubles
from strop.errors import StarvationError
from strop.filter.apply_gates import passes
from strop.observe.metrics.tokens_to_target import Curve
from strop.roles import Budget, Gate, PassRateEstimator, Sampler
from strop.simulate.learner import Learner
from strop.types import SUCCESS, Group, Message, Outcome, Rollout, Task, Turn

_PATIENCE = 50  # draws' worth of groups that gates may drop for one step, as in a run
_SHOWN = 4  # groups of each level that a biased prior comes from
_COMPLETION = Message("assistant", "")


@dataclass
class Control:
    """Parts of a run that choose tasks and filter groups."""

    sampler: Sampler
    estimator: PassRateEstimator
    budget: Budget
    gates: tuple[Gate, ...] = ()


@dataclass
class Course:
    """One simulated run under given control parts; the same seed gives the same samples."""

    learner: Learner
    control: Control
    seed: int
    tokens: int = 0  # sampled so far: dropped groups count
    rollouts: int = 0
    number: int = 0  # of the next group
    _waiting: deque[tuple[list[Group], list[Group]]] = field(default_factory=deque, init=False, repr=False)
    _turns: dict[int, Turn] = field(default_factory=dict, init=False, repr=False)  # by tokens; of this version

    def __post_init__(self) -> None:
        self.scenario = self.learner.population.scenario
        self.rng = np.random.default_rng([self.seed, 2])
        parts = (self.control.sampler, self.control.budget, self.control.estimator)
        self.observers = inside(parts, Observes)
        self.learners = learners_in(parts)
        if self.scenario.bias:
            self._show(self._rumours())

    def curve(self, tokens: int, goal: float = float("inf")) -> Curve:
        """Held-out accuracy over sampled tokens, until so many are sampled or it reaches the goal."""
        spent, found = [0.0], [self.learner.heldout()]
        while self.tokens < tokens and found[-1] < goal:
            self.step()
            spent.append(float(self.tokens))
            found.append(self.learner.heldout())
        return spent, found

    def step(self) -> None:
        """Make a batch with the weights as they are; learn from the one that is due."""
        self._waiting.append(self._draw())
        if len(self._waiting) <= self.scenario.lag:
            return
        made, kept = self._waiting.popleft()
        if self.scenario.lag:  # late groups come in any order
            self._show([made[place] for place in self.rng.permutation(len(made))])
        self.learner.train(kept)
        for part in self.learners:
            part.learn(kept)
        self._turns.clear()

    def _draw(self) -> tuple[list[Group], list[Group]]:
        """All groups that were made for a step, and those that gates kept; the dropped ones are replaced."""
        made: list[Group] = []
        kept: list[Group] = []
        wanted = self.scenario.groups_per_step
        probabilities = self.learner.probabilities()
        while len(kept) < wanted:
            wave = [self._group(task, probabilities) for task in self._chosen(wanted - len(kept))]
            made += wave
            kept += [result.group for group in wave if (result := passes(group, self.control.gates)).group is not None]
            if not self.scenario.lag:
                self._show(wave)
            if len(made) > (_PATIENCE + 1) * wanted:
                raise StarvationError(
                    f"step {self.learner.version + 1} needs {wanted} groups and has {len(kept)}; "
                    f"{len(made) - len(kept)} were dropped meanwhile"
                )
        return made, kept

    def _chosen(self, count: int) -> list[Task]:
        return [self.control.sampler.next(self.learner.version, self.control.estimator) for _ in range(count)]

    def _group(self, task: Task, probabilities: Doubles) -> Group:
        """Rollouts in waves, as a budget asks for them."""
        control, place = self.control, self.learner.population.places[task.id]
        means, variances = control.estimator.predict([task], self.learner.version)
        group = Group(self.number, task, [], self.learner.version, predicted=(float(means[0]), float(variances[0])))
        self.number += 1
        while count := control.budget.rollouts(group):
            group.rollouts += self._rollouts(group, count, float(probabilities[place]))
        self.tokens += sum(rollout.num_sampled for rollout in group.rollouts)
        self.rollouts += len(group.rollouts)
        return group

    def _rollouts(self, group: Group, count: int, probability: float) -> list[Rollout]:
        turns = (self._turn(self.scenario.kinds[self._kind(group.task)].tokens),)
        first = len(group.rollouts)
        rewards = [float(reward) for reward in self.rng.random(count) < probability]
        return [
            Rollout(f"{group.number}/{first + index}", group.task, turns, Outcome.FINISHED, reward=reward,
                       rewards={"outcome": reward}, facts={SUCCESS: reward})
            for index, reward in enumerate(rewards)
        ]  # fmt: skip

    def _kind(self, task: Task) -> int:
        population = self.learner.population
        return int(population.kinds[population.places[task.id]])

    def _turn(self, tokens: int) -> Turn:
        """What a rollout of so many tokens wrote, shared by all of this version: nobody reads it."""
        if tokens not in self._turns:
            nothing, versions = np.zeros(tokens, dtype=np.int64), np.full(tokens, self.learner.version)
            self._turns[tokens] = Turn(nothing[:1], nothing, nothing.astype(np.float32), versions, _COMPLETION)
        return self._turns[tokens]

    def _rumours(self) -> list[Group]:
        """Groups of every level as a policy that is worse at the target would have made them; no tokens of this run."""
        probabilities = self.learner.probabilities(self.scenario.bias)
        tasks = [env.task(index) for env in self.learner.population.envs for index in range(_SHOWN)]
        groups = [self._group(task, probabilities) for task in tasks]
        self.tokens = self.rollouts = 0
        return groups

    def _show(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for part in self.observers:
                part.observe(group)
