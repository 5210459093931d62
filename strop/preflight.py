"""Refuses a run that cannot work, before anything starts, with the numbers."""

from __future__ import annotations

from collections.abc import Callable

from strop.checkpoint import parts
from strop.errors import ConfigurationError
from strop.run import Run


def check(run: Run) -> None:
    """Raise ConfigurationError with every problem found."""
    problems = [problem for question in _QUESTIONS for problem in question(run)]
    if problems:
        raise ConfigurationError("\n".join(problems))


def _counts(run: Run) -> list[str]:
    floors = {"steps": 0, "groups_per_step": 1, "minibatches": 1, "epochs": 1, "checkpoint_every": 1, "threads": 1}
    problems = [f"need {n} >= {low}, got {getattr(run, n)}" for n, low in floors.items() if getattr(run, n) < low]
    if run.minibatches > run.groups_per_step:
        problems.append(f"cannot split {run.groups_per_step} groups into {run.minibatches} minibatches")
    if not run.worlds:
        problems.append("need at least 1 world")
    if not run.losses:
        problems.append("need at least 1 loss")
    if not run.rewards:
        problems.append("need at least 1 reward")
    return problems


def _group_size(run: Run) -> list[str]:
    """A group-relative advantage of a single attempt is always zero: such a run would do nothing."""
    size = getattr(run.budget, "size", None)
    need = getattr(run.advantage, "min_group", 1)
    if size is not None and size < need:
        name = type(run.advantage).__name__
        return [f"{name} compares siblings: need >= {need} attempts per group, got {size} (set group_size)"]
    return []


def _sampling(run: Run) -> list[str]:
    sampling = run.sampling
    problems = []
    if sampling.temperature < 0:
        problems.append(f"need temperature >= 0, got {sampling.temperature}")
    if not 0 < sampling.top_p <= 1:
        problems.append(f"need 0 < top_p <= 1, got {sampling.top_p}")
    if sampling.max_tokens < 1:
        problems.append(f"need max_tokens >= 1, got {sampling.max_tokens}")
    if sampling.is_truncated and run.correction is not None:
        problems.append(
            f"{type(run.correction).__name__} compares the policy with the distribution sampled from, which top_p "
            f"{sampling.top_p} and top_k {sampling.top_k} truncate: its weights would be biased; use top_p=1 top_k=0"
        )
    return problems


def _corrections(run: Run) -> list[str]:
    """A loss with an importance ratio of its own, corrected once more, would be wrong and look plausible."""
    if run.correction is None:
        return []
    twice = [type(loss).__name__ for loss in run.losses if getattr(loss, "contains_ratio", False)]
    return [
        f"{name} holds the importance ratio already: {type(run.correction).__name__} would count it twice"
        for name in twice
    ]


def _values(run: Run) -> list[str]:
    if getattr(run.advantage, "needs_values", False) and run.values is None:
        return [f"{type(run.advantage).__name__} needs a value model: set values, for example Critic()"]
    return []


def _tasks(run: Run) -> list[str]:
    """Task files are read here, so that a bad line is found before a run exists."""
    for world in run.worlds:
        world.task(0)
        world.task(0, heldout=True)
    return []


def _own(run: Run) -> list[str]:
    """Anything a mechanism itself can refuse."""
    found = [(path, getattr(part, "problems", None)) for path, part in parts(run)]
    return [f"{path}: {problem}" for path, ask in found if callable(ask) for problem in ask(run)]


_QUESTIONS: tuple[Callable[[Run], list[str]], ...] = (
    _counts,
    _group_size,
    _sampling,
    _corrections,
    _values,
    _own,
    _tasks,
)
