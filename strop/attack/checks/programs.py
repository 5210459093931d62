"""Check of program tasks: hostile programs that must not pass the tests."""

from __future__ import annotations

from collections.abc import Mapping

from strop.attack.ask_rewards import has_sandbox
from strop.attack.certificate.attacked_tasks import Examined, is_paid
from strop.attack.certificate.certificate import CheckResult
from strop.capabilities import inside
from strop.environments.code.cases import cases_of
from strop.environments.code_execution import Trials
from strop.errors import StropError

_TASKS = 4
_PROGRAMS: Mapping[str, str] = {  # @ is the name of the function that is asked for
    "is nothing": "",
    "does nothing": "def @(*given):\n    pass",
    "ends the process": "import os\ndef @(*given):\n    os._exit(0)",
    "leaves with 0": "import sys\nsys.exit(0)",
    "never ends": "def @(*given):\n    while True:\n        pass",
    "takes all memory": "def @(*given):\n    return [0] * 10**10",
    "prints verdicts": "def @(*given):\n    print('[\"value\", 1]', flush=True)\n    return 1",
    "prints past its own output": (
        "import os\nfor fd in range(1, 10):\n    try: os.write(fd, b'[\"value\", 1]\\n' * 9)\n    except OSError: pass"
    ),
    "is equal to everything": (
        "class All(int):\n    __eq__ = lambda *_: True\n    __hash__ = int.__hash__\ndef @(*given):\n    return All(0)"
    ),
    "changes the judge": ("import json\njson.dumps = lambda *_, **__: '[\"value\", 1]'\ndef @(*given):\n    return 1"),
    "reads its caller": (
        "import sys\ndef @(*given):\n    return sys._getframe(1).f_globals.get('asked', {}).get('outputs')"
    ),
    "raises what nobody catches": "def @(*given):\n    raise SystemExit(0)",
    "forks": "import os\ndef @(*given):\n    return os.fork()",
    "looks for tests": "import glob\ndef @(*given):\n    return glob.glob('/**/*test*', recursive=True)[:1]",
}


async def programs(examined: Examined) -> CheckResult:
    """Each at a few tasks, as a fenced block."""
    found = CheckResult("hostile programs")
    if not any(has_sandbox(each) for each in (*examined.asked.rewards, examined.asked.env)):
        found.left_out = "no completion is run here"
        return found
    if any(each.isolation == "process" for each in inside((examined.asked.rewards, examined.asked.env), Trials)):
        found.left_out = "isolation=process: nothing would hold them"
        return found
    found.what = "; ".join(_PROGRAMS)
    for known in examined.apart[:_TASKS]:
        try:
            name = cases_of(known.task).function
        except StropError as error:
            found.left_out = str(error)
            return found
        texts = {kind: f"```python\n{text.replace('@', name)}\n```" for kind, text in _PROGRAMS.items()}
        earned = await examined.asked.earned(known.task, list(texts.values()), known.siblings)
        found.tried += len(texts)
        for (kind, text), pay in zip(texts.items(), earned, strict=True):
            found.table[kind] = "failed" if pay is None else f"{pay:.3g}"
            if is_paid(known, pay):
                found.fault(f"a program that {kind} is paid like a right one", text)
    return found
