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

from strop.backends import Stop, WeightVersion
from strop.errors import ConfigurationError
from strop.generate.engines.paged import speculative_step as ahead
from strop.generate.engines.paged.draft_model import Draft, Ends, Missed, Trace
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.kernels.decode import Plain
from strop.models.model import load_model, parameters
from strop.types import Sampling
from tests.generate.engines.asking import ask, asked, prompts_of, worst_difference
from tests.tiny_models import CONTEXT, load_reference, save_tiny_model

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
@pytest.mark.parametrize("races", [False, True])
def test_the_very_same_tokens(folders: dict[str, Path], family: str, sampling: Sampling, races: bool) -> None:
    prompts = prompts_of(LENGTHS)
    draft = Draft(tokens=3, every=1)
    quick, slow = paged(folders[family], draft, races=races), paged(folders[family], None, races=races)
    for _ in range(2):  # the second time it has learned something
        pairs = zip(asked(quick, prompts, sampling), asked(slow, prompts, sampling), strict=True)
        for one, other in pairs:
            assert one.tokens.tolist() == other.tokens.tolist() and one.stop is other.stop
            np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)
    assert 1 <= looks(draft) <= 4


@pytest.mark.parametrize(("count", "is_shared"), [(4, False), (17, True)])
def test_tokens_of_few_sequences_read_keys_one_by_one(
    folders: dict[str, Path], count: int, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so few, one program for each sequence and head would leave a GPU idle."""
    engine = paged(folders["endless"], Draft(tokens=3), rows=17)
    runs, states = [], engine._board._llama.states

    def noted(tokens: torch.Tensor, where: Any, cache: Any) -> torch.Tensor:
        runs.append((len(tokens), where.runs))
        return states(tokens, where, cache)

    monkeypatch.setattr(engine._board._llama, "states", noted)
    asked(engine, prompts_of([9] * count), Sampling(max_tokens=9))
    looked = [each for size, each in runs if size == 4 * count]
    assert looked and all((each is not None) == is_shared for each in looked)


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
    monkeypatch.setattr(draft, "guess", lambda state, tokens, _: norm(embedding(tokens.long())).detach())
    prompts, sampling = prompts_of([4] * 3), Sampling(max_tokens=50)
    found = asked(engine, prompts, sampling)
    assert looks(draft) == 5
    assert {int(each.tokens) for each in draft._missed} == {-1}
    asked(engine, prompts, Sampling(max_tokens=3))  # a limit in the middle of the guesses
    assert {int(each.tokens) for each in draft._missed} == {-1}
    draft.learn([])
    for one, other in zip(found, asked(paged(memoryless, None, context=120), prompts, sampling), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
    asked(engine, prompts, Sampling(top_k=1, max_tokens=50))
    assert looks(draft) == 5  # guesses have the limits of what they guess
    monkeypatch.setattr(draft, "guess", lambda state, tokens, _: -norm(embedding(tokens.long())).detach())
    assert bool((engine._board.ahead._missed.tokens[:-1] == -1).all()), "who sits there next has missed nothing"
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
    engine._board.ahead._missed.tokens.fill_(3)
    asyncio.run(engine.load(WeightVersion(1, location=other)))
    assert not draft._traces and not draft._missed and set(engine._board.ahead._missed.tokens.tolist()) == {-1}
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
    starts = torch.randint(sum(sizes), (1024,), generator=torch.Generator().manual_seed(0))

    weights = {name: value.double() for name, value in draft._next.state_dict().items()}  # type: ignore[union-attr]

    def step(state: torch.Tensor, token: int) -> torch.Tensor:
        parts = [each / (each.square().mean() + 1e-6).sqrt() for each in (state, embedding[token].double())]
        gate, up = (weights["inner.weight"] @ torch.cat(parts)).chunk(2)
        return state + weights["outer.weight"] @ (F.silu(gate) * up)

    def apart(state: torch.Tensor, guess: torch.Tensor) -> float:
        scores = [head.double() @ each for each in (state, guess)]
        one, other = ((each if cap is None else cap * torch.tanh(each / cap)).softmax(0) for each in scores)
        return float((one * (one.log() - other.log())).sum())

    places = [(trace, at) for trace in traces for at in range(len(trace.tokens))]
    lengths = [trace.states[at].double().square().sum() for trace, at in (places[each] for each in starts.tolist())]
    total, length = 0.0, float(sum(lengths)) / len(lengths)
    for depth in range(3):
        found, far = [], []
        for number, start in enumerate(starts.tolist()):
            trace, at = places[start]
            if at + depth + 1 < len(trace.tokens):
                state, aim = trace.states[at].double(), trace.states[at + depth + 1].double()
                for ahead in range(depth + 1):
                    state = step(state, int(trace.tokens[at + ahead]))
                far.append(float((state - aim).square().sum()))
                found += [apart(aim, state)] if number < 256 else []  # distributions of a quarter are compared
        total += 0.8**depth * (sum(found) / len(found) + 10 * sum(far) / len(far) / length)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_guesses_with_what_it_has_learned(dtype: torch.dtype) -> None:
    """In the model's own type, and anew after every lesson."""
    torch.manual_seed(0)
    draft, ends = Draft(tokens=2), Ends(torch.randn(7, 6).to(dtype), torch.randn(7, 6).to(dtype))
    draft.open(ends)
    state, tokens = torch.randn(5, 6), torch.arange(5)
    traces = [Trace(torch.randn(6, 6).to(dtype), torch.arange(6))]
    before = draft.guess(state, tokens, Plain())
    assert torch.equal(before, state)
    for _ in range(20):
        draft.lesson(traces, Missed(torch.ones(1, 6), torch.full((1,), -1), torch.ones(1, 6)))
    assert draft._next is not None
    for weight, mean in zip(draft._next.parameters(), draft._mean, strict=True):
        weight.data.copy_(mean)
    known, guessed = draft.next_state(state, tokens), draft.guess(state, tokens, Plain())
    moved = (known - state).norm()
    assert moved > 0.1 and (guessed - known).norm() / moved < (1e-5 if dtype == torch.float32 else 0.03)


def test_guesses_are_made_with_a_mean_of_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all of them at first; from the tenth lesson on the newest counts a tenth."""
    draft = Draft(tokens=2)
    draft.open(Ends(torch.randn(7, 6), torch.randn(7, 6)))
    assert draft._next is not None
    weights = list(draft._next.parameters())
    history = [[each.detach().clone() for each in weights]]
    for number in range(30):
        for each in weights:
            each.data.normal_()
        draft._average(weights)
        history.append([each.detach().clone() for each in weights])
        if number == 4:
            for place, mean in enumerate(draft._mean):
                torch.testing.assert_close(mean, torch.stack([each[place] for each in history]).mean(0))
    late = [draft._mean[0].clone(), draft._rounded[0].clone()]
    weights[0].data.fill_(3.0)
    draft._average(weights)
    assert torch.equal(late[0], late[1])
    torch.testing.assert_close(draft._mean[0], late[0] * 0.9 + 0.3)
    assert torch.equal(draft._rounded[0], draft._mean[0])


@pytest.mark.parametrize(("width", "rate"), [(600, 1e-3), (8, 1e-2)])
def test_wider_models_teach_more_slowly(width: int, rate: float) -> None:
    draft = Draft(width=1)
    draft.open(Ends(torch.zeros(3, width), torch.zeros(3, width)))
    assert draft._optimizer.param_groups[0]["lr"] == pytest.approx(rate)
    assert draft._optimizer.param_groups[0]["betas"] == (0.9, 0.95)


def test_a_draft_begins_alike_and_leaves_probability_to_others() -> None:
    ends = Ends(torch.randn(7, 6), torch.randn(7, 6))
    begun = []
    for seed in (3, 4):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        draft = Draft()
        draft.open(ends)
        assert torch.equal(torch.get_rng_state(), before) and draft._next is not None
        begun.append(draft._next.inner.weight.detach().clone())
    assert torch.equal(*begun) and bool(begun[0].any())


def test_each_lesson_has_its_own_gradient() -> None:
    """Whoever asks for it has gradients switched off."""
    draft = Draft(tokens=2)
    draft.open(Ends(torch.randn(7, 6), torch.randn(7, 6)))
    assert draft._next is not None
    draft._next.outer.weight.data.normal_()
    draft._optimizer.param_groups[0]["lr"] = 0.0
    traces, none = [Trace(torch.randn(6, 6), torch.arange(6))], torch.ones(1, 6)
    found = []
    for _ in range(2):
        draft._probability.manual_seed(5)
        with torch.no_grad():
            draft.lesson(traces, Missed(none, torch.full((1,), -1), none))
        assert draft._next.inner.weight.grad is not None
        found.append(draft._next.inner.weight.grad.clone())
    assert torch.equal(*found) and bool(found[0].any())


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


def test_metrics_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="tokens, rows, width, every and pool >= 1"):
        Draft(tokens=0)
    with pytest.raises(ConfigurationError, match="at most 64 tokens ahead, got 65"):
        Draft(tokens=65)


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
    completions = asked(engine, prompts, Sampling(max_tokens=50, stop=("never so",)))
    whole = [
        [*prompt.tolist(), *completion.tokens.tolist()] for prompt, completion in zip(prompts, completions, strict=True)
    ]
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
    completion = asyncio.run(engine.sample(prompt, Sampling(max_tokens=9), 0))
    tokens = [*prompt.tolist(), *completion.tokens.tolist()]
    [(_, missed)] = draft.__dict__["given"]
    assert [len(each) for each in missed] == [1, 1, 1]  # of its own slot alone
    guess = int(missed.tokens[0])
    after = [states_of(reference, [*tokens[:end], guess])[-1] for end in range(len(prompt), len(tokens))]
    assert min(float((each - missed.after[0]).abs().max()) for each in after) < 1e-3


def test_the_last_place_that_can_be_written_is_looked_at(folders: dict[str, Path]) -> None:
    draft = Noting(tokens=3, every=1000)
    asked(paged(folders["endless"], draft), prompts_of([5, 6, 7, 8]), Sampling(max_tokens=1))
    assert any(int(missed.tokens) >= 0 for _, missed in draft.__dict__["given"])


def test_who_has_ended_misses_nothing(folders: dict[str, Path]) -> None:
    engine = paged(folders["endless"], Draft(tokens=3, every=1000))
    asyncio.run(engine.sample(prompts_of([5])[0], Sampling(max_tokens=9), 0))
    board = engine._board
    slot = int((board.sheet.lengths > 1).nonzero()[0])
    board.sheet.limits[slot] += 20  # as if a token had ended it, not its limit
    with torch.inference_mode():
        for _ in range(4):
            board._step(torch.tensor([slot]), True, False)
    assert int(board.ahead._missed.tokens[slot]) == -1


def test_states_beyond_a_stop_string_are_not_taken_for_those_before(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot that has run on has overwritten as many of its oldest states."""
    monkeypatch.setattr(ahead, "_WINDOW", 16)
    draft, prompt = Noting(tokens=3, every=1000), prompts_of([6])[0]
    engine = paged(folders["endless"], draft, steps=3)
    free = asyncio.run(engine.sample(prompt, Sampling(max_tokens=60), 0)).tokens.tolist()
    text = "".join(chr(ord("a") + t - 4) if 4 <= t < 30 else "#" for t in free)
    place = next(i for i in range(25, 50) if "#" not in text[i : i + 2] and text.find(text[i : i + 2]) == i)
    completion = asyncio.run(engine.sample(prompt, Sampling(max_tokens=60, stop=(text[place : place + 2],)), 0))
    trace, _ = draft.__dict__["given"][-1]
    tokens, count = [*prompt.tolist(), *completion.tokens.tolist()], len(trace.tokens)
    assert count < 11 and trace.tokens.tolist() == tokens[len(tokens) - count :]
    states = states_of(load_reference(folders["endless"]), tokens)[-count - 1 : -1]
    torch.testing.assert_close(trace.states, states, atol=1e-3, rtol=0)


def test_it_counts_on_after_many_tokens() -> None:
    draft = Draft()
    draft.open(Ends(torch.zeros(3, 2), torch.zeros(3, 2)))
    draft.count(torch.tensor([2.0**24]), torch.tensor([2.0**24]))
    draft.learn([])
    draft.count(torch.tensor([True, False]), torch.tensor([3, 0]))
    assert looks(draft) == 3


def test_opened_again_it_counts_from_nothing() -> None:
    draft = Draft(every=2)
    for looked, wrote in ((10.0, 20.0), (12.0, 12.0)):
        draft.open(Ends(torch.ones(3, 2), torch.ones(3, 2)))
        none = Missed(torch.zeros(1, 2), torch.full((1,), -1), torch.zeros(1, 2))
        draft.take(Trace(torch.ones(2, 2), torch.zeros(2, dtype=torch.int64)), none)
        assert draft._new == 1 and draft._lessons == 0
        draft._lessons = 7
        draft.count(torch.tensor([looked]), torch.tensor([wrote]))
        assert looks(draft) == wrote / looked
        draft.count(torch.tensor([True, True]), torch.tensor([2, 4]))
        assert looks(draft) == 3  # since the last step


def test_guesses_begin_with_the_models_own_state(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The state before the last token, at every step and over more tokens than states are kept."""
    monkeypatch.setattr(ahead, "_WINDOW", 16)
    draft, prompt, begun = Draft(tokens=2, every=1000), prompts_of([6])[0], []
    engine, guesses = paged(folders["endless"], draft, rows=1), ahead.Ahead._guesses

    def noted(self: Any, slots: torch.Tensor, last: torch.Tensor, places: torch.Tensor, *more: Any) -> torch.Tensor:
        given: list[torch.Tensor] = []
        with pytest.MonkeyPatch.context() as patch:
            known = draft.guess
            patch.setattr(draft, "guess", lambda state, *rest: given.append(state) or known(state, *rest))
            found = guesses(self, slots, last, places, *more)
        begun.append((int(places[0, 0]), given[0][0].clone()))
        return found

    monkeypatch.setattr(ahead.Ahead, "_guesses", noted)
    completion = asyncio.run(engine.sample(prompt, Sampling(max_tokens=40), 0))
    states = states_of(load_reference(folders["endless"]), [*prompt.tolist(), *completion.tokens.tolist()])
    assert len(begun) > 10
    for length, state in begun:
        torch.testing.assert_close(state, states[length - 2], atol=1e-3, rtol=0)


@pytest.mark.parametrize("stop", [(), ("never so",)])
def test_the_newest_states_are_kept(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, stop: tuple[str, ...]
) -> None:
    """Of a long completion those that nothing was written over: not even by guesses behind its end."""
    monkeypatch.setattr(ahead, "_WINDOW", 16)
    draft, prompt = Noting(tokens=3, every=1000), prompts_of([6])[0]
    engine = paged(folders["endless"], draft)
    completion = asyncio.run(engine.sample(prompt, Sampling(max_tokens=40, stop=stop), 0))
    tokens = [*prompt.tolist(), *completion.tokens.tolist()]
    [(trace, _)] = draft.__dict__["given"]
    assert len(trace.tokens) == 16 - 3 - 2 and trace.tokens.tolist() == tokens[-11:]
    wanted = states_of(load_reference(folders["endless"]), tokens)[-12:-1]
    torch.testing.assert_close(trace.states, wanted, atol=1e-3, rtol=0)


def test_states_are_kept_in_what_the_model_computes_in(folders: dict[str, Path]) -> None:
    draft = Noting(every=1)
    engine = paged(folders["llama"], draft, dtype="bfloat16")
    assert len(asyncio.run(engine.sample(prompts_of([5])[0], Sampling(max_tokens=9), 0)).tokens) > 1
    [(trace, _)] = draft.__dict__["given"]
    assert trace.states.dtype == torch.bfloat16


def test_the_first_guess_that_did_not_hold_is_what_was_missed(folders: dict[str, Path]) -> None:
    engine = paged(folders["llama"], Draft(tokens=3))
    guesses, states = torch.arange(9).view(3, 3) + 4, torch.randn(3, 4, 16)
    engine._board.ahead._miss(torch.tensor([2, 0, 1]), guesses, states, torch.tensor([0, 1, 2]))
    missed = engine._board.ahead._missed
    for row, (slot, right) in enumerate(((2, 0), (0, 1), (1, 2))):
        assert missed.tokens[slot] == guesses[row, right]
        assert torch.equal(missed.before[slot], states[row, right])
        assert torch.equal(missed.after[slot], states[row, right + 1])


@pytest.mark.parametrize(("spread", "size"), [(0.1, 0.02), (3.0, 0.5)])  # gradients below and above the cut
def test_the_gradient_of_a_lesson(spread: float, size: float) -> None:
    """Against autograd over plain loops in float64; what the model says is a target, and is not pulled."""
    torch.manual_seed(1)
    embedding, head = torch.randn(5, 4), torch.randn(5, 4) * spread
    draft = Draft(tokens=2, discarded=0.3)
    draft.open(Ends(embedding, head))
    assert draft._next is not None
    for parameter in draft._next.parameters():
        parameter.data.normal_(0, size)
    free = {name: each.detach().double().requires_grad_() for name, each in draft._next.named_parameters()}
    trace, start = Trace(torch.randn(4, 4), torch.randint(5, (4,))), torch.randint(4, (1024,), generator=_seeded())
    missed = Missed(torch.randn(2, 4), torch.tensor([3, 1]), torch.randn(2, 4))

    def step(state: torch.Tensor, token: int) -> torch.Tensor:
        parts = [each / (each.square().mean() + 1e-6).sqrt() for each in (state, embedding[token].double())]
        gate, up = (free["inner.weight"] @ torch.cat(parts)).chunk(2)
        return state + free["outer.weight"] @ (F.silu(gate) * up)

    def apart(state: torch.Tensor, guess: torch.Tensor) -> torch.Tensor:
        one, other = (head.double() @ each for each in (state, guess))
        return (one.softmax(0) * (one.log_softmax(0) - other.log_softmax(0))).sum()

    states, tokens = trace.states.double(), trace.tokens.tolist()
    one = {at: (states[at + 1], step(states[at], tokens[at])) for at in range(3)}
    two = {at: (states[at + 2], step(one[at][1], tokens[at + 1])) for at in range(2)}

    def mean(found: dict[int, tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        read = [apart(*found[at]) for at in start[:256].tolist() if at in found]
        far = [(b - a).square().sum() for a, b in (found[at] for at in start.tolist() if at in found)]
        return sum(read) / len(read) + 10 * sum(far) / len(far) / states[start].square().sum(1).mean()

    wrong = [apart(c.double(), step(a.double(), int(b))) for a, b, c in zip(*missed, strict=True)]
    loss = mean(one) + 0.8 * mean(two) + 0.3 * sum(wrong) / 2
    torch.autograd.backward(loss)
    gradients = [each.grad for each in free.values()]
    norm = float(torch.cat([each.flatten() for each in gradients]).norm())
    assert (norm > 2.5) == (spread > 1)
    draft.lesson([trace], missed)
    for parameter, gradient in zip(draft._next.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad.double(), gradient * min(1, 2.5 / norm), rtol=1e-3, atol=1e-4)


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)
