"""Layers with states, sinks, chunks or routed experts: engine, trainer and transformers agree, as text goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.backends import EXPERTS, Completion, WeightVersion
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.row_states import check_room, state_bytes
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.models.layers.attention import Packed
from strop.models.model import hidden_states, load_model, logits, parameters
from strop.training.machine.memory import compute_layers_again
from strop.training.machine.packed_sequences import Sequences
from strop.types import IntArray, Sampling
from tests.generate.engines.asking import anything_at_once
from tests.models.state_models import MASKS_ALONE, PARTS, load_eager, save_state_model
from tests.tiny_models import VOCABULARY

RIGHT = sorted(set(PARTS) - set(MASKS_ALONE))
QUICK = ("gpt_oss", "qwen3_5_moe_text", "nemotron_h", "lfm2", "jamba")
SOME = [pytest.param(each, marks=[] if each in QUICK else pytest.mark.slow) for each in RIGHT]
WRITTEN = list[tuple[IntArray, Completion]]


def talked(engine: Any, rounds: int = 1) -> WRITTEN:
    """Siblings, second turns, forks from the middle of a completion, late siblings, and siblings of those."""
    rng, written = np.random.default_rng(0), WRITTEN()

    async def one(context: IntArray, key: int, count: int) -> IntArray:
        completion = await engine.sample(context, Sampling(max_tokens=count), key)
        written.append((context, completion))
        return np.concatenate([context, completion.tokens])

    def more(context: IntArray, count: int) -> IntArray:
        return np.concatenate([context, rng.integers(4, VOCABULARY, count)])

    async def talk(first: int) -> None:
        nothing = np.zeros(0, np.int64)
        prompts = [more(nothing, count) for count in (40, 61, 23)]
        whole = await asyncio.gather(*(one(prompts[i % 3], first + i, 18) for i in range(6)))
        await asyncio.gather(*(one(more(each, 5), first + i, 9) for i, each in enumerate(whole[:3])))
        forks = [each[: len(prompts[i % 3]) + 7] for i, each in enumerate(whole[:3])]
        await asyncio.gather(*(one(fork, first + 10 + i, 9) for i, fork in enumerate(forks)))
        await asyncio.gather(*(one(prompts[i], first + 20 + i, 9) for i in range(3)))
        late = await one(more(prompts[0], 3), first + 30, 9)
        await asyncio.gather(*(one(more(late, 2 + i), first + 31 + i, 9) for i in range(3)))

    async def all_rounds() -> None:
        for turn in range(rounds):
            await talk(100 * turn)

    asyncio.run(all_rounds())
    return written


def packed(written: WRITTEN, has_routes: bool = True) -> Sequences:
    whole = [np.concatenate([context, completion.tokens]) for context, completion in written]
    routes = [completion.aux[EXPERTS] for _, completion in written if has_routes and EXPERTS in completion.aux]
    positions = torch.cat([torch.arange(len(each)) for each in whole])
    experts = torch.from_numpy(np.concatenate(routes)) if routes else None
    return Sequences(torch.from_numpy(np.concatenate(whole)), positions, [len(each) for each in whole], "cpu", experts)


@torch.no_grad()
def said(model: Any, written: WRITTEN) -> list[Tensor]:
    """Logprobs of completions by transformers, one sequence at a time."""
    found = []
    for context, completion in written:
        tokens = torch.from_numpy(np.concatenate([context, completion.tokens]))
        scores = model(input_ids=tokens.unsqueeze(0), use_cache=False).logits[0].log_softmax(-1).double()
        found.append(scores[len(context) - 1 : -1].gather(1, tokens[len(context) :, None]).squeeze(1))
    return found


@torch.no_grad()
def trained(model: Any, written: WRITTEN, has_routes: bool = True) -> list[Tensor]:
    """The same by the trainer's forward pass, shared prefixes computed once."""
    scores = logits(model, packed(written, has_routes).hidden_states(model)).log_softmax(-1).double()
    found, start = [], 0
    for context, completion in written:
        end = start + len(context) + len(completion.tokens)
        tokens = torch.from_numpy(completion.tokens).unsqueeze(1)
        found.append(scores[start + len(context) - 1 : end - 1].gather(1, tokens).squeeze(1))
        start = end
    return found


