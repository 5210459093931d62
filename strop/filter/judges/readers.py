"""Readers of judges' answers, shared by all recipes: a number, a choice, a number for each item, weighted items.

Models answer in JSON or prose, in any case, in bold, on several lines. What is unclear is unread (None or nothing), and
never a score. `fullmatch` says whether an answer is a verdict and nothing else, `quote` what of it is the verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strop.text.llm_prompt import json_object, without_reasoning

_NUMBER = r"[-+\u2212]?\d{1,6}(?:\.\d{1,6})?"
_SHARE = re.compile(rf"({_NUMBER})\s*(?:/|out of)\s*(\d{{1,4}})\b", re.IGNORECASE)
_SIGNS = "+\\-\u2212"
_BEHIND = rf"[^\w{_SIGNS}]{{0,6}}(?:(?:is|of|as|be)\s+)?({_NUMBER})(?![\d.]*\w)"
_SCORED = re.compile(rf"(?:score|rating|grade|verdict){_BEHIND}", re.IGNORECASE)
_ANSWERED = re.compile(rf"(?:answer|value|step){_BEHIND}", re.IGNORECASE)
_LABEL = re.compile(
    rf"^[^\w{_SIGNS}]*(?:(?:final|overall|my)\s)?(?:scores?|ratings?|grade|verdict|answer|value)\b[^\w{_SIGNS}]*",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"^\W*(?:(?:requirement|criterion|item|step|sentence|completion|number|no|frame)\W{0,3})?"
    r"(\d{1,4})\W*?[:.)\-\u2013|=]\W*(\S.*)$",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    rf"\W*(?:[(\[]\W*(?:importance|weight|points?|score)?\W*({_NUMBER})\W*(?:points?|pts|%|/\s?100)?\W*[)\]]"
    rf"|\b(?:importance|weight|points?)\W{{1,3}}({_NUMBER})(?:\s?%|/\s?100)?)\W*$",
    re.IGNORECASE,
)
_LEADING = re.compile(
    rf"^[ \t*>\u2022-]*?[(\[]?({_NUMBER})(?:\s*(?:points?|pts|%|/\s?100))?[)\]]?"
    r"\W{0,4}?([:.)\]\u2013]|\s-)\W{0,4}(\S.*)$",
    re.IGNORECASE,
)
_WEIGHTS = ("importance", "weight", "points", "score")
_TEXTS = ("requirement", "criterion", "text", "item", "description", "dimension", "title")


def plain(text: str) -> str:
    """An answer without thoughts, a fence around all of it, and the signs of bold, code and headings."""
    return re.sub(r"\*{1,3}|`+|^[ \t]*#+[ \t]*", "", without_reasoning(text), flags=re.MULTILINE).strip()


@dataclass(frozen=True)
class Number:
    """Number from `low` to `high`: `85`, `Score: 85/100`, `I would say 85.`, `8 out of 10`, `{"score": 85}`."""

    low: float = 0.0
    high: float = 100.0
    clamps: bool = True  # a number outside is the nearest one within; else it is none

    def read(self, text: str) -> float | None:
        """The number; None: there is none."""
        if (found := self._found(text)) is None:
            return None
        held = min(max(found[0], self.low), self.high)
        return held if self.clamps or held == found[0] else None

    def quote(self, text: str) -> str:
        found = self._found(text)
        return found[1] if found else ""

    def fullmatch(self, text: str, /) -> bool:
        return re.fullmatch(rf"{_NUMBER}\s?(?:%|/\s?\d{{1,4}})?\W*", _LABEL.sub("", plain(text))) is not None

    def _found(self, text: str) -> tuple[float, str] | None:
        """The number and how it was written."""
        spoken = plain(text)
        if found := json_object(spoken):
            numbers = [each for each in found.values() if isinstance(each, int | float) and not isinstance(each, bool)]
            return (float(numbers[0]), f"{numbers[0]}") if len(numbers) == 1 else None
        spoken = re.sub(rf"(?<!\d){self.low:g}\s*(?:to|-|\u2013|and|\.\.)\s*{self.high:g}(?!\d)", "", spoken)
        if share := _SHARE.search(spoken):
            top = float(share[2])
            scale = self.high / top if self.low == 0 and top else 1.0
            return _value(share[1]) * scale, share[1]
        begun = re.match(rf"({_NUMBER})(?![\d.]*\w)", _LABEL.sub("", spoken))
        scored, answered = list(_SCORED.finditer(spoken)), list(_ANSWERED.finditer(spoken))
        said = scored[-1] if len(scored) > 1 else begun or next(iter([*scored, *answered[-1:]]), None)
        every = re.findall(rf"(?<![\w.]){_NUMBER}(?![\w])", spoken)
        word = said[1] if said else every[-1] if every else ""
        return (_value(word), word) if word else None


@dataclass(frozen=True)
class OneWord:
    """One of several words: `Yes.`, `**Verdict:** no`, `(B)`, `{"winner": "first"}`."""

    values: Mapping[str, float]  # by lower-case word; words within others come later: not success, success

    def read(self, text: str) -> float | None:
        """The value of the word that was chosen; None: none was, or it is unclear which."""
        return self.values.get(self.quote(text))

    def quote(self, text: str) -> str:
        spoken = plain(text).lower()
        if found := json_object(spoken):
            said = {self._word(str(each)) for each in found.values()} - {""}
            return said.pop() if len(said) == 1 else ""
        return self._word(_LABEL.sub("", spoken))

    def fullmatch(self, text: str, /) -> bool:
        return re.fullmatch(rf"\W*(?:{self._any})\W*", _LABEL.sub("", plain(text).lower())) is not None

    @property
    def _any(self) -> str:
        return "|".join(re.escape(word) for word in self.values)

    def _word(self, spoken: str) -> str:
        patterns = (
            rf"\W*({self._any})\b",
            rf".*\b(?:answer|verdict|winner|final|better)\W+(?:is\W+)?({self._any})\b",
            rf".*:\s*({self._any})\W*",
        )
        for pattern in patterns:
            if (found := re.match(pattern, spoken, re.DOTALL)) and (found.re.pattern != patterns[2] or _ends(found)):
                return found[1]
        every = set(re.findall(rf"\b({self._any})\b", spoken))
        return every.pop() if len(every) == 1 else ""


YES_NO = OneWord({"yes": 1.0, "no": 0.0})


@dataclass(frozen=True)
class PerItem:
    """Number from 0 to 100 for each of `count` items: lines such as `2: 40`, `**Requirement 2**: 40/100`, or JSON."""

    count: int
    first: int = 1  # number of the first item

    def read(self, text: str) -> list[float] | None:
        """In the order of the items, from 0 to 1; None where one is missing or was said in two ways."""
        said = self._said(plain(text))
        if any(len(values) != 1 for values in said.values()) or sorted(said) != self._numbers:
            return None
        return [min(max(said[number].copy().pop(), 0.0), 100.0) / 100 for number in self._numbers]

    def quote(self, text: str) -> str:
        return ""  # lines may be quotations: without the code, an answer of other lines beside them is not read

    def fullmatch(self, text: str, /) -> bool:
        spoken = plain(text)
        if spoken[:1] in ("[", "{"):
            return self.read(text) is not None
        lines = [line for line in spoken.splitlines() if line.strip()]
        return bool(lines) and all(re.fullmatch(rf"\W*\d{{1,4}}\W+{_NUMBER}\W*(?:/\s?100)?\W*", line) for line in lines)

    @property
    def _numbers(self) -> list[int]:
        return list(range(self.first, self.first + self.count))

    def _said(self, spoken: str) -> dict[int, set[float]]:
        found: dict[int, set[float]] = {}
        for number, value in _listed(spoken, self.first) or _lined(spoken):
            found.setdefault(number, set()).add(value)
        return found


@dataclass(frozen=True)
class ScoreRow:
    """Whole number from 0 to `high` for each of `count` completions, in one row, in lines, or as JSON."""

    count: int
    high: int = 10

    def read(self, text: str) -> list[int] | None:
        spoken = plain(text)
        pairs = _listed(spoken, 0) or [(0, _value(each)) for each in re.findall(rf"(?<![\w.]){_NUMBER}(?!\w)", spoken)]
        is_row = re.fullmatch(r"[\s\d,;|\[\]]*", _LABEL.sub("", spoken)) is not None
        found = pairs if is_row or spoken[:1] in ("[", "{") else sorted(_lined(spoken))
        values = [round(value) for _, value in found]
        return values if len(values) == self.count and all(0 <= each <= self.high for each in values) else None

    def quote(self, text: str) -> str:
        return ""

    def fullmatch(self, text: str, /) -> bool:
        return self.read(text) is not None and not re.search(r"[A-Za-z]{2}", _LABEL.sub("", plain(text)))


def _listed(spoken: str, first: int) -> list[tuple[int, float]]:
    """Numbers of a JSON array, or of an object by the item's number."""
    try:
        found = json.loads(spoken) if spoken[:1] in ("[", "{") else None
    except (ValueError, RecursionError):
        return []
    if isinstance(found, dict) and len(found) == 1 and isinstance(next(iter(found.values())), list | dict):
        found = next(iter(found.values()))
    if isinstance(found, dict):
        pairs = [(re.search(r"\d+", str(name)), value) for name, value in found.items()]
        return [(int(name[0]), _of(value)) for name, value in pairs if name and _is_number(value)]
    if not isinstance(found, list):
        return []
    values = [_first_number(each) if isinstance(each, dict) else each for each in found]
    return [(number, _of(value)) for number, value in enumerate(values, start=first) if _is_number(value)]


