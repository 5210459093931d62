"""Preflight: refusal of a run that cannot work, before anything starts, with the numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from strop.capabilities import OnDevice, Refuses, TakesOffers, inside, outermost, parts
from strop.environments.needs import problems as problems_of_needs
from strop.errors import ConfigurationError
from strop.filter.rewards.controls import Flat
from strop.launch.checks.diffusion_checks import problems as problems_of_filling
from strop.launch.checks.gpu_memory_plan import problems as problems_of_room
from strop.launch.checks.parts_agree import precision_problems, success_problems
from strop.launch.checks.task_supply import shortage
from strop.models.loading.check_folder import check_model_folder, same_weights
from strop.models.loading.model_names import model_folder
from strop.models.torch_setup import device_problem
from strop.roles import Advantage, Correction, Gate, Loss, Trainer
from strop.run import Run
from strop.training.machine.tokenizers import check_same_words
from strop.training.objective import Objective
from strop.training.requirements import Logprobs, folders, listed
from strop.training.stream import problems as problems_of_streaming

_THREADS = 16  # for each processor: with thousands of them, torch crashes


def check(run: Run) -> None:
    """Raise ConfigurationError with every problem found."""
    if run.warmup is not None:
        _check_warmup(run.warmup)
        run = replace(run, warmup=None)
    problems = [problem for question in _QUESTIONS for problem in question(run)]
    if problems:
        raise ConfigurationError("\n".join(problems))


def _check_warmup(warmup: Run) -> None:
    """Its problems say which phase they are of."""
    try:
        check(warmup)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}\n(in the supervised warm-up: warmup_steps=0 leaves it out)") from None


def _counts(run: Run) -> list[str]:
    floors = {"steps": 0, "groups_per_step": 1, "minibatches": 1, "epochs": 1, "checkpoint_every": 1, "threads": 1}
    floors |= {"keep_checkpoints": 0}
    problems = [f"need {n} >= {low}, got {getattr(run, n)}" for n, low in floors.items() if getattr(run, n) < low]
    if run.threads > (most := _THREADS * (os.cpu_count() or 1)):
        problems.append(f"threads={run.threads} is too many for {os.cpu_count()} processors: at most {most}")
    if not 0 <= run.seed < 2**63:
        problems.append(f"need 0 <= seed < 2**63, got {run.seed}")
    if run.minibatches > run.groups_per_step:
        problems.append(
            f"cannot split {run.groups_per_step} groups into {run.minibatches} minibatches: raise groups_per_step, or "
            f"set minibatches={run.groups_per_step}"
        )
    if not run.envs:
        problems.append("need at least 1 environment")
    if not run.losses:
        problems.append("need at least 1 loss")
    if not run.rewards:
        problems.append("need at least 1 reward")
    return problems


def _streaming(run: Run) -> list[str]:
    return problems_of_streaming(run) if run.streams else []


def _group_size(run: Run) -> list[str]:
    """What compares siblings is always zero for a single rollout: such a run would do nothing."""
    size = run.budget.size
    asking = {type(part).__name__: part.min_group for part in _comparing(run)}
    return [
        f"{name} compares siblings: need >= {need} rollouts per group, got {size} (set group_size)"
        for name, need in asking.items()
        if size is not None and size < need
    ]


def _sampling(run: Run) -> list[str]:
    sampling = run.sampling
    problems = []
    if sampling.temperature < 0:
        problems.append(f"need temperature >= 0, got {sampling.temperature}")
    if not 0 < sampling.top_p <= 1:
        problems.append(f"need 0 < top_p <= 1, got {sampling.top_p}")
    if sampling.top_k < 0:
        problems.append(f"need top_k >= 1, or 0 for no limit, got {sampling.top_k}")
    if sampling.max_tokens < 1:
        problems.append(f"need max_tokens >= 1, got {sampling.max_tokens}")
    weighing: list[Any] = [run.correction] if run.correction is not None else []
    weighing += [loss for loss in inside(run.losses, Loss) if loss.corrects]
    problems += [
        f"{type(part).__name__} compares the policy with the distribution sampled from, which top_p "
        f"{sampling.top_p} and top_k {sampling.top_k} truncate: its weights would be biased; use top_p=1 top_k=0"
        for part in weighing
        if sampling.is_truncated
    ]
    return problems


def _corrections(run: Run) -> list[str]:
    """A ratio counted twice, or a part of it forgotten, would be wrong and look plausible.

    A correction weighs from the policy that sampled to its target, a loss's own ratio begins at its anchor.
    """
    target = "behavior" if run.correction is None else run.correction.target
    problems = []
    for loss in inside(run.losses, Loss):
        name, anchor = type(loss).__name__, loss.anchor
        if loss.contains_ratio:
            if run.correction is not None:
                problems.append(
                    f"{name} holds the importance ratio already: {type(run.correction).__name__} would count it twice"
                )
        elif anchor not in ("current", target):
            problems.append(
                f"{name}'s ratio begins at the {anchor} policy and "
                + (
                    f"{type(run.correction).__name__}(target={target!r}) ends elsewhere"
                    if run.correction
                    else "nothing"
                )
                + (": a part would count twice or not at all" if run.correction else " weighs what comes before")
                + f"; use a correction with target={anchor!r}"
            )
    return problems + _targets(run.correction)


def _targets(correction: Correction | None) -> list[str]:
    """A correction within another must mean the same target."""
    return [
        f"{type(outer).__name__} compares with the {outer.target} policy and what it holds with the {inner.target} one"
        for outer, inner in pairwise(inside(correction, Correction))
        if outer.target != inner.target
    ]


def _annotations(run: Run) -> list[str]:
    """What a loss or a correction needs of earlier weights must have been kept."""
    needs = Objective(run.losses, run.correction).needs
    lag, trainers = run.admission.lag, inside(run.trainer, Trainer)
    snapshots, window = (max(getattr(each, name) for each in trainers) for name in ("snapshots", "average_window"))
    problems = []
    fills = run.trainer.fills
    if fills is not None and (unknown := needs - fills):
        name = type(run.trainer).__name__
        problems.append(f"{listed(unknown)}: needed, and {name} fills {listed(fills)} only")
    if (Logprobs("old") in needs or snapshots) and snapshots < lag + 1:
        problems.append(
            f"weights of {lag + 1} versions are in use at lag {lag}: need snapshots >= {lag + 1}, got {snapshots}"
        )
    if Logprobs("averaged") in needs and window < 1:
        problems.append(f"an average over one version is the proximal policy: need average_window >= 1, got {window}")
    if Logprobs("averaged") not in needs and window:
        problems.append(f"average_window is {window}, and no loss or correction uses the averaged policy")
    return problems


def _teachers(run: Run) -> list[str]:
    """Another model that is asked for its opinion must have one of its own, on the same tokens."""
    teachers = folders(Objective(run.losses, run.correction).needs)
    for folder in teachers:
        check_model_folder(Path(folder))
        check_same_words(model_folder(run.model), Path(folder))
    return [
        f"the model in {folder} has the student's own weights and can teach it nothing: give the folder of a better "
        "one, for example a checkpoint of a longer run: runs/NAME/checkpoints/step-100"
        for folder in teachers
        if same_weights(model_folder(run.model), Path(folder))
    ]


def _greedy(run: Run) -> list[str]:
    """Without probability all siblings are the same rollout."""
    names = [type(part).__name__ for part in _comparing(run) if part.min_group > 1]
    if run.sampling.temperature != 0 or not names:
        return []
    return [f"temperature=0 makes all siblings equal, and {', '.join(names)} learns from how they differ: raise it"]


def _room(run: Run) -> list[str]:
    """A completion can never be as long as the context: its prompt stands there too."""
    if run.sampling.max_tokens < run.context:
        return []
    return [
        f"max_tokens={run.sampling.max_tokens} never fits into context={run.context}, prompts included: raise context"
    ]


def _batch_sizes(run: Run) -> list[str]:
    """A batch that can never be filled would be waited for in vain."""
    capacity, problems = run.buffer.capacity, []
    if capacity is not None and capacity < run.groups_per_step:
        problems.append(
            f"{type(run.buffer).__name__} holds {capacity} groups, and a step samples {run.groups_per_step}"
        )
    contrast = [type(gate).__name__ for gate in run.gates if gate.min_group > 1]
    if contrast and run.rewards and all(isinstance(reward, Flat) for reward in run.rewards):
        problems.append(f"every reward is Flat, and {', '.join(contrast)} drops groups without contrast: all of them")
    return problems


def _again(run: Run) -> list[str]:
    """The second pass over tokens of weights that are gone estimates nothing without a ratio."""
    names = [type(loss).__name__ for loss in inside(run.losses, Loss) if loss.is_on_policy]
    if run.epochs < 2 or not names or run.correction is not None:
        return []
    return [
        f"epochs={run.epochs} trains the same tokens again, and {', '.join(names)} has no ratio to weigh them: use "
        "epochs=1, a correction, or a loss with a ratio such as Clip"
    ]


def _devices(run: Run) -> list[str]:
    found = dict.fromkeys(part.device for part in inside(run, OnDevice))
    return [problem for device in found if (problem := device_problem(device))]


def _clocks(run: Run) -> list[str]:
    floors = {"reward_seconds": 1e-9, "env_seconds": 1e-9, "rescore_every": 0, "stall_seconds": 0}
    return [
        f"need {n} {'>' if low else '>='} 0, got {getattr(run, n)}"
        for n, low in floors.items()
        if getattr(run, n) < low
    ]


def _values(run: Run) -> list[str]:
    asking = [type(each).__name__ for each in inside(run.advantage, Advantage) if each.needs_values]
    return [f"{name} needs a value model: set values, for example Critic()" for name in asking if run.values is None]


def _task_generator(run: Run) -> list[str]:
    """What nobody takes would be written in vain."""
    if run.task_generator is None or outermost(run.sampler, TakesOffers):
        return []
    name, sampler = type(run.task_generator).__name__, type(run.sampler).__name__
    return [f"{name} writes tasks, and {sampler} takes none: use sampler=WithWritten({sampler}(...))"]


def _tasks(run: Run) -> list[str]:
    """Task files are read here, so that a bad line is found before a run exists."""
    measured = (*run.evaluation.measured(run.envs), *run.evaluation.unseen)
    for env in (*run.envs, *measured):
        env.task(0)
    for env in measured:
        env.task(0, heldout=True)
    return []


def _own(run: Run) -> list[str]:
    """Anything a mechanism itself can refuse."""
    return [f"{path}: {each}" for path, part in parts(run) if isinstance(part, Refuses) for each in part.problems(run)]


def _comparing(run: Run) -> list[Advantage | Loss | Gate]:
    """Whatever may compare siblings, wrapped or not."""
    return [*inside(run.advantage, Advantage), *inside(run.losses, Loss), *run.gates]


_QUESTIONS: tuple[Callable[[Run], list[str]], ...] = (
    _counts,
    _devices,
    problems_of_room,
    _group_size,
    _streaming,
    precision_problems,
    problems_of_filling,
    _sampling,
    _corrections,
    _annotations,
    _teachers,
    _greedy,
    _room,
    _batch_sizes,
    _again,
    _clocks,
    _values,
    _task_generator,
    _tasks,
    problems_of_needs,
    success_problems,
    _own,
    shortage,
)
