"""Many hostile programs in a row: `python -m tests.processes.box.campaign [--programs 10000] [--json]`.

Each is made of attacks by a seed: some that fail and are passed over, one that decides how it ends, and a disguise
(text that is run, bytes that are decoded, a function, a class). Counted are escapes, endings other than those that the
last attack may have, and watchers that were lost; afterwards the box must still answer.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from strop.processes.box.confine import Wall
from strop.processes.box.python import PythonBox
from strop.processes.box.ran import Allowance
from tests.processes.box.attacks import ATTACKS, CHANGE, OTHERS, PRELUDE, READ, START, TALK, Attack
from tests.processes.box.escapes import judged, surroundings

_LONG, _SHORT = Allowance(seconds=20.0, memory=128 << 20), Allowance(seconds=0.3, memory=128 << 20)
# those that end by themselves, so that another one can follow
_PASSING = [attack for attack in (*READ, *CHANGE, *TALK, *START, *OTHERS) if attack.endings == ("finished",)]
_DISGUISES: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"exec({text!r})",
    lambda text: f"import base64; exec(base64.b64decode({base64.b64encode(text.encode())!r}))",
    lambda text: f"exec(compile({text!r}, 'inner', 'exec'), dict(globals()))",
    lambda text: "import sys; sys.setrecursionlimit(5000)\n" + text,
    lambda text: "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + text,
)


def hostile(chance: random.Random) -> Attack:
    """One program, with the name and the endings of its last attack."""
    last, before = chance.choice(ATTACKS), chance.sample(_PASSING, chance.randrange(3))
    tried = "".join(f"try:\n{textwrap.indent(each.program, '    ')}\nexcept BaseException: pass\n" for each in before)
    names = ", ".join(each.name for each in (*before, last))
    calls = last.text.removesuffix(last.program)  # what it needs before it begins
    needs = next((each.text.removesuffix(each.program) for each in before if "call(" in each.program), calls)
    body = max(calls, needs, key=len).removeprefix(PRELUDE) + tried + last.program
    return Attack(
        names, PRELUDE + chance.choice(_DISGUISES)(body) if "call(" not in body else PRELUDE + body, last.endings
    )


async def campaign(programs: int, seed: int, at_once: int) -> dict[str, Any]:
    """Half of them at each wall."""
    chance, found, begun = random.Random(seed), Counter[str](), time.monotonic()
    wrong: list[str] = []
    for wall in Wall:
        box = PythonBox(wall, at_once)

        async def one(attack: Attack, known: str, box: PythonBox = box) -> None:
            ran = await box.run(attack.program, known, _SHORT if "timeout" in attack.endings else _LONG)
            found[ran.ending.value] += 1
            if problem := judged(attack, ran):
                wrong.append(problem)

        with surroundings() as known:
            todo = [hostile(chance) for _ in range(programs // 2)]
            for start in range(0, len(todo), 200):
                await asyncio.gather(*(one(attack, known) for attack in todo[start : start + 200]))
                print(f"{wall.value}: {start + 200} of {len(todo)}, {len(wrong)} wrong", file=sys.stderr, flush=True)
        if (await box.run("print(1 + 1)")).stdout != "2\n":
            wrong.append(f"{wall.value}: the box does not answer any more")
        await box.close()
    seconds = time.monotonic() - begun
    figures = {"programs": sum(found.values()), "escapes": sum("escaped" in each for each in wrong), "wrong": wrong}
    return figures | {
        "lost": found["lost"],
        "endings": dict(found),
        "seconds": seconds,
        "ratio": 1 - len(wrong) / programs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args()
    result = asyncio.run(campaign(arguments.programs, arguments.seed, arguments.at_once))
    rows = [f"| {name} | {result[name]} |" for name in ("programs", "escapes", "lost", "endings", "seconds")]
    print(json.dumps(result) if arguments.json else "\n".join(["| | |", "|---|---|", *rows, *result["wrong"][:20]]))
    sys.exit(bool(result["wrong"]))


if __name__ == "__main__":
    main()
