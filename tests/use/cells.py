"""One cell of the matrix: a recipe in a situation, as a run of a few steps, and what came of it."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from strop.catalogue.acts import read_acts
from strop.catalogue.record import Record
from strop.cli.fields.overrides import make_run
from strop.environments.data.table import Table
from strop.errors import StropError
from strop.launch.checks.preflight_all import make_ready
from strop.launch.running.launch import launch
from strop.observe.health.mechanism import NeverActed
from strop.observe.run_files.run_history import read_history
from strop.recipes import parameters_of, recipe_named
from strop.run import Run
from strop.storage.run_folder import RunFolder, read_rows
from strop.types import Metrics
from tests.use.models import BUILD
from tests.use.situations import Situation, bring, uses_parts
from tests.use.stubs import stub

SIZES = {"steps": 2, "groups_per_step": 4, "group_size": 4, "max_tokens": 48, "learning_rate": 3e-4}
SIZES |= {"heldout_tasks": 1, "heldout_every": 0}
ROLLOUTS = 16  # of one step
# seeds, further steps and steps of a warm-up: the next where a metric did not move with the one before
TRIES = ((0, 0, 0), (1, 2, 0), (2, 8, 0), (3, 4, 20))
LATER = {"alp_gmm", "cures", "dots_rr", "lightsearcher", "mssr", "xskill"}  # a task must come back
# of one table, where a record counts several environments
OWN = {"adcl_egsr": {"tasks": "16"}, "gdro": {"tasks": "8"}, "sws": {"seeds": "24"}}
SITUATION = ("env", "model", "temperature", "warmup_steps")  # of `Acts: ... with`: the user's own, not the record's
_STARVED = "groups were dropped meanwhile"  # of a run that found no group to learn from
_LONGEST = 300  # letters of a reason

ACTS, REFUSED = "acts", "refused"
RED = ("partly", "silent", "stopped", "traceback", "late", "held-out", "sign")


@dataclass(frozen=True)
class Cell:
    """What came of a recipe in a situation."""

    verdict: str  # acts, refused, or one of RED
    said: str = ""  # why, where it did not act
    lean: float | None = None  # advantage of right rollouts of step 1 beyond that of wrong ones

    @property
    def is_red(self) -> bool:
        return self.verdict in RED


@dataclass
class Began:
    """Watcher that knows whether a run was refused before it began."""

    is_begun: bool = False

    def begins(self, title: str, steps: int, max_tokens: int = 0) -> None:
        self.is_begun = True

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        pass


def play(record: Record, situation: Situation, models: Mapping[str, str], here: Path) -> Cell:
    """Run the cell in a folder of its own; the worst of its settings counts."""
    bring(situation, here)
    found = [
        _play(record, situation, settings, models, here / str(place))
        for place, settings in enumerate(situation.settings)
    ]
    return max(found, key=lambda cell: (cell.is_red, cell.verdict == REFUSED))


def _play(
    record: Record, situation: Situation, settings: Mapping[str, str], models: Mapping[str, str], here: Path
) -> Cell:
    cell = Cell("silent", "it was not tried")
    known = parameters_of(recipe_named(record.name))
    for seed, more, warmup in TRIES:
        if warmup and "warmup_steps" not in known:
            continue
        before = cell
        with stub() as asked:
            values = fields_of(record, situation, models, asked.url, more) | dict(settings) | {"seed": str(seed)}
            values |= {"warmup_steps": str(warmup)} if warmup else {}
            values = {name: value.format(here=here.parent) for name, value in values.items()}
            if values.get("folder") == "PEER":
                values["folder"] = str(here / f"shared-{seed}")
                once(record, values | {"node": "peer"}, here / f"peer-{seed}")
            cell = once(record, values, here / str(seed))
            if situation.stubs and cell.verdict == ACTS and not asked.asked and uses_parts(record.name):
                cell = Cell("silent", "no part was asked anything")
        if warmup:
            return replace(cell, said=f"with warmup_steps={warmup}") if cell.verdict == ACTS else before
        if cell.verdict not in ("silent", "partly") and _STARVED not in cell.said:
            break
    return cell


def fields_of(
    record: Record, situation: Situation, models: Mapping[str, str], url: str, more: int = 0
) -> dict[str, str]:
    """The recipe's fields as text: small sizes, what its record asks for, and what the user has."""
    known = parameters_of(recipe_named(record.name))
    size = min(int(SIZES["group_size"]), known["group_size"].default)
    steps = SIZES["steps"] + more + 2 * (record.name in LATER)
    chosen = SIZES | {"group_size": size, "groups_per_step": ROLLOUTS // size, "steps": steps}
    fields = {name: str(value) for name, value in chosen.items()}
    family = "other" if situation.model == "other" else "own"
    for name, value in read_acts(record.acts).fields.items():
        if name not in SITUATION:
            fields[name] = models.get(f"{family} {value}", value)
    fields |= OWN.get(record.name, {})
    if situation.number == 5 and "pairs" in known:
        fields["pairs"] = "given"
    if situation.stubs:
        fields |= dict.fromkeys(uses_parts(record.name), f"{url}#stub")
        fields |= {"experts": f"small:1={url}#stub,large:4={url}#stub"} if "experts" in fields else {}
    return fields | {"env": situation.env, "model": models.get(situation.model, situation.model)}


def once(record: Record, values: Mapping[str, str], folder: Path) -> Cell:
    """One run: refused, stopped, or judged by its metrics and its ledger."""
    began = Began()
    try:
        run = make_run(recipe_named(record.name), values)
        run.warmup = shortened(run.warmup)
        make_ready(run)
        aside = list(held_out(run))
        launch(run, folder.parent, folder.name, [began])
    except StropError as error:
        return Cell("stopped" if began.is_begun else REFUSED, sentence(str(error)))
    except Exception as error:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Cell(
            "traceback", sentence(f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})")
        )
    return judged(RunFolder(folder), aside)


