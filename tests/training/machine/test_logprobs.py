"""Packed, chunked logprobs are those of a plain forward pass over one sequence at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from strop.errors import ConfigurationError, ModelError
from strop.models.layers.attention import Packed
from strop.models.loading import prove_forward
from strop.models.model import hidden_states, load_model, probe
from strop.training.batch import Batch, Output
from strop.training.machine.logprobs import PolicyOutput
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logits
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics
from tests.training.tiny import VOCABULARY, make_rollout, make_turn, random_groups, save_gpt2, save_llama


def output_of(model: Any, batch: Batch, chunk: int) -> PolicyOutput:
    plan = Packed(batch.segments.bincount().tolist())
    return PolicyOutput(model, hidden_states(model, batch.tokens, batch.positions, plan), batch, chunk)


def plain(model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logprobs and entropy [T], with transformers' own attention, one segment at a time."""
    logprobs, entropy = torch.zeros(2, len(batch.tokens))
    for segment in batch.segments.unique():
        rows = (batch.segments == segment).nonzero().squeeze(1)
        scores = model(input_ids=batch.tokens[rows].unsqueeze(0), use_cache=False).logits[0, :-1]
        own = (scores / batch.temperature[rows[1:], None]).log_softmax(-1)
        logprobs[rows[1:]] = own.gather(1, batch.tokens[rows[1:], None]).squeeze(1)
        entropy[rows[1:]] = -(own.exp() * own).sum(-1)
    return logprobs * batch.trainable, entropy * batch.trainable


def one_batch() -> Batch:
    groups = random_groups()
    fresh = [make_turn([1, 2], [3, 4]), make_turn([5, 6, 7], [8], fresh=True), make_turn([9], [10, 11])]
    groups[0].rollouts.append(make_rollout("fresh", fresh))
    (batch,) = pack(groups, TokenMean(), 0, 10_000)
    return batch


@pytest.mark.parametrize("save", [save_llama, save_gpt2])
@pytest.mark.parametrize("chunk", [3, 1000])
@torch.no_grad()
def test_logprobs_and_entropy_equal_a_plain_forward(save: Callable[[Path], Path], chunk: int, tmp_path: Path) -> None:
    batch = one_batch()
    theirs = AutoModelForCausalLM.from_pretrained(save(tmp_path), attn_implementation="eager").eval()
    output = output_of(load_model(tmp_path), batch, chunk)
    logprobs, entropy = plain(theirs, batch)
    assert logprobs.abs().max() > 1  # a model that says the same everywhere would prove nothing
    torch.testing.assert_close(output.logprobs, logprobs, rtol=0, atol=1e-5)
    torch.testing.assert_close(output.entropy, entropy, rtol=0, atol=1e-5)


def test_a_model_whose_packed_sequences_see_each_other_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_llama(tmp_path)
    monkeypatch.setattr(prove_forward, "Packed", lambda lengths, device, places: Packed([sum(lengths)], device, places))
    with pytest.raises(ModelError, match="does not run right on packed sequences"):
        load_model(tmp_path)


def test_computations_are_compared_on_tokens_from_all_over_the_vocabulary(tmp_path: Path) -> None:
    model = load_model(save_llama(tmp_path, 100))
    assert probe(model, 3).tolist() == [25, 50, 75]


@torch.no_grad()
def test_a_packed_sequence_is_not_changed_by_its_neighbours(tmp_path: Path) -> None:
    model = load_model(save_llama(tmp_path))
    groups = random_groups()
    (together,) = pack(groups, TokenMean(), 0, 10_000)
    alone = [output_of(model, batch, 100).logprobs for batch in pack(groups, TokenMean(), 0, 1)]
    assert len(alone) == 12
    torch.testing.assert_close(output_of(model, together, 100).logprobs, torch.cat(alone), rtol=0, atol=1e-5)


