"""Command `strop recommend`: seven questions, asked on a terminal or given as fields, and three recipes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.markup import escape

from strop.catalogue.choice import QUESTIONS, SHOWN, Situation, command, evidence, recommended, situation_of
from strop.catalogue.record import records
from strop.errors import ConfigurationError


def recommend(words: Sequence[str], as_json: bool) -> None:
    """Print three recipes for a situation; questions without an answer are asked where somebody can answer."""
    given = dict(_field(word) for word in words)
    situation_of(given)  # refuses a wrong word before anything is asked
    if not given and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        given = _ask()
    asked, known = situation_of(given), records()
    found = recommended(asked)
    if as_json:
        rows = [
            {"recipe": each.recipe, "why": each.why, "command": command(asked, each)}
            | {"evidence": evidence(known[each.recipe])}
            for each in found
        ]
        print(json.dumps(rows, indent=1))
        return
    console = Console(highlight=False)
    if not given:
        console.print("For answers=answers, one turn and a CPU; your own setting: " + _how())
    for each in found:
        console.print(f"\n[bold cyan]{each.recipe}[/]: {escape(each.why)}")
        for line in evidence(known[each.recipe]):
            console.print(f"  {escape(line)}")
        console.print(f"  [bold]{escape(command(asked, each))}[/]", soft_wrap=True)
    console.print("\nTry them on your tasks at equal tokens: " + _comparison([each.recipe for each in found]))


def show_choice(console: Console) -> None:
    """First screen of `strop recipes`: common settings with three recipes each."""
    from strop.cli.fields.recipe_help import table

    rows = table("your setting", "try first", "")
    for title, answers in SHOWN:
        first, *others = [each.recipe for each in recommended(situation_of(answers))]
        rows.add_row(title, f"[bold cyan]{first}[/]", ", ".join(others))
    console.print(rows)
    console.print("[bold]strop recommend[/] asks about your setting and says why, with what was measured.\n")


def _field(word: str) -> tuple[str, str]:
    name, equals, value = word.removeprefix("--").partition("=")
    if not equals:
        raise ConfigurationError(f"{word!r} is not FIELD=VALUE; " + _how())
    return name, value


def _ask() -> dict[str, str]:
    """Answers typed on the terminal; empty ones keep the default."""
    answers = {}
    for name, (question, choices) in QUESTIONS.items():
        options = f" ({', '.join(choices)})" if choices else ""
        said = typer.prompt(f"{question}{options}", default=str(getattr(Situation, name)))
        answers[name] = str(said).strip().lower()
        situation_of(answers)
    return answers


def _how() -> str:
    fields = " ".join(f"{name}={'|'.join(choices) or 'NUMBER'}" for name, (_, choices) in QUESTIONS.items())
    return f"strop recommend {fields} model=MODEL env=FILE.jsonl"


def _comparison(names: Sequence[str]) -> str:
    return f"strop compare {' '.join(names)} env=FILE.jsonl"