def shortened(warmup: Run | None) -> Run | None:
    """A warm-up with fewer examples in each step."""
    if warmup is None:
        return None
    size = min(warmup.groups_per_step, ROLLOUTS)
    return replace(warmup, groups_per_step=size, warmup=shortened(warmup.warmup))


def sentence(text: str) -> str:
    """One line without places that differ from run to run."""
    plain = " ".join(text.replace(f"{BUILD}/", "").split())
    plain = re.sub(r"/\S*/(?=(rows\.jsonl|own\.py))", "", plain)
    plain = re.sub(
        r"http://127\.0\.0\.1:\d+", "http://STUB", re.sub(r"/dev/shm/\S*?/(?=\w+)|/tmp/\S*?/(?=\w+)", "", plain)
    )
    return plain[:_LONGEST]


def judged(folder: RunFolder, aside: Sequence[str]) -> Cell:
    """What its own records say of a run that came to its end."""
    rows = read_rows(folder.metrics)
    ledger = sqlite3.connect(folder.ledger)
    try:
        lean, seen = leaning(ledger), trained_on(ledger, aside)
    finally:
        ledger.close()
    odd = sorted(
        {key for row in rows for key, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
    )
    if seen:
        return Cell("held-out", f"trained on {seen!r}", lean)
    if odd:
        return Cell("silent", f"not finite: {', '.join(odd)}", lean)
    finding = NeverActed().judge(read_history(folder))
    if finding is None:
        return Cell(ACTS, "", lean)
    return Cell("silent" if finding.is_grave else "partly", sentence(finding.evidence), lean)


def held_out(run: Run) -> Iterator[str]:
    """Prompts of a table's rows that must never be trained on."""
    for env in run.envs:
        inner = env
        while (within := getattr(inner, "inner", None)) is not None:
            inner = within
        if isinstance(inner, Table):
            for place in range(inner.num_tasks(heldout=True)):
                yield inner.task(place, heldout=True).messages[-1].content


def trained_on(ledger: sqlite3.Connection, aside: Sequence[str]) -> str:
    """A held-out prompt within a task that was trained on; empty where there is none."""
    query = "SELECT DISTINCT t.messages FROM rollouts a JOIN tasks t ON t.id = a.task WHERE a.fate = 'trained'"
    trained = [message["content"] for (text,) in ledger.execute(query) for message in json.loads(text)]
    for prompt in aside:
        whole = re.compile(rf"(?<![\d+]){re.escape(prompt)}")
        if any(whole.search(text) for text in trained):
            return prompt
    return ""


def leaning(ledger: sqlite3.Connection) -> float | None:
    """Mean advantage of the right rollouts of step 1, less that of the wrong ones; None where either is missing."""
    query = (
        "SELECT t.advantage, json_extract(a.facts, '$.success') FROM trainings t JOIN rollouts a ON a.id = t.rollout "
        "WHERE t.step = 1 AND a.origin = 'policy' AND t.advantage IS NOT NULL"
    )
    sides: dict[bool, list[float]] = {True: [], False: []}
    for advantage, right in ledger.execute(query):
        if right in (0, 1):
            sides[bool(right)].append(float(np.frombuffer(advantage, "<f4").mean()))
    if not sides[True] or not sides[False]:
        return None
    return round(float(np.mean(sides[True]) - np.mean(sides[False])), 4)
