"""Rewriting `sum red blue to gold`: keys are added, dropped, moved, drawn again; the answer holds the store."""

from __future__ import annotations

import json
import random
import re

from strop.environments.bundled.keyvalue import parse
from strop.standins.rewrite.rules import Problem, Rules, refuse

_PROBLEM = re.compile(r"sum [a-z]+(?: [a-z]+)*")


class Lookups(Rules):
    """Look-ups and sums of the environment `keyvalue`."""

    def knows(self, task: str) -> bool:
        return _PROBLEM.fullmatch(task) is not None

    def changed(self, wanted: str, task: str, answer: str, stream: random.Random) -> Problem:
        (keys, target), secret = parse(task), json.loads(answer)
        others = [key for key in secret["store"] if key not in keys]
        match wanted:
            case "reworded":
                keys = keys[::-1]
            case "similar":
                keys = stream.sample(sorted(secret["store"]), len(keys))
            case "easier" if len(keys) > 1:
                keys = keys[:-1]
            case "harder" if others:
                keys = [*keys, stream.choice(others)]
            case _:
                raise refuse(wanted, task)
        asked = f"sum {' '.join(keys)}" + (f" to {target}" if target else "")
        return asked, json.dumps(secret | {"total": sum(secret["store"][key] for key in keys)})
