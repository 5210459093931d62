"""Decoding with a draft: the very same tokens, sooner; and what the draft is taught."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from strop.errors import ConfigurationError
from strop.generate.engines.draft import Draft, Ends, Missed, Trace
from strop.generate.engines.paged import PagedEngine
from strop.machines import Stop, WeightVersion
from strop.models.model import load_model, parameters
from strop.types import Sampling
from tests.generate.engines.asking import ask, asked, prompts_of, worst_difference
from tests.models import CONTEXT, load_reference, save_tiny_model

LENGTHS = [3, 9, 30, 1, 17, 22, 5, 9, 40, 2]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    families = ("llama", "qwen3", "gemma2")
    found = {family: save_tiny_model(tmp_path_factory.mktemp(family), family, head_dim=16) for family in families}
    endless = tmp_path_factory.mktemp("endless")
    return found | {"endless": save_tiny_model(endless, "llama", 1, eos_token_id=None, head_dim=16)}


def paged(folder: Path, draft: Draft | None, rows: int = 4, **fields: Any) -> Any:
    engine = PagedEngine(**{"rows": rows, "device": "cpu", "dtype": "float32", "steps": 3, "draft": draft, **fields})
    engine.open(folder)
    return engine


def looks(draft: Draft) -> float:
    return draft.learn([])["draft/tokens_per_look"]


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(max_tokens=30),
        Sampling(temperature=0.7, top_k=5, top_p=0.8, max_tokens=12),
        Sampling(temperature=0, max_tokens=9),
        Sampling(max_tokens=1),
    ],
)
def test_the_very_same_tokens(folders: dict[str, Path], family: str, sampling: Sampling) -> None:
    prompts = prompts_of(LENGTHS)
    draft = Draft(tokens=3, every=1)
    quick, slow = paged(folders[family], draft), paged(folders[family], None)
    for _ in range(2):  # the second time it has learned something
        pairs = zip(asked(quick, prompts, sampling), asked(slow, prompts, sampling), strict=True)
        for one, other in pairs:
            assert one.tokens.tolist() == other.tokens.tolist() and one.stop is other.stop
            np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)
    assert 1 <= looks(draft) <= 4


def test_keys_are_never_written_beyond_what_a_request_holds(folders: dict[str, Path]) -> None:
    """Room for two contexts only, prompts that share pages, and limits in the middle of a guess."""
    prompts = prompts_of([16] * 7)
    for prompt in prompts[1:]:
        prompt[:16] = prompts[0]
    prompts += prompts_of([CONTEXT - 3])
    engine = paged(folders["endless"], Draft(tokens=5, every=1), rows=8, cache_tokens=CONTEXT + 32)
    reference = load_reference(folders["endless"])
    for prompt, one in zip(prompts, asked(engine, prompts, Sampling(max_tokens=11)), strict=True):
        assert len(one.tokens) == min(11, CONTEXT - len(prompt)) and one.stop is Stop.LENGTH
        assert worst_difference(reference, prompt, one) < 1e-4


def test_a_stop_string_cuts_where_it_is_complete(folders: dict[str, Path]) -> None:
    engine, prompt = paged(folders["endless"], Draft(tokens=4, every=1)), prompts_of([5])[0]
    free = asyncio.run(engine.sample(prompt, Sampling(max_tokens=40), 0))
    text = "".join(chr(ord("a") + t - 4) if 4 <= t < 30 else "#" for t in free.tokens)
    place = next(i for i in range(5, 39) if "#" not in text[i : i + 2] and text.find(text[i : i + 2]) == i)
    stopped = asyncio.run(engine.sample(prompt, Sampling(max_tokens=40, stop=(text[place : place + 2],)), 0))
    assert stopped.tokens.tolist() == free.tokens[: place + 2].tolist() and stopped.stop is Stop.STOP


def test_many_sequences_are_decoded_without_guesses(folders: dict[str, Path]) -> None:
    draft = Draft(rows=2)
    engine = paged(folders["endless"], draft)
    asked(engine, prompts_of([4] * 4), Sampling(max_tokens=9))
    assert draft.learn([]) == {}  # four were decoded together, from the first token to the last
    asked(engine, prompts_of([4] * 2), Sampling(max_tokens=9))
    assert looks(draft) >= 1


@pytest.fixture(scope="module")
def memoryless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose state depends on the last token alone: its attention and feed-forward give nothing."""
    apart = {"eos_token_id": None, "head_dim": 16, "tie_word_embeddings": False}
    folder = save_tiny_model(tmp_path_factory.mktemp("memoryless"), "llama", spread=10.0, **apart)
    model = load_model(folder, torch.float32, "cpu")
    with torch.no_grad():
        for layer in model.base_model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    model.save_pretrained(folder)
    return folder


