"""Parser of command-line words into a recipe and its fields; refuses mistyped ones without importing torch.

`steps=50`, `--steps 50` and `--steps=50` are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.catalogue.fields import common_fields, imported_fields, parameters
from strop.catalogue.record import PACKAGE, recipe_files, recipe_of
from strop.errors import ConfigurationError, nearest

DEFAULT_RECIPE = "pocket"


@dataclass(frozen=True)
class ParsedWords:
    """Parsed command line: recipe, overrides as text, and whether help was requested."""

    recipe: str
    overrides: dict[str, str]
    wants_help: bool = False
    names_recipe: bool = False


def parse_words(words: Sequence[str]) -> ParsedWords:
    """Separate the recipe from its fields."""
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
            raise ConfigurationError(f"{word!r} is not FIELD=VALUE, and the recipe is already {recipe}")
        else:
            recipe = word
    return ParsedWords(recipe_of(recipe or DEFAULT_RECIPE), overrides, wants_help, bool(recipe))


def _option(word: str, left: list[str]) -> tuple[str, str]:
    """`--key=value`, `--key value`, or `--key` alone for true."""
    key, equals, value = word[2:].partition("=")
    if not equals:
        is_alone = not left or left[0].startswith("--") or ("=" in left[0] and not left[0].startswith("="))
        value = "true" if is_alone else left.pop(0)
    return _spelled(key), value


def _spelled(key: str) -> str:
    return key.strip().replace("-", "_")


def refuse_mistyped(typed: ParsedWords) -> None:
    """Refuse an unknown recipe or field, as far as the source files show it."""
    if typed.recipe.endswith(".py"):
        return
    files = recipe_files()
    if typed.recipe not in files:
        raise ConfigurationError(f"there is no recipe {typed.recipe!r}: {nearest(typed.recipe, files)}")
    path = files[typed.recipe]
    known = {field.name for field in parameters(path, typed.recipe)} | set(common_fields())
    # dotted fields, and last words of them, are checked when the run is built
    unknown = [key for key in typed.overrides if "." not in key and key not in known]
    if not unknown:
        return
    sources = (path, PACKAGE / "run.py", PACKAGE / "recipes" / "setting.py")
    inside = {field.name for source in sources for field in imported_fields(source)}
    for key in unknown:
        if key not in inside:
            raise ConfigurationError(f"recipe {typed.recipe} has no field {key!r}: {nearest(key, known)}")
