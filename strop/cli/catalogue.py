"""Commands about recipes and papers: lists, and a choice for a setting."""

from __future__ import annotations

from typing import Annotated

import typer

from strop.cli.app import PASS_ON, AsJson, Debug, app


@app.command()
def recipes(
    asked: Annotated[str, typer.Argument(metavar="[CLASS|WORD]")] = "",
    debug: Debug = False,
) -> None:
    """List recipes: all, those of a class, or those whose description contains a word."""
    from strop.cli.fields.recipe_help import list_recipes

    list_recipes(asked)


@app.command("recommend", context_settings=PASS_ON)
def recommend_recipes(
    words: Annotated[list[str] | None, typer.Argument(metavar="[FIELD=VALUE ...]")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Choose among the recipes: a few questions lead to three, with reasons, what was measured, and commands."""
    from strop.cli.commands.recommend import recommend

    recommend(words or [], as_json)


@app.command()
def papers(
    key: Annotated[str, typer.Argument(metavar="[KEY]")] = "", as_json: AsJson = False, debug: Debug = False
) -> None:
    """List the implemented papers; with KEY: claim, interpretation, mechanisms, fields, tests, measured effect."""
    from strop.cli.commands.papers import show_papers

    show_papers(key, as_json)
