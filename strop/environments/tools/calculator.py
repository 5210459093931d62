"""Calculator tool with its own grammar: integers, decimals, + - * / // % ** and parentheses; exact fractions.

sum     = product (("+" | "-") product)*
product = sign (("*" | "/" | "//" | "%") sign)*
sign    = ("-" | "+") sign | power
power   = atom ("**" sign)?
atom    = number | "(" sum ")"
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from strop.environments.data.heldout_split import prompt_of
from strop.environments.tools.tool import WrongCall
from strop.roles import Instrument
from strop.types import Task

_LONGEST = 200  # characters
_DEEPEST = 40  # parentheses and signs within each other
_BITS = 256  # of the largest number
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|(\*\*|//|[-+*/%()]))")
_IN_A_TASK = re.compile(r"[\d(][\d+\-*/%(). ]*(?==\?)")


@dataclass(frozen=True)
class Calculator(Instrument):
    """Calculator tool: evaluates an expression."""

    name: ClassVar[str] = "calc"
    description: ClassVar[str] = "Work out an expression of numbers, + - * / // % ** and parentheses."
    parameters: ClassVar[str] = json.dumps(
        {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
    )

    async def call(self, arguments: dict[str, Any]) -> str:
        return shown(value_of(arguments["expression"]))

    def use(self, task: Task) -> dict[str, Any] | None:
        found = _IN_A_TASK.search(prompt_of(task))
        return {"expression": found.group()} if found else None


def value_of(expression: str) -> Fraction:
    """What an expression comes to, exactly."""
    if len(expression) > _LONGEST:
        raise WrongCall(f"an expression has at most {_LONGEST} characters, this one {len(expression)}")
    reading = _Reading(_tokens(expression))
    value = reading.sum()
    if reading.tokens:
        raise WrongCall(f"not expected: {reading.tokens[0]}")
    return value


def shown(value: Fraction) -> str:
    """A whole number as such, any other with 12 digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.12g}"


def _tokens(text: str) -> list[str]:
    found, at = list[str](), 0
    while at < len(text.rstrip()):
        if (match := _TOKEN.match(text, at)) is None:
            raise WrongCall(f"not understood: {text[at : at + 20].strip()}")
        found.append(match.group(1) or match.group(2))
        at = match.end()
    return found


@dataclass
class _Reading:
    """Recursive-descent parser; every rule of the grammar is a method."""

    tokens: list[str]
    depth: int = field(default=0, init=False)

    def sum(self) -> Fraction:
        value = self._product()
        while self._next in ("+", "-"):
            value = _within(value + self._product() if self.tokens.pop(0) == "+" else value - self._product())
        return value

    @property
    def _next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def _product(self) -> Fraction:
        value = self._sign()
        while self._next in ("*", "/", "//", "%"):
            value = _within(_done(self.tokens.pop(0), value, self._sign()))
        return value

    def _sign(self) -> Fraction:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise WrongCall(f"more than {_DEEPEST} signs and parentheses within each other")
        if self._next in ("-", "+"):
            value = -self._sign() if self.tokens.pop(0) == "-" else self._sign()
        else:
            value = self._power()
        self.depth -= 1
        return value

    def _power(self) -> Fraction:
        value = self._atom()
        if self._next != "**":
            return value
        self.tokens.pop(0)
        return _raised(value, self._sign())

    def _atom(self) -> Fraction:
        token = self.tokens.pop(0) if self.tokens else ""
        if token[:1].isdigit():
            return _within(Fraction(token))
        if token != "(":
            raise WrongCall(f"a number is missing before {token}" if token else "a number is missing at the end")
        value = self.sum()
        if not self.tokens or self.tokens.pop(0) != ")":
            raise WrongCall("a parenthesis is not closed")
        return value


def _done(sign: str, one: Fraction, other: Fraction) -> Fraction:
    if sign == "*":
        return one * other
    if other == 0:
        raise WrongCall("division by zero")
    if sign == "/":
        return one / other
    return Fraction(one // other) if sign == "//" else one % other


def _raised(value: Fraction, power: Fraction) -> Fraction:
    if power.denominator != 1 or (value == 0 and power < 0):
        raise WrongCall("a power must be a whole number, and 0 has none below 0")
    size = max(value.numerator.bit_length(), value.denominator.bit_length())
    if abs(power.numerator) * max(size - 1, 0) > _BITS or abs(power.numerator) > _BITS * _BITS:
        raise WrongCall("the number is too large")
    return _within(Fraction(value**power.numerator))


def _within(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _BITS:
        raise WrongCall("the number is too large")
    return value