def _lined(spoken: str) -> list[tuple[int, float]]:
    found = []
    for line in spoken.splitlines():
        if item := _ITEM.match(line.strip()):
            rest = item[2]
            begun = re.match(rf"({_NUMBER})(?![\d.]*[a-z])", rest)
            after = re.findall(rf"[:=\u2013-]\s*({_NUMBER})(?:\s?%|\s?/\s?100)?\W*$", rest)
            every = re.findall(rf"(?<![\w.]){_NUMBER}(?!\w)", rest)
            word = begun[1] if begun else after[-1] if after else every[-1] if len(set(every)) == 1 else ""
            found += [(int(item[1]), _value(word))] if word else []
    return found


def weighted(text: str) -> list[tuple[float, str]]:
    """Items with a weight each: `80: It is short`, `1. Short (importance: 80)`, `- [5 points] Short`, or JSON.

    The numbers of a list are no weights: a list without any other number has none.
    """
    spoken = plain(text)
    start, end = spoken.find("["), spoken.rfind("]")
    if '"' in spoken and 0 <= start < end and (found := _json_items(spoken[start : end + 1])):
        return found
    behind, before = list[tuple[float, str]](), list[tuple[float, str, str]]()
    for line in spoken.splitlines():
        if trailing := _TRAILING.search(line):
            text_of_item = re.sub(r"^\W*(?:\d{1,3}[.)])?\s*", "", line[: trailing.start()]).strip()
            behind += [(_value(trailing[1] or trailing[2]), text_of_item)] if text_of_item else []
        elif leading := _LEADING.match(line):
            before.append((_value(leading[1]), leading[2].strip(), leading[3].strip()))
    is_list = len(before) > 1 and [weight for weight, _, _ in before] == list(range(1, len(before) + 1))
    if behind or (is_list and all(sign in ".)" for _, sign, _ in before)):
        return behind
    return [(weight, said) for weight, _, said in before]


