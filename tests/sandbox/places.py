"""Where attacks are run: in the sandboxes, or without them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import Protocol

from strop.sandbox.bubblewrap import Bubble
from strop.sandbox.execution import Allowance, Ran
from strop.sandbox.kernel_isolation.confine import KernelIsolation
from strop.sandbox.python.python_pool import PythonSandbox
from tests.sandbox import witness
from tests.sandbox.attacks import Against, Attack
from tests.sandbox.controls import NoSandbox, command

_HONEST = Allowance(seconds=60.0)  # a machine may be busy


class Place(Protocol):
    """Runs attacks and witnesses."""

    async def run(self, attack: Attack, text: str, stdin: str, folder: str) -> Ran:
        """What came of the text of an attack."""

    async def witness(self, attack: Attack) -> str:
        """What an honest program says now; it must never say anything else."""

    async def close(self) -> None:
        """Leave nothing."""


@dataclass
class Sandbox:
    """Python programs in one kind of isolation."""

    isolation: KernelIsolation
    _sandbox: PythonSandbox = field(init=False)

    def __post_init__(self) -> None:
        self._sandbox = PythonSandbox(self.isolation)

    async def run(self, attack: Attack, text: str, stdin: str, folder: str) -> Ran:
        return await self._sandbox.run(
            text, stdin, _allowed(attack), folder if self.isolation is KernelIsolation.FILES else ""
        )

    async def witness(self, attack: Attack) -> str:
        ran = await self._sandbox.run(witness.IN_PYTHON, "", _HONEST)
        return f"{ran.ending.value} {ran.stdout} {ran.stderr[-300:]}"

    async def close(self) -> None:
        await self._sandbox.close()


class Bubbles:
    """Commands in bubblewrap."""

    async def run(self, attack: Attack, text: str, stdin: str, folder: str) -> Ran:
        return await Bubble().run(command(attack, text, _python()), stdin, _allowed(attack), folder)

    async def witness(self, attack: Attack) -> str:
        ran = await Bubble().run(["sh", "-c", witness.IN_SHELL], "", _HONEST)
        return f"{ran.ending.value} {ran.stdout}"

    async def close(self) -> None:
        """Nothing is kept."""


def _python() -> str:
    found = shutil.which("python3", path="/usr/bin:/bin")
    assert found is not None, "attacks in bubblewrap are written for a Python of the system"
    return found


def _allowed(attack: Attack) -> Allowance:
    return Allowance(attack.seconds, attack.memory, attack.output)


PLACES = {"control": Against.BOTH, "files": Against.PYTHON, "no files": Against.PYTHON, "bubble": Against.COMMANDS}


def place(name: str) -> Place:
    """By its name."""
    return NoSandbox() if name == "control" else Bubbles() if name == "bubble" else Sandbox(KernelIsolation(name))
