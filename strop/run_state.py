"""State of a running run: progress, synchronization of both loops, stop conditions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from strop.capabilities import CountsTokens, Hurries, Learns, Observes, inside, outermost
from strop.control.admission.support.admission_state import Standing
from strop.control.starvation import Dropped
from strop.control.task_generators.support.validation import Offers
from strop.environments.data.heldout_split import HeldOutSide
from strop.errors import ConfigurationError, RewardError, StarvationError
from strop.filter.scoring import Scorer
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.llm_clients.named import Named, judged_alike
from strop.generate.policy import Policy
from strop.generate.rollout_limits import Limits
from strop.observe.metrics.stage_tracker import Stages
from strop.observe.metrics.step_metrics import Tally
from strop.roles import Engine, LLMClient
from strop.storage.ledger.ledger import Ledger
from strop.training.learners import learners_of
from strop.training.requirements import PolicyStatistic
from strop.training.stream import Stream
from strop.types import Group, Metrics, Outcome, Task

if TYPE_CHECKING:
    from strop.run import Run

_WINDOW = 64  # rollouts over which the failed share is judged


class Watcher(Protocol):
    """Observer of a run: journal, progress bar, trackers."""

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None: ...


@dataclass
class Progress:
    """Progress of the run; both loops wait on it."""

    step: int = 0  # the weight version that the trainer holds
    next_number: int = 0
    running: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)  # at which each group was admitted, until trained or dropped
    keys: dict[int, list[int]] = field(default_factory=dict)  # of the rollouts of running groups
    training: int = 0  # groups sampled for the version that is being made
    is_stopping: bool = False  # end after the current step
    dropped: Dropped = field(default_factory=Dropped)  # since the last optimizer step
    failures: Counter[str] = field(default_factory=Counter)
    recent_failures: list[bool] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    stages: Stages = field(default_factory=Stages)  # for whoever asks why nothing moves
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            self._changed.clear()
            await self._changed.wait()

    def notify(self) -> None:
        self._changed.set()

    def standing(self, groups_per_step: int) -> Standing:
        """What the admission sees before a step."""
        ordered = sorted(self.versions.items())
        running = tuple(version for number, version in ordered if number in self.running)
        waiting = tuple(version for number, version in ordered if number not in self.running)
        return Standing(self.step, groups_per_step, running, waiting, self.tally.tokens_since)


@dataclass
class Flow:
    """Open parts of a run, with their progress."""

    run: Run
    policy: Policy
    scorer: Scorer
    ledger: Ledger
    progress: Progress
    watcher: Watcher
    checkpoint: Callable[[int], None]  # called between two steps, when nothing else can happen
    evaluate: Callable[[], Awaitable[Metrics]]  # of the current weights on held-out tasks
    trainer_thread: Executor  # one thread, so that generation goes on while weights are trained
    resumed: list[tuple[int, Task, int]] = field(default_factory=list)  # admitted before a crash, not finished
    heldout: HeldOutSide = field(default_factory=HeldOutSide)  # tasks that accuracy is or could be measured with

    @cached_property
    def observers(self) -> list[Observes]:
        """Those who learn from every group; looked for once, which takes as long as scoring a group."""
        run = self.run
        return inside((run.sampler, run.budget, run.estimator, run.task_generator, run.strategy, run.agent), Observes)

    @cached_property
    def offers(self) -> Offers:
        """The way from the task generator to the sampler."""
        return Offers(self.run, self.policy, self.progress.tally)

    @cached_property
    def learners(self) -> list[Learns]:
        """Those who are taught once per step."""
        return learners_of(self.run)

    @cached_property
    def llm_clients(self) -> list[CountsTokens]:
        """Those who are asked while rollouts are made and scored, and sample from a model for it."""
        run = self.run
        asked = inside((run.rewards, run.strategy, run.agent, run.task_generator, run.sampler), LLMClient)
        return [llm_client for llm_client in asked if isinstance(llm_client, CountsTokens)]

    @cached_property
    def named_parts(self) -> list[Named]:
        """Those that the run has a name for: judges, teachers, generators, simulators."""
        run = self.run
        return inside((run.rewards, run.strategy, run.agent, run.task_generator, run.envs, run.evaluation), Named)

    def metrics(self, groups: Sequence[Group], version: int) -> Metrics:
        """Of the batch that was just trained, and of everything that finished since the last one."""
        tally = self.progress.tally
        tally.llm_client_tokens(sum(llm_client.num_generated or 0 for llm_client in self.llm_clients))
        return tally.trained(groups, version)

    def next_task(self) -> Task:
        """What the sampler chooses; a task that accuracy is measured with is never trained on."""
        task = self.run.sampler.next(self.progress.step, self.run.estimator)
        if self.heldout.has(task):
            raise ConfigurationError(
                f"{type(self.run.sampler).__name__} chose task {task.id} of {task.source}:{task.level}, which is held "
                "out: samplers take env.task(index) without heldout=True, and no environment has a task on both sides"
            )
        return task

    async def apart(self, work: Callable[..., Metrics], *arguments: Any) -> Metrics:
        """Do this in the trainer's thread; where nothing could go on meanwhile, in this one.

        Every thread has OpenMP threads of its own, and two sets of them on the same cores slow each other down.
        """
        if not self.progress.running and not self.may_start():
            self._rest()
            return work(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self.trainer_thread, work, *arguments)

    def player(self, group: Group) -> GroupPlayer:
        """Who plays the rollouts of a group."""
        run = self.run
        limits = Limits(run.budget.turns(group), run.budget.tokens(group))
        player = GroupPlayer(
            group,
            self.policy,
            run.envs,
            run.agent,
            run.seed,
            self.scorer,
            self._take_statistics,
            limits,
            run.env_seconds,
        )
        player.stages = self.progress.stages
        return player

    async def _take_statistics(self, groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
        """A look at rollouts from within generation; inline unless a step is being trained.

        From another thread it would come back at a time that differs, and with it who is decoded together with whom.
        """
        if self.progress.training:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self.trainer_thread, self.run.trainer.policy_statistic, groups, needs)
        else:
            self._rest()
            self.run.trainer.policy_statistic(groups, needs)

    def _rest(self) -> None:
        """Only the trainer works until something else is awaited: engines that take turns with it make room."""
        for _, engine in outermost(self.run.engine, Engine):
            engine.rest()

    async def publish(self, step: int) -> None:
        """Deliver the trainer's weights as version `step`, and policy statistic what they are."""
        self.progress.stages.enter("training", "publishes")
        self.ledger.published(await self.run.channel.publish(step))
        if not self.progress.running and not len(self.run.buffer):  # nothing could go on meanwhile
            await self.run.channel.proven()

    def skip(self, number: int) -> None:
        """A prompt that leaves no room for a completion is not tried; an environment of nothing else ends the run."""
        reason = f"its prompt fills the context of {self.run.context} tokens"
        self.ledger.skipped(number, reason, self.progress.step)
        self.progress.dropped.leave_out("prompts", reason)
        check_starvation(self.run, self.progress, is_stuck=False)

    def hurry(self) -> None:
        """A step waits for groups that would grow too old: engines that can let the oldest ones go first."""
        hurrying, running, versions = outermost(self.run.engine, Hurries), self.progress.running, self.progress.versions
        if running and hurrying:
            oldest = min(versions[number] for number in running)
            numbers = [number for number in running if versions[number] == oldest]
            keys = [key for number in numbers for key in self.progress.keys.get(number, ())]
            for _, engine in hurrying:
                engine.hurry(keys)

    def may_start(self) -> bool:
        progress, count = self.progress, self.run.groups_per_step
        waiting, tokens = len(self.run.buffer) + progress.training, progress.tally.tokens_since
        return self.run.admission.may_start(len(progress.running), waiting, progress.step, count, tokens)


