"""The paged engine, on a CPU with plain operations: the same tokens as the plain engine, and its own promises.

What every engine promises is asked of it in `test_contract.py`.
"""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, DeliveryError, NumericsError
from strop.generate.engines.paged.block_manager import Pages, bucket, digests_of, runs_of, stem_of
from strop.generate.engines.paged.draft_model import Draft
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.models.model import load_model, parameters
from strop.types import IntArray, Sampling
from tests.generate.engines.asking import (
    anything_at_once,
    ask,
    asked,
    opened,
    prompts_of,
    stopped_at_a_string,
    talk,
    worst_difference,
)
from tests.tiny_models import END, load_reference, save_tiny_model

LONG = Sampling(max_tokens=30)
FAMILIES = ("llama", "mistral", "phi3", "olmo2", "qwen2", "qwen3", "gemma2", "gemma3", "mixtral", "qwen3_moe")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: save_tiny_model(tmp_path_factory.mktemp(family), family, head_dim=16) for family in FAMILIES}


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two sets of weights without an end token, so that lengths are known."""
    return [
        save_tiny_model(tmp_path_factory.mktemp("endless"), "llama", seed, eos_token_id=None, head_dim=16)
        for seed in (0, 1)
    ]


def paged(folder: Path, rows: int = 8, **fields: Any) -> PagedEngine:
    engine = PagedEngine(**{"rows": rows, "device": "cpu", "dtype": "float32", "steps": 3, **fields})
    engine.open(folder)
    return engine


def is_empty(engine: PagedEngine) -> bool:
    """Whether every slot and page came back."""
    engine.forget()
    seating = engine._seating
    is_free = len(seating.free) == engine.rows and seating.pages.num_available == seating.pages.count - 1
    return is_free and not seating


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sampling", [LONG, Sampling(temperature=0.7, top_k=5, top_p=0.8, max_tokens=12)])
def test_both_paths_give_the_same_tokens(folders: dict[str, Path], family: str, sampling: Sampling) -> None:
    prompts = prompts_of([3, 9, 30, 1, 17, 22, 5, 9, 40, 2, 33, 16])  # more requests than rows, of mixed lengths
    prompts += [prompts[2], prompts[8], np.append(prompts[8][:33], 7)]  # siblings, and one that branches off
    quick, slow = paged(folders[family], rows=4), opened(folders[family])
    assert quick._slow is None
    reference = load_reference(folders[family])
    for prompt, one, other in zip(
        prompts, asked(quick, prompts, sampling), asked(slow, prompts, sampling), strict=True
    ):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert one.stop is other.stop
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)
        if not sampling.is_truncated:
            assert worst_difference(reference, prompt, one) < 1e-4
    assert is_empty(quick)


def test_greedy_and_warm_share_a_step(folders: dict[str, Path]) -> None:
    prompt = prompts_of([6])[0]
    settings = [LONG, Sampling(temperature=0, max_tokens=9), Sampling(top_k=3, max_tokens=5), Sampling(temperature=0.5)]

    async def all_of(engine: Any) -> list[Completion]:
        return await asyncio.gather(*(engine.sample(prompt, each, key) for key, each in enumerate(settings)))

    quick, slow = (asyncio.run(all_of(make(folders["llama"]))) for make in (paged, opened))
    for one, other in zip(quick, slow, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)


def test_siblings_share_the_pages_of_their_prompt(endless: list[Path]) -> None:
    engine = paged(endless[0])
    prompt = prompts_of([40])[0]
    asked(engine, [prompt] * 8, Sampling(max_tokens=3))
    assert engine.num_reused == 7 * 32  # two whole pages of 16
    assert engine.num_prefilled == 39 + 7 * 7  # the last token of a prompt goes with the first decode step
    assert engine.num_generated == 24


def test_a_later_turn_finds_what_the_earlier_one_left(endless: list[Path]) -> None:
    engine, reference = paged(endless[0], rows=3), load_reference(endless[0])

    talk(engine, reference, 20)
    engine.forget()
    assert engine._seating.pages.share(digests_of(prompts_of([20], seed=0)[0])) == []


def test_a_prompt_too_long_for_one_pass_is_computed_in_several(
    endless: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strop.generate.engines.paged.paged_engine._PREFILL", 7)
    prompts = prompts_of([30, 30, 12, 40])
    prompts[1][:20] = prompts[0][:20]
    engine = paged(endless[0])
    for one, other in zip(asked(engine, prompts, LONG), asked(opened(endless[0]), prompts, LONG), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()


def test_requests_wait_for_pages_and_all_end(endless: list[Path]) -> None:
    engine = paged(endless[0], rows=8, cache_tokens=96)  # room for two contexts of 46 tokens
    prompts = prompts_of([16] * 7)
    completions = asked(engine, prompts, LONG)
    for one, other in zip(completions, asked(opened(endless[0]), prompts, LONG), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
    with pytest.raises(ConfigurationError, match="needs 6 pages, and there are 2"):
        asyncio.run(paged(endless[0], cache_tokens=32).sample(prompts[0], Sampling(max_tokens=80), 0))


@pytest.mark.parametrize("draft", [None, Draft(every=1000)])
def test_more_are_decoded_together_than_their_limits_would_allow(endless: list[Path], draft: Draft | None) -> None:
    """Six pages, and a limit takes five: the last to come gives way when they grow, and loses nothing."""
    engine = paged(endless[0], rows=8, cache_tokens=96, steps=1, draft=draft)
    prompts, sampling, together = prompts_of([16] * 5), Sampling(max_tokens=60), 0

    async def watched() -> list[Completion]:
        nonlocal together
        asking = asyncio.gather(*(engine.sample(p, sampling, k) for k, p in enumerate(prompts)))
        while not asking.done():
            together = max(together, len(engine._seating.seated))
            await asyncio.sleep(0)
        return await asking

    for one, other in zip(asyncio.run(watched()), asked(opened(endless[0]), prompts, sampling), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist() and one.stop is Stop.LENGTH
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)
    assert together >= 2 and engine.num_prefilled > 5 * 15, "somebody's keys were computed again"
    assert is_empty(engine)


def test_room_for_keys_is_given_back_and_taken_again(endless: list[Path]) -> None:
    """In the middle of decoding: whoever is seated waits, has its keys computed anew and writes the same tokens."""
    engine = PagedEngine(rows=3, device="cpu", dtype="float32", steps=2)
    engine.takes_turns = True
    engine.open(endless[0])
    keys, prompts = engine._board._cache.keys, prompts_of([5, 20, 9, 33])
    room = keys.untyped_storage()
    assert room.nbytes() == 0, "nothing is decoded yet"

    async def interrupted() -> list[Completion]:
        asking = asyncio.gather(*(engine.sample(p, LONG, k) for k, p in enumerate(prompts)))
        for _ in range(3):
            while not engine._seating.seated:
                await asyncio.sleep(0)
            assert room.nbytes() == 2 * keys.numel() * 4
            engine.rest()
            assert room.nbytes() == 0 and not engine._seating.seated
            room.resize_(2 * keys.numel() * 4)  # whoever has it meanwhile leaves something else there
            torch.empty(0, dtype=torch.uint8).set_(room).fill_(255)
            room.resize_(0)
        return await asking

    for one, other in zip(asyncio.run(interrupted()), asked(opened(endless[0]), prompts, LONG), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)
    engine.rest()
    assert room.nbytes() == 0 and is_empty(engine)
    still = paged(endless[0])
    still.rest()
    assert still._board._cache.keys.untyped_storage().nbytes() > 0, "one that has its device to itself keeps it"


def test_the_end_token_stops_and_is_included(folders: dict[str, Path]) -> None:
    completions = asked(paged(folders["llama"]), prompts_of([5] * 20), Sampling(max_tokens=80))
    stopped = [c for c in completions if c.stop is Stop.STOP]
    assert stopped
    for completion in stopped:
        assert completion.tokens[-1] == END and END not in completion.tokens[:-1]


@pytest.mark.parametrize("steps", [1, 3, 16])
def test_a_stop_string_cuts_where_it_is_complete(endless: list[Path], steps: int) -> None:
    engine = paged(endless[0], steps=steps)
    stopped, length = stopped_at_a_string(engine)
    assert stopped.stop is Stop.STOP and len(stopped.logprobs) == length
    assert not engine._seating


def test_no_step_is_taken_for_nobody(endless: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two who ask for 4 and 10 tokens, 3 steps at a time and two looks ahead, nobody writes after the tenth."""
    engine, taken = paged(endless[0]), []
    advance = engine._board.advance
    monkeypatch.setattr(
        engine._board, "advance", lambda order, steps, *how: (taken.append(steps), advance(order, steps, *how))[1]
    )
    one, other = prompts_of([5, 9])

    async def both() -> list[Completion]:
        return await asyncio.gather(
            *(engine.sample(each, Sampling(max_tokens=n), n) for each, n in ((one, 4), (other, 10)))
        )

    assert [len(each.tokens) for each in asyncio.run(both())] == [4, 10]
    assert sum(taken) == 10 and is_empty(engine)


