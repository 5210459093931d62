"""Attacks in the box, and what of them went wrong: `python -m tests.processes.box.escapes` prints it as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from strop.processes.box.confine import Wall
from strop.processes.box.python import PythonBox
from strop.processes.box.ran import Allowance, Ran
from tests.processes.box.attacks import ATTACKS, Attack

SECRET = "s3cret"
_LONG, _SHORT = Allowance(seconds=20.0, memory=128 << 20), Allowance(seconds=0.4, memory=128 << 20)


@contextmanager
def surroundings() -> Iterator[str]:
    """What attacks are told of: a file, a port, a process; afterwards they must be as before."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder) / "secret"
        secret.write_text(SECRET)
        yield json.dumps({"secret": str(secret), "port": server.getsockname()[1], "parent": os.getpid()}) + "\n"


async def failures(wall: Wall, attacks: Sequence[Attack] = ATTACKS, at_once: int = 4) -> list[str]:
    """Names and reasons of attacks that escaped, ended otherwise than they must, or left something behind."""
    box = PythonBox(wall, at_once)
    with surroundings() as known:
        folder = Path(json.loads(known)["secret"]).parent
        found = await asyncio.gather(*(_wrong(box, attack, known) for attack in attacks))
        if [path.name for path in folder.iterdir()] != ["secret"] or (folder / "secret").read_text() != SECRET:
            found.append("the secret file, or its folder, was changed")
    after = await box.run("import json; print(json.loads('[1]'))")
    await box.close()
    return [each for each in found if each] + ([] if after.stdout == "[1]\n" else [f"the box is broken: {after}"])


async def _wrong(box: PythonBox, attack: Attack, known: str) -> str:
    ran = await box.run(attack.text, known, _SHORT if "timeout" in attack.endings else _LONG)
    return judged(attack, ran)


def judged(attack: Attack, ran: Ran) -> str:
    """What is wrong with how an attack ended; nothing, if it was contained."""
    if "ESCAPED" in ran.stdout:
        return f"{attack.name}: escaped"
    if ran.ending.value not in attack.endings:
        return f"{attack.name}: {ran.ending.value} {ran.code} {ran.stderr[-200:]!r} after {ran.seconds:.2f} s"
    return ""


if __name__ == "__main__":
    wanted = [Wall(word) for word in sys.argv[1:]] or list(Wall)
    print(json.dumps({wall.value: asyncio.run(failures(wall)) for wall in wanted}))
