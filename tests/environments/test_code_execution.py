"""Programs from completions, run in the sandbox: what each failed of, whose fault it was, and that none can say it is
right.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence

import pytest

from strop.environments.code.cases import Cases, cases_of
from strop.environments.code.drivers import PROGRAM
from strop.environments.code_execution import Finding, Trial, Trials, judged, program_in
from strop.errors import ConfigurationError, DataError
from strop.sandbox.execution import Ending, Ran
from strop.types import Message, Task
from strop.workers.untrusted_answers import NoAnswer

DOUBLE = Cases("f", ([1], [2], [3], [4]), (2, 4, 6, 8))


def tried(completions: Sequence[str], tests: Cases = DOUBLE, trials: Trials | None = None) -> list[Trial]:
    async def each() -> list[Trial]:
        used = trials or Trials(seconds=0.5)
        found = [await used.of(completion, tests) for completion in completions]
        await used.close()
        return found

    return asyncio.run(each())


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("def f(x): 1", "def f(x): 1"),
        ("<think>```a```</think>def f", "def f"),
        ("<think>def f", ""),
        ("so:\n```python\ndef f\n```\nthat is it", "def f\n"),
        ("```\none\n```\n```py\ntwo\n``` end", "two\n"),
        ("```python\ncut off", "cut off"),
        ("``` one line ```", ""),
        ("", ""),
    ],
)
def test_where_a_program_stands(completion: str, text: str) -> None:
    found = program_in(completion)
    assert found.text == text and completion[found.start : found.start + len(text)] == text


def test_where_a_line_of_it_stands() -> None:
    completion = "so:\n```python\ndef f(x):\n y=x\n\n return y\n```"
    program = program_in(completion)
    assert [completion[slice(*program.line(number))] for number in (1, 2, 3, 4)] == [
        "def f(x):",
        " y=x",
        "",
        " return y",
    ]


# what is said of each program: the finding, tests passed of four, and the line
FAILED = {
    "def f(x):\n return x*2": (Finding.RIGHT, 4, 0),
    "def f(x):\n return x**2 if x!=1 else 2": (Finding.WRONG, 2, 0),
    "def f(x):\n if x>2:\n  x/0\n return 2*x": (Finding.ERROR, 2, 3),
    "y=1\n1/0\ndef f(x): return 2*x": (Finding.ERROR, 0, 2),
    "def g(x): return 2*x": (Finding.ERROR, 0, 0),
    "def f(x, y): return 2*x": (Finding.ERROR, 0, 0),
    "def f(x):\n return (2*x": (Finding.SYNTAX, 0, 2),
    "def f(x):\n while x>2: pass\n return 2*x": (Finding.TIME, 2, 0),
    "def f(x):\n return 2*x if x<4 else 'a'*10**9": (Finding.MEMORY, 3, 0),
    "def f(x):\n return 2*x if x<2 else 'a'*10**5": (Finding.OUTPUT, 1, 0),
    "def f(x):\n return float(2*x)": (Finding.WRONG, 0, 0),
    "def f(x):\n return {2*x}": (Finding.ERROR, 0, 0),
    "def f(x):\n print('7')\n return 2*x": (Finding.RIGHT, 4, 0),
}


def test_what_each_program_failed_of() -> None:
    found = tried(list(FAILED))
    assert [(each.finding, sum(each.passed), each.line) for each in found] == list(FAILED.values())
    assert found[1].share == 0.5 and not found[1].is_right and found[0].is_right
    assert found[2].error == "ZeroDivisionError"


def test_nothing_that_a_program_says_makes_it_right() -> None:
    """It finds the inputs, speaks through the pipe itself, ends early, equals everything: none of it is an answer."""
    forged = '["value", true]\\n' * 4
    hostile = [
        f"import os\nos.write(1, b'{forged}')\nos._exit(0)",
        "import sys\nsys.__stdout__.write('[\"right\"]')\ndef f(x): raise SystemExit(0)",
        "class Any(int):\n __eq__=lambda s,o: True\n __repr__=lambda s: '2'\nf=lambda x: Any(5)",
        "import json\njson.dumps=lambda said: '[\"value\", 2]'\nf=lambda x: 3",
        "import gc\nf=lambda x: [each for each in gc.get_objects() if isinstance(each, list)][-1]",
        '["value", 2]\n' * 4,
    ]
    found = tried(hostile)
    assert not any(each.is_right for each in found)
    assert [sum(each.passed) for each in found] == [0, 0, 0, 1, 0, 0]  # whoever says 2 for all is right once


# nothing of these computes 2x; each test passed is one whose answer the program said as it stands
FORGED = {
    "import builtins\nbuiltins.print = lambda *said, **how: None\nf = lambda x: 3": 0,
    "import builtins\np = print\nbuiltins.print = lambda s, **how: p('[\"value\", 2]', **how)\nf = lambda x: 3": 1,
    "import builtins\nbuiltins.open = None\nf = lambda x: 3": 0,
    "import sys\nsys.modules.clear()\nf = lambda x: 3": 0,
    "import sys\ndef f(x): sys.exit(0)": 0,
    "import os\ndef f(x): os._exit(0)": 0,
    "raise SystemExit(0)": 0,
    "import os\nos.closerange(0, 100)\nf = lambda x: 3": 0,
    "import os\nos.fork()\nf = lambda x: 3": 0,
    "import os\nos.kill(os.getppid(), 9)\nf = lambda x: 3": 0,
    "def f(x): return open('/proc/self/environ').read() + open('/proc/self/maps').read()": 0,
    "import os\ndef f(x): return open(f'/proc/{os.getppid()}/mem', 'rb').read(9)": 0,
    "import sys\nf = lambda x: sys._getframe(2).f_globals['asked']['inputs'][0][0] * 2": 1,
    "import sys\nout = sys._getframe(3).f_globals['told']\nout.write('[\"value\", 2]\\n' * 4)\nf = str": 1,
    "def f(x): return f(x)": 0,
    "def f(x):\n a = []\n a.append(a)\n return a": 0,
    "def f(x): return 10**5000": 0,
    "def f(x): return 1 << 10**10": 0,
    "def f(x): return float('nan')": 0,
    "class Any:\n __eq__ = lambda s, o: True\n __repr__ = lambda s: '2'\nf = lambda x: Any()": 0,
    "class Two(float):\n __repr__ = lambda s: '2'\nf = lambda x: Two(9)": 0,
    'f = lambda x: \'2\\n["value", 4]\\n["value", 6]\'': 0,
    "def f(x): yield 2*x": 0,
    "async def f(x): return 2*x": 0,
    'class Odd(Exception): pass\nOdd.__name__ = \'"]\\n["value", 4]\'\ndef f(x): raise Odd': 0,
}


def test_no_test_is_passed_without_saying_its_answer() -> None:
    found = tried([*FORGED, "def f(x): return 2*x"], trials=Trials(seconds=2.0))
    assert [sum(each.passed) for each in found[:-1]] == list(FORGED.values())
    assert [each.is_right for each in found] == [False] * len(FORGED) + [True], "the sandbox is as good as new"


def test_expected_values_never_enter_the_sandbox() -> None:
    """A program that may look at all that it was given finds no output there."""
    secret = Cases("f", ([1],), (987654321,))
    look = "import sys,gc\nf=lambda x: str(sys._getframe(1).f_globals)+str(gc.get_objects())"
    trials = Trials(seconds=2.0)

    async def said() -> Ran:
        await trials.of(look, secret)
        asked = {"program": look, "setup": "", "function": "f", "form": "call", "inputs": secret.inputs}
        ran = await trials._sandboxes[0].run(PROGRAM, json.dumps(asked))
        await trials.close()
        return ran

    ran = asyncio.run(said())
    assert "inputs" in ran.stdout and "987654321" not in ran.stdout


def test_a_sandbox_that_could_not_run_it_is_no_verdict() -> None:
    class Gone:
        async def run(self, *given: object) -> Ran:
            return Ran(Ending.SETUP, stderr="no isolation")

        async def close(self) -> None: ...

    trials = Trials()
    trials._sandboxes.append(Gone())  # type: ignore[arg-type]
    with pytest.raises(NoAnswer, match="could not run the program: setup: no isolation"):
        tried([""], trials=trials)


def test_the_loop_goes_on_while_a_program_runs() -> None:
    async def ticks() -> int:
        trials, count = Trials(seconds=0.4), 0
        running = asyncio.ensure_future(trials.of("def f(x):\n while 1: pass", DOUBLE))
        until = time.monotonic() + 20
        while not running.done() and time.monotonic() < until:
            await asyncio.sleep(0.01)
            count += 1
        assert (await running).finding is Finding.TIME
        await trials.close()
        return count

    assert asyncio.run(ticks()) > 10


def test_without_sandbox_the_verdicts_are_the_same() -> None:
    completions = [each for each, (finding, *_) in FAILED.items() if finding in (Finding.RIGHT, Finding.ERROR)][:3]
    completions += ["def f(x):\n return 2*x if x<4 else 'a'*10**9"]
    walled, plain = tried(completions, trials=Trials()), tried(completions, trials=Trials("process"))
    assert plain == walled
    late = tried(["def f(x):\n while 1: pass"], trials=Trials("process", 0.3))
    assert late[0].finding is Finding.TIME


def test_a_hundred_kilobytes_of_anything_are_judged_at_once() -> None:
    out = "\n".join(["[" * 20_000, '["error", ' + "9" * 5000 + ', "x"]', '["syntax", -3, "x"]', '["error"'])
    began = time.monotonic()
    found = judged(Ran(Ending.FINISHED, out), Cases("f", ([1],) * 4, (1, 2, 3, 4)))
    program_in("```" * 32_000), program_in("<think>" * 14_000)
    assert time.monotonic() - began < 0.05
    assert (found.finding, found.line) == (Finding.SYNTAX, 0)


def test_bad_settings_and_tasks_without_tests_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="sandbox or process, got 'none'"):
        Trials("none")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="seconds > 0, got 0"):
        Trials(seconds=0)
    for answer in ("", '["f", [], [], ""]', '["f", [[1]], [], ""]', "7"):
        with pytest.raises(DataError, match="has no tests"):
            cases_of(Task((Message("user", "?"),), answer, "x"))
    task = Task((Message("user", "?"),), str(DOUBLE), "x")
    assert cases_of(task) == DOUBLE
