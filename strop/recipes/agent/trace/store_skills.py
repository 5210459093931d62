"""Skill labels for key-value tasks: rules in place of an LLM that reads rollouts.

`Procedural` calls them as `strop.recipes.agent.trace.store_skills:lacking` (skills a rollout lacks) and `:chosen`
(the skill that a task needs most).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from strop.environments.bundled.keyvalue import parse
from strop.environments.format.think_tags import between, final_answer
from strop.text.llm_prompt import parts_of

SKILLS: Mapping[str, str] = {
    "lookup": "asks the store for every key that the task names",
    "add": "adds up what the store said without a mistake",
    "store": "puts the answer under the key that the task names for it",
}
NONE = "none"
_GET = re.compile(r"get ([a-z]{1,16})")
_SET = re.compile(r"set ([a-z]{1,16}) ([0-9]{1,4})")
_FEW, _SOME = 2, 4  # keys: so many are added up, or asked for, without help


def exercised(prompt: str, known: Mapping[str, int], stored: Mapping[str, str], answer: str) -> dict[str, bool | None]:
    """Of each skill whether a rollout showed it; None: there was no occasion."""
    keys, target = parse(prompt)
    is_told = all(key in known for key in keys)
    return {
        "lookup": is_told,
        "add": answer == str(sum(known[key] for key in keys)) if is_told else None,
        "store": stored.get(target) == answer if target else None,
    }


def described(names: Sequence[str]) -> str:
    """What an LLM client reads of skills."""
    return "\n".join(f"{name}: {SKILLS[name]}" for name in names)


def lacking(text: str) -> str:
    """The skills that a rollout had occasion for and did not show, one per line; `none` where it showed them all."""
    parts = parts_of(text)
    known: dict[str, int] = {}
    stored: dict[str, str] = {}
    for line in parts.get("ideas", "").splitlines():
        said, _, told = line.rpartition(" -> ")
        for called, answer in zip(between(said, "<call>", "</call>"), told.split(" ; "), strict=False):
            if (got := _GET.fullmatch(called)) and answer.isdigit():
                known[got.group(1)] = int(answer)
            elif (put := _SET.fullmatch(called)) and answer == "ok":
                stored[put.group(1)] = put.group(2)
    shown = exercised(parts.get("task", ""), known, stored, final_answer(parts.get("completion", "")))
    return "\n".join(name for name, is_shown in shown.items() if is_shown is False) or NONE


def chosen(text: str) -> str:
    """The skill among those offered that a task asks for most: to store, to look up many keys, or to add some."""
    parts = parts_of(text)
    keys, target = parse(parts.get("task", ""))
    offered = [line.partition(":")[0] for line in parts.get("requirements", "").splitlines()]
    wanted = {"store": bool(target), "lookup": len(keys) > _SOME, "add": len(keys) > _FEW}
    return next((name for name, is_wanted in wanted.items() if is_wanted and name in offered), NONE)