def watch_failures(run: Run, progress: Progress, group: Group) -> None:
    """Stop a run whose environment or reward mostly fails: what is left would be a biased sample."""
    for rollout in group.rollouts:
        failed = rollout.outcome is Outcome.FAILED
        progress.recent_failures.append(failed)
        if failed:
            progress.failures[rollout.error] += 1
    del progress.recent_failures[:-_WINDOW]
    count, limit = len(progress.recent_failures), run.max_failed_share
    if not count or count < min(_WINDOW, 2 * len(group.rollouts)):
        return
    if (share := sum(progress.recent_failures) / count) > limit:
        worst = "; ".join(f"{times}x {error}" for error, times in progress.failures.most_common(3))
        raise RewardError(
            f"{share:.0%} of the last {count} rollouts failed (limit {limit:.0%}), none of them was trained on: {worst}"
        )


def check_starvation(run: Run, progress: Progress, is_stuck: bool) -> None:
    """Say so when no batch can ever be filled."""
    count = run.groups_per_step
    if is_stuck or progress.dropped.is_too_many(count):
        needed = f"step {progress.step + 1} needs {count} groups and has {len(run.buffer)}"
        raise StarvationError(f"{needed}; {progress.dropped.told()}{judged_alike(inside(run.rewards, Named))}")


