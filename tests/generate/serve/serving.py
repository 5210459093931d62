"""The bundled model behind a door of its own, and the store of the key-value environment as tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar

import torch

from strop.cli.models import find_model, open_policy
from strop.environments.bundled.keyvalue import KeyValue
from strop.generate.conversation import Talk
from strop.generate.policy import Policy, rollout_key
from strop.generate.serve.rollout_access import Rollouts
from strop.generate.serve.server import Door
from strop.types import Sampling, Start, Task
from tests.tiny_models import load_reference, reference_logprobs

Result = TypeVar("Result")
PARAMETERS = {
    "get": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
    "set": {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}}},
}
MOST_TURNS = 8


def pocket(temperature: float = 1.0) -> Policy:
    return open_policy(find_model("pocket"), Sampling(temperature=temperature, max_tokens=64))


def task_of(index: int, level: int = 2) -> Task:
    return KeyValue(level).task(index)


def dialogue(policy: Policy, task: Task, number: int = 0) -> Talk:
    return policy.dialogue(task, Start(f"rollout/{number}", rollout_key(0, f"rollout/{number}")))


def store_of(task: Task) -> Callable[[str, dict[str, Any]], str]:
    """What the tools answer."""
    store = {key: str(value) for key, value in json.loads(task.answer)["store"].items()}

    def used(name: str, given: dict[str, Any]) -> str:
        if name == "get":
            return store.get(str(given["key"]), "error: no such key")
        store[str(given["key"])] = str(given["value"])
        return "ok"

    return used


def served(work: Callable[[str, str], Awaitable[Result]], talk: Talk) -> tuple[Result, Rollouts]:
    """What comes of a client that is given an address and a key for this rollout."""

    async def play() -> tuple[Result, Rollouts]:
        rollouts = Rollouts()
        door = Door(rollouts)
        address = await door.open()
        key, conversation = rollouts.admit(talk)
        try:
            result = await work(address, key)
        finally:
            await rollouts.end(key)
            await door.close()
        talk.served = conversation.served  # type: ignore[attr-defined]
        return result, rollouts

    return asyncio.run(play())


@cache
def same_model() -> Any:
    """Read once: it is asked after every rollout."""
    return load_reference(find_model("pocket"))


def furthest(talk: Talk) -> float:
    """The largest difference between a token's logprob and that of the same model, asked again about its context."""
    reference, context, most = same_model(), list[int](), 0.0
    for turn in talk.turns:
        context = ([] if turn.fresh else context) + turn.prompt.tolist()
        whole = context + turn.tokens.tolist()
        logprobs = reference_logprobs(reference, whole)[len(context) - 1 : -1]
        own = logprobs.gather(1, torch.as_tensor(turn.tokens)[:, None])[:, 0]
        most, context = max(most, float((own - torch.as_tensor(turn.logprobs)).abs().max())), whole
    return most
