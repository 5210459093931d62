"""Everything outside that attacks aim at, made for the occasion, and what of it they reached."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shlex
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from strop.sandbox.execution import Ending, Ran
from tests.sandbox.attacks import Attack
from tests.sandbox.decoys import Canaries, Decoy, digest, packages
from tests.sandbox.doors import Doors, left_alive
from tests.sandbox.shared import Shared

CANARY = "STROP_CANARY"
VICTIM = """
import builtins, sys, types
held_out = "held-out {token}"
def answer_key(): return "held-out {token}"
builtins.held_out = held_out
sys.modules["left_here"] = types.ModuleType("left_here")
sys.modules["left_here"].held_out = held_out
sys.last_value = ValueError(held_out)
print("ready")
"""


class Outside:
    """One set of canaries, listeners, a decoy and shared things, used until an attack reached one of them."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="strop-outside-")))
        self.token, self.nonce = os.urandom(8).hex(), os.urandom(6).hex()
        self.canaries = Canaries(folder, self.token)
        self._decoy, self._shared = Decoy(folder, self.token), Shared(self.token, f"strop-{self.nonce}")
        self._stack.callback(self._shared.close)
        self._stack.callback(self._decoy.close)
        self.doors = Doors(folder, self.token)
        self._stack.callback(self.doors.close)
        self._shared.posted(self.doors.known["door"])
        self._inherited = os.open(folder / "secret", os.O_RDONLY)  # whoever is started without care inherits it
        os.set_inheritable(self._inherited, True)
        self._stack.callback(os.close, self._inherited)
        self._caller = ctypes.create_string_buffer(os.environ.get(CANARY, self.token).encode(), 64)
        self.canaries.remember()
        self.known = {
            **self.canaries.known,
            **self._decoy.known,
            **self._shared.known,
            **self.doors.known,
            **packages(),
        }
        self.known |= {"nonce": self.nonce, "left": f"strop-{self.nonce}", "caller": os.getpid()}
        self.known |= {"caller_address": ctypes.addressof(self._caller)}

    def told(self, attack: Attack) -> tuple[str, str]:
        """The text of an attack, and its input."""
        if attack.is_shell:
            given = "; ".join(f"{name}={shlex.quote(str(value))}" for name, value in self.known.items())
            return f"{given}\n{attack.program}\n", ""
        return f"{attack.text}\n# {self.nonce}\n", json.dumps(self.known) + "\n"

    def secrets(self) -> set[str]:
        """What nobody is told; the last ones are known to whoever read a certain file."""
        files = (self.known["source"], self.known["package"], "/etc/passwd", "/proc/self/mounts")
        return {self.token, os.environ.get(CANARY, self.token), *(digest(self.nonce, str(path)) for path in files)}

    def breaches(self, attack: Attack, ran: Ran, is_bare: bool = False) -> list[str]:
        """Evidence that an attack won; none, if nothing was reached."""
        said = ran.stdout + ran.stderr
        found = ["it told a secret" for secret in self.secrets() if secret in said][:1]
        found += ["the kernel granted it"] if f"WON {self.nonce}" in said else []
        found += (
            [f"{len(said)} letters of output"] if max(len(ran.stdout), len(ran.stderr)) > attack.output + 4096 else []
        )
        found += [f"alive: {len(alive)}"] if (alive := left_alive(self.nonce, is_bare)) else []
        found += [f"file {name}" for name in self.canaries.changes()[:2]]
        found += [f"decoy: {name}" for name in self._decoy.changes()]
        found += [f"shared: {name}" for name in self._shared.changes()]
        found += [f"heard: {what}" for what in self.doors.heard(self.nonce)]
        if attack.has_folder:
            found += [f"folder: {what}" for what in self.canaries.left_in_own(attack.memory, ran.ending is Ending.DISK)]
        return found

    def empty_own(self) -> None:
        """The folder that attacks are writable, as at the beginning."""
        subprocess.run(["rm", "-rf", str(self.canaries.own)], check=True)  # the library ends where folders are deep
        self.canaries.own.mkdir()
        self.canaries.own.chmod(0o777)
        self.canaries.remember()

    async def visited(self, attack: Attack, ran: asyncio.Task[Ran]) -> Ran:
        """What came of a run during which somebody knocks."""
        visits = asyncio.create_task(self.doors.visits()) if attack.family == "network" else None
        try:
            return await ran
        finally:
            if visits is not None:
                visits.cancel()

    def close(self) -> None:
        self._stack.close()
