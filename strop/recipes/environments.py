"""Parser of environment names: `arithmetic:3+compose:1`, `reasoning_gym/gcd`, `FILE.py:NAME`, `dataset:ID`,
`episodes:FILE.jsonl`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from strop.environments import bundled
from strop.environments.bundled.notebook import Notebook
from strop.environments.bundled.programs import Programs
from strop.environments.code.code_table import code_table
from strop.environments.code_execution import Isolation, Trials
from strop.environments.data.recorded_episodes import Recorded
from strop.environments.data.table import Table
from strop.environments.tools.python_notebook import Cells
from strop.errors import ConfigurationError, nearest
from strop.recipes.dataset_paths import chosen_dataset
from strop.roles import Environment
from strop.storage.named_files import load_module

_DATASET, _EPISODES = "dataset:", "episodes:"
_TABLES = (".jsonl", ".json", ".parquet", ".csv")
_AS_FOUND = Table("")  # usual column names; the answer rule is inferred from the answers


def parse_envs(
    text: str, seed: int = 0, table: Table = _AS_FOUND, isolation: Isolation = "sandbox"
) -> tuple[Environment, ...]:
    """The environments named in a text, joined by +; task files are read with the options of `table`.

    `isolation` applies to environments that run programs written by the model.
    """
    parts = [text] if Path(text.removeprefix(_DATASET)).exists() else text.split("+")  # a file name may contain +
    return _told_apart([_isolated(_parse(part.strip(), seed, table), isolation) for part in parts])


def _told_apart(envs: list[Environment]) -> tuple[Environment, ...]:
    """Tables of one name get the names of their folders too: records and lookups know an environment by its name."""
    paths: dict[str, set[str]] = {}
    for env in envs:
        paths.setdefault(env.name, set()).update([env.path] if isinstance(env, Table) else [])
    return tuple(
        replace(env, title=_distinct(Path(env.path), paths[env.name]))
        if isinstance(env, Table) and len(paths[env.name]) > 1
        else env
        for env in envs
    )


def _distinct(path: Path, others: Collection[str]) -> str:
    """The last folders of a path that no other path ends in, and its own name."""
    whole = path.resolve().with_suffix("").parts[1:]
    rest = [Path(each).resolve().with_suffix("").parts[1:] for each in others if Path(each) != path]
    count = next((n for n in range(2, len(whole) + 1) if all(each[-n:] != whole[-n:] for each in rest)), len(whole))
    return "-".join(whole[-count:])


def _isolated(env: Environment, isolation: Isolation) -> Environment:
    if isinstance(env, Table):
        return code_table(env, isolation)
    if isinstance(env, Notebook):
        return replace(env, cells=Cells(isolation))
    return replace(env, trials=Trials(isolation)) if isinstance(env, Programs) else env


def bundled_envs() -> dict[str, Callable[..., Any]]:
    """The bundled environments with levels: in a module of that name, a class with that `name`."""
    names = sorted(each.name for each in pkgutil.iter_modules(bundled.__path__))
    found = {name: _kind(name) for name in names}
    return {name: kind for name, kind in found.items() if kind is not None}


def is_bundled_env(text: str) -> bool:
    """Whether a text names one of the bundled environments, with or without its level."""
    name = text.strip().partition(":")[0]
    return name.isidentifier() and find_spec(f"{bundled.__name__}.{name}") is not None


def _kind(name: str) -> Callable[..., Any] | None:
    """The environment's class; only its module is imported, as some environments load slow libraries."""
    if not name.isidentifier() or not find_spec(path := f"{bundled.__name__}.{name}"):
        return None
    module = importlib.import_module(path)
    kinds = [
        value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
    ]
    return next((kind for kind in kinds if vars(kind).get("name") == name and _takes_level(kind)), None)


def _takes_level(kind: type) -> bool:
    """Whether the environment has a level; wrappers of other environments have none."""
    return is_dataclass(kind) and fields(kind)[0].name == "level"


def _parse(text: str, seed: int, table: Table) -> Environment:
    if text.startswith("reasoning_gym/"):
        from strop.environments.external.reasoning_gym import ReasoningGym

        return ReasoningGym(text.removeprefix("reasoning_gym/"), seed=seed)
    if text.startswith("gymnasium/"):
        from strop.environments.external.gymnasium import GymText
        from strop.environments.isolation.subprocess import Apart

        return Apart(GymText(text.removeprefix("gymnasium/"), seed))
    if text.startswith("verifiers/"):
        from strop.environments.external.verifiers import VerifiersTasks
        from strop.environments.isolation.subprocess import Apart

        return Apart(VerifiersTasks(text.removeprefix("verifiers/")))
    if text.startswith("drill/"):
        from strop.environments.external.reasoning_gym_small import Drill

        dataset, _, level = text.removeprefix("drill/").partition(":")
        return Drill(dataset, _level(text, level), seed)
    if text.startswith(_EPISODES):
        return Recorded(text.removeprefix(_EPISODES))
    if text.startswith(_DATASET) or text.endswith(_TABLES):
        return replace(table, path=chosen_dataset(text.removeprefix(_DATASET)))
    if ".py:" in text:
        return _own(text)
    return _levelled(text, seed)


def _own(text: str) -> Environment:
    """An environment of somebody's own: a class that needs no arguments, a function that makes one, or the thing."""
    file, _, name = text.rpartition(":")
    if not Path(file).is_file():
        raise ConfigurationError(f"env={text}: there is no file {file}")
    members = vars(load_module(Path(file)))
    if name not in members:
        raise ConfigurationError(f"env={text}: the file defines no {name}; {nearest(name, [*members])}")
    found = members[name]
    try:
        env: Environment = found if Environment in type(found).__mro__ else found()
    except TypeError as error:
        raise ConfigurationError(f"env={text}: {name} must need no arguments: {error}") from None
    if Environment not in type(env).__mro__:
        raise ConfigurationError(f"env={text} must be an Environment, got {type(env).__name__}")
    return env


def _levelled(text: str, seed: int) -> Environment:
    name, _, level = text.partition(":")
    kind = _kind(name)
    if kind is None:
        raise ConfigurationError(
            f"there is no environment {name!r}: {nearest(name, bundled_envs())}; "
            "or reasoning_gym/NAME, gymnasium/NAME, verifiers/NAME, drill/NAME:LEVEL, FILE.jsonl, "
            "FILE.py:NAME, episodes:FILE.jsonl, dataset:FOLDER, dataset:OWNER/NAME (of the Hugging Face hub)"
        )
    env: Environment = kind(_level(text, level), seed)
    return env


def _level(text: str, level: str) -> int:
    if level and not level.isdigit():
        raise ConfigurationError(
            f"an environment's level must be a whole number, as in {text.partition(':')[0]}:2, got {text!r}"
        )
    return int(level or 1)