def test_a_cancelled_caller_frees_its_slot(endless: list[Path]) -> None:
    engine = paged(endless[0], rows=1)
    first, second = prompts_of([4, 5])

    async def cancel() -> Completion:
        task = asyncio.create_task(engine.sample(first, Sampling(max_tokens=80), 0))
        other = asyncio.create_task(engine.sample(second, Sampling(max_tokens=6), 1))
        while not engine._looks:
            await asyncio.sleep(0)
        task.cancel()
        return await other

    assert len(asyncio.run(cancel()).tokens) == 6
    assert is_empty(engine)


@pytest.mark.parametrize("seed", range(3))
def test_anything_at_once_leaves_every_token_with_its_weights_logprob(
    endless: list[Path], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strop.generate.engines.paged.paged_engine._PREFILL", (6, 17, 8192)[seed])
    engine = paged(endless[0], rows=4, steps=(1, 2, 5)[seed], cache_tokens=(128, 200, 1000)[seed])
    weights = [parameters(load_model(folder)) for folder in endless]
    references = [load_reference(folder) for folder in endless]
    anything_at_once(engine, weights, references, seed)
    assert is_empty(engine)


def test_another_family_takes_the_slow_path_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_tiny_model(tmp_path, "gemma2")
    engine = paged(folder)
    assert "slow path" in capsys.readouterr().err
    prompts = prompts_of([5, 9])
    for one, other in zip(asked(engine, prompts, LONG), asked(opened(folder), prompts, LONG), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()


def test_what_goes_wrong_reaches_every_caller(endless: list[Path]) -> None:
    engine = paged(endless[0], rows=2)
    with pytest.raises(DeliveryError, match="missing"):
        asyncio.run(engine.load(WeightVersion(1, location={})))
    with torch.no_grad():
        engine._model.get_input_embeddings().weight.fill_(float("nan"))

    async def gathered() -> list[object]:
        calls = [engine.sample(p, LONG, k) for k, p in enumerate(prompts_of([4, 5, 6, 7]))]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    assert all(isinstance(result, NumericsError) for result in asyncio.run(gathered()))
    assert not engine._seating


def test_pages_are_counted_found_and_used_again() -> None:
    pages = Pages(5)
    names = digests_of(np.arange(40))
    assert len(names) == 2
    first = pages.share(names) + pages.take(3)
    pages.name(first, names)
    assert pages.num_available == 1
    assert pages.share(names) == first[:2]  # held twice now
    pages.release(first)
    assert pages.num_available == 2  # one unnamed, one never taken
    pages.release(first[:2])
    assert pages.num_available == 4
    assert pages.share(names) == first[:2]
    pages.release(first[:2])
    assert sorted(pages.take(4)) == [1, 2, 3, 4]
    assert pages.share(names) == []  # their room was needed


def test_what_was_written_is_found_by_who_goes_on_from_the_prompt() -> None:
    pages = Pages(9)
    written = np.arange(70)
    prompt = digests_of(written[:20])
    held = pages.take(5)
    pages.name(held, prompt)
    pages.retire(held, written, prompt[-1])
    assert pages.num_available == 3
    assert pages.share(digests_of(written[:20])) == held[:1]  # a sibling: nothing more is looked for
    pages.release(held[:1])
    later = digests_of(np.append(written, np.zeros(10, np.int64)))
    assert pages.share(later) == held[:4]  # whole pages of what was written
    pages.release(held[:4])
    assert pages.has_room(8) and not pages.has_room(9)
    pages.retire(pages.take(8), written, prompt[-1])
    assert pages.num_available == 0 and pages.has_room(1)  # the one who left makes room


def test_runs_and_buckets() -> None:
    runs = runs_of(np.array([5, 0]), np.array([70, 3]))
    assert runs.tolist() == [[0, 5, 64], [64, 69, 6], [70, 0, 3]]
    assert [bucket(n, 1000) for n in (1, 2, 3, 5, 6, 7, 13, 700, 999)] == [1, 2, 3, 6, 6, 8, 16, 768, 1000]


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_it_says_so(endless: list[Path]) -> None:
    with pytest.raises(ConfigurationError, match="no GPU"):
        paged(endless[0], device="cuda")


def test_what_was_written_behind_a_short_prompt_is_found_too(endless: list[Path]) -> None:
    """A prompt of 6 tokens fills no page; of 6 + 40, which branches begin with, two whole pages are there."""
    engine, (prompt, other) = paged(endless[0]), prompts_of([6, 6])

    async def forked() -> tuple[list[IntArray], list[Completion]]:
        root, _ = [await engine.sample(each, Sampling(max_tokens=60), key) for key, each in enumerate((prompt, other))]
        branches = [np.concatenate([prompt, root.tokens[:40]])] * 3
        assert engine.num_reused == 0
        found = await ask(engine, branches, Sampling(max_tokens=10))
        assert engine.num_reused == 3 * 32
        await engine.sample(np.concatenate([other[:5], branches[0]]), Sampling(max_tokens=10), 9)
        assert engine.num_reused == 3 * 32, "another beginning finds nothing"
        return branches, found

    branches, found = asyncio.run(forked())
    again = asyncio.run(ask(paged(endless[0]), branches, Sampling(max_tokens=10)))
    assert [each.tokens.tolist() for each in found] == [each.tokens.tolist() for each in again]


def test_short_openings_that_nobody_holds_are_not_looked_for() -> None:
    pages, tokens = Pages(4), np.arange(40)
    held = pages.take(3)
    pages.retire(held, tokens, stem_of(tokens[:5], ()))
    assert list(pages._short) == [5] and stem_of(tokens[:0], ()) == b"" and not pages.has_room(4)
    assert list(pages._short) == [], "their room was needed"
    held = pages.take(3)
    pages.retire(held, tokens, stem_of(tokens[:5], ()))
    assert pages.share([], tokens[:9]) == [], "less than a page"
    assert pages.share(digests_of(tokens[:35]), tokens[:35]) == held[:2] and list(pages._short) == []


def test_what_an_earlier_holder_left_in_a_page_does_no_harm(endless: list[Path]) -> None:
    """Weights that were not finite leave keys that are none; good ones come, and pages are used again."""
    engine, prompts = paged(endless[0], rows=2), prompts_of([5, 9])
    good = {name: each.clone() for name, each in parameters(load_model(endless[0], torch.float32, "cpu")).items()}
    bad = {name: each * float("nan") for name, each in good.items()}

    async def twice() -> list[Completion]:
        await engine.load(WeightVersion(1, location=bad))
        with pytest.raises(NumericsError):
            await ask(engine, prompts, LONG)
        await engine.load(WeightVersion(2, location=good))
        return await ask(engine, prompts, LONG)

    for one, other in zip(asyncio.run(twice()), asked(opened(endless[0]), prompts, LONG), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
