"""Recipes: functions that return a `Run`, one per file; the file's name is the recipe's name.

Folders group recipes by the topic of their papers; names are unique over all folders. A paper of several files is a
folder with a `recipe.py`. A recipe's parameters are its own and the fields of its `Setting`. Nothing heavy is imported
here: a process that scores completions imports a paper's `reward.py` alone.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from strop.capabilities import inside
from strop.catalogue.record import recipe_files, recipe_of
from strop.errors import ConfigurationError, nearest
from strop.filter.rewards.python_function import PythonFunction

if TYPE_CHECKING:
    from strop.recipes.setting import Setting
    from strop.run import Run

Recipe: TypeAlias = "Callable[..., Run]"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a recipe: a field of its `Setting` or its own."""

    name: str
    type: Any
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty


def find_recipes() -> dict[str, Recipe]:
    """All recipes of the package by name."""
    return {name: _imported(name, path) for name, path in recipe_files().items()}


def recipe_named(name: str) -> Recipe:
    """The recipe of this name; no other recipe is imported."""
    files, name = recipe_files(), recipe_of(name)
    if name not in files:
        raise ConfigurationError(f"there is no recipe {name!r}: {nearest(name, files)}")
    return _imported(name, files[name])


def _imported(name: str, path: Path) -> Recipe:
    parts = path.relative_to(Path(__file__).parent).with_suffix("").parts
    return cast("Recipe", getattr(importlib.import_module(".".join((__name__, *parts))), name))


def parameters_of(recipe: Recipe) -> dict[str, Parameter]:
    """A recipe's parameters: the fields of its setting first, then its own."""
    from strop.recipes.setting import Setting

    found: dict[str, Parameter] = {}
    types = typing.get_type_hints(recipe)
    for name, parameter in inspect.signature(recipe).parameters.items():
        if isinstance(parameter.default, Setting):
            kinds = typing.get_type_hints(Setting)
            for field in fields(Setting):
                found[field.name] = Parameter(field.name, kinds[field.name], getattr(parameter.default, field.name))
        else:
            found[name] = Parameter(name, types.get(name, str), parameter.default)
    return found


def _without_toy_temperature(setting: Setting, given: Mapping[str, Any]) -> Setting:
    """A recipe's temperature above 1 is for the bundled model and environments alone."""
    is_toy = setting.temperature > 1 and "temperature" not in given and not setting.is_bundled
    return replace(setting, temperature=1.0) if is_toy else setting


def build(recipe: Recipe, values: Mapping[str, Any]) -> Run:
    """The run of a recipe called with these parameters."""
    from strop.recipes.named_parts import fitted
    from strop.recipes.setting import Setting
    from strop.run import Run

    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(recipe).parameters.items():
        if isinstance(parameter.default, Setting):
            of_setting = {field.name for field in fields(Setting)}
            given = {k: v for k, v in values.items() if k in of_setting}
            arguments[name] = _without_toy_temperature(replace(parameter.default, **given), given)
        elif name in values:
            arguments[name] = values[name]
    known = parameters_of(recipe)
    if unknown := sorted(set(values) - set(known)):
        raise ConfigurationError(f"recipe {recipe.__name__} has no field {unknown[0]!r}: {nearest(unknown[0], known)}")
    if missing := [name for name, parameter in known.items() if parameter.is_required and name not in values]:
        description = (inspect.getdoc(recipe) or "").splitlines()
        raise ConfigurationError(f"{recipe.__name__} needs {missing[0]}=...: {' '.join(description[:1])}")
    run = recipe(**arguments)
    for setting in (each for each in arguments.values() if isinstance(each, Setting) and isinstance(run, Run)):
        fitted(run, setting.device, setting.engine)
    if ".py:" in values.get("reward", "") and isinstance(run, Run) and not inside(run.rewards, PythonFunction):
        raise ConfigurationError(f"{recipe.__name__} has rewards of its own, so reward={values['reward']} does nothing")
    return run