def worst(ones: list[Tensor], others: list[Tensor]) -> float:
    return max(float((one - other).abs().max()) for one, other in zip(ones, others, strict=True))


def typical(ones: list[Tensor], others: list[Tensor]) -> float:
    """Root of the mean square; the worst of a hundred is luck."""
    return float((torch.cat(ones) - torch.cat(others)).square().mean().sqrt())


def opened(folder: Path, **fields: Any) -> TorchEngine:
    engine = TorchEngine(rows=5, **fields)
    engine.open(folder)
    return engine


@pytest.mark.parametrize("family", SOME)
def test_engine_trainer_and_transformers_agree(tmp_path: Path, family: str) -> None:
    agrees(save_state_model(tmp_path, family, spread=0.06), rounds=1)


@pytest.mark.slow
@pytest.mark.parametrize("family", RIGHT)
def test_they_agree_over_five_hundred_tokens(tmp_path: Path, family: str) -> None:
    agrees(save_state_model(tmp_path, family, spread=0.06, eos_token_id=None), rounds=3)


def agrees(folder: Path, rounds: int) -> None:
    engine = opened(folder)
    written = talked(engine, rounds)
    assert engine.num_reused > 150 and engine.num_generated >= (500 if rounds > 1 else 100)
    sampled = [torch.from_numpy(completion.logprobs).double() for _, completion in written]
    learned = trained(load_model(folder), written)
    exact = said(load_eager(folder, torch.float64), written)
    theirs = said(load_eager(folder), written)
    assert worst(sampled, learned) < 1e-5
    for ours in (sampled, learned):
        assert worst(ours, exact) < 1e-5
        assert typical(ours, exact) < 1.5 * typical(theirs, exact)


def gradients(model: Any, parts: list[WRITTEN]) -> list[Tensor]:
    """Of sums over hidden states, weighted by numbers that belong to each sequence."""
    model.zero_grad(set_to_none=True)
    for part in parts:
        states, start, total = packed(part).hidden_states(model), 0, torch.zeros(())
        for context, completion in part:
            size, seed = len(context) + len(completion.tokens), int(completion.tokens.sum())
            pull = torch.randn(size - 1, 32, generator=torch.Generator().manual_seed(seed))
            total = total + (states[start : start + size - 1] * pull).sum()
            start += size
        total.backward()
    return [each.grad.clone() for each in model.parameters() if each.grad is not None]


@pytest.mark.parametrize("family", SOME)
def test_gradients_flow_through_shared_prefixes(tmp_path: Path, family: str) -> None:
    """As if every sequence were computed by itself; with layers that are computed again, too."""
    model = load_model(save_state_model(tmp_path, family, spread=0.06))
    written = talked(opened(tmp_path))[:7]
    apart = gradients(model, [[each] for each in written])
    scale = max(float(each.abs().max()) for each in apart)
    assert packed(written).num_computed < 0.8 * sum(len(c) + len(w.tokens) for c, w in written)
    for is_again in (False, True):
        if is_again:
            compute_layers_again(model.train())
        together = gradients(model, [written])
        assert max(float((a - b).abs().max()) for a, b in zip(apart, together, strict=True)) < 2e-5 * scale


