"""`strop eval`: how good a model is, by world and level."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from strop.cli.models import find_model, open_policy
from strop.cli.sample_size_advice import against_table, differences, plan_text, planned, spread_over
from strop.cli.trusting import is_trusted
from strop.errors import ConfigurationError
from strop.evaluation import Evaluation, Score, evaluate, held_out
from strop.filter.rewards.env_reward import Earned
from strop.filter.scoring import Scorer
from strop.generate.policy import Policy
from strop.models.silence_libraries import hush
from strop.recipes.environments import bundled_worlds, parse_worlds
from strop.roles import Reward, World
from strop.run import Run
from strop.stats.sample_size import TaskSpread
from strop.storage import checkpoint
from strop.storage.run_folder import RunFolder
from strop.storage.run_source import from_source
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
    against: str = ""  # another model, on the same tasks
    plan: float = 0.0  # points; how many tasks and attempts show such a difference
    is_fresh: bool = False  # held-out tasks that the run never measured
    is_trusted: bool = False  # a recipe.py that this user did not write may be executed


def evaluate_model(question: Question, as_json: bool) -> None:
    """Attempt held-out tasks and print what came of it."""
    import torch

    hush()
    torch.set_num_threads(question.threads)
    ks = parse_ks(question.k)
    attempts = question.attempts or max(ks)
    if attempts < max(ks):
        raise ConfigurationError(f"pass@{max(ks)} needs at least {max(ks)} attempts per task, got {attempts}")
    run = _run_of(question.model, question.is_trusted)
    scores = _scores_of(question.model, question, run, attempts)
    others = _scores_of(question.against, question, run, attempts) if question.against else []
    spread = spread_over(scores) if question.plan else None
    if as_json:
        rows: Any = [as_dict(score, ks) for score in scores]
        more = _more(question, scores, others, spread)
        print(json.dumps({"scores": rows, **more} if more else rows, indent=1))
        return
    console = Console(highlight=False)
    for name, found in ((question.model, scores), (question.against, others)):
        if found:
            title = f"{name}: {question.tasks} held-out tasks each, {attempts} attempts, 95% intervals"
            console.print(title, soft_wrap=True, markup=False)
            console.print(as_table(found, ks))
    if others:
        console.print(against_table(question, scores, others))
    if spread is not None:
        console.print(plan_text(question.plan / 100, spread, sum(len(score.right) for score in scores), attempts))


def _scores_of(model: str, question: Question, run: Run | None, attempts: int) -> list[Score]:
    """Of one model; another one is asked the same tasks with the same random keys."""
    policy = open_policy(find_model(model), _sampling(question, run), question.device)
    if run is not None:
        policy = replace(policy, context=run.context)
    return asyncio.run(_scores(_measured(question, run), question, attempts, policy))


def _more(question: Question, scores: list[Score], others: list[Score], spread: TaskSpread | None) -> dict[str, Any]:
    """What was asked for besides scores, as plain data."""
    more: dict[str, Any] = {}
    if others:
        more["against"] = {name: asdict(found) for name, found in differences(scores, others).items()}
    if spread is not None:
        more["plan"] = {"points": question.plan, **asdict(spread), "tasks": planned(question.plan / 100, spread)}
    return more


def parse_ks(text: str) -> list[int]:
    """`1,4,16` as numbers."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise ConfigurationError(f"--k takes whole numbers above 0 joined by commas, as in 1,4,16; got {text!r}")
    return sorted({int(word) for word in words})


def _run_of(model: str, trust: bool) -> Run | None:
    """The run whose folder or checkpoint was named, if it is one; its recipe.py is executed, as by --resume."""
    path = Path(model)
    folder = RunFolder(path.parent.parent if path.parent.name == "checkpoints" else path)
    if not folder.recipe.is_file():
        return None
    folder.read_origin()
    run: Run = from_source(folder.recipe, is_trusted(folder, trust))
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
                skipped = plan.tasks if question.is_fresh else 0
                asked = held_out([world], evaluation, policy, skipped)
                scores += await evaluate(asked, evaluation, policy, scorer, question.seed)
            finally:
                await scorer.close()
    return scores


def judges(world: World) -> tuple[Reward, ...]:
    """A world that pays judges itself; of any other, the final reply is checked."""
    from strop.filter.rewards.env_check import Checked

    return (Earned(),) if world.pays else (Checked((world,)),)


def as_dict(score: Score, ks: list[int]) -> dict[str, Any]:
    """One world's figures as plain data."""
    passes = {str(k): _plain(score.pass_at(k)) for k in ks}
    return {
        "world": score.source,
        "level": score.level,
        "tasks": len(score.right),
        "attempts": score.attempts,
        "failed": score.failed,
        "truncated_share": score.truncated_share,
        "pass_at": passes,
        "avg_at": {str(score.attempts): passes.get("1") or _plain(score.pass_at(1))},
        "maj_at": {str(k): _plain(score.majority_at(k)) for k in ks if k > 1},
    }


def _plain(found: tuple[float, float, float]) -> dict[str, float] | None:
    return None if math.isnan(found[0]) else dict(zip(("estimate", "low", "high"), found, strict=True))


def as_table(scores: list[Score], ks: list[int]) -> Table:
    """A row per world and level: mean over attempts, majority, at least one of k, and the share that was cut."""
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("world")
    table.add_column("level", justify="right")
    attempts, most = max(score.attempts for score in scores), ks[-1]
    majority = [f"maj@{most}"] if most > 1 else []
    for name in [f"avg@{attempts}", *majority, *(f"pass@{k}" for k in ks if k > 1)]:
        table.add_column(name, justify="right")
        table.add_column("95%", style="dim")
    table.add_column("cut", justify="right")
    before = ""
    for score in scores:
        found = [score.pass_at(1), *([score.majority_at(most)] if majority else [])]
        found += [score.pass_at(k) for k in ks if k > 1]
        cells = [*(cell for each in found for cell in _cells(*each)), f"{score.truncated_share:.0%}"]
        failed = f" [red]({score.failed} attempts failed)[/]" if score.failed else ""
        table.add_row(("" if score.source == before else score.source) + failed, str(score.level), *cells)
        before = score.source
    return table


def _cells(estimate: float, low: float, high: float) -> tuple[str, str]:
    if math.isnan(estimate):
        return "–", ""
    colour = "green" if estimate >= 0.7 else ("yellow" if estimate >= 0.05 else "red")
    return f"[{colour}]{100 * estimate:.1f}%[/]", f"{100 * low:.0f} to {100 * high:.0f}"
