"""Pipeline: Generate -> Filter -> Control -> Replay -> Train, in two loops joined by a buffer.

One pipeline serves synchronous and asynchronous training: an admission with `lag=0` is synchronous. Where weights are
fixed while rollouts are sampled, nothing here depends on the wall clock or on completion order, so such a run has the
same bits every time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from strop.capabilities import Learns
from strop.errors import RewardError, first_of
from strop.filter.apply_gates import passes
from strop.generate.llm_clients.named import check_answers, taken
from strop.observe.metrics.step_timer import Laps
from strop.run_state import Flow, is_over, is_spent, newest_version, next_batch, streamed, watch_failures
from strop.training.comparison_groups import comparison_groups, packed_steps
from strop.training.learners import teach
from strop.training.objective import Objective
from strop.training.policy_stats import statistics_needed
from strop.training.stream import Stream
from strop.training.verify_logprobs import rescored
from strop.types import Group, Metrics, Rollout, Task

if TYPE_CHECKING:
    from strop.run import Run


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
        raise first_of(group) from None


async def generate_groups(flow: Flow, workers: asyncio.TaskGroup) -> None:
    """Admit tasks as fast as the admission allows."""

    def launch(number: int, task: Task, version: int) -> None:
        progress.versions[number] = version
        progress.stages.enter(f"group {number}", "rollouts")
        before = next(reversed(progress.running.values()), None)
        progress.running[number] = workers.create_task(make_group(flow, number, task, version, before))

    progress = flow.progress
    while flow.resumed:
        launch(*flow.resumed.pop(0))
    while True:
        progress.stages.enter("generation", "waits for the admission")
        await progress.until(flow.may_start)
        progress.stages.enter("generation", "starts groups")
        task, number = flow.next_task(), progress.next_number
        progress.next_number += 1
        flow.ledger.admitted(number, task, progress.step)
        if flow.policy.fits(task):
            launch(number, task, progress.step)
        else:
            flow.skip(number)


async def make_group(flow: Flow, number: int, task: Task, version: int, before: asyncio.Task[None] | None) -> None:
    """Rollout in waves, score, learn from the result (after the group `before`), keep it or drop it."""
    run, progress = flow.run, flow.progress
    means, variances = run.estimator.predict([task], version)
    group = Group(number, task, [], version, predicted=(float(means[0]), float(variances[0])))
    player = flow.player(group)
    progress.keys[number] = player.keys
    while count := run.budget.rollouts(group):  # CONTROL
        brought = await run.strategy(group, [player.another() for _ in range(count)], player)  # GENERATE
        progress.stages.enter(f"group {number}", "rewards")
        group.rollouts += brought
        scores = await flow.scorer(group)  # FILTER
        if scores.is_broken:
            reasons = "; ".join(scores.reasons)
            raise RewardError(f"a reward broke its contract for every rollout of task {task.id}: {reasons}")
        if not brought:
            break
    if before is not None and run.admission.is_ordered and not run.streams:  # however long each judge took
        await asyncio.wait([before])
    written = await flow.offers.written(group, player)
    # from here on nothing may await: a checkpoint has learned from a group that is finished, or knows nothing of it
    for part in flow.observers:
        part.observe(group)  # from everything, kept or not; a task that was given no rollout was not paid for
    flow.offers.hand(written)
    _finish(flow, group, player.unused(group.rollouts))


def _finish(flow: Flow, group: Group, unused: Sequence[Rollout]) -> None:
    """Ask the gates and write down what became of a group."""
    run, progress = flow.run, flow.progress
    gate_result = passes(group, run.gates)
    flow.ledger.finished(group, gate_result.group, gate_result.reason, progress.step, unused)
    progress.tally.finished(group, gate_result, unused)
    progress.dropped.add(group, gate_result)
    if gate_result.group is not None:
        run.buffer.add(gate_result.group)  # REPLAY
    else:
        del progress.versions[group.number]
    del progress.running[group.number], progress.keys[group.number]
    progress.stages.leave(f"group {group.number}")
    check_answers(flow.named_parts)
    watch_failures(run, progress, group)
    progress.notify()


async def learn_from_groups(flow: Flow) -> None:
    """Sample a batch, set advantages, step, publish; once per weight version."""
    run, progress = flow.run, flow.progress
    laps = Laps(flow.policy.busy)
    while not is_over(run, progress):
        progress.stages.enter("training", "waits for groups")
        stream = Stream(run, progress.step, flow.learners, rescored) if run.streams else None
        groups = await next_batch(flow) if stream is None else await streamed(flow, stream)
        if not groups:
            break
        progress.training = len(groups)
        if newest_version(groups) >= progress.step:
            await run.channel.proven()  # nothing is trained on that may come from other weights than it says
        progress.stages.enter("training", "trains")
        laps.batch_ready()
        step = progress.step + 1
        if stream is None:
            metrics = await flow.apart(learn, run, groups, progress.step, flow.learners)  # TRAIN
        else:
            metrics = await flow.apart(stream.finish)
        flow.ledger.trained(groups, step)
        metrics |= flow.metrics(groups, step - 1)
        laps.trained()
        await flow.publish(step)
        if step == run.steps or is_spent(run, progress) or run.evaluation.is_due(step):
            progress.stages.enter("training", "evaluates")
            await run.channel.proven()
            metrics |= await flow.evaluate()
        # from here to notify() nothing may await: a checkpoint of step s must precede all that happens at s
        progress.step, progress.training = step, 0
        progress.dropped.clear()
        metrics |= taken(flow.named_parts)
        timing = progress.tally.timing(laps.ended())
        timing |= {} if stream is None else {"parts": float(stream.parts)}  # which depends on who was quick
        flow.watcher.stepped(step, metrics, timing)
        if step % run.checkpoint_every == 0 or is_over(run, progress):
            progress.stages.enter("training", "saves")
            flow.checkpoint(step)
        progress.notify()
    await run.channel.proven()


def learn(run: Run, batch: Sequence[Group], version: int, learners: Sequence[Learns]) -> Metrics:
    """Advantage and optimizer steps for one batch; every minibatch is one step with its own denominator."""
    groups = comparison_groups(batch)
    if noted := statistics_needed(run):
        run.trainer.policy_statistic(groups, noted)
    if run.values is not None:
        run.values.predict(groups)
    run.advantage(groups)
    objective = Objective(run.losses, run.correction)
    packed = packed_steps(run, groups, objective, version)
    run.trainer.annotate(list(dict.fromkeys(batch for batches in packed for batch in batches)), objective.needs)
    proof = rescored(run, packed[0], version, groups)
    rows = [run.trainer.step(batches, objective) for batches in packed]
    metrics = proof | {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
    return metrics | teach(learners, groups)
