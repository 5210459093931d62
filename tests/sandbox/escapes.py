"""Attacks in one place as the user who asks: `python -m tests.sandbox.escapes PLACE [--every N] [--name TEXT]`.

PLACE is `control` (no isolation), `files`, `no files` or `bubble`. Prints one JSON object: for each attack the evidence
that it won there, and how it ended. A place whose witness does not answer before any attack is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from strop.sandbox.execution import Ending, Ran
from tests.sandbox.attacks import ATTACKS, SLOW, Attack, Control
from tests.sandbox.outside import VICTIM, Outside
from tests.sandbox.places import PLACES, place
from tests.sandbox.shared import join_session

SECRET = "s3cret"
_LATE = "it outlived its time"
_LANES, _GRACE = 3, 15.0  # the second in seconds, for isolation and a busy machine


@contextmanager
def surroundings() -> Iterator[str]:
    """A few things outside, as JSON: a file, a port, a process."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder) / "secret"
        secret.write_text(SECRET)
        yield json.dumps({"secret": str(secret), "port": server.getsockname()[1], "parent": os.getpid()}) + "\n"


class Lane:
    """One place and one outside, used until an attack won; then both are made anew."""

    def __init__(self, name: str) -> None:
        self._name, self._usual = name, dict[Control, str]()
        self._place, self._outside = place(name), Outside()

    async def tried(self, attack: Attack) -> dict[str, Any]:
        """What one attack won, and how it ended."""
        if attack.control not in self._usual:
            await self._prepared(attack)
            usual = self._usual[attack.control] = await self._place.witness(attack)
            if usual and not usual.startswith(Ending.FINISHED.value):
                raise RuntimeError(f"an honest program does not end well in {self._name}: {usual}")
            await self._renewed()
        won, ran = await self._won(attack)
        if won == [_LATE] and self._name != "control":  # an attack that gains time does so again, a busy machine rarely
            await self._renewed()
            won, ran = await self._won(attack)
        if won or self._name == "control":
            await self._renewed()
        return {"won": won, "ending": ran.ending.value, "said": ran.stderr[-200:]}

    async def close(self) -> None:
        self._outside.close()
        await self._place.close()

    async def _won(self, attack: Attack) -> tuple[list[str], Ran]:
        await self._prepared(attack)
        folder = str(self._outside.canaries.own) if attack.has_folder else ""
        begun, told = time.monotonic(), self._outside.told(attack)
        running = asyncio.ensure_future(self._place.run(attack, *told, folder))
        try:
            ran = await self._outside.visited(attack, running)
        except Exception as error:  # whoever asked for a run must get an answer
            ran = Ran(Ending.LOST, stderr=f"{type(error).__name__}: {error}")
        won = self._outside.breaches(attack, ran, self._name == "control")
        won += self._misjudged(attack, ran, time.monotonic() - begun)
        usual, now = self._usual[attack.control], await self._place.witness(attack)
        won += [f"the witness said {_difference(usual, now)}"] if now != usual else []
        if attack.has_folder:
            await asyncio.to_thread(self._outside.empty_own)  # 30,000 folders are a quarter of a minute on some disks
        return won, ran

    def _misjudged(self, attack: Attack, ran: Ran, seconds: float) -> list[str]:
        is_timed = attack.family == "time and output" and attack.seconds <= 1
        is_late = seconds > attack.seconds + _GRACE or (
            self._name == "control" and is_timed and ran.ending is Ending.TIMEOUT
        )
        is_blamed = ran.ending in (Ending.LOST, Ending.SETUP)
        return [_LATE] * is_late + [f"its end is {ran.ending.value}"] * is_blamed

    async def _prepared(self, attack: Attack) -> None:
        """A program ran before, which holds a secret."""
        if attack.control is Control.NAIVE:
            await self._place.run(attack, VICTIM.replace("{token}", self._outside.token), "", "")

    async def _renewed(self) -> None:
        await self.close()
        self._place, self._outside = place(self._name), Outside()


def _difference(usual: str, now: str) -> str:
    """Where two texts part."""
    at = next((n for n, pair in enumerate(zip(usual, now, strict=False)) if pair[0] != pair[1]), 0)
    return f"...{now[max(at - 20, 0) : at + 60]!r}, not ...{usual[max(at - 20, 0) : at + 60]!r}"


async def escapes(name: str, attacks: Sequence[Attack]) -> dict[str, dict[str, Any]]:
    """For each attack what it won in a place."""
    found: dict[str, dict[str, Any]] = {}
    waiting = iter(attacks)

    async def lane() -> None:
        own = Lane(name)
        for attack in waiting:
            found[attack.key] = await own.tried(attack)
            print(f"{len(found)}/{len(attacks)} {attack.key}: {found[attack.key]['won']}", file=sys.stderr, flush=True)
        await own.close()

    await asyncio.gather(*(lane() for _ in range(_LANES)))
    return found


def chosen(name: str, every: int = 1, text: str = "", is_fast: bool = False) -> list[Attack]:
    """Attacks whose win would count in a place, or a part of them."""
    quick = [attack for attack in ATTACKS if not is_fast or (attack.family not in SLOW and attack.seconds > 1)]
    named = [attack for attack in quick if re.search(text, attack.key)]
    return [attack for attack in named[::every] if PLACES[name] & attack.against]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", choices=sorted(PLACES))
    parser.add_argument("--every", type=int, default=1, help="one attack of so many")
    parser.add_argument("--name", default="", help="only attacks in whose name this pattern is found")
    parser.add_argument("--quick", action="store_true", help="none that takes time or room")
    arguments = parser.parse_args()
    join_session()
    attacks = chosen(arguments.place, arguments.every, arguments.name, arguments.quick)
    print(json.dumps(asyncio.run(escapes(arguments.place, attacks))))


if __name__ == "__main__":
    main()
