"""A canvas of masks is filled from the model's own distributions, surest first, and every logprob is what was drawn.

Papers: d1, tracerl
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.backends import ORDER, Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, DeliveryError, ModelError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.diffusion.diffusion_engine import DiffusionEngine
from strop.generate.engines.diffusion.diffusion_sequence import Canvas
from strop.models.layers.attention import Packed
from strop.models.model import hidden_states, load_model, logits, parameters
from strop.models.tokens.mask_token import canvas_places, fills_masks, mask_token
from strop.training.trainers.torch import TorchTrainer
from strop.types import IntArray, Sampling
from tests.generate.engines.asking import ask, asked, prompts_of
from tests.generate.engines.mutual import mutual_logprobs
from tests.tiny_models import CONTEXT, END, VOCABULARY, load_reference, save_tiny_model

MASK = 2  # the padding of tiny models
NOBODY: Any = None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("tiny"), "llama", spread=8.0)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    return load_reference(folder)


def opened(folder: Path, **fields: Any) -> DiffusionEngine:
    engine = DiffusionEngine(**{"block": 4, **fields})
    engine.open(folder)
    return engine


def test_tokens_of_a_segment_see_each_other_and_nothing_else(folder: Path, reference: Any) -> None:
    model, canvases = load_model(folder), prompts_of([7, 3, 12])
    positions = torch.cat([torch.arange(len(each)) for each in canvases])
    plan = Packed([len(each) for each in canvases], is_mutual=True)
    with torch.no_grad():
        states = hidden_states(model, torch.from_numpy(np.concatenate(canvases)), positions, plan)
        found = logits(model, states).log_softmax(-1)
    expected = torch.cat([mutual_logprobs(reference, each) for each in canvases])
    assert (found - expected).abs().max() < 1e-4


@pytest.mark.parametrize("family", ["mistral", "gemma2", "gpt2"])
def test_other_families_see_both_ways_too(family: str, tmp_path: Path) -> None:
    """A window reaches as far to the right as to the left."""
    model = load_model(save_tiny_model(tmp_path, family))
    tokens = prompts_of([9])[0]

    def states(changed: int) -> torch.Tensor:
        other = tokens.copy()
        other[changed] = (other[changed] + 1) % VOCABULARY
        with torch.no_grad():
            return hidden_states(model, torch.from_numpy(other), torch.arange(9), Packed([9], is_mutual=True))

    first, last = states(0), states(8)
    assert (first[4] - last[4]).abs().max() > 1e-5  # the middle notices a change at either end
    plain = hidden_states(model, torch.from_numpy(tokens), torch.arange(9), Packed([9], is_mutual=True)).detach()
    if family == "gpt2":
        assert (first[8] - plain[8]).abs().max() > 1e-6 and (last[0] - plain[0]).abs().max() > 1e-6


def canvas(room: int = 8, block: int = 4) -> Canvas:
    return Canvas(np.array([9, 9, 9]), Sampling(), 0, NOBODY, room, block, MASK)


def keep(it: Canvas, **tokens: int) -> None:
    """keep(it, p3=7): token 7 stays at place 3."""
    places = np.array([int(name[1:]) for name in tokens], dtype=np.int64)
    it.keep(places, np.array(list(tokens.values())), np.full(len(places), -0.5, np.float32), 1, np.array([END]))


def test_blocks_are_filled_one_after_the_other() -> None:
    it = canvas()
    assert it.open_places.tolist() == [3, 4, 5, 6]
    keep(it, p5=7, p3=8)
    assert it.open_places.tolist() == [4, 6] and not it.is_full
    keep(it)  # a look that keeps nothing is no step
    keep(it, p4=7, p6=8)
    assert it.open_places.tolist() == [7, 8, 9, 10]
    keep(it, p7=7, p8=7, p9=7, p10=7)
    assert it.is_full and not it.is_ended
    found = it.completion(Stop.LENGTH)
    assert found.tokens.tolist() == [8, 7, 7, 8, 7, 7, 7, 7] and found.versions.tolist() == [1] * 8
    # steps are counted from the prompt's three tokens on; nothing is left behind, and it did not end
    assert found.aux[ORDER].tolist() == [[step, 0, 0] for step in (4, 5, 4, 5, 6, 6, 6, 6)]


def test_only_looks_in_a_row_are_in_vain() -> None:
    it = canvas()
    for place in range(3, 7):
        keep(it)
        keep(it)
        assert it.in_vain == 2
        keep(it, **{f"p{place}": 7})
    assert it.in_vain == 0 and (it.looks, it.steps) == (12, 4)


def test_an_end_with_nothing_right_of_it_ends_the_completion_and_fills_what_is_behind_it() -> None:
    it = canvas()
    keep(it, p5=END)
    assert it.is_ended and it.end == 6 and it.tokens[6:].tolist() == [END] * 5
    assert it.open_places.tolist() == [3, 4] and not it.is_full
    keep(it, p3=7, p4=END)
    assert it.is_full
    found = it.completion(Stop.STOP)
    assert found.tokens.tolist() == [7, END, END]
    assert found.aux[ORDER].tolist() == [[5, 5, 1], [5, 5, 1], [4, 5, 1]]


def test_an_end_left_of_a_token_that_stands_is_a_token_as_any_other() -> None:
    it = canvas()
    keep(it, p6=7)
    keep(it, p4=END)
    assert not it.is_ended and it.end == 11
    keep(it, p3=7, p5=7)
    assert it.open_places.tolist() == [7, 8, 9, 10]


def test_one_that_is_ended_early_holds_its_full_blocks() -> None:
    it = canvas()
    keep(it, p3=7, p4=7, p5=7, p6=7)
    keep(it, p8=7)
    found = it.completion(Stop.ABORTED)
    assert found.tokens.tolist() == [7] * 4 and found.aux[ORDER].tolist() == [[4, 4, 0]] * 4


def test_the_surest_stay_and_all_that_are_sure_enough() -> None:
    tokens, sureness = np.array([5, MASK, 6, 7, 8]), np.array([0.2, 0.99, 0.7, 0.95, 0.91], np.float32)
    settings = ((1, 1.0), (2, 1.0), (1, 0.9), (3, 0.93), (9, 1.0))
    kept = {setting: sorted(_kept(*setting, tokens, sureness)) for setting in settings}
    assert kept == {(1, 1.0): [3], (2, 1.0): [3, 4], (1, 0.9): [3, 4], (3, 0.93): [2, 3, 4], (9, 1.0): [0, 2, 3, 4]}


def test_as_sure_as_asked_is_sure_enough_and_with_one_nothing_is() -> None:
    tokens, sureness = np.array([5, 6, 7]), np.array([1.0, 1.0, 0.5], np.float32)
    assert sorted(_kept(1, 0.5, tokens, sureness)) == [0, 1, 2] and _kept(1, 1.0, tokens, sureness) == [0]


def test_an_end_that_is_lost_with_its_block_is_not_noted() -> None:
    it = canvas()
    keep(it, p3=7, p4=7, p5=7, p6=7)
    keep(it, p8=END)
    assert it.is_ended and not it.is_full
    assert it.completion(Stop.ABORTED).aux[ORDER].tolist() == [[4, 4, 0]] * 4


def test_one_request_is_aborted_or_leaves_and_others_go_on(folder: Path) -> None:
    engine, prompts = opened(folder, block=2, rows=2), prompts_of([4, 4, 4])

    async def run() -> list[Completion]:
        asking = [asyncio.create_task(engine.sample(p, Sampling(max_tokens=9), k)) for k, p in enumerate(prompts)]
        while engine.num_looks < 1:
            await asyncio.sleep(0)
        assert [each.looks for each in engine._canvases] == [1, 1, 0]  # two rows, so the third waits
        engine.abort(0)
        asking[1].cancel()
        await asyncio.sleep(0)
        assert [each.key for each in engine._canvases] == [2]
        return [await asking[0], await asking[2]]

    cut, whole = asyncio.run(run())
    assert cut.stop is Stop.ABORTED and whole.stop is not Stop.ABORTED
    assert (
        whole.tokens.tolist()
        == asyncio.run(opened(folder, block=2).sample(prompts[2], Sampling(max_tokens=9), 2)).tokens.tolist()
    )


def test_greedy_never_takes_the_mask(folder: Path) -> None:
    engine = opened(folder)
    engine._scores = lambda canvases, places: (
        torch.zeros(  # type: ignore[method-assign]
            sum(map(len, places)), VOCABULARY
        )
        .index_fill(1, torch.tensor([MASK]), 50.0)
        .index_fill(1, torch.tensor([7]), 1.0)
    )
    assert asked(engine, prompts_of([3]), Sampling(temperature=0, max_tokens=4))[0].tokens.tolist() == [7] * 4


def _kept(least: int, sure: float, tokens: IntArray, sureness: Any) -> list[int]:
    engine = DiffusionEngine(least=least, sure=sure)
    engine._mask = MASK
    return engine._kept(tokens, sureness).tolist()  # type: ignore[no-any-return]


def test_frequencies_are_those_of_every_way_to_fill_two_places(tmp_path: Path) -> None:
    """Block 1, two places of a model with few words: the probability of a pair is p(first) * p(second | first)."""
    folder = save_tiny_model(tmp_path, "llama", seed=3, spread=4.0, eos_token_id=None)
    reference, prompt = load_reference(folder), prompts_of([3])[0]
    first = mutual_logprobs(reference, np.append(prompt, [MASK, MASK]))[3].exp()
    first[MASK] = 0  # what draws the mask draws again
    first /= first.sum()
    second = torch.stack(
        [mutual_logprobs(reference, np.append(prompt, [word, MASK]))[4].exp() for word in range(VOCABULARY)]
    )
    second[:, MASK] = 0
    second /= second.sum(1, keepdim=True)
    probabilities = (first.unsqueeze(1) * second).double().flatten().numpy()

    count = 4000
    engine = opened(folder, block=1, rows=500)
    found = asyncio.run(ask(engine, [prompt] * count, Sampling(max_tokens=2), range(count)))
    pairs = np.bincount([int(c.tokens[0]) * VOCABULARY + int(c.tokens[1]) for c in found], minlength=VOCABULARY**2)
    often = probabilities * count >= 5
    rest = (
        np.append(pairs[often], pairs[~often].sum()),
        np.append(probabilities[often], probabilities[~often].sum()) * count,
    )
    chi = float(((rest[0] - rest[1]) ** 2 / rest[1]).sum())
    freedom = len(rest[0]) - 1
    assert chi < freedom + 4 * (2 * freedom) ** 0.5, (chi, freedom)  # 4 deviations


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_every_logprob_is_that_of_the_canvas_at_its_step(folder: Path, reference: Any, temperature: float) -> None:
    """Rebuilt from what is noted alone: tokens, steps, and how much room was left."""
    prompts = prompts_of([5, 9, 2, 7])
    sampling = Sampling(temperature=temperature, max_tokens=14)
    for prompt, found in zip(prompts, asked(opened(folder, least=2, rows=3), prompts, sampling), strict=True):
        order, (behind, is_ended) = found.aux[ORDER][:, 0], found.aux[ORDER][-1, 1:]
        assert len(found.tokens) + behind == 14 and bool(is_ended) == (found.stop is Stop.STOP)
        for place, step in enumerate(order):
            seen = np.where(order < step, found.tokens, MASK)
            rest = found.tokens[-1] if is_ended and order[-1] < step else MASK
            filled = np.concatenate([prompt, seen, np.full(behind, rest)])
            expected = mutual_logprobs(reference, filled, temperature)[len(prompt) + place, found.tokens[place]]
            assert abs(float(expected) - found.logprobs[place]) < 1e-4


def test_what_a_request_draws_does_not_depend_on_others(folder: Path) -> None:
    prompts = prompts_of([4, 6, 8, 5, 3])
    together = asked(opened(folder, rows=2), prompts, Sampling(max_tokens=10))
    alone = [asyncio.run(ask(opened(folder), [p], Sampling(max_tokens=10), [k]))[0] for k, p in enumerate(prompts)]
    assert [c.tokens.tolist() for c in together] == [c.tokens.tolist() for c in alone]
    again = asyncio.run(ask(opened(folder), prompts, Sampling(max_tokens=10), [9] * 5))
    assert [c.tokens.tolist() for c in again] != [c.tokens.tolist() for c in together]


def test_greedy_takes_the_likeliest_token_of_the_surest_place(folder: Path, reference: Any) -> None:
    prompt = prompts_of([6])[0]
    found = asked(opened(folder, block=3), [prompt], Sampling(temperature=0, max_tokens=3))[0]
    first = int(np.argmin(found.aux[ORDER][:, 0]))
    scores = mutual_logprobs(reference, np.append(prompt, [MASK] * 3))[6:]
    scores[:, MASK] = -torch.inf
    assert (first, int(found.tokens[first])) == (int(scores.amax(1).argmax()), int(scores[first].argmax()))
    assert found.logprobs.tolist() == [0.0] * len(found.tokens)


def test_weights_change_between_two_steps_and_each_token_says_which(tmp_path: Path) -> None:
    folders = [save_tiny_model(tmp_path / str(seed), "llama", seed, eos_token_id=None) for seed in (0, 1)]
    engine, other = opened(folders[0], block=2), parameters(load_model(folders[1]))

    async def run() -> Completion:
        asking = asyncio.create_task(engine.sample(prompts_of([4])[0], Sampling(max_tokens=8), 0))
        while engine.num_looks < 3:
            await asyncio.sleep(0)
        assert await engine.load(WeightVersion(5, location=other)) != ""
        return await asking

    found = asyncio.run(run())
    order = np.argsort(found.aux[ORDER][:, 0], kind="stable")
    assert found.versions[order].tolist() == sorted(found.versions.tolist()) and set(found.versions) == {0, 5}


def test_one_that_is_aborted_can_be_gone_on_with(folder: Path) -> None:
    """Full blocks come back, and the steps of the rest are counted on behind them."""
    engine, prompt = opened(folder, block=2), prompts_of([4], seed=5)[0]

    async def cut() -> Completion:
        asking = asyncio.create_task(engine.sample(prompt, Sampling(max_tokens=12), 7))
        while engine.num_looks < 5:
            await asyncio.sleep(0)
        engine.abort(7)
        return await asking

    first = asyncio.run(cut())
    assert first.stop is Stop.ABORTED and len(first.tokens) == 4
    rest = asked(engine, [np.append(prompt, first.tokens)], Sampling(max_tokens=8))[0]
    assert rest.aux[ORDER][:, 0].min() > first.aux[ORDER][:, 0].max()
    assert engine.num_generated == 4 + len(rest.tokens)


def test_a_full_context_ends_a_canvas(folder: Path) -> None:
    prompt = prompts_of([CONTEXT - 3])[0]
    found = asked(opened(folder), [prompt], Sampling(max_tokens=50))[0]
    assert len(found.tokens) + found.aux[ORDER][-1, 1] == 3


def test_what_cannot_work_is_refused(folder: Path, tmp_path: Path) -> None:
    engine, prompt = opened(folder), prompts_of([3])[0]
    for sampling in (Sampling(stop=("x",)), Sampling(max_tokens=0), Sampling(temperature=-1.0)):
        with pytest.raises(ConfigurationError):
            asked(engine, [prompt], sampling)
    with pytest.raises(DeliveryError):
        asyncio.run(engine.load(WeightVersion(1, location={"no": torch.zeros(1)})))
    for fields in ({"block": 0}, {"least": 0}, {"sure": 0.0}, {"sure": 1.5}, {"rows": 0}):
        with pytest.raises(ConfigurationError, match="DiffusionEngine needs"):
            DiffusionEngine(**fields)  # type: ignore[arg-type]
    ends = save_tiny_model(tmp_path, "llama")
    (ends / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>"}')
    with pytest.raises(ModelError, match="no token for a mask"):
        mask_token(ends)
    padding = save_tiny_model(tmp_path / "padding", "llama")
    (padding / "generation_config.json").write_text(f'{{"eos_token_id": [{END}, {MASK}]}}')
    with pytest.raises(ModelError, match="ends completions too"):
        mask_token(padding)


def test_a_model_that_draws_its_mask_alone_is_refused(folder: Path) -> None:
    engine = opened(folder)
    with torch.no_grad():
        engine._model.get_output_embeddings().weight.zero_()  # tied: every place is read alike
        engine._model.get_output_embeddings().weight[MASK] = 0.0
    engine._ends = np.array([END])
    engine._scores = lambda canvases, places: torch.full(  # type: ignore[method-assign]
        (sum(map(len, places)), VOCABULARY), -50.0
    ).index_fill(1, torch.tensor([MASK]), 50.0)
    with pytest.raises(ConfigurationError, match="draws its mask"):
        asked(engine, prompts_of([3]), Sampling(max_tokens=4))


@pytest.mark.parametrize("named", ["two", 2.5, -1, VOCABULARY, END, True])
def test_a_config_that_names_no_mask_is_refused(named: object, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, "llama")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "mask_token_id": named, "canvas_places": "many"}))
    with pytest.raises(ModelError, match="no token that can stand for a mask"):
        mask_token(folder)
    assert canvas_places(folder) is None


def test_one_prompt_that_draws_masks_alone_fails_nobody_else(folder: Path) -> None:
    engine, prompts = opened(folder), prompts_of([3, 4])
    plain = engine._scores

    def scores(canvases: Sequence[Canvas], places: Sequence[IntArray]) -> torch.Tensor:
        found = plain(canvases, places)
        for row, canvas in enumerate(np.repeat(np.arange(len(canvases)), [len(own) for own in places])):
            if len(canvases[canvas].prompt) == 3:
                found[row] = -50.0
                found[row, MASK] = 50.0
        return found

    engine._scores = scores  # type: ignore[method-assign]

    async def both() -> list[Any]:
        asking = (engine.sample(prompt, Sampling(max_tokens=4), key) for key, prompt in enumerate(prompts))
        return await asyncio.gather(*asking, return_exceptions=True)

    lost, whole = asyncio.run(both())
    assert isinstance(lost, ConfigurationError) and len(whole.tokens) > 0 and not engine._canvases


def test_who_goes_from_left_to_right_refuses_such_a_model(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, "llama", mask_token_id=MASK)
    assert fills_masks(folder) and mask_token(folder) == MASK
    with pytest.raises(ModelError, match="fills masks"):
        TorchEngine().open(folder)
    with pytest.raises(ModelError, match="fills masks"):
        TorchTrainer().open(folder, 0)
    opened(folder)


def test_looks_are_shared_and_fewer_where_tokens_are_sure(folder: Path) -> None:
    prompts = prompts_of([4] * 6)
    looks = {}
    for least, sure in itertools.product((1, 4), (1.0, 0.01)):
        engine = opened(folder, least=least, sure=sure)
        asked(engine, prompts, Sampling(max_tokens=8))
        looks[least, sure] = engine.num_looks
    assert looks[4, 1.0] < looks[1, 1.0] and looks[1, 0.01] < looks[1, 1.0], looks  # six canvases in each look
