"""The scripted engine stamps versions, stops and time as a real one would."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.types import Sampling
from tests.generate.talking import END, ids, run, save_folder


def opened(folder: Path, script: Any, **more: Any) -> Scripted:
    engine = Scripted(script, **more)
    engine.open(save_folder(folder))
    return engine


def said(engine: Scripted, prompt: str, key: int = 0, **sampling: Any) -> Completion:
    completion: Completion = run(engine.sample(_tokens(prompt), Sampling(**sampling), key))
    return completion


def _tokens(text: str) -> Any:
    import numpy as np

    return np.array(ids(text))


def test_completions_by_prompt_and_by_key(tmp_path: Path) -> None:
    engine = opened(tmp_path, {"one": "1", "two": "2", "": "?"})
    assert said(engine, "one then two").tokens.tolist() == ids("2|")
    assert said(engine, "two then one").tokens.tolist() == ids("1|")
    assert said(engine, "three").tokens.tolist() == ids("?|")
    assert said(opened(tmp_path, lambda prompt, key: prompt[-1] + str(key)), "xyz", 3).tokens.tolist() == ids("z3|")
    with pytest.raises(ConfigurationError, match="knows no completion"):
        said(opened(tmp_path, {"one": "1"}), "two")


def test_limits_and_stop_strings(tmp_path: Path) -> None:
    engine = opened(tmp_path, {"": "12345"}, logprob=-0.25)
    cut = said(engine, "x", max_tokens=3)
    assert cut.tokens.tolist() == ids("123") and cut.stop is Stop.LENGTH and cut.logprobs.tolist() == [-0.25] * 3
    stopped = said(engine, "x", stop=("34",))
    assert stopped.tokens.tolist() == ids("1234") and stopped.stop is Stop.STOP
    assert said(engine, "x", max_tokens=6).tokens[-1] == END


def test_versions_change_in_the_middle_of_a_completion(tmp_path: Path) -> None:
    engine = opened(tmp_path, {"": "1234567"}, seconds_per_token=0.02)

    async def update() -> Completion:
        writing = asyncio.create_task(engine.sample(_tokens("x"), Sampling(), 0))
        await asyncio.sleep(0.07)
        assert await engine.load(WeightVersion(5, "print")) == "print"
        return await writing

    versions = run(update()).versions.tolist()
    assert set(versions) == {0, 5} and versions == sorted(versions) and len(versions) == 8


def test_an_abort_returns_what_there_is_and_spares_others(tmp_path: Path) -> None:
    engine = opened(tmp_path, {"": "1234"}, seconds_per_token=0.02)

    async def abort() -> list[Completion]:
        writing = [asyncio.create_task(engine.sample(_tokens("x"), Sampling(), key)) for key in (1, 2)]
        await asyncio.sleep(0.05)
        engine.abort(1)
        engine.abort(99)
        return list(await asyncio.gather(*writing))

    aborted, whole = run(abort())
    assert aborted.stop is Stop.ABORTED and 0 < len(aborted.tokens) < 5
    assert len(aborted.tokens) == len(aborted.versions) == len(aborted.logprobs)
    assert whole.tokens.tolist() == ids("1234|")
