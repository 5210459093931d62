"""`strop papers`: what exists of the listed papers."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from strop.papers import Paper, find_papers


def show_papers(as_json: bool) -> None:
    """A table of what exists and how much that is, or everything as JSON."""
    papers = find_papers()
    if as_json:
        print(json.dumps([asdict(paper) for paper in papers], indent=1))
        return
    present = [paper for paper in papers if paper.mechanisms]
    console = Console()
    console.print(_table(present))
    proven = sum(paper.effect is not None for paper in present)
    tested = sum(bool(paper.tests) for paper in present)
    console.print(
        f"\n{len(present)} of {len(papers)} listed papers have a mechanism here; "
        f"{tested} of them have tests, {proven} a measured effect.",
        highlight=False,
    )


def _table(papers: list[Paper]) -> Table:
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for title in ("paper", "mechanisms", "recipes", "tests", "effect"):
        table.add_column(title, overflow="fold", justify="right" if title == "tests" else "left")
    for paper in papers:
        table.add_row(
            f"[bold]{paper.key}[/]\n[dim]{escape(_shortened(paper.title))}[/]",
            "\n".join(name.removeprefix("strop.") for name in paper.mechanisms),
            "\n".join(name.rpartition(".")[2] for name in paper.recipes),
            str(len(paper.tests)),
            _effect(paper),
        )
    return table


def _shortened(title: str, most: int = 48) -> str:
    return title if len(title) <= most else title[: most - 1].rstrip() + "…"


def _effect(paper: Paper) -> str:
    if paper.effect is None:
        return "[dim]–[/]"
    effect = paper.effect
    colour = {"holds": "green", "does not hold": "red"}.get(effect["verdict"], "yellow")
    return f"[{colour}]{effect['verdict']}[/]\n{100 * effect['difference']:+.1f} points"
