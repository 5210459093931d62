"""`strop attack`: what 1,000 hostile replies earn from a reward, by family of attack."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields

from rich.console import Console
from rich.markup import escape

from strop.abilities import Meets, inside
from strop.attack.bench import attacked
from strop.attack.standing import WorldStanding, largest, shown
from strop.catalogue.record import recipe_files
from strop.cli.describe import table
from strop.cli.overrides import find_recipe, make_run
from strop.cli.rooms import modules, named, values
from strop.cli.words import parse_words
from strop.errors import ConfigurationError, nearest
from strop.filter import rewards as room
from strop.filter.rewards.python_function import PythonFunction
from strop.recipes.worlds import bundled_worlds, parse_worlds
from strop.roles import Reward, World

_SHOWN = 5  # findings


def attack(words: Sequence[str], worlds: Sequence[str], replies: int, seed: int, seconds: float, as_json: bool) -> int:
    """Attack what is named in each world; 1 where a hostile reply earned what only a right answer should."""
    wish = parse_words(words)
    chosen = [world for text in worlds for world in parse_worlds(text, seed)]
    attacks = rewards_of(wish.recipe, wish.overrides, chosen)
    found = [asyncio.run(attacked(rewards, world, replies, seed, seconds)) for world, rewards in attacks]
    if as_json:
        print(json.dumps(_plain(wish.recipe, seed, found), indent=1))
    else:
        _show(Console(highlight=False), found)
    if all(standing.problem for standing in found):
        raise ConfigurationError(f"{wish.recipe} cannot be attacked: {found[0].world}: {found[0].problem}")
    return int(any(standing.findings for standing in found))


def rewards_of(
    word: str, overrides: Mapping[str, str], worlds: Sequence[World]
) -> list[tuple[World, tuple[Reward, ...]]]:
    """What is attacked in which world: a recipe's rewards, one by its file or class, or FILE.py:FUNCTION."""
    if word in recipe_files() or word.endswith(".py"):
        return _of_recipe(word, overrides, worlds)
    chosen = list(worlds) or [kind(_LEVELS.get(name, 1)) for name, kind in bundled_worlds().items()]
    if ".py:" in word:
        return [(world, (PythonFunction(word),)) for world in chosen]
    kind = named(room, word, Reward)
    if kind is None:
        known = {*modules(room), *recipe_files()}
        raise ConfigurationError(f"there is no reward and no recipe {word!r}: {nearest(word, known)}, FILE.py:FUNCTION")
    return [(world, (_made(kind, overrides, world),)) for world in chosen]


_LEVELS = {"countdown": 2}  # the first one there is, where that is not 1


def _of_recipe(
    word: str, overrides: Mapping[str, str], worlds: Sequence[World]
) -> list[tuple[World, tuple[Reward, ...]]]:
    if worlds:
        raise ConfigurationError("a recipe brings its worlds: say world=NAME:LEVEL in place of --world")
    run = make_run(find_recipe(word), overrides)
    if met := inside(run.rewards, Meets):
        raise ConfigurationError(f"{type(met[0]).__name__} asks the policy, and there is none here")
    return [(world, run.rewards) for world in run.worlds]


def _made(kind: type[Reward], overrides: Mapping[str, str], world: World) -> Reward:
    given = values(kind, overrides)
    own = [field for field in fields(kind) if field.init]  # type: ignore[arg-type]
    if "worlds" in (field.name for field in own):
        given["worlds"] = (world,)
    bare = [field for field in own if field.default is MISSING and field.default_factory is MISSING]
    if missing := [field.name for field in bare if field.name not in given]:
        raise ConfigurationError(
            f"{kind.__name__} needs {', '.join(missing)}: say FIELD=VALUE, or attack a recipe that has it"
        )
    return kind(**given)


def _plain(word: str, seed: int, found: Sequence[WorldStanding]) -> dict[str, object]:
    worlds = {standing.world: standing.plain() for standing in found}
    ratio = largest(standing.ratio for standing in found)
    return {"reward": word, "seed": seed, "ratio": ratio, "worlds": worlds}


def _show(console: Console, found: Sequence[WorldStanding]) -> None:
    for standing in found:
        console.print(f"\n[bold]{standing.world}[/]: {_sentence(standing)}", soft_wrap=True)
        if standing.problem:
            continue
        rows = table("attack", "replies", "most", "mean", "failed", "slowest", "ratio")
        for name, family in standing.families.items():
            plain = family.plain()
            figures = [_figure(plain[key]) for key in ("most", "mean")]
            slowest = f"{plain['slowest']:.3f} s"
            rows.add_row(name, str(plain["replies"]), *figures, str(plain["failed"]), slowest, _figure(plain["ratio"]))
        console.print(rows)
        for each in standing.findings[:_SHOWN]:
            console.print(f"[bold red]paid as right[/], {each.family}: {escape(shown(each.text))}", soft_wrap=True)


def _sentence(standing: WorldStanding) -> str:
    if standing.problem:
        return f"not attacked, {escape(standing.problem)}"
    plain = standing.plain()
    bars = f"a right answer earns {_figure(plain['right'])}, a wrong one {_figure(plain['wrong'])}"
    if count := len(standing.findings):
        return f"{bars}; {count:,} of {plain['replies']:,} hostile replies were paid like a right answer"
    return f"{bars}; no hole found" if standing.ratio is not None else f"{bars}: it tells no answers apart"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
