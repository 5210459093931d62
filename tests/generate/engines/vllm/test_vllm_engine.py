"""vLLM inside strop, on a CPU: the bundled model, and faults that are planted.

What every engine promises is asked in `test_contract.py`, families and runs in `test_vllm_runs.py`: all by `make vllm`.
"""

import asyncio
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, DeliveryError, EngineError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.models.model import load_model, parameters
from strop.weights.delivery import deliver
from strop.weights.fingerprint import fingerprint
from tests.generate.engines.vllm_models import LONG, POCKET, PROMPT, moved

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed: make vllm"),
]


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    return parameters(load_model(POCKET))


@pytest.fixture(scope="module")
def opened() -> Iterator[VllmEngine]:
    engine = VllmEngine(rows=8, device="cpu", dtype="float32")
    engine.open(POCKET)
    yield engine
    asyncio.run(engine.close())


@pytest.fixture
def engine(opened: VllmEngine, weights: dict[str, torch.Tensor]) -> VllmEngine:
    asyncio.run(opened.load(WeightVersion(0, location=weights)))
    opened.forget()
    return opened


def version(step: int, weights: dict[str, torch.Tensor]) -> WeightVersion:
    return WeightVersion(step, fingerprint(weights), weights)


# ---- updates


def test_an_update_of_the_bundled_model_takes_less_than_a_fifth_of_a_second(
    engine: VllmEngine, weights: dict[str, torch.Tensor]
) -> None:
    seconds = []
    for step in (1, 2, 3):
        new = moved(weights, step)
        begin = time.perf_counter()
        answer = asyncio.run(engine.load(WeightVersion(step, location=new)))
        seconds.append(time.perf_counter() - begin)
        assert answer == fingerprint(new)
    print(f"update {min(seconds):.3f} s")
    assert min(seconds) < 0.2


@pytest.mark.parametrize("fault", ["nothing arrives", "one name is left out", "keys and values change places"])
def test_a_load_that_is_skipped_or_wrong_is_caught(
    engine: VllmEngine, weights: dict[str, torch.Tensor], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from strop.generate.engines.vllm.vllm_worker import ReadsBack

    take = ReadsBack.strop_take
    key, value = (f"model.layers.1.self_attn.{each}_proj.weight" for each in "kv")

    def planted(worker: Any, new: dict[str, torch.Tensor]) -> None:
        match fault:
            case "one name is left out":
                take(worker, {name: each for name, each in new.items() if name != "model.norm.weight"})
            case "keys and values change places":
                take(worker, {**new, key: new[value], value: new[key]})

    monkeypatch.setattr(ReadsBack, "strop_take", planted)
    with pytest.raises(DeliveryError, match="samples from weights"):
        asyncio.run(deliver(version(1, moved(weights, 1)), [engine]))
    monkeypatch.undo()
    asyncio.run(deliver(version(2, moved(weights, 1)), [engine]))


def test_a_cache_that_is_not_reset_is_caught(
    engine: VllmEngine, weights: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine._vllm, "reset_prefix_cache", lambda **_: False)
    with pytest.raises(DeliveryError, match="kept its prefix cache when the weights of version 0"):
        asyncio.run(engine.load(version(1, moved(weights, 1))))


def test_versions_that_vllm_tells_otherwise_are_caught(
    engine: VllmEngine, weights: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.outputs import CompletionOutput

    if "weight_versions" not in CompletionOutput.__annotations__:
        pytest.skip("this vLLM does not tell versions: before 0.32")

    async def interrupted() -> Completion:
        task = asyncio.create_task(engine.sample(PROMPT, LONG, 0))
        before = engine.num_generated
        while engine.num_generated == before:
            await asyncio.sleep(0)
        await engine.load(version(1, moved(weights, 1)))
        return await task

    monkeypatch.setattr(engine._vllm, "set_weight_version", lambda _: None)
    with pytest.raises(DeliveryError, match=r"versions \[0\] wrote \d+ tokens, and \d+ came of versions \[0, 1\]"):
        asyncio.run(interrupted())


def test_what_fails_inside_vllm_reaches_everybody(engine: VllmEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise RuntimeError("out of memory")

    async def gathered() -> list[object]:
        calls = [engine.sample(PROMPT[: 5 + key], LONG, key) for key in range(10)]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    with monkeypatch.context() as planted:
        planted.setattr(engine._vllm, "step", broken)
        results = asyncio.run(gathered())
    assert all(isinstance(each, EngineError) and "out of memory" in str(each) for each in results)
    assert all(isinstance(each, Completion) for each in asyncio.run(gathered()))


def test_a_request_that_vllm_refuses_is_not_waited_for(engine: VllmEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise ValueError("no room")

    with monkeypatch.context() as planted:
        planted.setattr(engine._vllm, "add_request", refused)
        with pytest.raises(ValueError, match="no room"):
            asyncio.run(engine.sample(PROMPT, LONG, 0))
    assert not engine._running
    assert len(asyncio.run(engine.sample(PROMPT, LONG, 0)).tokens)


def test_completions_end_at_the_end_token_as_in_the_plain_engine(engine: VllmEngine) -> None:
    plain = TorchEngine()
    plain.open(POCKET)
    prompts = [PROMPT[:length] for length in (5, 11, 33, 60)]

    async def both() -> list[list[Completion]]:
        return [
            await asyncio.gather(*(each.sample(prompt, LONG, key) for key, prompt in enumerate(prompts)))
            for each in (engine, plain)
        ]

    ours, theirs = asyncio.run(both())
    assert {each.stop for each in ours} == {Stop.STOP}
    for one, other in zip(ours, theirs, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist() and one.stop is other.stop
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


def test_a_process_has_room_for_one(engine: VllmEngine) -> None:
    with pytest.raises(ConfigurationError, match="vLLM runs in this process already"):
        VllmEngine(device="cpu", dtype="float32").open(POCKET)


def test_a_device_that_this_vllm_is_not_built_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(ConfigurationError, match="the installed vLLM computes on cpu, the engine on cuda"):
        VllmEngine(device="cuda").open(POCKET)
