"""Insights from failures beside successes, proved before they are kept, and read before later rollouts; no training.

Title: CORE: Contrastive Reflection Enables Rapid Improvements in Reasoning
Paper: arXiv 2605.28742 (2026)
Claim: With as few as five training samples, reasoning improves on four tasks without an update of weights.
Reading: The loss weighs nothing: a step is a round over the training tasks in which insights are written and tried.
    Held-out tasks are tried with the insights that are there, and leave none. Similar is what shares short pieces
    of text, where the paper compares embeddings; usefulness is that of an independent version of the method. A rule of
    the bundled environments says what to learn in place of a language model; llm_client=itself asks the policy.
Left out: Prompts, which were not found.
Acts: lessons > 0 and fact/insights_tried > 0 and fact/insights > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from strop.concurrency import together
from strop.control.samplers.support.bandit_metrics import preference
from strop.control.samplers.support.pending_choices import Hand
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import Doubles, drawn
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting, topic, useful, with_help
from strop.generate.memory.reflect import reflected, trace
from strop.generate.memory.store import Change, Lesson, Library, add, tells, used
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.roles import Environment, LLMClient, PassRateEstimator, Sampler, Strategy
from strop.run import Run
from strop.success import ROUNDING, is_right, success
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Metrics, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


# CORE's choice of tasks (2605.28742): a handful, those that fail more often.
#
# Reading: a task's weight is (failures + 1) / (rollouts + 2), of all rollouts that count, with help or without: what is
# to be improved is the policy with its memory. The paper says only that failures come more often.


@dataclass
class MoreWhereFailed(Sampler):
    """All tasks of a small pool are ordered anew for every version, by chance in proportion to their weights.

    None is tried twice under the same weights before all were. What counts is a sum: the order of groups does not.
    """

    envs: tuple[Environment, ...]
    tasks: int = 5  # of each environment
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _hand: Hand = field(default_factory=Hand, init=False, repr=False, compare=False)
    _seen: dict[int, tuple[float, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._pool = Pool(self.envs, self.tasks)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self._pool.task(self._hand.next(step, lambda number: self._ordered(number)))

    def observe(self, group: Group) -> None:
        if (place := self._pool.place(group.task)) is not None:
            failures, count = self._seen.get(place, (0.0, 0))
            failed = sum(1 - success(rollout) for rollout in group.scored)
            self._seen[place] = failures + failed, count + len(group.scored)

    def weights(self) -> Doubles:
        """Of each task: [N]."""
        seen = [self._seen.get(place, (0.0, 0)) for place in range(len(self._pool))]
        return np.array([(failures + 1) / (count + 2) for failures, count in seen])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how far a choice is from an even one."""
        return {"preference": preference(self.weights() / self.weights().sum())}

    def _ordered(self, number: int) -> list[int]:
        return drawn(self.weights(), len(self._pool), (self.seed, number))

    def state(self) -> dict[str, Any]:
        return {"hand": self._hand.state(), "seen": [[place, *seen] for place, seen in sorted(self._seen.items())]}

    def restore(self, state: dict[str, Any]) -> None:
        self._hand.restore(state["hand"])
        self._seen = {int(place): (float(failures), int(count)) for place, failures, count in state["seen"]}
        self._pool.tasks(range(len(self._pool)))  # so that groups in flight are known when they come


# CORE's learning in words (2605.28742): what tells a failure from a success is said in a sentence, proved, and kept.
#
# Rollouts read the insights that are nearest to the task and were most useful. Where one fails, it is shown beside a
# right rollout of the same task, or at the most similar one that was solved; what is said of the two is tried at the
# same task at once, and proposed only if it then does better. Readings: usefulness is (wins + 1) / (uses + 2), in
# training with a bonus for what was seldom read; similar is what shares short pieces of text. An insight that says the
# answer is refused.

INSIGHTS = "insights"
_SOLVED = "solved"  # the shelf of right rollouts


