"""Command `strop show`: rollouts of a run as conversations, tokens coloured by advantage, probability or ratio."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from rich.console import Console
from rich.text import Text

from strop.errors import ConfigurationError
from strop.observe.report.templates import visible
from strop.observe.report.transcripts import Reader, Token, Utterance, contexts, telling
from strop.observe.run_files.run_info import read_facts
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Rollout

By = Literal["none", "advantage", "probability", "ratio", "version"]
_CANDIDATES = 64  # rollouts of a step from which those to show are chosen
_SHOWN = 2
_READ = 4000  # characters of the first prompt, special tokens and all
_SURE = 0.5  # probability below which a token stands out
_NEAR = (0.95, 1.05)  # ratios that do not stand out
_COLOURS = ("red", "yellow", "green", "cyan", "blue", "magenta")  # of versions
_ROLES = {"assistant": "bold green", "tool": "bold yellow", "env": "bold yellow"}


def show_rollouts(path: Path, wanted: str, step: int, by: str) -> None:
    """Show one rollout, or the best and the worst of a step's first task; default: the last trained step."""
    if by not in get_args(By):
        raise ConfigurationError(f"--by must be none, advantage, probability, ratio or version, got {by!r}")
    folder = RunFolder(path)
    folder.require_ledger()
    ledger, console = Ledger(folder.ledger, read_only=True), Console(highlight=False)
    try:
        chosen = [ledger.rollout(wanted)] if wanted else _of_step(ledger, step)
    finally:
        ledger.close()
    reader = Reader.of_run(folder, read_facts(folder).model)
    for rollout in chosen:
        console.print(_heading(rollout), soft_wrap=True)
        if rollout.turns:
            read = reader.whole(rollout.turns[0].prompt)[:_READ]
            console.print(Text(f"  read first: {visible(read)}", "dim"), soft_wrap=True)
        for context in contexts(rollout, reader):
            console.print(Text(f"  {visible(context.name)}", "dim"))
            for line in context.said:
                console.print(line_of(line, by), soft_wrap=True)


def _of_step(ledger: Ledger, step: int) -> list[Rollout]:
    trained = ledger.trained_steps()
    if not trained or (step and step not in trained):
        known = f"steps 1 to {trained[-1]} are trained" if trained else "no step is trained yet"
        raise ConfigurationError(f"no rollout was trained at step {step}: {known}")
    return telling(ledger.sample(step or trained[-1], _CANDIDATES), _SHOWN)


def _heading(rollout: Rollout) -> Text:
    score = f"reward {rollout.reward:.3g}" if rollout.is_scored else rollout.outcome.value
    head = f"{rollout.id}  {score}  {rollout.outcome.value}  {rollout.num_tokens} tokens  "
    failed = f"  {rollout.error}" if rollout.error else ""
    return Text(visible(f"\n{head}{rollout.task.source} level {rollout.task.level}{failed}"), "bold")


def line_of(line: Utterance, by: str) -> Text:
    """Role and message, tokens coloured by `by`."""
    shown = Text(f"    {line.role:<10}", _ROLES.get(line.role, "bold"))
    for name, _ in line.pictures:
        shown.append(f"(picture {visible(name)}) ", "dim")
    if not line.tokens:
        return shown.append(visible(line.text), "default")
    shown.append(visible(line.prefix), "dim underline")
    for token in line.tokens:
        shown.append(visible(token.text), _style(token, by))
    return shown


def _style(token: Token, by: str) -> str:
    match by:
        case "advantage" if token.advantage:
            return "green" if token.advantage > 0 else "red"
        case "probability" if token.probability < _SURE:
            return "yellow"
        case "ratio" if token.ratio is not None and not _NEAR[0] < token.ratio < _NEAR[1]:
            return "green" if token.ratio > 1 else "red"
        case "version" if token.version >= 0:
            return _COLOURS[token.version % len(_COLOURS)]
    return "default"
