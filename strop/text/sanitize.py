"""Sanitizing of policy text before it is shown to an LLM client, in one place.

Markers that could pass for another part of the prompt, for a chat turn or for a judgement lose their brackets; only
invisible characters are removed, so that no marker can be assembled from pieces. Where parts are told apart by how
their lines begin, lines of a policy are indented. Anything else that looks like a judgement or an instruction stays as
it is: the fence around it (`llm_prompt.py`) says that it is data.
"""

from __future__ import annotations

import re
from functools import lru_cache

PARTS = (
    *("wanted", "task", "answer", "completion", "steps", "requirement", "requirements"),
    *("ideas", "other", "first", "second"),
)
_VERDICTS = "verdicts?|scores?|judges?|judge?ments?|ratings?|rewards?|grades?|critiques?|evaluations?|winners?"
# control characters but tab and new line, soft hyphens, marks of direction, width and language, half characters
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e01ef]"
)
LETTERS = "bcdfghjklmnpqrst"  # of the code of a fence
CODE = f"[{LETTERS}]{{6}}"
_TOOLS = r"/?tool_[a-z]{1,9}|/?available_tools"
_OTHERS = rf"system|user|assistant|/?inst|world|environment|step\s?\d{{1,9}}|/?[a-z]{{1,20}} {CODE}|{_TOOLS}"
_MARKER = re.compile(
    rf"[\[［【]\s{{0,9}}(/?(?:{'|'.join(PARTS)}|{_VERDICTS}|{_OTHERS}))\s{{0,9}}[\]］】]",
    re.IGNORECASE,
)
_DOUBLE = re.compile(r"\[(\[[^\[\]]{1,40}\])\]")  # [[A]], [[7]]: how many judges are asked to end
_TURN = re.compile(
    r"<(/?(?:s|bos|eos|eot|eom|pad|unk|start_of_turn|end_of_turn|sys|<sys>)|[|｜][^<>\n]{0,200}[|｜])>", re.IGNORECASE
)
# of models' thoughts and tools: environments use them too, so that only a server that reads them as tokens needs them
# gone
_WORKING = re.compile(
    r"<(/?(?:think|thinking|tool_call|tool_response|tools|tool_use|function_calls|invoke)[^<>\n]{0,80})>"
)
_TAG = re.compile(rf"<(\s{{0,9}}/?\s{{0,9}}(?:{_VERDICTS})(?:\s[^<>\n]{{0,80}})?)>", re.IGNORECASE)


@lru_cache(maxsize=16)  # a judge is asked about the same completion again and again, item by item
def quoted(text: str) -> str:
    """The same text without anything that only a judge or a chat template may write."""
    shown = _UNSEEN.sub("", text)
    shown = _DOUBLE.sub(r"(\1)", shown)
    for marker in (_MARKER, _TURN, _TAG):
        shown = marker.sub(r"(\1)", shown)
    return shown


def without_markers(text: str) -> str:
    """A fenced text for a server that takes markers of thoughts and tools for tokens of its own."""
    return _WORKING.sub(r"(\1)", text)


def set_in(text: str) -> str:
    """The same where each part begins a line: no line but the first begins at the margin, so that none is a part."""
    return quoted(text).replace("\n", "\n  ")
