"""What follows a completion, judged by rules: a language model's place in runs that need none (OpenClaw-RL,
2603.10165).

To be asked by `Procedural` as `strop.standins.judges.next_state:judged_next_state`. The rules know no task's answer,
but they can add up.
"""

from __future__ import annotations

import re

from strop.environments.format.think_tags import sum_steps
from strop.text.llm_prompt import parts_of

_BAD = ("error", "that is wrong", "say a number")
_GOOD = re.compile(r"thanks|ok|[0-9]{1,9}")
_SUM = re.compile(r"([0-9]{1,9}(?:\+[0-9]{1,9}){1,9})=\?")


def judged_next_state(text: str) -> str:
    """`score: -1`, 0 or 1 for a completion by what was said after it; or a hint that would have helped, behind its
    score.
    """
    parts = parts_of(text)
    state = parts.get("other", "").strip()
    is_bad = state.startswith(_BAD)
    if parts.get("wanted") == "hint":
        hint = _hint(parts.get("task", "")) if is_bad else ""
        return f"score: {1 if hint else -1}\n{hint}"
    return f"score: {-1 if is_bad else int(_GOOD.fullmatch(state) is not None)}"


def _hint(task: str) -> str:
    """The working of a sum; of another task, how a store is asked."""
    found = _SUM.search(task)
    if found:
        return "hint: " + " ".join(sum_steps([int(each) for each in found.group(1).split("+")])[0])
    return "hint: <call>get KEY</call> for one key at a time" if "sum " in task else ""
