"""Command `strop compare`: recipes, settings of one recipe, or finished runs, in a live table and on one page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from strop.cli.fields.arguments import parse_words
from strop.cli.fields.overrides import find_recipe, make_run
from strop.errors import ConfigurationError
from strop.launch.experiments.side_by_side import Job, SideBySide, how_many
from strop.models.torch_setup import device_problem
from strop.observe.report.compare_runs import page_of, shown, summarize
from strop.observe.run_files.provenance import code, commit, hardware, versions
from strop.run import Run
from strop.stats.intervals import detectable
from strop.storage.run_folder import RunFolder

_NO_LIMIT = 1_000_000_000  # steps: the token budget ends a run


@dataclass(frozen=True)
class Arm:
    """One compared variant: a recipe with its fields, or the folders of existing runs, one per seed."""

    name: str
    recipe: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def stem(self) -> str:
        """Prefix of the names of its run folders."""
        return re.sub(r"[^\w.-]+", "-", Path(self.name).stem if self.name.endswith(".py") else self.name)


@dataclass(frozen=True)
class ComparisonPlan:
    """Plan of a comparison: arms, fields shared by all, seeds, tokens per run, output folder."""

    arms: tuple[Arm, ...]
    shared: tuple[str, ...]
    seeds: int
    tokens: int
    folder: Path

    def folders(self) -> dict[str, list[RunFolder]]:
        made = {arm.name: [self.folder / f"{arm.stem}-seed{seed}" for seed in range(self.seeds)] for arm in self.arms}
        return {arm.name: [RunFolder(path) for path in arm.folders or made[arm.name]] for arm in self.arms}

    def jobs(self) -> list[Job]:
        """Runs to do, seed by seed, so that the comparison is fair after each seed."""
        wanted = [(arm, seed) for seed in range(self.seeds) for arm in self.arms if not arm.folders]
        return [Job(f"{arm.stem}-seed{seed}", partial(run_of, arm, seed, self.tokens)) for arm, seed in wanted]

    def words(self) -> dict[str, Any]:
        """Settings that must match those of earlier runs in the folder; seeds may be added."""
        arms = {arm.name: [arm.recipe, *map(list, arm.fields)] for arm in self.arms if not arm.folders}
        return {"arms": arms, "tokens": self.tokens, "code": code()}


def compare(words: Sequence[str], seeds: int, tokens: int, jobs: int, root: Path, name: str) -> dict[str, Any]:
    """Run everything with a live table; write compare.html and summary.json."""
    plan = plan_of(words, seeds, tokens, root, name)
    console = Console(highlight=False)
    wanted = plan.jobs()
    devices = {dict(arm.fields).get("device", "cpu") for arm in plan.arms}
    processes = jobs or how_many(len(wanted), max(int(dict(arm.fields).get("threads", 1)) for arm in plan.arms))
    if wanted:
        budget = f"{plan.seeds} seeds each, {tokens:,} generated tokens per run"
        console.print(
            f"{len(plan.arms)} arms, {budget}, {processes} at a time; runs go to {plan.folder}", soft_wrap=True
        )
        with shown(console, plan.folders(), tokens) as refresh:
            is_on_gpu = any(device.startswith("cuda") for device in devices)
            SideBySide(plan.folder, processes, is_on_gpu, refresh).run(wanted)
    summary = {
        **plan.words(),
        "seeds": plan.seeds,
        "fields": list(plan.shared),
        "processes": processes,
        "hardware": hardware("cuda" if "cuda" in devices else "cpu"),
        "versions": versions(),
        "commit": commit(),
        "arms": summarize(plan.folders()),
    }
    (plan.folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    chosen = f" · {' '.join(plan.shared)}" if plan.shared else ""
    title = f"{tokens:,} generated tokens per run, {plan.seeds} seeds{chosen}" if wanted else "existing runs"
    page = page_of(plan.folder / "compare.html", plan.folders(), summary["arms"], title)
    for line in difference_lines(summary["arms"]):
        console.print(line, soft_wrap=True, markup=False)
    console.print(f"written to {page} and {plan.folder / 'summary.json'}", soft_wrap=True)
    return summary


def difference_lines(arms: Mapping[str, Any]) -> list[str]:
    """Difference of each arm from the first, over seeds and over tasks, and whether the intervals separate them."""
    first, *others = arms
    return [f"{name} minus {first}: {_difference(arms[name])}" for name in others]


def _difference(arm: Mapping[str, Any]) -> str:
    by_seed, by_task = arm["against_first"], arm["tasks_against_first"]
    ways = {f"over {len(arm['by_seed'])} seeds": by_seed, "over the tasks of these runs": by_task}
    known = {way: found for way, found in ways.items() if found is not None and found["low"] is not None}
    if not known:
        return "no interval: it needs 2 seeds, or runs measured on the same tasks"
    parts = [
        f"{100 * f['mean']:+.1f} points ({100 * f['low']:+.1f} to {100 * f['high']:+.1f}) {w}" for w, f in known.items()
    ]
    first = next(iter(known.values()))
    if not first["low"] <= 0 <= first["high"]:
        return "; ".join(parts)
    seeds = len(arm["by_seed"]) if first is by_seed else 0
    least = detectable((first["high"] - first["low"]) / 2, seeds - 1 if seeds else None)
    return "; ".join(parts) + f": no difference above {100 * least:.1f} points at 80% power"


def plan_of(words: Sequence[str], seeds: int, tokens: int, root: Path, name: str) -> ComparisonPlan:
    """Plan from the words typed; every run is built once, so that mistakes show before anything starts.

    A word `field=value` applies to all arms; a quoted word, "grpo minibatches=4", is an arm with its own fields.
    """
    shared = tuple(word for word in words if "=" in word and " " not in word.strip())
    arms = tuple(_arm(word, shared) for word in words if word not in shared)
    names = [arm.name for arm in arms]
    if len(arms) < 2 or len({arm.stem for arm in arms}) != len(arms):
        raise ConfigurationError(
            f"compare needs at least 2 different arms, got {', '.join(names) or 'none'}; put settings of one recipe "
            'in quotes: "grpo minibatches=1" "grpo minibatches=4"'
        )
    for arm in arms:
        if not arm.folders:
            run_of(arm, 0, tokens)
        if problem := device_problem(dict(arm.fields).get("device", "cpu")):
            raise ConfigurationError(problem)
    folder = root / (name or "-".join(arm.stem for arm in arms))
    plan = ComparisonPlan(arms, shared, seeds, tokens, folder)
    _claim(plan)
    return plan


def _arm(word: str, shared: Sequence[str]) -> Arm:
    pieces = word.split()
    if all((Path(piece) / "recipe.py").is_file() for piece in pieces):
        paths = tuple(Path(piece) for piece in pieces)
        return Arm(paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more", folders=paths)
    typed = parse_words([*pieces, *shared])
    return Arm(word.strip(), typed.recipe, tuple(sorted(typed.overrides.items())))


def _claim(plan: ComparisonPlan) -> None:
    """Create the folder, or continue the comparison in it if it has the same plan."""
    kept, words = plan.folder / "plan.json", plan.words()
    if kept.is_file() and json.loads(kept.read_text()) != words:
        raise ConfigurationError(
            f"{plan.folder} holds another comparison (other arms, tokens or code): choose another --name"
        )
    plan.folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(words, indent=1) + "\n")


def run_of(arm: Arm, seed: int, tokens: int) -> Run:
    """Run of an arm with one seed."""
    run = make_run(find_recipe(arm.recipe), {"heldout_every": "10", **dict(arm.fields), "seed": str(seed)})
    return replace(run, steps=_NO_LIMIT, max_generated_tokens=tokens)
