"""Simulated expert models with prices: each adds numbers correctly up to some size, and wrongly beyond."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from strop.environments.tools.calculator import shown, value_of
from strop.environments.tools.tool import WrongCall
from strop.roles import Instrument


class Expert(NamedTuple):
    """Price of one answer, and the number of digits that the expert can add."""

    price: float
    digits: int


EXPERTS: Mapping[str, Expert] = {"red": Expert(1.0, 1), "blue": Expert(4.0, 2), "gold": Expert(16.0, 9)}
_WRONG = 9  # by how much an expert errs, at most


@dataclass(frozen=True)
class Experts(Instrument):
    """Tool `ask NAME QUESTION`: the answer of one expert; deterministic per question."""

    name: ClassVar[str] = "ask"
    description: ClassVar[str] = "Ask an expert a sum. " + "; ".join(
        f"{name}: numbers of up to {each.digits} digits, price {each.price:g}" for name, each in EXPERTS.items()
    )
    parameters: ClassVar[str] = json.dumps(
        {
            "type": "object",
            "properties": {"expert": {"type": "string", "enum": list(EXPERTS)}, "question": {"type": "string"}},
            "required": ["expert", "question"],
        }
    )

    async def call(self, arguments: dict[str, Any]) -> str:
        return answered_by(arguments["expert"], arguments["question"])


def answered_by(name: str, question: str) -> str:
    """What an expert says; one who is asked too much is wrong by 1 to 9."""
    sum_ = question.removesuffix("=?")
    value = value_of(sum_)
    if value.denominator != 1 or not sum_.strip():
        raise WrongCall("experts know sums of whole numbers")
    is_able = digits_of(sum_) <= EXPERTS[name].digits
    drawn = hashlib.sha256(f"{name}/{sum_}".encode()).digest()[0]
    return shown(value if is_able else value + 1 + drawn % _WRONG)


def digits_of(question: str) -> int:
    """Of its longest number."""
    numbers = "".join(letter if letter.isdigit() else " " for letter in question).split()
    return max(map(len, numbers), default=0)


def able(question: str) -> list[str]:
    """The experts who answer it rightly, the cheapest first."""
    names = [name for name, each in EXPERTS.items() if digits_of(question) <= each.digits]
    return sorted(names, key=lambda name: EXPERTS[name].price)
