"""Weight updates: proven, between two steps, and never served from keys of other weights."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.backends import Completion, WeightVersion
from strop.errors import DeliveryError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.models.model import load_model, parameters
from strop.types import IntArray, Sampling
from strop.weights.fingerprint import fingerprint
from tests.generate.engines.asking import anything_at_once, asked, expected, opened, prompts_of
from tests.tiny_models import load_reference, save_tiny_model

LONG = Sampling(max_tokens=20)


@pytest.fixture(scope="module", params=[("llama", 8), ("llama", 16), ("gemma3", 8)], ids=str)  # 16: compiled
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two sets of weights of one architecture."""
    family, head_size = request.param
    changes = {"eos_token_id": None, "head_dim": head_size}
    return [save_tiny_model(tmp_path_factory.mktemp(family), family, seed, **changes) for seed in (0, 1)]


def version_1(folder: Path) -> WeightVersion:
    return WeightVersion(1, location=parameters(load_model(folder)))


async def interrupted(
    engine: TorchEngine, prompts: list[IntArray], version: WeightVersion, after: int
) -> list[Completion]:
    """Load once `after` tokens of each have been written."""
    tasks = [asyncio.create_task(engine.sample(p, LONG, k)) for k, p in enumerate(prompts)]
    while engine.num_generated < after * len(prompts):
        await asyncio.sleep(0)
    await engine.load(version)
    return await asyncio.gather(*tasks)


def test_the_fingerprint_is_that_of_what_is_loaded(folders: list[Path]) -> None:
    engine = opened(folders[0])
    weights = parameters(load_model(folders[1]))
    from_tensors = asyncio.run(engine.load(WeightVersion(1, location=weights)))
    assert from_tensors == fingerprint(weights)
    back = asyncio.run(engine.load(WeightVersion(2, location=folders[0])))
    assert back == fingerprint(parameters(load_model(folders[0]))) != from_tensors
    assert engine.version == 2


def test_loaded_weights_are_those_sampled_from(folders: list[Path]) -> None:
    prompts = prompts_of([5, 12, 3])
    engine = opened(folders[0])
    asyncio.run(engine.load(WeightVersion(1, location=str(folders[1]))))
    for one, other in zip(asked(engine, prompts, LONG), asked(opened(folders[1]), prompts, LONG), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert set(one.versions) == {1}


def test_running_requests_recompute_their_keys(folders: list[Path]) -> None:
    prompts = [*prompts_of([5, 12, 1]), prompts_of([5])[0]]
    engine = opened(folders[0])
    references = [load_reference(folder) for folder in folders]
    completions = asyncio.run(interrupted(engine, prompts, version_1(folders[1]), after=9))
    for prompt, completion in zip(prompts, completions, strict=True):
        assert completion.versions.tolist() == [0] * 9 + [1] * 11
        np.testing.assert_allclose(completion.logprobs, expected(references, prompt, completion), atol=1e-4)


def test_running_requests_may_keep_their_keys(folders: list[Path]) -> None:
    prompt = prompts_of([9])[0]
    engine = opened(folders[0], keep_cache=True)
    references = [load_reference(folder) for folder in folders]
    [completion] = asyncio.run(interrupted(engine, [prompt], version_1(folders[1]), after=9))
    assert completion.versions.tolist() == [0] * 9 + [1] * 11
    difference = np.abs(completion.logprobs - expected(references, prompt, completion))
    assert difference[:9].max() < 1e-4
    assert difference[9:].max() > 1e-3  # the new weights read old keys: quicker, and another distribution
    assert engine.num_prefilled == 9
    # transformers' own cache, filled by the old weights and continued by the new ones, agrees
    context = torch.as_tensor(np.concatenate([prompt, completion.tokens]))
    with torch.no_grad():
        seen = len(prompt) + 8  # the ninth token was written by the old weights and first read by the new ones
        cache = references[0](input_ids=context[None, :seen], use_cache=True).past_key_values
        rest = references[1](input_ids=context[None, seen:-1], past_key_values=cache, use_cache=True).logits[0]
    want = torch.log_softmax(rest, -1)[torch.arange(11), context[-11:]].numpy()
    np.testing.assert_allclose(completion.logprobs[9:], want, atol=1e-4)


@pytest.mark.parametrize("keep_cache", [False, True])
def test_prefixes_never_outlive_their_weights(folders: list[Path], keep_cache: bool) -> None:
    engine = opened(folders[0], rows=4, keep_cache=keep_cache)
    prompt = prompts_of([12])[0]
    references = [load_reference(folder) for folder in folders]

    async def before_and_after() -> list[Completion]:
        await engine.sample(prompt, LONG, 0)  # finished before the update, and kept
        running = asyncio.create_task(engine.sample(prompt, LONG, 1))  # running across it
        while engine.num_generated < 25:
            await asyncio.sleep(0)
        await engine.load(version_1(folders[1]))
        after = [await engine.sample(prompt, LONG, key) for key in (2, 3)]
        await running
        return after

    for completion in asyncio.run(before_and_after()):
        assert set(completion.versions) == {1}
        np.testing.assert_allclose(completion.logprobs, expected(references, prompt, completion), atol=1e-4)


def test_weights_that_do_not_fit_change_nothing(folders: list[Path]) -> None:
    engine = opened(folders[0])
    before = fingerprint(parameters(engine._model))
    good = parameters(load_model(folders[1]))
    name = next(iter(good))
    wrong: list[tuple[Any, str]] = [
        ({k: v for k, v in good.items() if k != name}, "1 missing"),
        ({**good, "extra": torch.zeros(1)}, "unknown .*extra"),
        ({**good, name: good[name][:1]}, "need shape"),
        (3, "folder or tensors"),
    ]
    for location, message in wrong:
        with pytest.raises(DeliveryError, match=message):
            asyncio.run(engine.load(WeightVersion(1, location=location)))
    assert fingerprint(parameters(engine._model)) == before
    assert engine.version == 0


@pytest.mark.parametrize("seed", range(3))
def test_anything_at_once_leaves_every_token_with_its_weights_logprob(
    folders: list[Path], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strop.generate.engines.cpu.torch_engine._STEP_TOKENS", (6, 17, 8192)[seed])
    engine = opened(folders[0], rows=4)
    weights = [parameters(load_model(folder)) for folder in folders]
    references = [load_reference(folder) for folder in folders]
    anything_at_once(engine, weights, references, seed)
    assert engine.num_reused > 0
    assert not engine._decoder.rows.is_active.any()
