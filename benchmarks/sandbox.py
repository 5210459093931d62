"""Programs a second in the sandbox, beside shells in it, a fresh interpreter and plain bubblewrap.

    python benchmarks/sandbox.py [--programs 300] [--json] [--save NAME]

Each side runs the same short program again and again, one at a time: behind both walls of the sandbox, in a new
interpreter
without any wall, and in one behind bubblewrap where that is installed. A shell that echoes runs behind all walls too.
`ratio` is programs a second of the sandbox (Landlock and seccomp) over the 60 that are wanted of one core.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from machine import circumstances, output_arguments, publish

sys.path.insert(0, str(Path(__file__).parent.parent))

from strop.sandbox.bubblewrap import Bubble, problem
from strop.sandbox.kernel_isolation.confine import KernelIsolation
from strop.sandbox.python.python_pool import PythonSandbox

PROGRAM = "print(sum(n * n for n in range(1000)))"
ANSWER = "332833500\n"
WANTED = 60.0  # a second
_BUBBLE = ("--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--ro-bind", "/", "/")


async def measure(programs: int) -> dict[str, Any]:
    """Median milliseconds and programs a second of each side."""
    sides: dict[str, Any] = {}
    for wall in KernelIsolation:
        sandbox = PythonSandbox(wall)

        async def boxed(sandbox: PythonSandbox = sandbox) -> str:
            return (await sandbox.run(PROGRAM)).stdout

        sides[f"sandbox, {wall.value}"] = await _timed(boxed, programs)
        await sandbox.close()
    if not problem():

        async def shell() -> str:
            return (await Bubble().run(["echo", ANSWER.strip()])).stdout

        sides["sandbox, shell"] = await _timed(shell, programs // 4)
    commands = {"fresh interpreter": [sys.executable, "-I", "-S", "-c", PROGRAM]}
    if bubble := shutil.which("bwrap"):
        commands["bubblewrap"] = [bubble, *_BUBBLE, sys.executable, "-I", "-S", "-c", PROGRAM]
    for name, command in commands.items():

        async def fresh(command: list[str] = command) -> str:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        sides[name] = await _timed(fresh, programs // 4)
    return {"sides": sides, "ratio": sides[f"sandbox, {KernelIsolation.FILES.value}"]["per_second"] / WANTED}


async def _timed(side: Callable[[], Awaitable[str]], programs: int) -> dict[str, float]:
    seconds: list[float] = []
    for _ in range(programs + 1):
        begun = time.perf_counter()
        assert await side() == ANSWER
        seconds.append(time.perf_counter() - begun)
    del seconds[0]  # it started what the others found
    return {"milliseconds": statistics.median(seconds) * 1000, "per_second": len(seconds) / sum(seconds)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300)
    output_arguments(parser)
    arguments = parser.parse_args()
    result = {"benchmark": "sandbox", **asyncio.run(measure(arguments.programs)), **circumstances("cpu")}
    rows = [
        f"| {name} | {side['milliseconds']:.1f} | {side['per_second']:.0f} |" for name, side in result["sides"].items()
    ]
    publish(result, "\n".join(["| side | median ms | a second |", "|---|---|---|", *rows]), arguments)


if __name__ == "__main__":
    main()