@pytest.mark.parametrize("family", SOME)
def test_weights_may_change_at_any_time(tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts are cut over steps, requests come, go and are aborted, and every token has its version's logprob."""
    monkeypatch.setattr("strop.generate.engines.cpu.torch_engine._STEP_TOKENS", 17)
    folders = [save_state_model(tmp_path / str(seed), family, seed=seed, eos_token_id=None) for seed in (0, 1)]
    engine, weights = opened(folders[0]), [parameters(load_model(folder)) for folder in folders]
    anything_at_once(engine, weights, [load_eager(folder) for folder in folders], seed=1)
    assert engine.num_reused > 0


@pytest.mark.parametrize("keep_cache", [False, True])
def test_states_stay_over_an_update_that_keeps_keys(tmp_path: Path, keep_cache: bool) -> None:
    """Tokens of the new version are then sampled behind the old one's states: unlike its own forward pass."""
    folders = [save_state_model(tmp_path / str(seed), "qwen3_5_text", seed=seed, eos_token_id=None) for seed in (0, 1)]
    engine = opened(folders[0], keep_cache=keep_cache)

    async def updated() -> Completion:
        waiting = asyncio.create_task(engine.sample(np.arange(4, 30), Sampling(max_tokens=30), 0))
        while engine.num_generated < 10:
            await asyncio.sleep(0)
        await engine.load(WeightVersion(1, location=str(folders[1])))
        return await waiting

    completion = asyncio.run(updated())
    is_new = completion.versions == 1
    assert 0 < is_new.sum() < 30
    own = said(load_eager(folders[1]), [(np.arange(4, 30), completion)])[0].numpy()
    off = np.abs(own - completion.logprobs)[is_new].max()
    assert off > 1e-3 if keep_cache else off < 2e-5


def test_routes_are_replayed_where_there_is_no_fast_path(tmp_path: Path) -> None:
    """Experts that a token was sampled with are taken again, whatever the router says now."""
    model = load_model(save_state_model(tmp_path, "gpt_oss"))
    written = talked(opened(tmp_path))
    routes = written[0][1].aux[EXPERTS]
    assert routes.shape == (len(written[0][0]) + len(written[0][1].tokens), 4 * 3)
    assert sorted(np.unique(routes)) == list(range(7))  # 0: of the last token nothing is known
    before = trained(model, written)
    with torch.no_grad():
        for layer in model.base_model.layers:
            layer.mlp.router.bias.add_(torch.randn(6) * 1e-3)  # as rounding might
    free = worst(before, trained(model, written, has_routes=False))
    assert worst(before, trained(model, written, has_routes=True)) < 2e-2 < free


def test_rows_without_room_for_their_states_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(save_state_model(tmp_path, "qwen3_5_text"))
    inputs, scanned = 3 * (2 * 2 + 4) * 8 * 4, 3 * 4 * 8 * 8  # numbers in three layers: of convolutions, and of scans
    assert state_bytes(model) == 4 * (inputs + scanned)
    pages = (sum(each.nbytes for each in model.parameters()) + 2 * 10 * 2 * state_bytes(model)) / 4096
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": pages}.__getitem__)
    check_room(model, 10, "cpu")
    with pytest.raises(ConfigurationError, match=r"rows=11 need .* GB may be taken of cpu: rows=10 fit"):
        check_room(model, 11, "cpu")


@pytest.mark.parametrize("family", ["mamba2", "nemotron_h", "gpt_oss", "qwen3_5_text"])
def test_half_precision_runs(tmp_path: Path, family: str) -> None:
    """States of scans are in float32 whatever the weights are, and so may be the residual stream."""
    folder = save_state_model(tmp_path, family)
    written = talked(opened(folder, dtype="bfloat16"))
    sampled = [torch.from_numpy(completion.logprobs).double() for _, completion in written]
    assert typical(sampled, said(load_eager(folder), written)) < 0.1


def test_states_and_masks_to_fill_do_not_go_together(tmp_path: Path) -> None:
    model, tokens = load_model(save_state_model(tmp_path, "lfm2")), torch.arange(4, 8)
    with pytest.raises(RuntimeError, match="read from left to right"):
        hidden_states(model, tokens, torch.arange(4), Packed([4], is_mutual=True))


def test_all_weights_have_the_dtype_that_is_asked_for(tmp_path: Path) -> None:
    """Transformers keeps A_log in float32; what an engine holds is compared byte by byte with what was sent."""
    model = load_model(save_state_model(tmp_path / "model", "olmo_hybrid"), torch.bfloat16)
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
