r"""Steps of worked text: sentences, lines and lines of LaTeX.

Code fences, displayed and inline formulas stay whole; an aligned display is cut at its `\\`. Abbreviations, initials,
decimals and the numbers of a list end no sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_LOOKED_AT = 200  # characters of a line before its end
_WRAPPED = 60  # characters from which a line without an end is one that was wrapped
_WHOLE = re.compile(
    r"```.*?(?:```|\Z)"
    r"|\\begin\{(?P<name>[a-zA-Z]+\*?)\}.{0,4000}?\\end\{(?P=name)\}"
    r"|\$\$.{0,4000}?\$\$|\\\[.{0,4000}?\\\]|\\\(.{0,400}?\\\)"
    r"|(?<![\\$\w])\$(?![\s$])[^$\n]{1,400}?(?<![\s\\])\$(?!\d)",
    re.DOTALL,
)
_ALIGNED = re.compile(r"\\begin\{(?:align|aligned|gather|gathered|eqnarray|split|multline)\*?\}")
_INNER = re.compile(r"\\begin\{([a-z]*matrix|cases|array|tabular)\}.{0,2000}?\\end\{\1\}", re.DOTALL)
_ROW_END = re.compile(r"\\\\(?:\[[^\]\n]{1,20}\])?[ \t]*\n?")
_CUT = re.compile(r"\n\s*|(?P<stop>[.!?]+)(?P<after>[\"')\]*_\u201d\u2019]*)[ \t]+|[\u3002\uff01\uff1f]+")
_NEXT = re.compile(r"[A-Z\u00c0-\u00de\u0400-\u042f\d$\\(\[\"'*_#\u201c\u2018-]|[^\x00-\u024f]")
_LAST_WORD = re.compile(r"[^\s(\[\"']*\Z")
_MARKER = re.compile(
    r"[ \t]*(?:(?:step|part|case|question|no\.?|section)\s*)?[#*]*\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})", re.I
)
_DOTTED = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?")
_ABBREVIATIONS = (
    "e.g i.e cf vs viz al approx ca resp etc dr mr mrs ms prof st jr sr rev gen hon inc ltd co corp dept fig figs eq "
    "eqs sec ch vol pp p no nos ex def thm lem prop cor ref jan feb mar apr jun jul aug sept sep oct nov dec mt ft "
    "lb lbs oz min hr hrs avg max a.m p.m"
)
_OPENINGS = (
    "the then this that these those thus therefore so since if we i it he she they you now next let hence finally "
    "first second by because for in on at as and but to when where after before there here our her his its a an each "
    "also however note again similarly step answer adding subtracting substituting using solving dividing"
)
_SHORT, _STARTS = frozenset(_ABBREVIATIONS.split()), frozenset(_OPENINGS.split())
_MAY_END = frozenset(("etc", "a.m", "p.m", "oz", "lb", "lbs", "ft", "min", "hr", "hrs", "max"))
_WORD = re.compile(r"[A-Za-z]+")


class Piece(NamedTuple):
    """Start and end of a step in its text."""

    start: int
    end: int


def steps_of(text: str, start: int = 0, end: int | None = None) -> list[Piece]:
    """Steps between two places of a text, without the blanks around them; every other character is in one."""
    end = len(text) if end is None else end
    found, begin = list[Piece](), start
    for cut in (*_cuts(text, start, end), end):
        piece = _stripped(text, begin, cut)
        if found and piece.end > piece.start and not _says(text, piece):
            found[-1] = Piece(found[-1].start, piece.end)
        elif piece.end > piece.start:
            found.append(piece)
        begin = cut
    return found


def _cuts(text: str, start: int, end: int) -> Iterator[int]:
    at = start
    for whole in [*_wholes(text, start, end), Piece(end, end)]:
        if whole.start > start and whole.start < end and text.startswith("```", whole.start):
            yield whole.start
        yield from (cut for cut in _prose_cuts(text, start, Piece(at, whole.start), end) if start < cut < end)
        yield from _rows(text, whole)
        at = whole.end
        if whole.end < end and text.startswith("```", whole.start):
            yield whole.end


def _wholes(text: str, start: int, end: int) -> Iterator[Piece]:
    for found in _WHOLE.finditer(text, start, end):
        yield Piece(found.start(), found.end())


def _rows(text: str, whole: Piece) -> Iterator[int]:
    """Ends of the rows of an aligned display; those of a matrix within it are none."""
    if not _ALIGNED.search(text, whole.start, whole.end):
        return
    inner = [Piece(found.start(), found.end()) for found in _INNER.finditer(text, whole.start, whole.end)]
    for row in _ROW_END.finditer(text, whole.start, whole.end):
        if not any(each.start <= row.start() < each.end for each in inner):
            yield row.end()


def _prose_cuts(text: str, start: int, prose: Piece, end: int) -> Iterator[int]:
    """Ends of sentences and lines in a piece of prose of the text from `start` to `end`."""
    for cut in _CUT.finditer(text, prose.start, prose.end):
        first = max(start, cut.start() - _LOOKED_AT)
        line = text[max(text.rfind("\n", first, cut.start()) + 1, first) : cut.start()]
        ends = _ends_line if cut.group().startswith("\n") else _ends_sentence
        if ends(text, line, cut, end):
            yield cut.end()


def _ends_line(text: str, line: str, cut: re.Match[str], end: int) -> bool:
    """Whether a step ends with its line: not where the line announces the next one, nor where it was only wrapped."""
    line = line.rstrip()
    if line.endswith((":", ",")) and cut.group().count("\n") == 1:
        return False
    is_wrapped = len(line) >= _WRAPPED and not line.endswith((".", "!", "?", "$", "\\]", "|"))
    return not (is_wrapped and cut.group().count("\n") == 1 and text[cut.end() : cut.end() + 1].islower())


def _ends_sentence(text: str, line: str, cut: re.Match[str], end: int) -> bool:
    if not cut["stop"]:
        return True
    if not _NEXT.match(text, cut.end(), end):
        return False
    if cut["stop"] != "." or cut["after"]:
        return True
    found = _LAST_WORD.search(line)
    word = found.group() if found else ""
    following = _WORD.match(text, cut.end(), end)
    begins = following is not None and following.group().lower() in _STARTS
    if _MARKER.fullmatch(line.lstrip("-* \t>")):
        return False  # "1. Multiply", "Step 2. Add"
    if word.lower().strip("*_") in _SHORT:
        return word.lower() in _MAY_END and begins
    if len(word) == 1 and word.isalpha() and word.isupper() and word != "I":  # an initial, or the name of a point
        return begins or following is None
    return not _DOTTED.fullmatch(word) or "." not in word or begins


def _stripped(text: str, start: int, end: int) -> Piece:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Piece(start, end)


def _says(text: str, piece: Piece) -> bool:
    """Whether there is a letter or a digit in it; lone punctuation belongs to the step before."""
    return any(letter.isalnum() for letter in text[piece.start : piece.end])