@dataclass
class Insights(Strategy):
    """Every rollout reads `shown` insights; from each group with a failure one more may follow."""

    library: Library
    llm_client: LLMClient | None = None  # who says what to learn; None: the policy itself
    shown: int = 2  # insights before a task
    trials: int = 4  # rollouts that prove a new one
    explore: float = 0.2  # weight of the bonus for what was seldom read
    longest: int = 200  # characters of all that stands before a task
    right: float = 1.0  # reward of a right rollout

    _made: dict[int, list[Change]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by group
    _read: dict[int, list[Lesson]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.shown < 1 or self.trials < 1 or self.explore < 0:
            raise ConfigurationError(
                f"Insights needs shown >= 1, trials >= 1 and explore >= 0, got {self.shown}, {self.trials} and "
                f"{self.explore}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        self.library.catch_up(group.version)
        read = useful(self.library, group.task, INSIGHTS, self.shown, self.explore)
        texts = fitting([lesson.text for lesson in read], self.longest)
        self._read.setdefault(group.number, []).extend(lesson for lesson in read if lesson.text in texts)
        rollouts = await together(play(with_help(start, group.task, texts)) for start in starts)
        scores = await play.score(rollouts)
        known = [(rollout, score) for rollout, score in zip(rollouts, scores, strict=True) if score is not None]
        gain = await self._learned(group, known, texts, play)
        facts = {"insights": float(len(texts)), "insights_tried": float(gain is not None), "insight_gain": gain or 0.0}
        return [replace(rollout, facts=rollout.facts | facts) for rollout in rollouts]

    async def _learned(
        self, group: Group, known: Sequence[tuple[Rollout, float]], texts: list[str], play: Player
    ) -> float | None:
        """How much better the task goes with what is said of a failure and a success; None: nothing was tried."""
        made, about = self._made.setdefault(group.number, []), topic(group.task)
        right = [rollout for rollout, score in known if is_right(score, self.right)]
        failed = [rollout for rollout, score in known if not is_right(score, self.right)]
        made += [add(trace(rollout, self.library.longest), about, _SOLVED) for rollout in right[:1]]
        if not failed or not (beside := self._beside(about, right)):
            return None
        shown = {"task": prompt_of(group.task), "completion": trace(failed[0]), "other": beside}
        said = await reflected(self.llm_client, "insight", play, **shown)
        text = " ".join(said.split())
        tried = fitting([text, *texts], self.longest)  # it comes first: one that is too long would prove the others
        answers = [final_answer(each.completion) for each in right[:1]]
        if text not in tried or text in texts or tells(text, group.task, *answers):
            return None
        before = sum(score for _, score in known) / len(known)
        gain = await self._tried(group, tried, play) - before
        if gain > ROUNDING:
            made.append(add(text, about, INSIGHTS, gain))
        return gain

    async def _tried(self, group: Group, texts: list[str], play: Player) -> float:
        """The mean reward of rollouts that read these first."""
        made = await together(play(with_help(play.another(), group.task, texts)) for _ in range(self.trials))
        scores = [score for score in await play.score(made) if score is not None]
        return sum(scores) / len(scores) if scores else 0.0

    def _beside(self, about: str, right: Sequence[Rollout]) -> str:
        """A right rollout of the same task; else one at the most similar task that was solved."""
        if right:
            return trace(right[0])
        near = self.library.about(about, _SOLVED, 1)
        return near[0][1].text if near and near[0][0] > 0 else ""

    def observe(self, group: Group) -> None:
        made, read = self._made.pop(group.number, []), self._read.pop(group.number, [])
        wins = sum(success(rollout) for rollout in group.scored)
        self.library.propose(group, [*(used(lesson, len(group.scored), wins) for lesson in read), *made])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing: `observe` does; says what the library holds."""
        return self.library.metrics()


# Rollouts that read what a library holds, and add nothing to it: how a memory that was filled in training is measured.
#
# No held-out task can leave anything in it, because nothing here writes.


@dataclass
class Recalled(Strategy):
    """Every rollout reads the `shown` lessons of one shelf that are nearest to the task and were most useful."""

    library: Library
    shelf: str
    shown: int = 2  # lessons before a task
    longest: int = 200  # characters of all that stands before a task

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        lessons = useful(self.library.predicted(), group.task, self.shelf, self.shown)
        texts = fitting([lesson.text for lesson in lessons], self.longest)
        return await together(play(with_help(start, group.task, texts)) for start in starts)


def core(
    setting: Setting = Setting(env="arithmetic:5", group_size=4, groups_per_step=5, steps=4),
    llm_client: str = "rules",  # who says what to learn: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    tasks: int = 5,  # of each environment, to learn from
    shown: int = 2,  # insights before a task
    trials: int = 4,  # rollouts that prove an insight at the task it came from
    explore: float = 0.2,  # bonus for insights that were seldom read, in training
    most: int = 100,  # insights that are kept, and as many right rollouts
    same: float = 0.85,  # overlap of two insights that are one
    longest: int = 200,  # characters of all that stands before a task
) -> Run:
    """group_size rollouts of each task; where one fails, it is shown beside one that was right."""
    library = Library(most, same)
    learning = Insights(library, parse_reflector(llm_client), shown, trials, explore, longest)
    run = setting.run("core", Constant(), (Reinforce(weight=0.0),), strategy=learning)
    run.sampler = MoreWhereFailed(run.envs, tasks, setting.seed)
    measured = replace(run.evaluation, strategy=Recalled(library, INSIGHTS, shown, longest))
    return replace(run, evaluation=measured)
