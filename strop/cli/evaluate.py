"""`strop eval`: how good a model is, by world and level."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from strop.cli.models import find_model, hush, open_policy
from strop.disk import checkpoint
from strop.disk.folder import RunFolder
from strop.disk.source import from_source
from strop.errors import ConfigurationError
from strop.evaluation import Evaluation, Score, evaluate, held_out
from strop.filter.rewards.earned import Earned
from strop.filter.score import Scorer
from strop.generate.policy import Policy
from strop.recipes.worlds import bundled_worlds, parse_worlds
from strop.roles import Reward, World
from strop.run import Run
from strop.types import Sampling

_MOST_LEVELS = 64
_MAX_TOKENS = 64  # of one reply


@dataclass(frozen=True)
class Question:
    """What is asked about a model."""

    model: str
    worlds: tuple[str, ...]  # none: those of the run, or of a model all that come with strop, at every level
    tasks: int
    attempts: int  # 0: as many as the largest k
    k: str
    temperature: float | None  # None: that of the run, or 1
    max_tokens: int | None  # None: that of the run, or 64
    seed: int
    threads: int
    device: str = "cpu"


def evaluate_model(question: Question, as_json: bool) -> None:
    """Attempt held-out tasks and print what came of it."""
    import torch

    hush()
    torch.set_num_threads(question.threads)
    ks = parse_ks(question.k)
    attempts = question.attempts or max(ks)
    if attempts < max(ks):
        raise ConfigurationError(f"pass@{max(ks)} needs at least {max(ks)} attempts per task, got {attempts}")
    run = _run_of(question.model)
    measured = _measured(question, run)
    policy = open_policy(find_model(question.model), _sampling(question, run), question.device)
    if run is not None:
        policy = replace(policy, context=run.context)
    scores = asyncio.run(_scores(measured, question, attempts, policy))
    if as_json:
        print(json.dumps([as_dict(score, ks) for score in scores], indent=1))
    else:
        title = f"{question.model}: {question.tasks} held-out tasks each, {attempts} attempts, 95% intervals"
        console = Console(highlight=False)
        console.print(title, soft_wrap=True, markup=False)
        console.print(as_table(scores, ks))


def parse_ks(text: str) -> list[int]:
    """`1,4,16` as numbers."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise ConfigurationError(f"--k takes whole numbers above 0 joined by commas, as in 1,4,16; got {text!r}")
    return sorted({int(word) for word in words})


def _run_of(model: str) -> Run | None:
    """The run whose folder was named, if it is one; its recipe.py is executed, as by --resume."""
    folder = RunFolder(Path(model))
    if not folder.recipe.is_file():
        return None
    folder.read_origin()
    run: Run = from_source(folder.recipe)
    if checkpoint.listed(folder.checkpoints):
        checkpoint.remind(checkpoint.newest_whole(folder.checkpoints)[0], run.evaluation)
    return run


def _sampling(question: Question, run: Run | None) -> Sampling:
    """The run's, with what was asked for in its place."""
    plain = run.sampling if run is not None else Sampling(max_tokens=_MAX_TOKENS)
    temperature = plain.temperature if question.temperature is None else question.temperature
    return replace(plain, temperature=temperature, max_tokens=question.max_tokens or plain.max_tokens)


def _measured(question: Question, run: Run | None) -> list[tuple[World, Evaluation]]:
    """Which worlds, and how each is played and judged: as the run did, or plainly."""
    if run is not None and not question.worlds:
        measured = run.evaluation.measured(run.worlds)
        return [(world, run.evaluation) for world in (*measured, *run.evaluation.unseen)]
    return [(world, Evaluation(rewards=judges(world))) for world in chosen_worlds(question)]


def chosen_worlds(question: Question) -> list[World]:
    """Those asked for, or every level of every world that comes with strop."""
    if question.worlds:
        return [world for text in question.worlds for world in parse_worlds(text, question.seed)]
    return [world for name in bundled_worlds() for world in _levels(name, question.seed)]


def _levels(name: str, seed: int) -> list[World]:
    """A world at every level it has; worlds refuse the others."""
    found: list[World] = []
    for level in range(1, _MOST_LEVELS):
        try:
            found += parse_worlds(f"{name}:{level}", seed)
        except ConfigurationError:
            if found:
                break
    return found


async def _scores(
    measured: list[tuple[World, Evaluation]], question: Question, attempts: int, policy: Policy
) -> list[Score]:
    console, scores = Console(stderr=True), []
    with console.status("") as status:
        for number, (world, plan) in enumerate(measured, 1):
            status.update(f"{world.name} level {world.level} ({number} of {len(measured)})")
            scorer = Scorer(plan.rewards)
            evaluation = replace(plan, tasks=question.tasks, attempts=attempts)
            try:
                asked = held_out([world], evaluation, policy)
                scores += await evaluate(asked, evaluation, policy, scorer, question.seed)
            finally:
                await scorer.close()
    return scores


def judges(world: World) -> tuple[Reward, ...]:
    """A world that pays judges itself; of any other, the final reply is checked."""
    from strop.filter.rewards.checked import Checked

    return (Earned(),) if world.pays else (Checked((world,)),)


def as_dict(score: Score, ks: list[int]) -> dict[str, Any]:
    """One world's figures as plain data."""
    passes = {}
    for k in ks:
        estimate, low, high = score.pass_at(k)
        passes[str(k)] = None if math.isnan(estimate) else {"estimate": estimate, "low": low, "high": high}
    return {
        "world": score.source,
        "level": score.level,
        "tasks": len(score.right),
        "attempts": score.attempts,
        "failed": score.failed,
        "pass_at": passes,
    }


def as_table(scores: list[Score], ks: list[int]) -> Table:
    """A row per world and level."""
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("world")
    table.add_column("level", justify="right")
    for k in ks:
        table.add_column(f"pass@{k}", justify="right")
        table.add_column("95%", style="dim")
    before = ""
    for score in scores:
        cells = [cell for k in ks for cell in _cells(*score.pass_at(k))]
        failed = f" [red]({score.failed} attempts failed)[/]" if score.failed else ""
        table.add_row(("" if score.source == before else score.source) + failed, str(score.level), *cells)
        before = score.source
    return table


def _cells(estimate: float, low: float, high: float) -> tuple[str, str]:
    if math.isnan(estimate):
        return "–", ""
    colour = "green" if estimate >= 0.7 else ("yellow" if estimate >= 0.05 else "red")
    return f"[{colour}]{100 * estimate:.1f}%[/]", f"{100 * low:.0f} to {100 * high:.0f}"
