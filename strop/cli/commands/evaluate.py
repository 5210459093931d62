"""Command `strop eval`: accuracy of a model on held-out tasks, by environment and level."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from strop.capabilities import Closes, outermost
from strop.cli.models import find_model, open_policy
from strop.cli.sample_size import against_table, differences, plan_text, planned, spread_over
from strop.cli.terminal import is_trusted
from strop.errors import ConfigurationError
from strop.evaluation import Evaluation, Score, evaluate, held_out
from strop.filter.rewards.from_environment import Earned
from strop.filter.scoring import Scorer
from strop.generate.policy import Policy
from strop.models.silence_libraries import hush
from strop.recipes.environments import bundled_envs, parse_envs
from strop.roles import Environment, Reward
from strop.run import Run
from strop.stats.sample_size import TaskSpread
from strop.storage import checkpoint
from strop.storage.run_folder import RunFolder
from strop.storage.run_source import from_source
from strop.types import Sampling

_MOST_LEVELS = 64
_MAX_TOKENS = 64  # of one completion


@dataclass(frozen=True)
class EvaluationRequest:
    """Options of one evaluation."""

    model: str
    envs: tuple[str, ...]  # empty: those of the run; for a model, all bundled ones at every level
    tasks: int
    rollouts: int  # per task; 0: the largest k
    k: str
    temperature: float | None  # None: the run's, or 1
    max_tokens: int | None  # None: the run's, or 64
    seed: int
    threads: int
    device: str = "cpu"
    against: str = ""  # another model, on the same tasks
    plan: float = 0.0  # difference in points for which the needed tasks and rollouts are printed
    is_fresh: bool = False  # held-out tasks that the run never measured
    is_trusted: bool = False  # a recipe.py that this user did not write may be executed


def evaluate_model(request: EvaluationRequest, as_json: bool) -> None:
    """Evaluate on held-out tasks and print the scores."""
    import torch

    hush()
    torch.set_num_threads(request.threads)
    ks = parse_ks(request.k)
    rollouts = request.rollouts or max(ks)
    if rollouts < max(ks):
        raise ConfigurationError(f"pass@{max(ks)} needs at least {max(ks)} rollouts per task, got {rollouts}")
    run = _run_of(request.model, request.is_trusted)
    scores = _scores_of(request.model, request, run, rollouts)
    others = _scores_of(request.against, request, run, rollouts) if request.against else []
    spread = spread_over(scores) if request.plan else None
    if as_json:
        rows: Any = [as_dict(score, ks) for score in scores]
        more = _more(request, scores, others, spread)
        print(json.dumps({"scores": rows, **more} if more else rows, indent=1))
        return
    console = Console(highlight=False)
    for name, found in ((request.model, scores), (request.against, others)):
        if found:
            title = f"{name}: {request.tasks} held-out tasks each, {rollouts} rollouts, 95% intervals"
            console.print(title, soft_wrap=True, markup=False)
            console.print(as_table(found, ks))
    if others:
        console.print(against_table(request, scores, others))
    if spread is not None:
        console.print(plan_text(request.plan / 100, spread, sum(len(score.right) for score in scores), rollouts))


def _scores_of(model: str, request: EvaluationRequest, run: Run | None, rollouts: int) -> list[Score]:
    """Scores of one model; a second model gets the same tasks with the same random keys."""
    policy = open_policy(find_model(model), _sampling(request, run), request.device)
    if run is not None:
        policy = replace(policy, context=run.context)
    return asyncio.run(_scores(_measured(request, run), request, rollouts, policy))


def _more(
    request: EvaluationRequest, scores: list[Score], others: list[Score], spread: TaskSpread | None
) -> dict[str, Any]:
    """Comparison and plan, where requested, as plain data."""
    more: dict[str, Any] = {}
    if others:
        more["against"] = {name: asdict(found) for name, found in differences(scores, others).items()}
    if spread is not None:
        more["plan"] = {"points": request.plan, **asdict(spread), "tasks": planned(request.plan / 100, spread)}
    return more


def parse_ks(text: str) -> list[int]:
    """`1,4,16` as numbers."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise ConfigurationError(f"--k takes comma-separated whole numbers above 0, such as 1,4,16; got {text!r}")
    return sorted({int(word) for word in words})


def _run_of(model: str, trust: bool) -> Run | None:
    """Run of a run folder or checkpoint, None for another model; its recipe.py is executed, as by --resume."""
    path = Path(model)
    folder = RunFolder(path.parent.parent if path.parent.name == "checkpoints" else path)
    if not folder.recipe.is_file():
        return None
    folder.read_origin()
    run: Run = from_source(folder.recipe, is_trusted(folder, trust))
    if checkpoint.listed(folder.checkpoints):
        checkpoint.remind(checkpoint.newest_whole(folder.checkpoints)[0], run.evaluation)
    return run


