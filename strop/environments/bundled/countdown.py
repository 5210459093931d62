"""Countdown task: reach a target with given numbers, each used once (`make 23 from 2 3 7`); the level is their count.

Expressions are parsed here with exact rationals; nothing a model writes is evaluated as code.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, TypeAlias

from strop.environments.data.heldout_split import draw, require_level
from strop.environments.format.think_tags import final_answer, think
from strop.environments.single_turn import SingleTurn
from strop.roles import Environment
from strop.types import Message, Task

_FEWEST, _MOST = 2, 5
_LARGEST_NUMBER = 12
_LARGEST_VALUE = 99
# bounds recursion: an expression of five small numbers needs far less
_LONGEST_EXPRESSION = 100
_TIGHT = "*/"
Exact: TypeAlias = int | Fraction  # a whole number stays an int, which is many times quicker


@dataclass
class Expression:
    """Parsed expression such as `3*7+2`, with the usual precedence; anything else raises ValueError or
    ZeroDivisionError.
    """

    text: str
    numbers: list[int] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.text) > _LONGEST_EXPRESSION or re.search(r"[^0-9+\-*/() ]", self.text):
            raise ValueError(f"not an expression: {self.text[:_LONGEST_EXPRESSION]!r}")
        # two numbers with only a space between them stay two tokens, and are refused by the grammar
        self._tokens = re.findall(r"\d+|[^\d ]", self.text)[::-1]
        self.value = self._chain("+-")
        if self._tokens:
            raise ValueError(f"cannot read {self.text!r} from {self._tokens[-1]!r} on")

    def _chain(self, operators: str) -> Exact:
        """A row of operands joined by operators of one precedence."""
        value = self._operand(operators)
        while self._tokens and self._tokens[-1] in operators:
            operator = self._tokens.pop()
            right = self._operand(operators)
            result = apply(operator, value, right)
            self.steps.append(f"{value}{operator}{right}={result}")
            value = result
        return value

    def _operand(self, operators: str) -> Exact:
        return self._atom() if operators == _TIGHT else self._chain(_TIGHT)

    def _atom(self) -> Exact:
        token = self._tokens.pop() if self._tokens else ""
        if token == "(":
            value = self._chain("+-")
            if not self._tokens or self._tokens.pop() != ")":
                raise ValueError(f"unbalanced parentheses in {self.text!r}")
            return value
        if not token.isdigit():
            raise ValueError(f"a number is missing in {self.text!r}")
        self.numbers.append(int(token))
        return int(token)


def apply(operator: str, left: Exact, right: Exact) -> Exact:
    """One of the four operations, exactly."""
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    quotient = Fraction(left) / right
    return quotient.numerator if quotient.denominator == 1 else quotient


def random_expression(numbers: Sequence[int], stream: random.Random) -> str:
    """Join the numbers at random, keeping every intermediate value a small positive integer."""
    parts: list[tuple[Exact, str, str]] = [(number, str(number), "") for number in numbers]
    while len(parts) > 1:
        stream.shuffle(parts)
        left, right = parts.pop(), parts.pop()
        choices = [o for o in "+-*/" if _is_small(o, left[0], right[0])]
        operator = stream.choice(choices) if choices else "+"
        text = _enclosed(left, operator, False) + operator + _enclosed(right, operator, True)
        parts.append((apply(operator, left[0], right[0]), text, operator))
    return parts[0][1]


def _is_small(operator: str, left: Exact, right: Exact) -> bool:
    # both sides are positive here, so the division is safe
    value = apply(operator, left, right)
    return value.denominator == 1 and 0 < value <= _LARGEST_VALUE


def _enclosed(part: tuple[Exact, str, str], operator: str, is_right: bool) -> str:
    """The part's text, in parentheses where precedence would read it otherwise."""
    _, text, inner = part
    is_looser = inner in ("+", "-") and operator in _TIGHT
    is_regrouped = is_right and inner != "" and (operator in "-/") and (inner in _TIGHT) == (operator in _TIGHT)
    return f"({text})" if is_looser or is_regrouped else text


@dataclass(frozen=True)
class Countdown(Environment):
    """Countdown environment; `Task.answer` is one right expression, and any other right expression is accepted too."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "countdown"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, _FEWEST, _MOST)

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        given = self.answer(completion)
        return float(given != "" and given == self.answer(task.answer))

    def answer(self, completion: str) -> str:
        """What an expression comes to and the numbers it takes: `23 from 2 3 7`."""
        try:
            given = Expression(final_answer(completion))
        except (ValueError, ZeroDivisionError):
            return ""
        return f"{given.value} from {' '.join(map(str, sorted(given.numbers)))}"

    def solution(self, task: Task) -> str:
        return think(Expression(task.answer).steps, task.answer)

    def hint(self, task: Task, steps: int = 1) -> str:
        """The first steps of the working."""
        return " ".join(Expression(task.answer).steps[:steps])

    def _make(self, stream: random.Random) -> Task:
        # sorted, so that one set of numbers is one prompt and cannot be on both sides of the split
        numbers = sorted(stream.randint(1, _LARGEST_NUMBER) for _ in range(self.level))
        answer = random_expression(numbers, stream)
        prompt = f"make {Expression(answer).value} from {' '.join(map(str, numbers))}"
        return Task((Message("user", prompt),), answer, self.name, self.level)
