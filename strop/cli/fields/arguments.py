"""Words of the command line: which recipe, which of its fields. Told apart, and mistyped ones refused, without torch.

`steps=50`, `--steps 50` and `--steps=50` are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.catalogue.fields import common_fields, imported_fields, parameters
from strop.catalogue.record import PACKAGE, recipe_files
from strop.errors import ConfigurationError, nearest

DEFAULT_RECIPE = "pocket"


@dataclass(frozen=True)
class Wish:
    """What was typed: a recipe, its overrides as text, and whether help is wanted instead."""

    recipe: str
    overrides: dict[str, str]
    wants_help: bool = False
    names_recipe: bool = False


def parse_words(words: Sequence[str]) -> Wish:
    """Tell the recipe from its fields."""
    recipe, overrides, wants_help = "", {}, False
    left = list(words)
    while left:
        word = left.pop(0)
        if word in ("--help", "-h"):
            wants_help = True
        elif word.startswith("--"):
            key, value = _option(word, left)
            overrides[key] = value
        elif "=" in word and not word.startswith("="):
            key, _, value = word.partition("=")
            overrides[_spelled(key)] = value
        elif recipe:
            raise ConfigurationError(f"{word!r} is neither a field nor a value: write field=value (recipe is {recipe})")
        else:
            recipe = word
    return Wish(recipe or DEFAULT_RECIPE, overrides, wants_help, bool(recipe))


def _option(word: str, left: list[str]) -> tuple[str, str]:
    """`--key=value`, `--key value`, or `--key` alone for true."""
    key, equals, value = word[2:].partition("=")
    if not equals:
        is_alone = not left or left[0].startswith("--") or ("=" in left[0] and not left[0].startswith("="))
        value = "true" if is_alone else left.pop(0)
    return _spelled(key), value


def _spelled(key: str) -> str:
    return key.strip().replace("-", "_")


def refuse_mistyped(wish: Wish) -> None:
    """Say at once that there is no such recipe or field, where the source alone can tell."""
    if wish.recipe.endswith(".py"):
        return
    files = recipe_files()
    if wish.recipe not in files:
        raise ConfigurationError(f"there is no recipe {wish.recipe!r}: {nearest(wish.recipe, files)}")
    path = files[wish.recipe]
    known = {field.name for field in parameters(path, wish.recipe)} | set(common_fields())
    # a dotted field, or the last word of one, is for the run itself to judge
    unknown = [key for key in wish.overrides if "." not in key and key not in known]
    if not unknown:
        return
    sources = (path, PACKAGE / "run.py", PACKAGE / "recipes" / "setting.py")
    inside = {field.name for source in sources for field in imported_fields(source)}
    for key in unknown:
        if key not in inside:
            raise ConfigurationError(f"recipe {wish.recipe} has no field {key!r}: {nearest(key, known)}")
