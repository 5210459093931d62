"""What every engine promises, asked of each of them alike. `make vllm` asks vLLM too, in an episode that has it."""

import asyncio
import pickle
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, DeliveryError, NumericsError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.models.model import load_model, parameters
from strop.types import IntArray, Sampling
from strop.weights.fingerprint import fingerprint
from tests.generate.engines.asking import anything_at_once, asked, expected, prompts_of, talk, worst_difference
from tests.tiny_models import CONTEXT, load_reference, save_tiny_model

LONG = Sampling(max_tokens=30)
NARROW = Sampling(temperature=0.7, top_k=5, top_p=0.8, max_tokens=12)
HAS_VLLM = pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed: make vllm")
KINDS = ["torch", "paged", pytest.param("vllm", marks=[pytest.mark.vllm, HAS_VLLM])]


def made(kind: str) -> Any:
    match kind:
        case "torch":
            return TorchEngine(rows=4)
        case "paged":
            return PagedEngine(rows=4, device="cpu", dtype="float32", steps=3)
    return VllmEngine(rows=4, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two sets of weights without an end token, so that lengths are known."""
    change = {"eos_token_id": None, "head_dim": 32}
    return [save_tiny_model(tmp_path_factory.mktemp("endless"), "llama", seed, **change) for seed in (0, 1)]


@pytest.fixture(scope="module")
def weights(folders: list[Path]) -> list[dict[str, torch.Tensor]]:
    return [parameters(load_model(folder)) for folder in folders]


@pytest.fixture(scope="module")
def references(folders: list[Path]) -> list[Any]:
    return [load_reference(folder) for folder in folders]


@pytest.fixture(scope="module", params=KINDS)
def opened(request: pytest.FixtureRequest, folders: list[Path]) -> Iterator[Any]:
    engine = made(request.param)
    engine.open(folders[0])
    yield engine
    if isinstance(engine, VllmEngine):
        asyncio.run(engine.close())


@pytest.fixture
def engine(opened: Any, weights: list[dict[str, torch.Tensor]]) -> Any:
    """As it was opened; starting one anew for every test would take vLLM minutes."""
    opened.keep_cache = False
    asyncio.run(opened.load(WeightVersion(0, location=weights[0])))
    opened.forget()
    return opened


def plain(folder: Path) -> TorchEngine:
    engine = TorchEngine(rows=8)
    engine.open(folder)
    return engine


async def begun(engine: Any, prompts: list[IntArray], tokens: int) -> list[asyncio.Task[Completion]]:
    """Requests of which that many tokens have been written in all."""
    before = engine.num_generated
    tasks = [asyncio.create_task(engine.sample(p, LONG, k)) for k, p in enumerate(prompts)]
    for _ in range(10_000):
        if engine.num_generated - before >= tokens or getattr(engine, "_looks", None):
            return tasks
        await asyncio.sleep(0)
    raise AssertionError("nothing was written")


# ---- the right distribution


@pytest.mark.parametrize("sampling", [LONG, NARROW, Sampling(temperature=0.0, max_tokens=9)])
def test_the_same_keys_give_the_same_tokens_as_the_plain_engine(
    engine: Any, folders: list[Path], references: list[Any], sampling: Sampling
) -> None:
    prompts = prompts_of([3, 9, 30, 1, 17, 40, 2])  # more requests than rows, of mixed lengths
    prompts += [prompts[5], np.append(prompts[5][:35], 7)]  # a sibling, and one that branches off
    for prompt, one, other in zip(
        prompts, asked(engine, prompts, sampling), asked(plain(folders[0]), prompts, sampling), strict=True
    ):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert one.stop is other.stop
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)
        if sampling == LONG:
            assert worst_difference(references[0], prompt, one) < 1e-4


def test_settings_share_a_batch_and_nobody_matters_to_another(engine: Any) -> None:
    prompt = prompts_of([6])[0]
    settings = [LONG, Sampling(temperature=0, max_tokens=9), Sampling(top_k=3, max_tokens=5), Sampling(temperature=0.5)]

    async def both() -> tuple[list[Completion], list[Completion]]:
        together = await asyncio.gather(*(engine.sample(prompt, s, k) for k, s in enumerate(settings)))
        return together, [await engine.sample(prompt, s, k) for k, s in enumerate(settings)]

    for one, other in zip(*asyncio.run(both()), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


def test_a_completion_that_was_cut_goes_on_as_it_would_have(engine: Any) -> None:
    prompt = prompts_of([7])[0]
    first, again, other = (asyncio.run(engine.sample(prompt, LONG, key)) for key in (7, 7, 8))
    assert first.tokens.tolist() == again.tokens.tolist() != other.tokens.tolist()
    rest = asyncio.run(engine.sample(np.append(prompt, first.tokens[:11]), replace(LONG, max_tokens=19), 7))
    assert rest.tokens.tolist() == first.tokens[11:].tolist()


def test_several_turns_go_on_with_the_same_distribution(engine: Any, references: list[Any]) -> None:
    talk(engine, references[0], 40)


def test_what_was_forgotten_is_computed_again(engine: Any) -> None:
    prompt = prompts_of([40])[0]

    async def in_turn() -> list[int]:
        later = np.append(prompt, (await engine.sample(prompt, LONG, 0)).tokens)
        counts = [engine.num_reused]
        for _ in range(2):
            await engine.sample(later, Sampling(max_tokens=2), 0)
            counts.append(engine.num_reused)
            engine.forget()
        return np.diff(counts).tolist()

    found, again = asyncio.run(in_turn())
    assert found >= 32 and again == 0


# ---- where a completion ends


def test_a_stop_string_cuts_where_it_is_complete(engine: Any) -> None:
    prompt = prompts_of([5])[0]
    free = asyncio.run(engine.sample(prompt, replace(LONG, max_tokens=40), 0)).tokens
    text = "".join(chr(ord("a") + t - 4) if 4 <= t < 30 else "#" for t in free)
    place = next(i for i in range(5, 37) if "#" not in text[i : i + 2] and text.find(text[i : i + 2]) == i)
    asked_for = Sampling(max_tokens=40, stop=("~~", text[place : place + 2]))
    stopped = asyncio.run(engine.sample(prompt, asked_for, 0))
    assert stopped.tokens.tolist() == free[: place + 2].tolist() and stopped.stop is Stop.STOP
    prefill = np.append(prompt, free[: place + 1])  # cut in the middle of it
    rest = asyncio.run(engine.sample(prefill, replace(asked_for, num_prefix=place + 1), 0))
    assert rest.tokens.tolist() == [free[place + 1]] and rest.stop is Stop.STOP


def test_limits_of_tokens_and_context(engine: Any) -> None:
    short, full = prompts_of([4, CONTEXT - 3])
    one, other = asked(engine, [short, full], Sampling(max_tokens=11))
    assert (len(one.tokens), one.stop) == (11, Stop.LENGTH)
    assert (len(other.tokens), other.stop) == (3, Stop.LENGTH)


def test_abort_returns_what_is_there(engine: Any, folders: list[Path]) -> None:
    prompts = prompts_of([4, 5, 6, 7, 8, 9])  # two wait

    async def aborted() -> list[Completion]:
        tasks = await begun(engine, prompts, 8)
        engine.abort(0)
        engine.abort(5)
        return await asyncio.gather(*tasks)

    running, *others, waiting = asyncio.run(aborted())
    assert 0 < len(running.tokens) < 30 and running.stop is Stop.ABORTED
    assert [(len(each.tokens), each.stop) for each in others] == [(30, Stop.LENGTH)] * 4
    assert (len(waiting.tokens), waiting.stop) == (0, Stop.ABORTED)
    alone = asyncio.run(plain(folders[0]).sample(prompts[0], LONG, 0))
    assert running.tokens.tolist() == alone.tokens[: len(running.tokens)].tolist()


def test_a_cancelled_caller_leaves_the_others_alone(engine: Any) -> None:
    async def cancelled() -> Completion:
        tasks = await begun(engine, prompts_of([4, 5]), 4)
        tasks[0].cancel()
        return await tasks[1]

    assert len(asyncio.run(cancelled()).tokens) == 30
    assert len(asyncio.run(engine.sample(prompts_of([4])[0], LONG, 0)).tokens) == 30


# ---- new weights


def test_the_fingerprint_is_that_of_what_is_loaded(
    engine: Any, folders: list[Path], weights: list[dict[str, torch.Tensor]]
) -> None:
    from_tensors = asyncio.run(engine.load(WeightVersion(1, location=weights[1])))
    assert from_tensors == fingerprint(weights[1])
    back = asyncio.run(engine.load(WeightVersion(2, location=folders[0])))
    assert back == fingerprint(weights[0]) != from_tensors and engine.version == 2


@pytest.mark.parametrize("keep_cache", [False, True])
def test_requests_go_on_across_new_weights(
    engine: Any, weights: list[dict[str, torch.Tensor]], references: list[Any], keep_cache: bool
) -> None:
    engine.keep_cache = keep_cache
    prompts = [*prompts_of([5, 1, 35]), prompts_of([5])[0]]

    async def interrupted() -> list[Completion]:
        tasks = await begun(engine, prompts, 24)
        assert await engine.load(WeightVersion(1, location=weights[1])) == fingerprint(weights[1])
        return await asyncio.gather(*tasks)

    for prompt, completion in zip(prompts, asyncio.run(interrupted()), strict=True):
        assert len(completion.tokens) == 30
        assert completion.versions.tolist() == sorted(completion.versions) and set(completion.versions) == {0, 1}
        old = completion.versions == 0
        difference = np.abs(completion.logprobs - expected(references, prompt, completion))
        assert difference[old].max() < 1e-4
        if keep_cache:
            assert difference[~old].max() > 1e-3  # the new weights read old keys
        else:
            assert difference[~old].max() < 1e-4
    fresh = asyncio.run(engine.sample(prompts[2], LONG, 9))  # no prefix outlives its weights
    np.testing.assert_allclose(fresh.logprobs, expected(references, prompts[2], fresh), atol=1e-4)


@pytest.mark.parametrize("keep_cache", [False, True])
def test_prefixes_never_outlive_their_weights(
    engine: Any, weights: list[dict[str, torch.Tensor]], references: list[Any], keep_cache: bool
) -> None:
    engine.keep_cache = keep_cache
    prompt = prompts_of([40])[0]

    async def before_and_after() -> list[Completion]:
        await engine.sample(prompt, LONG, 0)  # finished before the update, and kept
        running = await begun(engine, [prompt], 5)  # running across it
        asked_before = [asyncio.create_task(engine.sample(prompt, LONG, key)) for key in (2, 3)]
        await asyncio.sleep(0)  # asked, and nothing is written yet
        await engine.load(WeightVersion(1, location=weights[1]))
        after = [await engine.sample(prompt, LONG, key) for key in (4, 5)]
        await asyncio.gather(*running)
        return [*await asyncio.gather(*asked_before), *after]

    for completion in asyncio.run(before_and_after()):
        assert set(completion.versions) == {1}
        np.testing.assert_allclose(completion.logprobs, expected(references, prompt, completion), atol=1e-4)


def test_weights_that_do_not_fit_change_nothing(engine: Any, weights: list[dict[str, torch.Tensor]]) -> None:
    good, name = weights[1], next(iter(weights[1]))
    wrong: list[tuple[Any, str]] = [
        ({k: v for k, v in good.items() if k != name}, "1 missing"),
        ({**good, "extra": torch.zeros(1)}, "unknown .*extra"),
        ({**good, name: good[name][:1]}, "need shape"),
        (3, "folder or tensors"),
    ]
    before = asyncio.run(engine.sample(prompts_of([5])[0], LONG, 0))
    for location, message in wrong:
        with pytest.raises(DeliveryError, match=message):
            asyncio.run(engine.load(WeightVersion(1, location=location)))
    assert engine.version == 0
    after = asyncio.run(engine.sample(prompts_of([5])[0], LONG, 0))
    np.testing.assert_allclose(after.logprobs, before.logprobs, atol=1e-5)


def test_anything_at_once_leaves_every_token_with_its_weights_logprob(
    engine: Any, weights: list[dict[str, torch.Tensor]], references: list[Any]
) -> None:
    anything_at_once(engine, weights, references, 0, loads=0.2)


# ---- what goes wrong


def test_impossible_requests_are_refused_with_numbers(engine: Any) -> None:
    cases = [
        (prompts_of([CONTEXT])[0], LONG, f"1 to {CONTEXT - 1} tokens for this model, got {CONTEXT}"),
        (np.zeros(0, np.int64), LONG, "got 0"),
        (np.array([3, 40]), LONG, "3..40"),
        (np.array([3]), Sampling(max_tokens=0), "max_tokens"),
        (np.array([3]), Sampling(temperature=-1.0), "temperature"),
        (np.array([3]), Sampling(top_p=0.0), "top_p"),
    ]
    for prompt, sampling, message in cases:
        with pytest.raises(ConfigurationError, match=message):
            asyncio.run(engine.sample(prompt, sampling, 0))


def test_weights_that_are_not_finite_are_told_to_everybody(engine: Any, weights: list[dict[str, torch.Tensor]]) -> None:
    """The last that is asked of an engine: keys that are not finite may stay where later ones are read."""
    lost = {name: torch.full_like(each, float("nan")) for name, each in weights[0].items()}

    async def gathered() -> list[object]:
        await engine.load(WeightVersion(1, location=lost))
        calls = [engine.sample(prompt, LONG, 0) for prompt in prompts_of([4] * 6)]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    assert all(isinstance(result, NumericsError) for result in asyncio.run(gathered()))


@pytest.mark.parametrize("kind", ["torch", "paged", "vllm"])
def test_an_engine_is_its_own_source_and_can_be_shipped(kind: str) -> None:
    engine = replace(made(kind), keep_cache=True)
    assert eval(repr(engine)) == engine
    assert pickle.loads(pickle.dumps(engine)) == engine
