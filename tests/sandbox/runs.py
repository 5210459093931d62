"""Many programs in a row, hostile and honest: `python -m tests.sandbox.runs 10000 [--seed 0]`.

Half of them are attacks drawn by the seed, some in a disguise (text that is executed, bytes that are decoded); half are
honest, and what they must say is computed here. Counted are runs that nobody answered for, honest ones that say or end
otherwise, and attacks that told the secret.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from strop.sandbox.bubblewrap import Bubble
from strop.sandbox.execution import Allowance, Ending, Ran
from strop.sandbox.kernel_isolation.confine import KernelIsolation
from strop.sandbox.python.python_pool import PythonSandbox
from tests.sandbox.attacks import ATTACKS, SLOW, Against, Attack
from tests.sandbox.outside import Outside
from tests.sandbox.places import Bubbles
from tests.sandbox.shared import join_session

_LONG, _AT_ONCE, _IN_BUBBLE = Allowance(seconds=30.0), 2, 20  # one program of so many is a command
_DISGUISES: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"exec({text!r})",
    lambda text: f"import base64; exec(base64.b64decode({base64.b64encode(text.encode())!r}))",
    lambda text: f"exec(compile({text!r}, 'inner', 'exec'), globals())",
    lambda text: "import sys; sys.setrecursionlimit(5000)\n" + text,
)


@dataclass
class Tally:
    """What came of all of them."""

    endings: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, ran: Ran, problem: str) -> None:
        self.endings[ran.ending.value] += 1
        if ran.ending in (Ending.LOST, Ending.SETUP):
            problem = f"{ran.ending.value}: {ran.stderr[-200:]}"
        if problem:
            self.wrong.append(f"{name}: {problem}")


def honest(rng: random.Random) -> tuple[str, str, str, int]:
    """A program, its input, what it must print, and its exit code."""
    a, b = rng.randrange(1, 999), rng.randrange(1, 999)
    return rng.choice(
        [
            (f"print({a} * {b})", "", f"{a * b}\n", 0),
            ("print(sum(int(n) for n in input().split()))", f"{a} {b}\n", f"{a + b}\n", 0),
            (f"import json; print(json.dumps(sorted({[b, a, 5]})))", "", f"{json.dumps(sorted([b, a, 5]))}\n", 0),
            (f"import math; print(math.gcd({a}, {b})); raise SystemExit({a % 7})", "", f"{_gcd(a, b)}\n", a % 7),
            (f"import random; print(random.random() < 1, {a})", "", f"True {a}\n", 0),
            (f"x = [n * n for n in range({a})]; print(x[-1]); 1 / 0", "", f"{(a - 1) ** 2}\n", 1),
        ]
    )


def _gcd(a: int, b: int) -> int:
    return a if not b else _gcd(b, a % b)


def _hostile(rng: random.Random, against: Against) -> Attack:
    fitting = [each for each in ATTACKS if each.against & against and each.family not in SLOW and each.seconds > 1]
    rare = [each for each in ATTACKS if each.against & against and each.family in SLOW]
    chosen: Attack = rng.choice(rare if rng.random() < 0.004 else fitting)
    return chosen


async def runs(programs: int, seed: int) -> Tally:
    """Both kinds of isolation in turn, and now and then a command."""
    tally, rng, outside = Tally(), random.Random(seed), Outside()
    sandboxes, turn = (
        [PythonSandbox(isolation, _AT_ONCE) for isolation in KernelIsolation],
        asyncio.Semaphore(2 * _AT_ONCE),
    )

    async def one(number: int) -> None:
        async with turn:
            if number % _IN_BUBBLE == 0:
                await _command(tally, rng, outside)
            else:
                await _program(tally, rng, outside, sandboxes[number % 2])

    await asyncio.gather(*(one(number) for number in range(programs)))
    for sandbox in sandboxes:
        await sandbox.close()
    outside.close()
    return tally


async def _program(tally: Tally, rng: random.Random, outside: Outside, sandbox: PythonSandbox) -> None:
    if rng.random() < 0.5:
        text, stdin, said, code = honest(rng)
        ran = await sandbox.run(text, stdin, _LONG)
        is_right = (ran.ending, ran.stdout, ran.code) == (Ending.FINISHED, said, code)
        return tally.add("honest", ran, "" if is_right else f"{text!r}: {ran}")
    attack = _hostile(rng, Against.PYTHON)
    text, stdin = outside.told(attack)
    ran = await sandbox.run(rng.choice(_DISGUISES)(text), stdin, Allowance(attack.seconds, attack.memory))
    tally.add(attack.key, ran, _told(ran, outside))


async def _command(tally: Tally, rng: random.Random, outside: Outside) -> None:
    if rng.random() < 0.5:
        a = rng.randrange(999)
        ran = await Bubble().run(["sh", "-c", f"read x; echo $((x * 2)); exit {a % 7}"], f"{a}\n", _LONG)
        is_right = (ran.ending, ran.stdout, ran.code) == (Ending.FINISHED, f"{2 * a}\n", a % 7)
        return tally.add("honest command", ran, "" if is_right else str(ran))
    attack = _hostile(rng, Against.COMMANDS)
    tally.add(attack.key, ran := await Bubbles().run(attack, *outside.told(attack), ""), _told(ran, outside))


def _told(ran: Ran, outside: Outside) -> str:
    won = outside.token in ran.stdout + ran.stderr or f"WON {outside.nonce}" in ran.stdout
    return f"escaped: {ran.stdout[-200:]}" if won else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    join_session()
    begun = time.monotonic()
    done = asyncio.run(runs(arguments.programs, arguments.seed))
    seconds = round(time.monotonic() - begun, 1)
    print(json.dumps({"runs": done.endings.total(), "wrong": done.wrong, "endings": done.endings, "seconds": seconds}))
    sys.exit(0)


if __name__ == "__main__":
    main()