def test_chunks_do_not_change_the_gradient(tmp_path: Path) -> None:
    model, batch = load_model(save_llama(tmp_path)), one_batch()

    def gradients(chunk: int) -> list[Tensor]:
        output = output_of(model, batch, chunk)
        loss = (batch.advantages * output.logprobs - 0.1 * output.entropy).sum()
        loss = loss + output.over_logits(lambda scores, tokens: scores.logsumexp(-1)).sum()
        return list(torch.autograd.grad(loss, list(model.parameters())))

    for whole, chunked in zip(gradients(1000), gradients(7), strict=True):
        torch.testing.assert_close(chunked, whole, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_over_logits_sees_scaled_scores_before_each_written_token(tmp_path: Path) -> None:
    model, batch = load_model(save_llama(tmp_path)), one_batch()
    output = output_of(model, batch, 5)

    def logprob(scores: Tensor, tokens: Tensor) -> Tensor:
        assert scores.shape[1] == VOCABULARY and len(scores) == len(tokens) <= 5
        return scores.log_softmax(-1).gather(1, tokens.unsqueeze(1)).squeeze(1)

    torch.testing.assert_close(output.over_logits(logprob), output.logprobs)


def test_full_logits_never_exist(tmp_path: Path) -> None:
    """With a vocabulary of 50,000 no tensor of a step, forward or backward, is larger than a chunk of logits."""
    vocabulary, chunk = 50_000, 64
    model, batch = load_model(save_llama(tmp_path, vocabulary)), _long_batch(400)
    seen: list[int] = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            if isinstance(result, Tensor) and result.dim() == 2 and result.shape[1] == vocabulary:
                seen.append(len(result))
            return result

    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        if tensor.shape[-1:] == (vocabulary,):
            kept.append(tensor.numel())
        return tensor

    with Watch(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = output_of(model, batch, chunk)
        loss = output.logprobs.sum() + output.entropy.sum()
    assert not kept  # nothing of the size of the vocabulary waits for the backward pass
    with Watch():
        loss.backward()  # type: ignore[no-untyped-call]
    assert max(seen) == chunk


def _long_batch(size: int) -> Batch:
    rollouts = [make_rollout(str(i), [make_turn([1], list(range(40)))]) for i in range(size // 40)]
    groups = random_groups(1, 1)
    groups[0].rollouts = rollouts
    (batch,) = pack(groups, TokenMean(), 0, 10_000)
    return batch


@torch.no_grad()
def test_other_tokens_and_columns_can_be_asked_about(tmp_path: Path) -> None:
    model, batch = load_model(save_llama(tmp_path)), one_batch()
    assert batch.observed is not None and bool(batch.observed.any())
    batch.temperature.fill_(1.0)
    output = output_of(model, batch, 5)
    asked = replace(batch, trainable=batch.observed)
    found = output.over_logits(
        lambda scores, tokens, column: column * scores.log_softmax(-1).gather(1, tokens.unsqueeze(1)).squeeze(1),
        torch.full((len(batch.tokens),), 2.0),
        where=batch.observed,
    )
    torch.testing.assert_close(found, 2.0 * output_of(model, asked, 1000).logprobs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("policy", ["reference", "proximal"])
def test_two_policies_side_by_side(policy: str, tmp_path: Path) -> None:
    """The exact KL to a frozen policy by chunks is that of two plain forward passes, and it does not move along."""
    trainer = TorchTrainer(max_tokens=10_000, chunk=5)
    trainer.open(save_llama(tmp_path), 0)
    batch = one_batch()
    trainer.annotate([batch], frozenset({Logits(policy)}))
    model = trainer._ready().model
    frozen = load_model(tmp_path)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)

    def kl(own: Tensor, other: Tensor, tokens: Tensor) -> Tensor:
        return (own.log_softmax(-1).exp() * (own.log_softmax(-1) - other.log_softmax(-1))).sum(-1)

    found: list[Tensor] = []

    def objective(output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        found.append(output.over_both(kl, policy))
        with pytest.raises(ConfigurationError, match=r"needs Logits\('nobody'\)"):
            output.over_both(kl, "nobody")
        return found[0].sum(), {}

    trainer._ready().forward.loss(model, batch, objective)
    scores = [output_of(each, batch, 1000).over_logits for each in (model, frozen)]
    together = torch.stack([torch.stack([s(lambda x, t, i=i: x[:, i]) for i in range(VOCABULARY)], 1) for s in scores])
    expected = kl(together[0], together[1], batch.tokens) * batch.trainable
    assert expected.max() > 1e-3
    torch.testing.assert_close(found[0].detach(), expected.detach(), rtol=0, atol=1e-5)


def test_reading_again_between_two_tokens(tmp_path: Path) -> None:
    """Share 0 is the batch itself, share 1 a batch that wrote the other tokens; embeddings do not learn from it."""
    trainer = TorchTrainer(max_tokens=10_000)
    trainer.open(save_llama(tmp_path), 0)
    model, batch = trainer._ready().model, one_batch()
    others = (batch.tokens + 1) % VOCABULARY

    def objective(output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        torch.testing.assert_close(output.reread(others, 0.0).logprobs, output.logprobs)
        between = output.reread(others, 1.0)
        changed = replace(batch, tokens=torch.where(batch.trainable, others, batch.tokens))
        read = output_of(model, changed, 100)
        read.batch = batch  # what is predicted are the true tokens
        torch.testing.assert_close(between.logprobs, read.logprobs, rtol=1e-4, atol=1e-4)
        return between.logprobs.sum(), {}

    loss, _ = trainer._ready().forward.loss(model, batch, objective)
    loss.backward()  # type: ignore[no-untyped-call]
    assert model.get_input_embeddings().weight.grad is None
    assert model.get_output_embeddings().weight.grad.abs().max() > 0
