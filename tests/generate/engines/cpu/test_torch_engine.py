"""The engine against transformers' own forward pass, and its promises about batching, reuse, stopping and failing."""

import asyncio
import pickle
from collections import deque
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.backends import Completion, Stop
from strop.errors import ConfigurationError, ModelError, NumericsError
from strop.generate.engines.cpu.block_step import BlockStep, block_step
from strop.generate.engines.cpu.decoder import Decoder
from strop.generate.engines.cpu.torch_engine import TorchEngine, TorchRequest
from strop.models.model import hidden_states, load_model
from strop.types import Sampling
from tests.generate.engines.asking import ask, asked, opened, prompts_of, stopped_at_a_string, talk, worst_difference
from tests.tiny_models import CONFIGS, CONTEXT, END, load_reference, reference_logprobs, save_tiny_model

LONG = Sampling(max_tokens=30)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: save_tiny_model(tmp_path_factory.mktemp(family), family) for family in CONFIGS}


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama without an end token, so that lengths are known."""
    return save_tiny_model(tmp_path_factory.mktemp("endless"), "llama", eos_token_id=None)


def same(one: Completion, other: Completion) -> bool:
    return one.tokens.tolist() == other.tokens.tolist() and bool(np.allclose(one.logprobs, other.logprobs, atol=1e-5))


# ---- the right distribution


@pytest.mark.parametrize("family", CONFIGS)
def test_logprobs_are_those_of_a_full_forward_pass(folders: dict[str, Path], family: str) -> None:
    reference = load_reference(folders[family])
    engine = opened(folders[family], rows=4)
    prompts = prompts_of([3, 9, 30, 1, 17, 22, 5, 9, 40, 2])  # more requests than rows, of mixed lengths
    for prompt, completion in zip(prompts, asked(engine, prompts, LONG), strict=True):
        assert worst_difference(reference, prompt, completion) < 1e-4


@pytest.mark.parametrize("family", CONFIGS)
def test_several_turns_go_on_with_the_same_distribution(folders: dict[str, Path], family: str) -> None:
    reference = load_reference(folders[family])
    engine = opened(folders[family], rows=3)

    talk(engine, reference, 6)


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt2"])
def test_a_request_gives_the_same_alone_and_in_a_full_batch(folders: dict[str, Path], family: str) -> None:
    prompts = prompts_of([4, 19, 11, 2, 33, 7, 12, 5])
    together = asked(opened(folders[family], rows=3), prompts, LONG)
    single = opened(folders[family], rows=1)
    for key, prompt in enumerate(prompts):
        single.forget()
        assert same(asyncio.run(single.sample(prompt, LONG, key)), together[key])


def test_the_same_questions_give_the_same_bits(folders: dict[str, Path]) -> None:
    prompts = prompts_of([4, 19, 11, 2, 33, 7, 12, 5])
    one, other = (asked(opened(folders["llama"], rows=3), prompts, LONG) for _ in range(2))
    for first, second in zip(one, other, strict=True):
        assert first.tokens.tobytes() == second.tokens.tobytes()
        assert first.logprobs.tobytes() == second.logprobs.tobytes()


def test_different_keys_differ_and_equal_keys_agree(folders: dict[str, Path]) -> None:
    prompt = prompts_of([5])[0]
    engine = opened(folders["llama"])
    first, again = (asyncio.run(engine.sample(prompt, LONG, 7)) for _ in range(2))
    other = asyncio.run(engine.sample(prompt, LONG, 8))
    assert same(first, again)
    assert first.tokens.tolist() != other.tokens.tolist()


def test_first_tokens_come_with_their_exact_probabilities(folders: dict[str, Path]) -> None:
    prompt = prompts_of([6])[0]
    exact = reference_logprobs(load_reference(folders["llama"]), prompt)[-1].exp().numpy()
    count = 4000
    completions = asked(opened(folders["llama"], rows=500), [prompt] * count, Sampling(max_tokens=1))
    seen = np.bincount([int(c.tokens[0]) for c in completions], minlength=len(exact)) / count
    assert np.abs(seen - exact).max() < 4.5 * np.sqrt(exact * (1 - exact) / count).max()


def test_truncated_sampling_reports_the_truncated_distribution(folders: dict[str, Path]) -> None:
    sampling = Sampling(temperature=0.7, top_k=5, top_p=0.8, max_tokens=10)
    prompt = prompts_of([6])[0]
    completion = asyncio.run(opened(folders["llama"]).sample(prompt, sampling, 3))
    scores = reference_logprobs(load_reference(folders["llama"]), np.concatenate([prompt, completion.tokens]))
    for step, (token, logprob) in enumerate(zip(completion.tokens, completion.logprobs, strict=True)):
        probabilities = torch.softmax(scores[len(prompt) - 1 + step] / 0.7, -1)
        best = probabilities.argsort(descending=True)[:5].tolist()
        kept: list[int] = []
        five = float(probabilities[best].sum())
        while not kept or float(probabilities[kept].sum()) / five < 0.8:
            kept.append(best[len(kept)])
        assert int(token) in kept
        assert float(logprob) == pytest.approx(
            float(torch.log(probabilities[token] / probabilities[kept].sum())), abs=1e-4
        )


def test_greedy_follows_the_likeliest(folders: dict[str, Path]) -> None:
    prompt = prompts_of([6])[0]
    completion = asyncio.run(opened(folders["qwen3"]).sample(prompt, Sampling(temperature=0, max_tokens=10), 0))
    scores = reference_logprobs(load_reference(folders["qwen3"]), np.concatenate([prompt, completion.tokens]))
    assert completion.tokens.tolist() == scores[len(prompt) - 1 : -1].argmax(-1).tolist()
    assert completion.logprobs.tolist() == [0.0] * len(completion.tokens)


def test_different_settings_share_a_batch(folders: dict[str, Path]) -> None:
    prompt = prompts_of([6])[0]
    settings = [LONG, Sampling(temperature=0, max_tokens=9), Sampling(top_k=3, max_tokens=5), Sampling(temperature=0.5)]

    async def both() -> tuple[list[Completion], list[Completion]]:
        engine = opened(folders["llama"])
        together = await asyncio.gather(*(engine.sample(prompt, s, k) for k, s in enumerate(settings)))
        return together, [await engine.sample(prompt, s, k) for k, s in enumerate(settings)]

    for one, other in zip(*asyncio.run(both()), strict=True):
        assert same(one, other)


@pytest.mark.parametrize("family", sorted(CONFIGS.keys() - {"gemma", "gpt2"}))
def test_the_quick_step_is_the_models_own_forward_pass(folders: dict[str, Path], family: str) -> None:
    prompts = prompts_of([4, 19, 11, 2, 33])
    quick = opened(folders[family], rows=3)
    assert isinstance(quick._decoder._forward, BlockStep)
    plain = opened(folders[family], rows=3)
    plain._decoder._forward = partial(hidden_states, plain._model)
    for one, other in zip(asked(quick, prompts, LONG), asked(plain, prompts, LONG), strict=True):
        assert same(one, other)


def test_other_families_have_no_quick_step(folders: dict[str, Path]) -> None:
    assert block_step(load_model(folders["gemma"])) is None


def test_a_prompt_too_long_for_one_step_is_computed_in_several(folders: dict[str, Path]) -> None:
    model = load_model(folders["llama"])
    reference = load_reference(folders["llama"])
    decoder: Decoder[TorchRequest] = Decoder(model, partial(hidden_states, model), 3, 7)
    prompts = prompts_of([30, 30, 12])
    prompts[1][:20] = prompts[0][:20]

    async def requests() -> deque[TorchRequest]:
        return deque(TorchRequest(p, LONG, k, asyncio.Future()) for k, p in enumerate(prompts))

    queue = asyncio.run(requests())
    steps = [decoder.step(queue, 0) for _ in range(20)]
    assert [len(rows) for rows in steps[:4]] == [0, 0, 0, 0]  # 7 of 30 tokens at a time
    for prompt in prompts:
        row = next(r for r in range(3) if (decoder.rows.tokens[r, : len(prompt)] == prompt).all())
        written = slice(len(prompt), int(decoder.rows.length[row]))
        columns = (decoder.rows.tokens, decoder.rows.logprobs, decoder.rows.versions)
        completion = Completion(*(column[row, written] for column in columns), Stop.LENGTH)
        assert len(completion.tokens) > 3
        assert worst_difference(reference, prompt, completion) < 1e-4


# ---- nothing is computed twice


def test_siblings_compute_their_prompt_once(endless: Path) -> None:
    engine = opened(endless, rows=8)
    prompt = prompts_of([20])[0]
    asked(engine, [prompt] * 8, Sampling(max_tokens=3))
    assert engine.num_prefilled == 20 + 7  # every sibling computes the last token, whose logits it needs
    assert engine.num_reused == 7 * 19
    assert engine.num_generated == 24


def test_siblings_that_come_later_find_the_prompt(endless: Path) -> None:
    engine = opened(endless, rows=2)
    prompt = prompts_of([20])[0]
    asked(engine, [prompt] * 6, Sampling(max_tokens=3))
    assert engine.num_prefilled == 20 + 5


def test_a_later_turn_computes_what_is_new(endless: Path) -> None:
    engine = opened(endless, rows=4)

    async def talk(key: int) -> None:
        first, question = prompts_of([20, 5], seed=key)
        first[0] = 4 + key  # nothing in common with the others
        completion = await engine.sample(first, Sampling(max_tokens=6), key)
        await engine.sample(np.concatenate([first, completion.tokens, question]), Sampling(max_tokens=6), key)

    async def all_talk() -> None:
        await asyncio.gather(*(talk(key) for key in range(8)))

    asyncio.run(all_talk())
    # the last token of a completion was sampled, never read: it is computed with the question
    assert engine.num_prefilled == 8 * (20 + 1 + 5)
    assert engine.num_reused == 8 * 25


def test_a_context_that_branches_off_is_copied_and_the_old_one_kept(endless: Path) -> None:
    engine = opened(endless, rows=4)
    stem, one, other = prompts_of([20, 4, 4])

    async def ask_in_turn() -> None:
        for prompt in (stem, np.append(stem[:15], one), np.append(stem[:15], other), stem):
            await engine.sample(prompt, Sampling(max_tokens=2), 0)

    asyncio.run(ask_in_turn())
    assert engine.num_prefilled == 20 + 4 + 4 + 1


def test_an_agent_that_asks_again_at_once_joins_the_next_step(endless: Path) -> None:
    engine = opened(endless, rows=2)
    steps: list[int] = []
    step = engine._decoder.step

    def counted(*arguments: object) -> object:
        steps.append(int(engine._decoder.rows.is_active.sum()) + len(engine._waiting))
        return step(*arguments)  # type: ignore[arg-type]

    engine._decoder.step = counted  # type: ignore[assignment, method-assign]

    async def talk(key: int) -> None:
        context = prompts_of([6], seed=key)[0]
        for _ in range(3):
            completion = await asyncio.create_task(engine.sample(context, Sampling(max_tokens=4 + key), key))
            context = np.concatenate([context, completion.tokens])

    async def both() -> None:
        await asyncio.gather(talk(0), talk(1))

    asyncio.run(both())
    assert steps == [2] * 12 + [1] * 3  # 3 x 4 tokens and 3 x 5 tokens, never a step without both until the first ends


def test_rows_move_together_when_most_have_left(endless: Path) -> None:
    engine = opened(endless, rows=12)
    reference = load_reference(endless)
    prompts = prompts_of([5] * 12)

    async def uneven() -> list[Completion]:
        limits = [3] * 10 + [30, 40]
        return await asyncio.gather(
            *(engine.sample(p, Sampling(max_tokens=n), k) for k, (p, n) in enumerate(zip(prompts, limits, strict=True)))
        )

    completions = asyncio.run(uneven())
    assert [len(c.tokens) for c in completions] == [3] * 10 + [30, 40]
    for prompt, completion in zip(prompts, completions, strict=True):
        assert worst_difference(reference, prompt, completion) < 1e-4
    contexts = [np.append(p, c.tokens) for p, c in zip(prompts, completions, strict=True)][:10]
    for context, completion in zip(contexts, asked(engine, contexts, LONG), strict=True):
        assert worst_difference(reference, context, completion) < 1e-4  # moved keys are still the right ones
    assert engine.num_prefilled == 12 * 5 + 10


def test_forgetting_makes_an_engine_as_new(endless: Path) -> None:
    engine = opened(endless, rows=3)
    prompts = prompts_of([5, 9, 14, 3])
    fresh = asked(engine, prompts, LONG)
    asked(engine, prompts_of([7, 8], seed=5), LONG)
    engine.forget()
    computed = engine.num_prefilled
    again = asked(engine, prompts, LONG)
    assert engine.num_prefilled - computed == 31
    for one, other in zip(fresh, again, strict=True):
        assert one.logprobs.tobytes() == other.logprobs.tobytes()


# ---- where completions end


def test_the_end_token_stops_and_is_included(folders: dict[str, Path]) -> None:
    completions = asked(opened(folders["llama"]), prompts_of([5] * 20), Sampling(max_tokens=80))
    stopped = [c for c in completions if c.stop is Stop.STOP]
    assert stopped
    for completion in stopped:
        assert completion.tokens[-1] == END and END not in completion.tokens[:-1]
    for completion in completions:
        assert completion.stop is Stop.STOP or len(completion.tokens) == 80


def test_several_end_tokens_in_the_generation_config(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, "llama")
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 5, 6, 7]}')
    engine = opened(folder)
    assert engine._ends.tolist() == [1, 5, 6, 7]
    for completion in asked(engine, prompts_of([5] * 10), Sampling(max_tokens=80)):
        assert completion.stop is Stop.STOP and completion.tokens[-1] in (1, 5, 6, 7)


def test_a_stop_string_over_two_tokens(endless: Path) -> None:
    assert stopped_at_a_string(opened(endless))[0].stop is Stop.STOP


def test_stop_strings_without_a_tokenizer_are_refused(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, "llama")
    for file in folder.glob("tokenizer*"):
        file.unlink()
    engine = opened(folder)
    with pytest.raises(ModelError, match="tokenizer"):
        asyncio.run(engine.sample(prompts_of([5])[0], Sampling(stop=("a",)), 0))
    assert len(asyncio.run(engine.sample(prompts_of([5])[0], LONG, 0)).tokens)


def test_limits_of_tokens_and_context(endless: Path) -> None:
    engine = opened(endless)
    short, full = prompts_of([4, CONTEXT - 3])
    one, other = asyncio.run(ask(engine, [short, full], Sampling(max_tokens=11)))
    assert (len(one.tokens), one.stop) == (11, Stop.LENGTH)
    assert (len(other.tokens), other.stop) == (3, Stop.LENGTH)


def test_abort_returns_what_is_there(endless: Path) -> None:
    engine = opened(endless, rows=1)
    prompts = prompts_of([4, 4, 4])

    async def aborted() -> list[Completion]:
        tasks = [asyncio.create_task(engine.sample(p, LONG, k)) for k, p in enumerate(prompts)]
        while engine.num_generated < 5:
            await asyncio.sleep(0)
        engine.abort(0)
        engine.abort(2)
        return await asyncio.gather(*tasks)

    running, later, waiting = asyncio.run(aborted())
    assert (len(running.tokens), running.stop) == (5, Stop.ABORTED)
    assert (len(later.tokens), later.stop) == (30, Stop.LENGTH)
    assert (len(waiting.tokens), waiting.stop) == (0, Stop.ABORTED)
    alone = asyncio.run(opened(endless).sample(prompts[0], LONG, 0))
    assert running.tokens.tolist() == alone.tokens[:5].tolist()


@pytest.mark.parametrize("after", [0, 3])
def test_aborting_the_only_request_leaves_the_engine_usable(endless: Path, after: int) -> None:
    engine = opened(endless)
    prompt = prompts_of([4])[0]

    async def aborted() -> tuple[Completion, Completion]:
        task = asyncio.create_task(engine.sample(prompt, LONG, 0))
        await asyncio.sleep(0)
        while engine.num_generated < after:
            await asyncio.sleep(0)
        engine.abort(0)
        return await task, await engine.sample(prompt, LONG, 0)

    cut, whole = asyncio.run(aborted())
    assert (len(cut.tokens), cut.stop) == (after, Stop.ABORTED)
    assert (len(whole.tokens), whole.stop) == (30, Stop.LENGTH)
    assert engine.num_reused == (3 if after else 0)  # nothing went wrong on the way that would have cleared the keys


def test_a_cancelled_caller_frees_its_row(endless: Path) -> None:
    engine = opened(endless, rows=1)
    first, second = prompts_of([4, 5])

    async def cancel() -> Completion:
        task = asyncio.create_task(engine.sample(first, Sampling(max_tokens=80), 0))
        other = asyncio.create_task(engine.sample(second, Sampling(max_tokens=6), 1))
        while engine.num_generated < 3:
            await asyncio.sleep(0)
        task.cancel()
        return await other

    assert len(asyncio.run(cancel()).tokens) == 6
    assert engine.num_generated < 15
    assert not engine._decoder.rows.is_active.any()


# ---- what goes wrong


def test_an_exception_in_the_model_reaches_every_caller(endless: Path) -> None:
    engine = opened(endless, rows=2)
    working = engine._decoder._forward

    def broken(*arguments: object) -> torch.Tensor:
        if engine.num_generated >= 4:
            raise RuntimeError("out of memory")
        return working(*arguments)  # type: ignore[arg-type]

    async def gathered() -> list[object]:
        calls = [engine.sample(p, LONG, k) for k, p in enumerate(prompts_of([4, 5, 6, 7]))]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    engine._decoder._forward = broken
    results = asyncio.run(gathered())
    assert [str(r) for r in results] == ["out of memory"] * 4
    engine._decoder._forward = working
    good, fresh = (asked(e, prompts_of([4, 5]), LONG) for e in (engine, opened(endless, rows=2)))
    assert all(same(one, other) for one, other in zip(good, fresh, strict=True))


def test_weights_that_are_not_finite_are_told(endless: Path) -> None:
    engine = opened(endless)
    with torch.no_grad():
        engine._model.get_input_embeddings().weight.fill_(float("nan"))
    with pytest.raises(NumericsError, match="not finite"):
        asyncio.run(engine.sample(prompts_of([4])[0], LONG, 0))


def test_wrong_fields_are_refused(endless: Path) -> None:
    with pytest.raises(ConfigurationError, match="rows >= 1, got 0"):
        opened(endless, rows=0)
    with pytest.raises(ConfigurationError, match="float32"):
        opened(endless, dtype="float23")


def test_an_engine_is_its_own_source_and_can_be_shipped() -> None:
    engine = TorchEngine(rows=3, keep_cache=True)
    assert eval(repr(engine)) == engine
    assert pickle.loads(pickle.dumps(engine)) == engine


def test_others_stand_still_while_some_hurry(endless: Path) -> None:
    """Who hurries is done first, and everybody writes what he would have written anyway."""
    engine, prompts = opened(endless, rows=4), prompts_of([5, 6, 7, 8, 9, 10])
    ends: list[int] = []

    async def one(key: int) -> Completion:
        completion = await engine.sample(prompts[key], LONG, key)
        ends.append(key)
        return completion

    async def everybody() -> list[Completion]:
        tasks = [asyncio.create_task(one(key)) for key in range(len(prompts))]
        while engine.num_generated < 8:
            await asyncio.sleep(0)
        before = engine.num_generated
        engine.hurry([2, 17])
        assert await tasks[2] is not None
        assert engine.num_generated - before <= LONG.max_tokens  # nobody else wrote meanwhile
        return await asyncio.gather(*tasks)

    hurried = asyncio.run(everybody())
    assert ends[0] == 2
    for key, completion in enumerate(hurried):
        assert same(completion, asked(opened(endless, rows=6), prompts, LONG)[key])
