"""CORE: insights from contrasting failures with successes, validated, then put into later prompts; no training.

Title: CORE: Contrastive Reflection Enables Rapid Improvements in Reasoning
Paper: arXiv 2605.28742 (2026)
Claim: With as few as five training samples, reasoning improves on four tasks without an update of weights.
Reading: The loss has weight 0: a step is a pass over the training tasks in which insights are written and validated.
    Held-out tasks read the insights and add none. Similarity is overlap of short pieces of text (the paper compares
    embeddings); usefulness follows an independent implementation. A stand-in rule for the bundled environments writes
    the insights in place of an LLM; teacher=itself asks the policy.
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
from strop.control.samplers.support.pending_choices import PendingChoices
from strop.control.samplers.support.task_pool import OfEndless, Pool, covering
from strop.control.seeded_choice import Doubles, drawn
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting, topic, useful, with_help
from strop.generate.memory.reflect import reflected, reflections, trace, try_reflection
from strop.generate.memory.store import Change, Lesson, Library, add, tells, used
from strop.recipes.named_parts import named_reflector
from strop.recipes.setting import Setting
from strop.roles import Asks, Environment, LLMClient, PassRateEstimator, Sampler, Strategy
from strop.run import Run
from strop.success import ROUNDING, is_right, success
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Metrics, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.roles import Player


# CORE's task sampling (2605.28742): a small pool, in which tasks that fail more often come first.
#
# Reading: a task's weight is (failures + 1) / (rollouts + 2) over all scored rollouts, with insights or without: the
# policy with its memory is what should improve. The paper states only that failed tasks are sampled more often.


@dataclass
class FailureWeighted(Sampler):
    """Tasks of a small pool, shuffled anew for every version with probabilities proportional to their weights.

    No task comes twice before all came once. Weights depend on sums, so the order of groups does not matter.
    """

    envs: tuple[Environment, ...]
    tasks: int = 5  # of each environment
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)
    _seen: dict[int, tuple[float, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    repeats: ClassVar[bool] = True

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._pool = Pool(self.envs, self.tasks)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self._pool.task(self._pending.next(step, lambda number: self._ordered(number)))

    def observe(self, group: Group) -> None:
        if (place := self._pool.place(group.task)) is not None:
            failures, count = self._seen.get(place, (0.0, 0))
            failed = sum(1 - success(rollout) for rollout in group.scored)
            self._seen[place] = failures + failed, count + len(group.scored)

    def weights(self) -> Doubles:
        """Weight of each task: [N]."""
        seen = [self._seen.get(place, (0.0, 0)) for place in range(len(self._pool))]
        return np.array([(failures + 1) / (count + 2) for failures, count in seen])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Learns nothing; reports how far the sampling distribution is from uniform."""
        return {"preference": preference(self.weights() / self.weights().sum())}

    def _ordered(self, number: int) -> list[int]:
        return drawn(self.weights(), len(self._pool), (self.seed, number))

    def state(self) -> dict[str, Any]:
        return {
            "pending": self._pending.state(),
            "seen": [[place, *seen] for place, seen in sorted(self._seen.items())],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._pending.restore(state["pending"])
        self._seen = {int(place): (float(failures), int(count)) for place, failures, count in state["seen"]}
        self._pool.tasks(range(len(self._pool)))  # so that groups in flight are recognized when they arrive


# CORE's contrastive reflection (2605.28742).
#
# Rollouts read the insights that are most similar to the task and were most useful. An LLM contrasts a failed rollout
# with a right one of the same task, or of the most similar solved task, and writes an insight. The insight is tried at
# once on the same task and proposed only if the mean reward rises. Readings: usefulness is (wins + 1) / (uses + 2), in
# training with a bonus for rarely read insights; similarity is overlap of short pieces of text. An insight that
# contains the answer is rejected.

INSIGHTS = "insights"
_SOLVED = "solved"  # the library's category of right rollouts


@dataclass
class Insights(Strategy, Asks):
    """Rollouts that read `shown` insights; each group with a failure may add one insight."""

    library: Library
    llm_client: LLMClient | None = None  # writes the insights; None: the policy itself
    shown: int = 2  # insights before a task
    trials: int = 4  # rollouts that validate a new insight
    explore: float = 0.2  # weight of the bonus for rarely read insights
    longest: int = 200  # characters of insights before a task
    prompts: dict[str, str] = field(default_factory=lambda: reflections("insight"))  # what is asked, by request

    _made: dict[int, list[Change]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by group
    _read: dict[int, list[Lesson]] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.shown < 1 or self.trials < 1 or self.explore < 0:
            raise ConfigurationError(
                f"Insights needs shown >= 1, trials >= 1 and explore >= 0, got {self.shown}, {self.trials} and "
                f"{self.explore}"
            )

    async def try_clients(self, task: Task) -> None:
        await try_reflection(self.llm_client, "insight", task, prompts=self.prompts)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        self.library.catch_up(group.version)
        read = useful(self.library, group.task, INSIGHTS, self.shown, self.explore)
        texts = fitting([lesson.text for lesson in read], self.longest)
        self._read.setdefault(group.number, []).extend(lesson for lesson in read if lesson.text in texts)
        rollouts = await together(play(with_help(start, group.task, texts)) for start in starts)
        scores = await play.score(rollouts)
        known = [scored for scored in scores if scored is not None]
        gain = await self._learned(group, known, texts, play)
        facts = {"insights": float(len(texts)), "insights_tried": float(gain is not None), "insight_gain": gain or 0.0}
        return [replace(rollout, facts=rollout.facts | facts) for rollout in rollouts]

    async def _learned(self, group: Group, known: Sequence[Rollout], texts: list[str], play: Player) -> float | None:
        """The gain in mean reward with a new insight from a failure and a success; None: nothing was tried."""
        made, about = self._made.setdefault(group.number, []), topic(group.task)
        right = [rollout for rollout in known if is_right(rollout)]
        failed = [rollout for rollout in known if not is_right(rollout)]
        made += [add(trace(rollout, self.library.longest), about, _SOLVED) for rollout in right[:1]]
        if not failed or not (success_trace := self._success_trace(about, right)):
            return None
        shown = {"task": prompt_of(group.task), "completion": trace(failed[0]), "other": success_trace}
        insight = await reflected(self.llm_client, "insight", play, **shown, prompts=self.prompts)
        text = " ".join(insight.split())
        tried = fitting([text, *texts], self.longest)  # first, so that one that is too long is not tried at all
        answers = [final_answer(each.completion) for each in right[:1]]
        if text not in tried or text in texts or tells(text, group.task, *answers):
            return None
        before = sum(rollout.reward for rollout in known) / len(known)
        gain = await self._tried(group, tried, play) - before
        if gain > ROUNDING:
            made.append(add(text, about, INSIGHTS, gain))
        return gain

    async def _tried(self, group: Group, texts: list[str], play: Player) -> float:
        """The mean reward of rollouts that read these first."""
        made = await together(play(with_help(play.another(), group.task, texts)) for _ in range(self.trials))
        scores = [scored.reward for scored in await play.score(made) if scored is not None]
        return sum(scores) / len(scores) if scores else 0.0

    def _success_trace(self, about: str, right: Sequence[Rollout]) -> str:
        """A right rollout of the same task, or else of the most similar solved task."""
        if right:
            return trace(right[0])
        near = self.library.about(about, _SOLVED, 1)
        return near[0][1].text if near and near[0][0] > 0 else ""

    def observe(self, group: Group) -> None:
        made, read = self._made.pop(group.number, []), self._read.pop(group.number, [])
        wins = sum(success(rollout) for rollout in group.scored)
        self.library.propose(group, [*(used(lesson, len(group.scored), wins) for lesson in read), *made])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Reports what the library holds; learning happens in `observe`."""
        return self.library.metrics()


# Evaluation with a library that was filled in training. Held-out tasks add nothing to it: this strategy only reads.


@dataclass
class RecallOnly(Strategy):
    """Rollouts that read the `shown` lessons of one category that are most similar to the task and most useful."""

    library: Library
    category: str  # category of lessons
    shown: int = 2  # lessons before a task
    longest: int = 200  # characters of lessons before a task

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        lessons = useful(self.library.predicted(), group.task, self.category, self.shown)
        texts = fitting([lesson.text for lesson in lessons], self.longest)
        return await together(play(with_help(start, group.task, texts)) for start in starts)


def core(
    setting: Setting = Setting(env="arithmetic:5", group_size=4, groups_per_step=5, steps=4),
    teacher: str = "rules",  # writes the insights (a named part)
    tasks: int = OfEndless(5),  # training tasks per environment; all of a table
    shown: int = 2,  # insights before a task
    trials: int = 4,  # rollouts that validate an insight on the task it came from
    explore: float = 0.2,  # weight of the bonus for rarely read insights, in training
    most: int = 100,  # insights that are kept, and as many right rollouts
    same: float = 0.85,  # overlap from which two insights count as the same
    longest: int = 0,  # characters of insights before a task; 0: 200, and 1000 for a model of yours
) -> Run:
    """group_size rollouts of each task; a failed rollout is contrasted with a right one."""
    longest = setting.text_room(longest)
    library = Library(most, same, longest=max(Library.longest, longest))
    learning = Insights(library, named_reflector(teacher, setting), shown, trials, explore, longest)
    run = setting.run("core", Constant(), (Reinforce(weight=0.0),), strategy=learning)
    run.sampler = FailureWeighted(run.envs, covering(run.envs, tasks), setting.seed)
    measured = replace(run.evaluation, strategy=RecallOnly(library, INSIGHTS, shown, longest))
    return replace(run, evaluation=measured)
