"""How it flows: Generate -> Filter -> Control -> Replay -> Train, in two loops joined by a buffer.

One pipeline serves synchronous and asynchronous training: a pace with `lag=0` is synchronous. Nothing here depends on
the wall clock or on completion order where `lag=0`, so such a run has the same bits every time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from strop.abilities import Hurries, Observes, inside, outermost
from strop.disk.ledger import Ledger
from strop.errors import RewardError, StarvationError
from strop.filter.score import Scorer
from strop.generate.play import play
from strop.generate.policy import Policy, attempt_key
from strop.observe.metrics import Tally
from strop.observe.rescore import rescored
from strop.observe.stages import Stages
from strop.roles import Agent, Metrics, World
from strop.train.notes import notes_needed
from strop.train.objective import Objective
from strop.train.pack import pack
from strop.train.stream import Stream
from strop.types import Group, Outcome, Standing, Start, Task, Trajectory, Verdict

if TYPE_CHECKING:
    from strop.run import Run

_PATIENCE = 50  # draws' worth of groups that gates may drop in a row before the run is called starved
_WINDOW = 64  # attempts over which the failed share is judged


class Watcher(Protocol):
    """Whoever records what happens: journal, progress bar, trackers."""

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None: ...


@dataclass
class Progress:
    """Where the run stands; both loops wait on it."""

    step: int = 0  # the weight version that the trainer holds
    next_number: int = 0
    running: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)  # at which each group was admitted, until trained or dropped
    keys: dict[int, list[int]] = field(default_factory=dict)  # of the attempts of running groups
    training: int = 0  # groups drawn for the version that is being made
    is_stopping: bool = False  # end after the current step
    dropped: Counter[str] = field(default_factory=Counter)  # by reason, since the last optimizer step
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
        """What the pace sees before a step."""
        ordered = sorted(self.versions.items())
        running = tuple(version for number, version in ordered if number in self.running)
        waiting = tuple(version for number, version in ordered if number not in self.running)
        return Standing(self.step, groups_per_step, running, waiting, self.tally.tokens_since)


@dataclass
class Flow:
    """A run in motion: the parts, opened, and where they stand."""

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

    async def apart(self, work: Callable[..., Metrics], *arguments: Any) -> Metrics:
        """Do this in the trainer's thread; where nothing could go on meanwhile, in this one.

        Every thread has OpenMP threads of its own, and two sets of them on the same cores slow each other down.
        """
        if not self.progress.running and not self.may_start():
            return work(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self.trainer_thread, work, *arguments)

    async def publish(self, step: int) -> None:
        """Deliver the trainer's weights as version `step`, and note what they are."""
        self.progress.stages.enter("training", "publishes")
        self.ledger.published(await self.run.channel.publish(step))
        if not self.progress.running and not len(self.run.buffer):  # nothing could go on meanwhile
            await self.proven()

    async def proven(self) -> None:
        """Wait until engines hold the newest version, where the channel lets training go on before they do."""
        await self.run.channel.proven()

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
        progress = self.progress
        waiting = len(self.run.buffer) + progress.training
        count, tokens = self.run.groups_per_step, progress.tally.tokens_since
        return self.run.pace.may_start(len(progress.running), waiting, progress.step, count, tokens)


async def train(flow: Flow) -> None:
    """Run both loops until the last step; the first error of any worker ends them all."""
    try:
        async with asyncio.TaskGroup() as workers:
            generating = workers.create_task(generate_groups(flow, workers))
            await learn_from_groups(flow)
            # groups in flight after the last step stay `running` in the ledger: started and never used
            for task in (generating, *flow.progress.running.values()):
                task.cancel()
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def generate_groups(flow: Flow, workers: asyncio.TaskGroup) -> None:
    """Admit tasks as fast as the pace allows."""

    def launch(number: int, task: Task, version: int) -> None:
        progress.versions[number] = version
        progress.stages.enter(f"group {number}", "attempts")
        progress.running[number] = workers.create_task(make_group(flow, number, task, version))

    progress = flow.progress
    while flow.resumed:
        launch(*flow.resumed.pop(0))
    while True:
        progress.stages.enter("generation", "waits for the pace")
        await progress.until(flow.may_start)
        progress.stages.enter("generation", "starts groups")
        task, number = flow.run.sampler.next(), progress.next_number
        progress.next_number += 1
        flow.ledger.admitted(number, task, progress.step)
        if flow.policy.fits(task):
            launch(number, task, progress.step)
        else:
            _skip(flow, number)


def _skip(flow: Flow, number: int) -> None:
    """A prompt that leaves no room for a reply: nobody attempts it, and a world of nothing else ends the run."""
    reason = f"its prompt fills the context of {flow.run.context} tokens"
    flow.ledger.skipped(number, reason, flow.progress.step)
    flow.progress.dropped[reason] += 1
    _check_starvation(flow)