def newest_version(groups: Sequence[Group]) -> int:
    """Of any token in these groups."""
    turns = [turn for group in groups for rollout in group.rollouts for turn in rollout.turns]
    return max((int(turn.versions.max(initial=-1)) for turn in turns), default=-1)


def is_over(run: Run, progress: Progress) -> bool:
    """Whether the last step is done, the tokens are spent, or somebody asked to stop."""
    return progress.step >= run.steps or is_spent(run, progress) or progress.is_stopping


def is_spent(run: Run, progress: Progress) -> bool:
    return 0 < run.max_generated_tokens <= progress.tally.tokens_generated


async def next_batch(flow: Flow) -> list[Group]:
    """Wait for a full batch, and say so when none can ever come; nothing where the run shall end and none is due."""
    run, progress = flow.run, flow.progress
    while True:
        count = run.admission.batch_size(progress.standing(run.groups_per_step))
        if count and (groups := run.buffer.sample(count, progress.step)) is not None:
            for group in groups:
                progress.versions.pop(group.number, None)
            return groups
        if progress.is_stopping and len(run.buffer) >= (run.admission.lag + 2) * run.groups_per_step:
            return []  # more wait than any step takes, and still none is due
        check_starvation(run, progress, _is_stuck(flow))
        if len(run.buffer) >= run.groups_per_step:
            flow.hurry()
        seen = _standing(flow)
        await progress.until(lambda: seen != _standing(flow))  # noqa: B023


async def streamed(flow: Flow, stream: Stream) -> list[Group]:
    """Wait for a full batch, and train on what is there meanwhile: without lag, all that comes belongs to it."""
    run, progress = flow.run, flow.progress
    taken: list[Group] = []
    while True:
        if ready := run.buffer.sample(len(run.buffer), progress.step) if len(run.buffer) else None:
            taken += ready
            progress.training = len(taken)
            progress.stages.enter("training", "trains on what is there")
            await asyncio.get_running_loop().run_in_executor(flow.trainer_thread, stream.add, ready)
        elif 0 < run.admission.batch_size(progress.standing(run.groups_per_step)) <= len(taken):
            for group in taken:
                progress.versions.pop(group.number, None)
            return taken
        else:
            progress.stages.enter("training", "waits for groups")
            check_starvation(run, progress, _is_stuck(flow))
            seen = _standing(flow)
            await progress.until(lambda: seen != _standing(flow))  # noqa: B023


def _is_stuck(flow: Flow) -> bool:
    return not flow.progress.running and not flow.resumed and not flow.may_start()


def _standing(flow: Flow) -> tuple[int, int, int]:
    return len(flow.progress.running), len(flow.run.buffer), flow.progress.dropped.num_seen
