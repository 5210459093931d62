"""Command `strop papers`: list of the implemented papers, or one paper as a page."""

from __future__ import annotations

import json

from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from strop.catalogue.pages import page_of
from strop.catalogue.papers import Paper, find_papers
from strop.catalogue.record import recipe_of
from strop.cli.fields.recipe_help import table, wide_console
from strop.errors import ConfigurationError, nearest


def show_papers(key: str, as_json: bool) -> None:
    """Print all papers or the one of a key, as text or JSON."""
    papers = find_papers()
    if key:
        papers = [_chosen(key, papers)]
    if as_json:
        print(json.dumps([paper.as_json() for paper in papers], indent=1))
    elif key:
        Console().print(Markdown(page_of(papers[0])))
    else:
        _list(papers)


def _chosen(key: str, papers: list[Paper]) -> Paper:
    """Paper by its key or its recipe's name."""
    known = {paper.key: paper for paper in papers}
    names = {paper.record.name: paper for paper in papers}
    if (found := known.get(key.lower()) or names.get(recipe_of(key))) is None:
        raise ConfigurationError(f"there is no paper {key!r}: {nearest(key, known)}")
    return found


def _list(papers: list[Paper]) -> None:
    console = wide_console()
    rows = table("paper", "measured effect", "method", is_cut=True)
    for paper in papers:
        rows.add_row(f"[cyan]{paper.key}[/]", _verdict(paper), escape(paper.record.line))
    console.print(rows)
    proven = sum(paper.effect is not None for paper in papers)
    proof = "tests and measured effects are not installed with the package"
    if all(paper.tests is not None for paper in papers):
        proof = f"{sum(bool(paper.tests) for paper in papers)} with tests, {proven} with a measured effect"
    console.print(f"\n{len(papers)} papers, {proof}. Details of one: [bold]strop papers nft[/]")


def _verdict(paper: Paper) -> str:
    if paper.effect is None:
        return ""
    colour = {"holds": "green", "does not hold": "red"}.get(paper.effect["verdict"], "yellow")
    return f"[{colour}]{paper.effect['verdict']}[/]"
