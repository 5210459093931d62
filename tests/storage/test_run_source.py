"""A run as Python: what is one part in a run is one part in its file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strop.generate.memory.store import Library, add
from strop.storage.checkpoint import remind
from strop.storage.run_source import from_source, to_source
from strop.types import Message


@dataclass
class Reader:
    library: Library
    message: Message = field(default_factory=lambda: Message("user", "x"))


@dataclass
class Whole:
    one: Reader
    other: Reader
    own: Library
    words: tuple[Message, ...] = ()


@dataclass
class Keeper:
    """Has a memory, and something with one inside."""

    library: Library

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


def again(run: Any, folder: Path) -> Any:
    path = folder / "recipe.py"
    path.write_text(to_source(run, "a run"))
    made = from_source(path, trust=True)
    assert to_source(made, "a run") == path.read_text()
    return made


def test_a_memory_that_stands_in_two_places_stays_one(tmp_path: Path) -> None:
    library, said = Library(most=7), Message("user", "same")
    made = again(Whole(Reader(library, said), Reader(library, said), Library(most=7), (said, said)), tmp_path)
    assert made.one.library is made.other.library and made.own is not made.one.library
    assert made.one.library.most == 7 and made.one.message is not made.other.message, "what has no memory is spelled"


def test_a_shared_part_may_hold_another(tmp_path: Path) -> None:
    keeper = Keeper(Library())
    made = again(Whole(keeper, keeper, keeper.library), tmp_path)  # type: ignore[arg-type]
    assert made.one is made.other and made.one.library is made.own


def test_a_run_that_is_measured_again_has_its_memory(tmp_path: Path) -> None:
    library = Library()
    library.carry_out(add("careful:", "sums"))
    (tmp_path / "roles.json").write_text(f'{{"roles": {{"evaluation.library": {json.dumps(library.state())}}}}}')
    fresh = Reader(Library())
    remind(tmp_path, fresh)
    assert fresh.library.on("") == library.on("")
