"""Expert models with prices, as a tool: those that a user names, and three simulated ones.

A simulated expert adds numbers correctly up to some size, and wrongly beyond.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from strop.environments.data.heldout_split import prompt_of
from strop.environments.tools.calculator import shown, value_of
from strop.environments.tools.tool import WrongCall
from strop.errors import ConfigurationError, LLMClientError
from strop.roles import Asks, Instrument, LLMClient
from strop.text.llm_prompt import question, without_reasoning
from strop.types import Message, Sampling, Task


class Expert(NamedTuple):
    """Price of one answer, and the number of digits that the expert can add."""

    price: float
    digits: int


EXPERTS: Mapping[str, Expert] = {"red": Expert(1.0, 1), "blue": Expert(4.0, 2), "gold": Expert(16.0, 9)}
_WRONG = 9  # by how much an expert errs, at most


def _parameters(names: Iterable[str]) -> str:
    asked = {"expert": {"type": "string", "enum": [*names]}, "question": {"type": "string"}}
    return json.dumps({"type": "object", "properties": asked, "required": [*asked]})


@dataclass(frozen=True)
class Experts(Instrument):
    """Tool `ask NAME QUESTION`: the answer of one expert; deterministic per question."""

    name: ClassVar[str] = "ask"
    description: ClassVar[str] = "Ask an expert a sum. " + "; ".join(
        f"{name}: numbers of up to {each.digits} digits, price {each.price:g}" for name, each in EXPERTS.items()
    )
    parameters: ClassVar[str] = _parameters(EXPERTS)

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


ASKED = "Answer the question above, briefly: say the steps that matter, and the answer in the last line."


@dataclass(frozen=True)
class PricedExpert:
    """Expert model: the name by which the policy calls it, the price of one answer, and who answers."""

    name: str
    price: float
    client: LLMClient


@dataclass(frozen=True)
class AskedExperts(Instrument, Asks):
    """Tool `ask NAME QUESTION` whose answers are those of LLM clients."""

    experts: tuple[PricedExpert, ...]
    prompt: str = ASKED  # what an expert is asked, below the question
    tokens: int = 512  # most tokens of an answer

    name: ClassVar[str] = Experts.name

    def __post_init__(self) -> None:
        names = [each.name for each in self.experts]
        if not names or len(set(names)) < len(names) or any(each.price < 0 for each in self.experts):
            raise ConfigurationError(f"experts need different names and prices >= 0, got {', '.join(names) or 'none'}")

    @property
    def prices(self) -> dict[str, float]:
        return {each.name: each.price for each in self.experts}

    @property
    def description(self) -> str:
        listed = "; ".join(f"{name}: price {price:g}" for name, price in self.prices.items())
        return f"Ask an expert a question and read its answer. {listed}"

    @property
    def parameters(self) -> str:
        return _parameters(self.prices)

    async def call(self, arguments: dict[str, Any]) -> str:
        client = next(each.client for each in self.experts if each.name == arguments["expert"])
        if not arguments["question"].strip():
            raise WrongCall("an empty question")
        asked = question(self.prompt, task=arguments["question"])
        said = await client.ask([Message("user", asked)], Sampling(max_tokens=self.tokens), 0)
        return without_reasoning(said) or "no answer"

    async def try_clients(self, task: Task) -> None:
        for each in self.experts:
            with suppress(LLMClientError):  # whoever asks counts it, and the others are asked too
                await self.call({"expert": each.name, "question": prompt_of(task)})
