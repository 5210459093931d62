"""Command `strop attack`: rewards of hostile completions, and of prompt injections at a judge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from strop.attack.injected import InjectionStanding, asks_client, injected
from strop.attack.results import EnvironmentStanding, largest, shown
from strop.attack.run_attack import attacked
from strop.capabilities import Meets, inside
from strop.catalogue.record import recipe_files
from strop.cli.commands.certify import write_certificates
from strop.cli.fields.arguments import parse_words
from strop.cli.fields.named_parts import modules, named, values
from strop.cli.fields.overrides import find_recipe, make_run
from strop.cli.fields.recipe_help import table
from strop.cli.models import find_model, open_policy
from strop.environments.bundled.programs import Programs
from strop.errors import ConfigurationError, nearest
from strop.filter import rewards as room
from strop.filter.rewards.from_environment import Checked, Earned
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.rewards.unit_tests import PassedTests
from strop.recipes.environment_specs import rules_of
from strop.recipes.environments import bundled_envs, parse_envs
from strop.roles import Environment, Reward

_SHOWN = 5  # findings


def attack(
    words: Sequence[str],
    envs: Sequence[str],
    completions: int,
    seed: int,
    seconds: float,
    as_json: bool,
    trust: bool = False,
) -> int:
    """Attack the named reward in each environment; returns 1 if a hostile completion is rewarded like a right one."""
    typed = parse_words(words)
    chosen = [env for text in envs for env in parse_envs(text, seed)]
    attacks = rewards_of(typed.recipe, typed.overrides, chosen, trust)
    # a reward that calls the policy cannot run in a worker
    outside = [(env, rewards) for env, rewards in attacks if not inside(rewards, Meets)]
    found = [asyncio.run(attacked(rewards, env, completions, seed, seconds)) for env, rewards in outside]
    judged = asyncio.run(_injections([each for each in attacks if asks_client(each[1])], seed))
    if as_json:
        print(json.dumps(_plain(typed.recipe, seed, found, judged), indent=1))
    else:
        _show(Console(highlight=False), found)
        show_injections(Console(highlight=False), judged)
    problems = [(standing.env, standing.problem) for standing in found]
    problems += [(standing.env, standing.problem) for standing in judged]
    if all(problem for _, problem in problems):
        raise ConfigurationError(f"{typed.recipe} cannot be attacked: {': '.join(problems[0])}")
    return int(any(standing.findings for standing in found) or any(standing.paid for standing in judged))


async def _injections(attacks: Sequence[tuple[Environment, tuple[Reward, ...]]], seed: int) -> list[InjectionStanding]:
    return [await injected(rewards, env, seed) for env, rewards in attacks]


def certify(
    words: Sequence[str], envs: Sequence[str], how: tuple[int, int, float], folder: Path, trust: bool = False
) -> int:
    """Write one certificate per environment; `how`: number of hostile completions, seed, seconds per completion."""
    typed = parse_words(words)
    chosen = [env for text in envs for env in parse_envs(text, how[1])]
    return write_certificates(typed.recipe, rewards_of(typed.recipe, typed.overrides, chosen, trust), how, folder)


def rewards_of(
    word: str, overrides: Mapping[str, str], envs: Sequence[Environment], trust: bool = False
) -> list[tuple[Environment, tuple[Reward, ...]]]:
    """Environments with the rewards to attack: their own, a recipe's, one by class name, or FILE.py:FUNCTION.

    `trust`: a recipe.py that this user did not write may be executed.
    """
    if _names_env(word):
        return _of_envs(word, overrides, envs)
    if word in recipe_files() or word.endswith(".py"):
        return _of_recipe(word, overrides, envs, trust)
    chosen = list(envs) or [kind(_LEVELS.get(name, 1)) for name, kind in bundled_envs().items()]
    if ".py:" in word:
        return [(env, (PythonFunction(word, rules=rules_of(chosen)),)) for env in chosen]
    kind = named(room, word, Reward)
    if kind is None:
        known = {*modules(room, Reward), *recipe_files(), *bundled_envs()}
        raise ConfigurationError(f"there is no reward and no recipe {word!r}: {nearest(word, known)}, FILE.py:FUNCTION")
    return [(env, (_made(kind, overrides, env),)) for env in chosen]


_LEVELS = {"countdown": 2}  # lowest level, where it is not 1
_OTHERS = ("reasoning_gym/", "verifiers/", "gymnasium/", "drill/", "dataset:")
_TABLES = (".jsonl", ".json", ".parquet", ".csv")


def _names_env(word: str) -> bool:
    """Whether the word names an environment; a recipe or reward of the same name takes precedence."""
    if word.startswith(_OTHERS) or word.endswith(_TABLES):
        return True
    name, colon, level = word.partition(":")
    is_taken = word in recipe_files() or named(room, word, Reward) is not None
    return name in bundled_envs() and (level.isdigit() if colon else not is_taken)


def _of_envs(
    word: str, overrides: Mapping[str, str], envs: Sequence[Environment]
) -> list[tuple[Environment, tuple[Reward, ...]]]:
    """Environments with their own reward."""
    if envs or overrides:
        raise ConfigurationError(
            f"{word} is an environment: to attack a reward in it, use strop attack REWARD -w {word}"
        )
    return [(env, (_own(env),)) for env in parse_envs(word, 0)]


def _own(env: Environment) -> Reward:
    if isinstance(env, Programs):
        return PassedTests()
    return Earned() if env.pays else Checked((env,))


def _of_recipe(
    word: str, overrides: Mapping[str, str], envs: Sequence[Environment], trust: bool
) -> list[tuple[Environment, tuple[Reward, ...]]]:
    if envs:
        raise ConfigurationError("a recipe has its own environments: use env=NAME:LEVEL instead of --env")
    run = make_run(find_recipe(word, trust), overrides)
    if met := inside(run.rewards, Meets):
        policy = open_policy(find_model(run.model), run.sampling)
        for each in met:
            each.meet(replace(policy, context=run.context))
    return [(env, run.rewards) for env in run.envs]


def _made(kind: type[Reward], overrides: Mapping[str, str], env: Environment) -> Reward:
    given = values(kind, overrides)
    own = [field for field in fields(kind) if field.init]  # type: ignore[arg-type]
    if "envs" in (field.name for field in own):
        given["envs"] = (env,)
    bare = [field for field in own if field.default is MISSING and field.default_factory is MISSING]
    if missing := [field.name for field in bare if field.name not in given]:
        raise ConfigurationError(
            f"{kind.__name__} needs {', '.join(missing)}: add FIELD=VALUE, or attack a recipe that uses it"
        )
    return kind(**given)


def _plain(
    word: str, seed: int, found: Sequence[EnvironmentStanding], judged: Sequence[InjectionStanding]
) -> dict[str, object]:
    envs = {standing.env: standing.plain() for standing in found}
    ratio = largest(standing.ratio for standing in found)
    injections = {standing.env: standing.plain() for standing in judged}
    return {"reward": word, "seed": seed, "ratio": ratio, "envs": envs, "injections": injections}


def _show(console: Console, found: Sequence[EnvironmentStanding]) -> None:
    for standing in found:
        console.print(f"\n[bold]{standing.env}[/]: {_sentence(standing)}", soft_wrap=True)
        if standing.problem:
            continue
        rows = table("attack", "completions", "max reward", "mean reward", "failed", "slowest", "ratio")
        for name, family in standing.families.items():
            plain = family.plain()
            metrics = [_metric(plain[key]) for key in ("most", "mean")]
            slowest = f"{plain['slowest']:.3f} s"
            rows.add_row(
                name, str(plain["completions"]), *metrics, str(plain["failed"]), slowest, _metric(plain["ratio"])
            )
        console.print(rows)
        for each in standing.findings[:_SHOWN]:
            console.print(f"[bold red]rewarded as right[/], {each.family}: {escape(shown(each.text))}", soft_wrap=True)


def show_injections(console: Console, judged: Sequence[InjectionStanding]) -> None:
    """Print the kinds of injection that raised the score of a wrong answer, with counts and rewards."""
    for standing in judged:
        paid = f"{len(standing.paid)} of {len(standing.kinds)} kinds of injection raise the score of a wrong answer"
        result = f"not tried, {escape(standing.problem)}" if standing.problem else paid
        console.print(f"\n[bold]{standing.env}[/], judge: {result}", soft_wrap=True)
        rows = table("injection", "tried", "raised", "share", "unreadable", "max reward")
        shown_kinds = {kind: each.plain() for kind, each in standing.kinds.items()}
        for kind, plain in shown_kinds.items():
            if plain["raised"] or plain["unread"]:
                counts = [str(plain[key]) for key in ("tried", "raised")]
                rows.add_row(kind, *counts, f"{plain['share']:.0%}", str(plain["unread"]), _metric(plain["most"]))
        if rows.row_count:
            console.print(rows)


def _sentence(standing: EnvironmentStanding) -> str:
    if standing.problem:
        return f"not attacked, {escape(standing.problem)}"
    plain = standing.plain()
    bars = f"a right answer earns {_metric(plain['right'])}, a wrong one {_metric(plain['wrong'])}"
    if count := len(standing.findings):
        return f"{bars}; {count:,} of {plain['completions']:,} hostile completions are rewarded like a right answer"
    return f"{bars}; no exploit found" if standing.ratio is not None else f"{bars}: it does not separate them"


def _metric(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