def _sampling(request: EvaluationRequest, run: Run | None) -> Sampling:
    """Sampling of the run, with the requested changes."""
    plain = run.sampling if run is not None else Sampling(max_tokens=_MAX_TOKENS)
    temperature = plain.temperature if request.temperature is None else request.temperature
    return replace(plain, temperature=temperature, max_tokens=request.max_tokens or plain.max_tokens)


def _measured(request: EvaluationRequest, run: Run | None) -> list[tuple[Environment, Evaluation]]:
    """Environments with their evaluation: as in the run, or the environment's own check of one completion."""
    if run is not None and not request.envs:
        measured = run.evaluation.measured(run.envs)
        return [(env, run.evaluation.of(run.agent)) for env in (*measured, *run.evaluation.unseen)]
    return [(env, Evaluation(rewards=judges(env))) for env in chosen_envs(request)]


def chosen_envs(request: EvaluationRequest) -> list[Environment]:
    """Requested environments, or every level of every bundled environment."""
    if request.envs:
        return [env for text in request.envs for env in parse_envs(text, request.seed)]
    return [env for name in bundled_envs() for env in _levels(name, request.seed)]


def _levels(name: str, seed: int) -> list[Environment]:
    """Environment at every level it accepts."""
    found: list[Environment] = []
    for level in range(1, _MOST_LEVELS):
        try:
            found += parse_envs(f"{name}:{level}", seed)
        except ConfigurationError:
            if found:
                break
    return found


async def _scores(
    measured: list[tuple[Environment, Evaluation]], request: EvaluationRequest, rollouts: int, policy: Policy
) -> list[Score]:
    console, scores = Console(stderr=True), []
    with console.status("") as status:
        for number, (env, plan) in enumerate(measured, 1):
            status.update(f"{env.name} level {env.level} ({number} of {len(measured)})")
            scorer = Scorer(plan.rewards)
            evaluation = replace(plan, tasks=request.tasks, rollouts=rollouts)
            try:
                skipped = plan.tasks if request.is_fresh else 0
                asked = held_out([env], evaluation, policy, skipped)
                scores += await evaluate(asked, evaluation, policy, scorer, request.seed)
            finally:
                for _, part in outermost(evaluation, Closes):
                    await part.close()
                await scorer.close()
    return scores


def judges(env: Environment) -> tuple[Reward, ...]:
    """Reward of an environment: its own reward if it pays one, else a check of the final completion."""
    from strop.filter.rewards.from_environment import Checked

    return (Earned(),) if env.pays else (Checked((env,)),)


def as_dict(score: Score, ks: list[int]) -> dict[str, Any]:
    """One environment's metrics as plain data."""
    passes = {str(k): _plain(score.pass_at(k)) for k in ks}
    return {
        "env": score.source,
        "level": score.level,
        "tasks": len(score.right),
        "rollouts": score.rollouts,
        "failed": score.failed,
        "truncated_share": score.truncated_share,
        "pass_at": passes,
        "avg_at": {str(score.rollouts): passes.get("1") or _plain(score.pass_at(1))},
        "maj_at": {str(k): _plain(score.majority_at(k)) for k in ks if k > 1},
    }


def _plain(found: tuple[float, float, float]) -> dict[str, float] | None:
    return None if math.isnan(found[0]) else dict(zip(("estimate", "low", "high"), found, strict=True))


def as_table(scores: list[Score], ks: list[int]) -> Table:
    """One row per environment and level: avg@k, maj@k, pass@k and the share of truncated completions."""
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("env")
    table.add_column("level", justify="right")
    rollouts, most = max(score.rollouts for score in scores), ks[-1]
    majority = [f"maj@{most}"] if most > 1 else []
    for name in [f"avg@{rollouts}", *majority, *(f"pass@{k}" for k in ks if k > 1)]:
        table.add_column(name, justify="right")
        table.add_column("95%", style="dim")
    table.add_column("truncated", justify="right")
    before = ""
    for score in scores:
        found = [score.pass_at(1), *([score.majority_at(most)] if majority else [])]
        found += [score.pass_at(k) for k in ks if k > 1]
        cells = [*(cell for each in found for cell in _cells(*each)), f"{score.truncated_share:.0%}"]
        failed = f" [red]({score.failed} rollouts failed)[/]" if score.failed else ""
        table.add_row(("" if score.source == before else score.source) + failed, str(score.level), *cells)
        before = score.source
    return table


def _cells(estimate: float, low: float, high: float) -> tuple[str, str]:
    if math.isnan(estimate):
        return "–", ""
    colour = "green" if estimate >= 0.7 else ("yellow" if estimate >= 0.05 else "red")
    return f"[{colour}]{100 * estimate:.1f}%[/]", f"{100 * low:.0f} to {100 * high:.0f}"
