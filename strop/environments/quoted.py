"""What a policy wrote, made fit to be shown to an adviser: the one place where it is cleaned.

Marks that could pass for another part of a question, for a turn of the conversation or for a verdict lose their
brackets; nothing is taken away but characters that nobody sees, so that no mark can come together from pieces. Where
parts are told apart by how their lines begin, lines of a policy are set in.
"""

from __future__ import annotations

import re
from functools import lru_cache

PARTS = ("wanted", "task", "answer", "reply", "requirement", "requirements", "ideas", "other", "first", "second")
_VERDICTS = "verdicts?|scores?|judges?|judge?ments?|ratings?|rewards?|grades?|critiques?|evaluations?|winners?"
# control characters but tab and new line, soft hyphens, marks of direction, width and language, half characters
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e01ef]"
)
_MARK = re.compile(
    rf"[\[［【]\s{{0,9}}(/?(?:{'|'.join(PARTS)}|{_VERDICTS}|system|user|assistant|/?inst|world|step\s?\d{{1,9}}))\s{{0,9}}[\]］】]",
    re.IGNORECASE,
)
_DOUBLE = re.compile(r"\[(\[[^\[\]\n]{1,40}\])\]")  # [[A]], [[7]]: how many judges are asked to end
_TURN = re.compile(
    r"<(/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|sys|<sys>)|[|｜][^<>\n]{0,40}[|｜])>", re.IGNORECASE
)
_TAG = re.compile(rf"<(\s{{0,9}}/?\s{{0,9}}(?:{_VERDICTS})(?:\s[^<>\n]{{0,80}})?)>", re.IGNORECASE)


@lru_cache(maxsize=16)  # a judge is asked about the same reply again and again, item by item
def quoted(text: str) -> str:
    """The same text without anything that only a judge or a chat template may write."""
    shown = _UNSEEN.sub("", text)
    shown = _DOUBLE.sub(r"(\1)", shown)
    for mark in (_MARK, _TURN, _TAG):
        shown = mark.sub(r"(\1)", shown)
    return shown


def set_in(text: str) -> str:
    """The same where each part begins a line: no line but the first begins at the margin, so that none is a part."""
    return quoted(text).replace("\n", "\n  ")
