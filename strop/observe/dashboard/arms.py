"""Arms of an experiment: runs that differ only in their seed, with the mean and the spread of their curves."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from strop.observe.dashboard.live_run import LiveRun
from strop.observe.run_files.run_info import fields_of

_SEED = "seed"


class _Seedless(ast.NodeTransformer):
    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        plain = ast.Constant(0) if node.arg == _SEED else node.value
        return ast.keyword(node.arg, self.visit(plain))


def setting_of(recipe: Path) -> str:
    """A recipe file's run without its seeds: equal for runs that differ in nothing else."""
    fields = {name: value for name, value in fields_of(recipe).items() if name != _SEED}
    return "\n".join(f"{name}={ast.unparse(_Seedless().visit(value))}" for name, value in sorted(fields.items()))


def arms_of(runs: Sequence[LiveRun]) -> dict[str, list[LiveRun]]:
    """Runs by arm, in the order given; an arm is called like its first run, without that one's seed."""
    found: dict[str, list[LiveRun]] = {}
    for run in runs:
        found.setdefault(setting_of(run.folder.recipe) or run.name, []).append(run)
    named: dict[str, list[LiveRun]] = {}
    for each in found.values():
        each.sort(key=lambda run: int(run.settings.get(_SEED, 0)))
        short = re.sub(r"[-_.]?(seed|s)?[-_]?\d+$", "", each[0].name) if len(each) > 1 else each[0].name
        named[each[0].name if short in named or not short else short] = each
    return named