def _json_items(text: str) -> list[tuple[float, str]]:
    try:
        rows: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = []
    for row in rows if isinstance(rows, list) else []:
        named = {str(name).lower(): value for name, value in row.items()} if isinstance(row, dict) else {}
        weight = next((named[name] for name in _WEIGHTS if _is_number(named.get(name))), None)
        said = next((named[name] for name in _TEXTS if isinstance(named.get(name), str)), "")
        found += [(float(weight), said)] if weight is not None and said else []
    return found


def listed(text: str) -> list[str]:
    """The entries of a list with dashes, stars or numbers, or of a JSON array, each once."""
    spoken = without_reasoning(text)
    try:
        rows = json.loads(spoken) if spoken.startswith("[") else []
    except (ValueError, RecursionError):
        rows = []
    if texts := [each for each in rows if isinstance(each, str) and each.strip()]:
        return list(dict.fromkeys(texts))
    found = [re.match(r"[ \t]*(?:[-*\u2022]|\d{1,3}[.)])[ \t]+(\S.*)", line) for line in spoken.splitlines()]
    return list(dict.fromkeys(plain(each[1]) for each in found if each))


def _ends(found: re.Match[str]) -> bool:
    return found.end() == len(found.string)


def _value(word: str) -> float:
    return float(word.replace("\u2212", "-"))


def _is_number(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_number(_first_number(value))
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and re.fullmatch(rf"{_NUMBER}\s?(?:%|/\s?100)?", value.strip()) is not None
    )


def _of(value: Any) -> float:
    found = _first_number(value) if isinstance(value, dict) else value
    return _value(re.match(_NUMBER, str(found))[0])  # type: ignore[index]


def _first_number(row: Mapping[str, Any]) -> Any:
    """The score of a row, by the usual names."""
    return next((row[name] for name in ("score", "rating", "value", "percent", "progress") if name in row), None)