def test_a_draft_that_knows_the_model_saves_four_looks_of_five(
    memoryless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = Draft(tokens=4, every=1000)
    engine = paged(memoryless, draft, context=120)
    norm, embedding = engine._model.base_model.norm, engine._model.get_input_embeddings()
    monkeypatch.setattr(draft, "next_state", lambda state, tokens: norm(embedding(tokens.long())).detach())
    prompts, sampling = prompts_of([4] * 3), Sampling(max_tokens=50)
    found = asked(engine, prompts, sampling)
    assert looks(draft) == 5
    for one, other in zip(found, asked(paged(memoryless, None, context=120), prompts, sampling), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
    monkeypatch.setattr(draft, "next_state", lambda state, tokens: -norm(embedding(tokens.long())).detach())
    asked(engine, prompts, Sampling(temperature=0, max_tokens=50))  # the least likely in place of the likeliest
    assert looks(draft) == 1  # a guess that never holds costs a look for every token


def test_it_learns_what_is_sampled(memoryless: Path) -> None:
    learning, still = Draft(every=1), Draft(every=1000)
    found = {}
    for draft in (learning, still):
        engine = paged(memoryless, draft, rows=8)
        for turn in range(10):
            asyncio.run(ask(engine, prompts_of([4] * 8), Sampling(max_tokens=40), range(8 * turn, 8 * turn + 8)))
            found[draft.every, turn] = looks(draft)
    assert found[1000, 9] < 1.3 and found[1, 9] > found[1000, 9] + 0.5, found


def test_new_weights_empty_the_pool_and_the_tokens_are_theirs(folders: dict[str, Path]) -> None:
    draft = Draft(every=1)
    engine = paged(folders["llama"], draft)
    prompts, sampling = prompts_of([5, 8]), Sampling(max_tokens=12)
    asked(engine, prompts, sampling)
    assert draft._traces
    other = parameters(load_model(folders["endless"], torch.float32, "cpu"))
    asyncio.run(engine.load(WeightVersion(1, location=other)))
    assert not draft._traces and not draft._missed
    reference = load_reference(folders["endless"])
    for prompt, one in zip(prompts, asked(engine, prompts, sampling), strict=True):
        assert worst_difference(reference, prompt, one) < 1e-4
        assert set(one.versions.tolist()) == {1}


@pytest.mark.parametrize("cap", [None, 1.5])
def test_what_a_lesson_minimises(cap: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against plain loops in float64: uneven traces, four guesses deep, and guesses that were not taken."""
    torch.manual_seed(0)
    embedding, head = torch.randn(7, 6), torch.randn(7, 6)
    draft = Draft(tokens=3, discarded=0.3)
    draft.open(Ends(embedding, head, cap))
    for parameter in draft._next.parameters():  # type: ignore[union-attr]
        parameter.data.normal_(0, 0.5)
    sizes = [5, 2, 9]
    traces = [Trace(torch.randn(size, 6), torch.randint(7, (size,))) for size in sizes]
    missed = Missed(torch.randn(4, 6), torch.tensor([0, 5, 3, 0]), torch.randn(4, 6))
    none = Missed(torch.randn(2, 6), torch.full((2,), -1), torch.randn(2, 6))  # of slots that missed nothing
    starts = torch.randint(sum(sizes), (256,), generator=torch.Generator().manual_seed(0))

    weights = {name: value.double() for name, value in draft._next.state_dict().items()}  # type: ignore[union-attr]

    def step(state: torch.Tensor, token: int) -> torch.Tensor:
        parts = [each / (each.square().mean() + 1e-6).sqrt() for each in (state, embedding[token].double())]
        inner = F.silu(weights["inner.weight"] @ torch.cat(parts) + weights["inner.bias"])
        return state + weights["outer.weight"] @ inner + weights["outer.bias"]

    def apart(state: torch.Tensor, guess: torch.Tensor) -> float:
        scores = [head.double() @ each for each in (state, guess)]
        one, other = ((each if cap is None else cap * torch.tanh(each / cap)).softmax(0) for each in scores)
        return float((one * (one.log() - other.log())).sum())

    places = [(trace, at) for trace in traces for at in range(len(trace.tokens))]
    total = 0.0
    for depth in range(3):
        found = []
        for start in starts.tolist():
            trace, at = places[start]
            if at + depth + 1 < len(trace.tokens):
                state = trace.states[at].double()
                for ahead in range(depth + 1):
                    state = step(state, int(trace.tokens[at + ahead]))
                found.append(apart(trace.states[at + depth + 1].double(), state))
        total += 0.8**depth * sum(found) / len(found)
    pairs = zip(*missed, strict=True)
    total += 0.3 * np.mean([apart(c.double(), step(a.double(), int(b))) for a, b, c in pairs])
    given = Missed(*(torch.cat((one, other)) for one, other in zip(none, missed, strict=True)))
    assert float(draft.lesson(traces, given)) == pytest.approx(total, rel=1e-4)
    monkeypatch.setattr(draft, "next_state", lambda state, tokens: state)
    still = Trace(torch.ones(6, 6), torch.zeros(6, dtype=torch.int64))
    assert float(draft._sampled([still])) == 0  # a draft that says what the model says has nothing to learn


class Counting(Draft):
    """Notes how much each lesson is drawn from."""

    def lesson(self, traces: Iterable[Trace], missed: Missed) -> torch.Tensor:
        self.__dict__.setdefault("lessons", []).append((len(list(traces)), len(missed.tokens)))
        return torch.zeros(())


def test_a_lesson_every_so_many_completions_from_the_newest() -> None:
    draft = Counting(every=3, pool=5)
    draft.open(Ends(torch.zeros(3, 2), torch.zeros(3, 2)))
    none = Missed(torch.zeros(1, 2), torch.full((1,), -1), torch.zeros(1, 2))
    for size in (2, 1, 4, 2, 0, 3, 2, 2, 2, 2):  # one token alone says nothing of what follows it
        draft.take(Trace(torch.zeros(size, 2), torch.zeros(size, dtype=torch.int64)), none)
    assert draft.__dict__["lessons"] == [(3, 3), (5, 5)]


def test_what_is_not_taught_stays() -> None:
    """Weights do not decay: behind an outer layer of zeros the inner one has no gradient, and is as it was."""
    draft = Draft()
    draft.open(Ends(torch.randn(7, 6), torch.randn(7, 6)))
    assert draft._next is not None
    before = draft._next.inner.weight.clone()
    traces = [Trace(torch.randn(6, 6), torch.arange(6))]
    draft.lesson(traces, Missed(torch.ones(1, 6), torch.full((1,), -1), torch.ones(1, 6)))
    assert torch.equal(draft._next.inner.weight, before) and bool(draft._next.outer.weight.any())


def test_a_model_that_caps_its_scores_tells_its_draft(folders: dict[str, Path]) -> None:
    draft = Draft()
    engine = paged(folders["gemma2"], draft)
    assert draft._ends.cap == engine._model.config.final_logit_softcapping is not None


def test_figures_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="tokens, rows, width, every and pool >= 1"):
        Draft(tokens=0)


class Noting(Draft):
    """Remembers every trace and every missed guess that it is given."""

    def take(self, trace: Trace, missed: Missed) -> None:
        self.__dict__.setdefault("given", []).append((trace, Missed(*(each.clone() for each in missed))))
        super().take(trace, missed)


def states_of(reference: Any, tokens: list[int]) -> torch.Tensor:
    """The model's normalised state after each of these tokens, by transformers."""
    with torch.no_grad():
        found: torch.Tensor = reference.base_model(input_ids=torch.tensor([tokens])).last_hidden_state[0]
    return found


def test_lessons_are_of_states_that_transformers_computes_too(folders: dict[str, Path]) -> None:
    """Few pages: requests leave and come back, find pages of theirs and compute those tokens' states no more."""
    draft = Noting(tokens=3, every=1000)
    engine = paged(folders["endless"], draft, rows=8, cache_tokens=16 * 14, steps=1)
    reference, prompts = load_reference(folders["endless"]), prompts_of([17, 3, 9, 20, 6, 11])
    replies = asked(engine, prompts, Sampling(max_tokens=50, stop=("never so",)))
    whole = [[*prompt.tolist(), *reply.tokens.tolist()] for prompt, reply in zip(prompts, replies, strict=True)]
    given = draft.__dict__["given"]
    assert len(given) > len(prompts), "some left before they were done"
    assert sum(len(trace.tokens) for trace, _ in given) <= 6 * 50, "each token is given once"
    for trace, _ in given:
        told, near = trace.tokens.tolist(), []
        for tokens in whole:
            starts = [at for at in range(1, len(tokens)) if tokens[at : at + len(told)] == told]
            near += [states_of(reference, tokens)[at - 1 : at - 1 + len(told)] for at in starts]
        assert min(float((each - trace.states).abs().max()) for each in near) < 1e-3


def test_a_guess_beyond_the_limit_is_no_lesson(folders: dict[str, Path]) -> None:
    """The model looks at no token that a request cannot write, so it has no state after one."""
    draft, prompt = Noting(tokens=4, every=1000), prompts_of([6])[0]
    engine, reference = paged(folders["endless"], draft), load_reference(folders["endless"])
    reply = asyncio.run(engine.sample(prompt, Sampling(max_tokens=9), 0))
    tokens = [*prompt.tolist(), *reply.tokens.tolist()]
    [(_, missed)] = draft.__dict__["given"]
    guess = int(missed.tokens[0])
    after = [states_of(reference, [*tokens[:end], guess])[-1] for end in range(len(prompt), len(tokens))]
    assert min(float((each - missed.after[0]).abs().max()) for each in after) < 1e-3


def test_it_counts_on_after_many_tokens() -> None:
    draft = Draft()
    draft.open(Ends(torch.zeros(3, 2), torch.zeros(3, 2)))
    draft.count(torch.tensor(2.0**24), torch.tensor(2.0**24))
    draft.learn([])
    draft.count(torch.tensor(1.0), torch.tensor(3.0))
    assert looks(draft) == 3
