"""Every recipe of the package as a run."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from strop.catalogue.record import recipe_files
from strop.errors import ConfigurationError
from strop.recipes import Parameter, build, parameters_of, recipe_named
from strop.recipes.setting import Setting
from strop.run import Run

SIZES = {"seed": 3, "groups_per_step": 16, "group_size": 6, "steps": 70}
SIZES |= {"learning_rate": 7e-5, "max_tokens": 48, "temperature": 0.8}
OF_SETTING = {field.name for field in fields(Setting)}
# another choice for a parameter that is a word or has few values
WORDS: dict[str, Any] = {
    "anchor": "averaged",
    "by_hardness": True,
    "correction": "masked",
    "advantage": "group",
    "direction": "forward",
    "estimator": "k3",
    "form": "delta",
    "mask": "group",
    "metric": "length",
    "old": "averaged",
    "rule": "mean",
    "scale": "median_std",
    "shape": "linear",
    "sides": "negative",
    "stage": 1,
    "task_weight": "root",
    "where": "inline",
}


def every_run(teacher: str = "TEACHER") -> dict[str, Run]:
    """By name; what a recipe requires is a teacher's folder."""
    return {name: plain_run(name, teacher) for name in recipe_files()}


def plain_run(name: str, teacher: str = "TEACHER") -> Run:
    recipe = recipe_named(name)
    required = [each.name for each in parameters_of(recipe).values() if each.is_required]
    return build(recipe, dict.fromkeys(required, teacher))


def other_run(name: str) -> Run:
    """Everything that can be chosen is chosen otherwise, unless the recipe refuses it."""
    recipe = recipe_named(name)
    known = parameters_of(recipe).values()
    values = {each.name: _other(each) for each in known if each.is_required}
    for each in known:
        try:
            build(recipe, values | {each.name: _other(each)})
        except ConfigurationError:
            continue
        values[each.name] = _other(each)
    return build(recipe, values)


def _other(parameter: Parameter) -> Any:
    default = parameter.default
    if parameter.name in OF_SETTING:
        return SIZES.get(parameter.name, default)
    if parameter.is_required or default == "":
        return "FOLDER"
    if parameter.name in WORDS:
        return WORDS[parameter.name]
    if isinstance(default, bool):
        return not default
    if default is None or isinstance(default, float):
        return round(0.9 * default, 9) if default else 0.125
    if isinstance(default, int):
        return default + 1
    return default
