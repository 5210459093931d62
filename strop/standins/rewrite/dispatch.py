"""Answers to the requests of task generators (`control/task_generators/support/prompts.py`) by rules, in place of a
larger model.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from strop.standins.rewrite.arithmetic import Sums
from strop.standins.rewrite.compose import Compositions
from strop.standins.rewrite.countdown import Targets
from strop.standins.rewrite.keyvalue import Lookups
from strop.standins.rewrite.rules import Rules
from strop.text.llm_prompt import parts_of

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


def advised(text: str, key: int) -> str:
    """The answer to one of the requests; probability hangs on the key, and what no rule can do raises ValueError."""
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
