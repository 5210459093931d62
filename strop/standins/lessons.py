"""Stand-in for a reflecting LLM: hints for the bundled model after failed rollouts.

The rules do not know a task's answer: they choose from the hints that the bundled model understands before a task
(`careful:`, `half:`). Use: `Procedural(lesson)`.
"""

from __future__ import annotations

import re

from strop.text.llm_prompt import parts_of

_SUM = re.compile(r"(\d{1,9})\+(\d{1,9})=(\d{1,9})")


def lesson(text: str) -> str:
    """The answer to one of the questions in reflection.py; empty where the rules find nothing."""
    parts = parts_of(text)
    match parts.get("wanted"):
        case "insight" | "skill" | "plan":
            return word_for(parts.get("task", ""), parts.get("completion", ""))
        case "experience":
            word = word_for(parts.get("task", ""), parts.get("completion", ""))
            return f"add: {word}" if word else ""
        case "subtasks":
            return parts.get("task", "")
        case "adapted" | "merged" | "shortened":
            return parts.get("ideas", "")
        case "memory":
            return "ask once"
        case "direction":
            return "careful:" if num_slips(parts.get("ideas", "")) else ""
        case "summary" | "note":
            return working(parts.get("completion", ""))
        case "vote":
            return "1" if num_slips(parts.get("ideas", "")) <= num_slips(parts.get("other", "")) else "2"
        case "skills":
            return " ".join(dict.fromkeys(f"{parts.get('ideas', '')} {parts.get('other', '')}".split()))
    return ""


def word_for(task: str, failed: str) -> str:
    """What to say before a task so that the bundled model goes about it otherwise than this rollout did."""
    if task.startswith("guess "):
        return "half:"
    return "careful:" if num_slips(failed) else ""


def working(text: str) -> str:
    """Its sums alone, as they stand; all of it where there are none."""
    return " ".join(match.group() for match in _SUM.finditer(text)) or text


def num_slips(text: str) -> int:
    """How many of its sums are wrong."""
    return sum(int(one) + int(other) != int(total) for one, other, total in _SUM.findall(text))