async def make_group(flow: Flow, number: int, task: Task, version: int) -> None:
    """Attempt, score, learn from the result, keep it or drop it."""
    run, progress = flow.run, flow.progress
    starts = [start_of(run.seed, f"{number}/{index}") for index in range(run.budget.attempts(task))]
    progress.keys[number] = [start.key for start in starts]
    playing = partial(play, policy=flow.policy, world=world_of(run.worlds, task), task=task)
    most_turns = run.budget.turns(task)
    playing = partial(playing, seconds=run.world_seconds, stages=progress.stages, most_turns=most_turns)

    async def player(start: Start, agent: Agent | None = None) -> Trajectory:
        return await playing(agent or run.agent, start=start)

    trajectories = await run.strategy(task, starts, player)  # GENERATE
    group = Group(number, task, trajectories, version)
    progress.stages.enter(f"group {number}", "rewards")
    scores = await flow.scorer(group)  # FILTER
    if scores.is_broken:
        raise RewardError(
            f"a reward broke its contract for every attempt of task {task.id}: {'; '.join(scores.reasons)}"
        )
    for part in inside((run.sampler, run.budget), Observes):  # CONTROL learns from everything, kept or not
        part.observe(group)
    verdict = passes(group, run.gates)
    flow.ledger.finished(group, verdict.group, verdict.reason, progress.step)
    progress.tally.finished(group, verdict)
    if verdict.group is not None:
        run.buffer.add(verdict.group)  # REPLAY
    else:
        progress.dropped[verdict.reason] += 1
        del progress.versions[number]
    del progress.running[number], progress.keys[number]
    progress.stages.leave(f"group {number}")
    _watch_failures(flow, group)
    progress.notify()


def start_of(seed: int, attempt_id: str) -> Start:
    return Start(attempt_id, attempt_key(seed, attempt_id))


def world_of(worlds: Sequence[World], task: Task) -> World:
    return next(world for world in worlds if world.name == task.source)


def passes(group: Group, gates: Sequence[Callable[[Group], Verdict]]) -> Verdict:
    """Ask every gate; one that drops the group says why. A group the world failed entirely never gets that far."""
    if not group.scored:
        return Verdict(None, f"all {len(group.trajectories)} attempts failed: {group.trajectories[0].error}")
    kept = Verdict(group)
    for gate in gates:
        assert kept.group is not None
        kept = gate(kept.group)
        if kept.group is None:
            return Verdict(None, kept.reason or type(gate).__name__)
    return kept


def _watch_failures(flow: Flow, group: Group) -> None:
    """Stop a run whose world or reward mostly fails: what is left would be a biased sample."""
    progress, limit = flow.progress, flow.run.max_failed_share
    for trajectory in group.trajectories:
        failed = trajectory.outcome is Outcome.FAILED
        progress.recent_failures.append(failed)
        if failed:
            progress.failures[trajectory.error] += 1
    del progress.recent_failures[:-_WINDOW]
    share = sum(progress.recent_failures) / len(progress.recent_failures)
    if len(progress.recent_failures) >= min(_WINDOW, 2 * len(group.trajectories)) and share > limit:
        worst = "; ".join(f"{count}x {error}" for error, count in progress.failures.most_common(3))
        raise RewardError(
            f"{share:.0%} of the last {len(progress.recent_failures)} attempts failed (limit {limit:.0%}), "
            f"none of them was trained on: {worst}"
        )


async def learn_from_groups(flow: Flow) -> None:
    """Draw, give credit, step, publish; once per weight version."""
    run, progress = flow.run, flow.progress
    clock = time.monotonic()
    while not is_over(run, progress):
        progress.stages.enter("training", "waits for groups")
        stream = Stream(run, progress.step) if run.streams else None
        groups = await drawn(flow) if stream is None else await streamed(flow, stream)
        if not groups:
            break
        progress.training = len(groups)
        if newest_version(groups) >= progress.step:
            await flow.proven()  # nothing is trained on that may come from other weights than it says
        progress.stages.enter("training", "trains")
        drawn_at = time.monotonic()
        step = progress.step + 1
        if stream is None:
            metrics = await flow.apart(learn, run, groups, progress.step)  # TRAIN
        else:
            metrics = await flow.apart(stream.finish)
        flow.ledger.trained(groups, step)
        metrics |= progress.tally.trained(groups, step - 1)
        trained_at = time.monotonic()
        await flow.publish(step)
        if step == run.steps or is_spent(run, progress) or run.evaluation.is_due(step):
            progress.stages.enter("training", "evaluates")
            await flow.proven()
            metrics |= await flow.evaluate()
        # from here to notify() nothing may await: a checkpoint of step s must precede all that happens at s
        progress.step, progress.training = step, 0
        progress.dropped.clear()
        timing = progress.tally.timing(drawn_at - clock, trained_at - drawn_at, time.monotonic() - clock)
        clock = time.monotonic()
        flow.watcher.stepped(step, metrics, timing)
        if step % run.checkpoint_every == 0 or is_over(run, progress):
            progress.stages.enter("training", "saves")
            flow.checkpoint(step)
        progress.notify()
    await flow.proven()


