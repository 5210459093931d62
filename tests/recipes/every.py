"""Every recipe of the package as a run."""

from __future__ import annotations

from strop.recipes import build, find_recipes, parameters_of
from strop.run import Run


def every_run(teacher: str = "TEACHER") -> dict[str, Run]:
    """By name; what a recipe requires is a teacher's folder."""
    required = {
        name: [each.name for each in parameters_of(recipe).values() if each.is_required]
        for name, recipe in find_recipes().items()
    }
    return {name: build(recipe, dict.fromkeys(required[name], teacher)) for name, recipe in find_recipes().items()}
