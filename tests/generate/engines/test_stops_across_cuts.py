"""A completion that was cut within a stop string and goes on ends where the whole one does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from strop.backends import Completion, Stop
from strop.generate.engines.scripted import Scripted
from strop.generate.engines.wrappers.chunked import Chunked
from strop.generate.rollout_limits import Paused
from strop.roles import Engine
from strop.types import IntArray, Sampling, Start
from tests.generate.engines.asking import opened, prompts_of
from tests.generate.engines.paged.test_paged_engine import paged
from tests.generate.talking import TASK, Recording, policy_of, save_folder
from tests.tiny_models import save_pocket_like, save_tiny_model

FREE = Sampling(max_tokens=40)


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("endless"), "llama", eos_token_id=None, head_dim=16)


@pytest.fixture(params=["torch", "paged", "chunked"])
def engine(request: pytest.FixtureRequest, endless: Path) -> Engine:
    made = {"torch": lambda: opened(endless), "paged": lambda: paged(endless, steps=3)}
    return Chunked(opened(endless), 3) if request.param == "chunked" else made[request.param]()


def said(engine: Engine, prompt: IntArray, sampling: Sampling) -> Completion:
    return asyncio.run(engine.sample(prompt, sampling, 0))


def test_it_ends_with_the_string_that_began_before_the_cut(engine: Engine) -> None:
    prompt = prompts_of([5])[0]
    free = said(engine, prompt, FREE).tokens
    text = "".join(chr(ord("a") + t - 4) if 4 <= t < 30 else "#" for t in free)
    place = next(i for i in range(5, 35) if "#" not in text[i : i + 3] and text.find(text[i : i + 3]) == i)
    asked = replace(FREE, stop=("~~", text[place : place + 3]))
    whole = said(engine, prompt, asked)
    assert whole.tokens.tolist() == free[: place + 3].tolist() and whole.stop is Stop.STOP
    for cut in (place - 1, place, place + 1, place + 2):
        begun = np.concatenate([prompt, free[:cut]])
        rest = said(engine, begun, replace(asked, max_tokens=40 - cut, num_prefix=cut))
        assert rest.tokens.tolist() == free[cut : place + 3].tolist() and rest.stop is Stop.STOP
    # what was complete before the cut has not ended it, and does not now
    cut = place + 3
    after = said(engine, np.concatenate([prompt, free[:cut]]), replace(asked, max_tokens=2, num_prefix=cut))
    assert after.tokens.tolist() == free[cut : cut + 2].tolist()


def test_scripted_completions_too(tmp_path: Path) -> None:
    engine = Scripted({"": "45"})
    engine.open(save_pocket_like(tmp_path))
    prompt = np.array(engine._tokenizer("9123", add_special_tokens=False)["input_ids"])
    for stop, begun, length in (("34", 3, 1), ("34", 0, 3), ("12", 3, 3), ("45", 3, 2), ("912345", 3, 3)):
        rest = said(engine, prompt, Sampling(stop=(stop,), num_prefix=begun))
        assert len(rest.tokens) == length, (stop, begun)


@dataclass
class Noting(Recording):
    asked: list[Sampling] = field(default_factory=list)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.asked.append(sampling)
        return await super().sample(prompt, sampling, key)


def test_an_rollout_that_goes_on_says_where_its_completion_began(tmp_path: Path) -> None:
    """Given words and written ones; without stop strings nothing is asked for."""
    for stop, expected in ((("end",), [3, 5]), ((), [0, 0])):
        policy = policy_of(save_folder(tmp_path), engine := Noting(["12", "3|"]), stop=stop)
        first = policy.dialogue(TASK, Start("a", 7, prefill="so:", pause=2))
        with pytest.raises(Paused):
            asyncio.run(first.completion())
        onward = policy.dialogue(TASK, Start("a", 7, turns=first.turns))
        asyncio.run(onward.completion())
        assert [each.num_prefix for each in engine.asked] == expected
        (turn,) = onward.turns
        assert turn.message.content == "so:123" and turn.sampling.num_prefix == 0, "of a request, not of a distribution"