def newest_version(groups: Sequence[Group]) -> int:
    """Of any token in these groups."""
    turns = [turn for group in groups for attempt in group.trajectories for turn in attempt.turns]
    return max((int(turn.versions.max(initial=-1)) for turn in turns), default=-1)


def is_over(run: Run, progress: Progress) -> bool:
    """Whether the last step is done, the tokens are spent, or somebody asked to stop."""
    return progress.step >= run.steps or is_spent(run, progress) or progress.is_stopping


def is_spent(run: Run, progress: Progress) -> bool:
    return 0 < run.max_generated_tokens <= progress.tally.tokens_generated


async def drawn(flow: Flow) -> list[Group]:
    """Wait for a full draw, and say so when none can ever come; nothing where the run shall end and none is due."""
    run, progress = flow.run, flow.progress
    while True:
        count = run.pace.draws(progress.standing(run.groups_per_step))
        if count and (groups := run.buffer.draw(count, progress.step)) is not None:
            for group in groups:
                progress.versions.pop(group.number, None)
            return groups
        if progress.is_stopping and len(run.buffer) >= (run.pace.lag + 2) * run.groups_per_step:
            return []  # more wait than any step takes, and still none is due
        _check_starvation(flow)
        if len(run.buffer) >= run.groups_per_step:
            flow.hurry()
        seen = _standing(flow)
        await progress.until(lambda: seen != _standing(flow))  # noqa: B023


async def streamed(flow: Flow, stream: Stream) -> list[Group]:
    """Wait for a full draw, and train on what is there meanwhile: without lag, all that comes belongs to it."""
    run, progress = flow.run, flow.progress
    taken: list[Group] = []
    while True:
        if ready := run.buffer.draw(len(run.buffer), progress.step) if len(run.buffer) else None:
            taken += ready
            progress.training = len(taken)
            progress.stages.enter("training", "trains on what is there")
            await asyncio.get_running_loop().run_in_executor(flow.trainer_thread, stream.add, ready)
        elif 0 < run.pace.draws(progress.standing(run.groups_per_step)) <= len(taken):
            for group in taken:
                progress.versions.pop(group.number, None)
            return taken
        else:
            progress.stages.enter("training", "waits for groups")
            _check_starvation(flow)
            seen = _standing(flow)
            await progress.until(lambda: seen != _standing(flow))  # noqa: B023


def _check_starvation(flow: Flow) -> None:
    run, progress = flow.run, flow.progress
    dropped = sum(progress.dropped.values())
    is_stuck = not progress.running and not flow.resumed and not flow.may_start()
    if is_stuck or dropped > _PATIENCE * run.groups_per_step:
        reasons = "; ".join(f"{count}x {reason}" for reason, count in progress.dropped.most_common(3))
        raise StarvationError(
            f"step {progress.step + 1} needs {run.groups_per_step} groups and has {len(run.buffer)}; "
            + (f"{dropped} groups were dropped meanwhile: {reasons}" if dropped else "nothing is running")
        )


def _standing(flow: Flow) -> tuple[int, int, int]:
    return len(flow.progress.running), len(flow.run.buffer), sum(flow.progress.dropped.values())


def learn(run: Run, groups: Sequence[Group], version: int) -> Metrics:
    """Credit and optimizer steps for one draw; every minibatch is one step with its own denominator."""
    if noted := notes_needed(run):
        run.trainer.note(groups, noted)
    if run.values is not None:
        run.values.predict(groups)
    run.advantage(groups)
    objective = Objective(run.losses, run.correction)
    size = -(-len(groups) // run.minibatches)
    parts = [groups[i : i + size] for i in range(0, len(groups), size)]
    most, scope, aux = run.trainer.max_tokens, objective.scope, objective.aux
    packed = [pack(part, run.reduction, version, most, scope, aux) for part in parts]
    run.trainer.annotate([batch for batches in packed for batch in batches], objective.needs)
    proof = rescored(run, packed[0], version)
    rows = [run.trainer.step(batches, objective) for _ in range(run.epochs) for batches in packed]
    metrics = proof | {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
    if run.values is not None:
        metrics |= run.values.learn(groups)
    for attempt in (attempt for group in groups for attempt in group.trajectories):
        attempt.notes = {}  # or a buffer that keeps the group would keep them
    return metrics
