"""Stand-in for a task-writing LLM: rewriting rules by kind of task."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strop.environments.bundled.keyvalue import parse
from strop.errors import LLMClientError
from strop.roles import LLMClient
from strop.standins.rewrite.arithmetic import Sums
from strop.standins.rewrite.compose import Compositions
from strop.standins.rewrite.countdown import Targets
from strop.standins.rewrite.rules import Problem, Rules, refuse
from strop.text.llm_prompt import parts_of
from strop.types import Message, Sampling

# Rewriting `sum red blue to gold`: keys are added, dropped, moved, drawn again; the answer holds the store.

_PROBLEM = re.compile(r"sum [a-z]+(?: [a-z]+)*")


class Lookups(Rules):
    """Rules for look-ups and sums of the environment `keyvalue`."""

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


# Answers to the requests of task generators (`control/task_generators/support/prompts.py`) by rules, in place of a
# larger model.

# what the rules know of the operations of task_generators/operations.py; two of them change no problem's answer
_STEPS: Mapping[str, tuple[str, ...]] = {
    "breadth": ("similar",),
    "constraints": ("reworded",),
    "deepen": ("harder",),
    "concretise": ("reworded",),
    "reasoning": ("harder", "harder"),
    "complicate": ("similar", "harder"),
}
_ENVS: tuple[Rules, ...] = (Sums(), Compositions(), Targets(), Lookups())


def rule_answer(text: str, key: int) -> str:
    """The answer to one of the requests; randomness depends on the key, and what no rule can do raises ValueError."""
    parts = parts_of(text)
    wanted, task, answer = parts["wanted"], parts["task"], parts.get("answer", "")
    rules = next((each for each in _ENVS if each.knows(task)), None)
    if rules is None:
        raise ValueError(f"no bundled environment has problems such as {task[:80]!r}")
    stream = random.Random(f"{key}/{text}")
    if wanted == "concepts":
        return "\n".join(rules.concepts(task, answer))
    if wanted == "solved":
        return f"[answer]\n{rules.solved(task)}"
    if wanted == "compared":
        return "Equal" if rules.is_same(task, parts["other"]) else "Not Equal"
    if wanted == "about":
        made = rules.about(parts["ideas"].split("\n"), task, stream)
    elif wanted == "mended":
        made = rules.mended(parts["completion"], task, answer, stream)
    else:
        made = task, answer
        for step in _STEPS.get(wanted, (wanted,)):
            made = rules.changed(step, *made, stream)
    return f"[task]\n{made[0]}\n[answer]\n{made[1]}"


# Who rewrites problems of the bundled environments by rules: a larger model's place in runs that need none.


@dataclass(frozen=True)
class Rewriting(LLMClient):
    """Drops, adds, moves or solves parts of a problem; answers are exact, and what no rule covers is refused."""

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        try:
            return rule_answer(messages[-1].content, key)
        except ValueError as error:
            raise LLMClientError(str(error)) from error
