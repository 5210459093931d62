"""Parent's end of the Python sandbox: a pool of warm interpreters, each with one program at a time."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from strop.errors import ConfigurationError
from strop.sandbox.execution import USUAL, Allowance, Ending, Ran
from strop.sandbox.kernel_isolation.confine import KernelIsolation, isolation_with_warning, weakness
from strop.sandbox.kill_tree import ended
from strop.sandbox.python import visible_files
from strop.sandbox.python.warm_interpreter import HEAD

_START_SECONDS, _GRACE = 60.0, 30.0  # the second for setting up isolation and for answers
_ROOT = Path(__file__).parents[3]
_BEGIN = """
import json, sys
sys.path.append(sys.argv[1])
from strop.sandbox.python.warm_interpreter import PythonView, main
seen = json.loads(sys.argv[2])
main(PythonView(**seen) if seen else None)
"""


@dataclass(eq=False)
class PythonSandbox:
    """Sandbox for Python programs; at most `at_once` run in parallel.

    Results are untrusted: compare the output with values that the sandbox never received.
    """

    isolation: KernelIsolation | None = field(default_factory=isolation_with_warning)  # None: the best there is here
    at_once: int = 1
    _idle: list[Process] = field(default_factory=list, init=False, repr=False)
    _free: asyncio.Semaphore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.at_once < 1:
            raise ConfigurationError(f"a sandbox needs at_once >= 1, got {self.at_once}")
        self._free = asyncio.Semaphore(self.at_once)

    async def run(self, program: str, stdin: str = "", allowance: Allowance = USUAL, folder: str = "") -> Ran:
        """What comes of it; `folder`, where there is one, may be written in."""
        if self.isolation is None:
            raise ConfigurationError(
                "no isolation here that a program cannot leave: it needs Linux on x86-64 with seccomp filters"
            )
        if folder and self.isolation is KernelIsolation.NO_FILES:
            raise ConfigurationError(f"the folder {folder} cannot be written to: {weakness() or 'it may open no file'}")
        async with self._free:
            warm = self._idle.pop() if self._idle else await self._started()
            try:
                limit = allowance.seconds + _GRACE
                ran = await asyncio.wait_for(self._asked(warm, program, stdin, allowance, folder), limit)
            except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
                await ended(warm)
                return Ran(Ending.LOST, stderr=f"{type(error).__name__}: {error}")
            except BaseException:
                await ended(warm)
                raise
            self._idle.append(warm)
            return ran

    async def close(self) -> None:
        while self._idle:
            await ended(self._idle.pop())

    async def _asked(self, warm: Process, program: str, stdin: str, allowance: Allowance, folder: str) -> Ran:
        assert warm.stdin is not None and self.isolation is not None
        texts = [each.encode("utf-8", errors="surrogatepass") for each in (program, stdin)]
        sizes = {"program": len(texts[0]), "stdin": len(texts[1])}
        places = {
            "isolation": self.isolation.value,
            "folder": folder,
            "path": visible_files.paths(),
            "readable": visible_files.standard().readable,
        }
        head = {**sizes, **places, **vars(allowance)}
        text = json.dumps(head).encode()
        warm.stdin.write(HEAD.pack(len(text)) + text + texts[0] + texts[1])
        await warm.stdin.drain()
        found, out, err = await _heard(warm)
        said, complained = (each.decode("utf-8", errors="replace") for each in (out, err))
        return Ran(Ending(found["ending"]), said, complained, found["code"], found["seconds"], found["memory"])

    async def _started(self) -> Process:
        seen = asdict(visible_files.standard()) if self.isolation is KernelIsolation.FILES else {}
        warm = await asyncio.create_subprocess_exec(
            *(sys.executable, "-s", "-S", "-P", "-B", "-c", _BEGIN, str(_ROOT), json.dumps(seen)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PYTHONHASHSEED": "0"},  # the order of sets is the same in every run
            cwd="/",
            start_new_session=True,
        )
        try:
            head, _, _ = await asyncio.wait_for(_heard(warm), _START_SECONDS)
            if head["problem"]:
                raise ConfigurationError(f"a program cannot be kept from this machine's files: {head['problem']}")
        except BaseException:
            await ended(warm)
            raise
        return warm


async def _heard(warm: Process) -> tuple[dict[str, Any], bytes, bytes]:
    assert warm.stdout is not None
    (size,) = HEAD.unpack(await warm.stdout.readexactly(HEAD.size))
    head = json.loads(await warm.stdout.readexactly(size))
    return head, await warm.stdout.readexactly(head["stdout"]), await warm.stdout.readexactly(head["stderr"])
