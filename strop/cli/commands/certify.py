"""Command `strop attack ... --report`: one certificate per attacked environment, as a page and as JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from strop.attack.certificate.certificate import Certificate
from strop.attack.certificate.certificate_page import page
from strop.attack.certificate.certify import certified
from strop.attack.results import shown
from strop.roles import Environment, Reward

_SHOWN = 10  # findings


def write_certificates(
    subject: str, attacks: Sequence[tuple[Environment, tuple[Reward, ...]]], how: tuple[int, int, float], folder: Path
) -> int:
    """Certify each environment, print the result and the paths; returns 1 if there is a fault."""
    completions, seed, seconds = how
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for env, rewards in attacks:
        found.append(asyncio.run(certified(subject, rewards, env, completions, seed, seconds)))
        _show(found[-1], _written(found[-1], folder))
    return int(any(not each.is_passed for each in found))


def _written(certificate: Certificate, folder: Path) -> Path:
    """Write the JSON file and the page of a certificate; returns the page's path."""
    subject = "" if certificate.subject in certificate.env else f"{Path(certificate.subject).name}-"
    name = re.sub(r"[^\w.=-]+", "-", f"certificate-{subject}{certificate.env}")
    (folder / f"{name}.json").write_text(json.dumps(certificate.plain(), indent=1) + "\n")
    path = folder / f"{name}.html"
    path.write_text(page(certificate), errors="replace")
    return path


def _show(certificate: Certificate, path: Path) -> None:
    console = Console(highlight=False)
    colour, verdict = ("green", "pass") if certificate.is_passed else ("red", "fail")
    tried = sum(each.tried for each in certificate.checks)
    counts = f"{len(certificate.faults)} faults, {len(certificate.warnings)} warnings, {tried:,} tried"
    console.print(f"[bold]{escape(certificate.env)}[/]: [{colour}]{verdict}[/], {counts}", soft_wrap=True)
    for name, each in [*certificate.faults, *certificate.warnings][:_SHOWN]:
        kind = "[yellow]warning[/]" if each.is_warning else "[bold red]fault[/]"
        example = f": {escape(shown(each.example))}" if each.example else ""
        console.print(f"  {kind}, {escape(name)}: {escape(each.text)}{example}", soft_wrap=True)
    for check in certificate.checks:
        if check.left_out:
            console.print(f"  [dim]left out, {escape(check.name)}: {escape(check.left_out)}[/]", soft_wrap=True)
    console.print(f"  {path} and {path.with_suffix('.json').name}", soft_wrap=True)
