"""Stand-in for an LLM world model of key-value stores: it predicts the next observation from experience.

Use: `Procedural(dreamt)`. A key has the value that it had before in the
rollout, else that of the most similar experience, else one derived from its name; the real store is unknown to it.
"""

from __future__ import annotations

import re

from strop.environments.bundled.keyvalue import KEYS, parse
from strop.environments.format.think_tags import between, final_answer
from strop.text.llm_prompt import parts_of

_GET = re.compile(r"get ([a-z]{1,16})")
_SET = re.compile(r"set ([a-z]{1,16}) ([0-9]{1,4})")


def dreamt(text: str) -> str:
    """`state: ...` after a call, `reward: ...` after an answer."""
    parts = parts_of(text)
    completion, history = parts.get("completion", ""), _transitions(parts.get("ideas", ""))
    calls = between(completion, "<call>", "</call>")
    if not calls:
        return f"reward: {int(_is_solved(parts.get('task', ''), completion, history))}"
    if found := _GET.fullmatch(calls[0]):
        return f"state: {_value(found.group(1), history, _transitions(parts.get('other', '')))}"
    return "state: ok" if _SET.fullmatch(calls[0]) else "state: error: get KEY or set KEY NUMBER"


def _value(key: str, history: dict[str, str], similar: dict[str, str]) -> str:
    if key not in KEYS:
        return "error: no such key"
    asked = f"get {key}"
    return history.get(asked) or similar.get(asked) or str(sum(map(ord, key)) % 10)


def _transitions(text: str) -> dict[str, str]:
    """What followed each call; the first of several equal ones."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        done, arrow, followed = line.rpartition(" -> ")
        for each in between(done, "<call>", "</call>")[:1] if arrow else ():
            found.setdefault(each, followed)
    return found


def _is_solved(task: str, completion: str, history: dict[str, str]) -> bool:
    """Whether the answer is the sum of what the keys were said to hold, and stands where it should."""
    keys, target = parse(task)
    values = [history.get(f"get {key}", "") for key in keys]
    if not keys or not all(value.isdigit() for value in values):
        return False
    total = str(sum(map(int, values)))
    return final_answer(completion) == total and (not target or history.get(f"set {target} {total}") == "ok")
