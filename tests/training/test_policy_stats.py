"""What the trainer policy statistics on rollouts is what a plain forward pass says about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from strop.errors import ConfigurationError, ModelError
from strop.launch.checks.preflight import check
from strop.recipes.distill.kdrl import Kdrl
from strop.recipes.objective.echo_env import Echo
from strop.recipes.objective.rover import Rover
from strop.recipes.setting import Setting
from strop.training.advantages.constant import Constant
from strop.training.batch import Batch
from strop.training.pack import pack
from strop.training.policy_stats import Wanted, take_statistics
from strop.training.reductions.means import TokenMean
from strop.training.requirements import (
    ENTROPY,
    HIDDEN,
    HIDDEN_AFTER,
    LOGPROBS,
    PROMPT_HIDDEN,
    REFERENCE_LOGPROBS,
    Logits,
    Logprobs,
    PolicyStatistic,
)
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group
from tests.tiny_models import save_pocket_like
from tests.training.tiny import make_rollout, make_turn, random_groups, save_llama

NOTES = frozenset({ENTROPY, LOGPROBS, REFERENCE_LOGPROBS, HIDDEN, HIDDEN_AFTER, PROMPT_HIDDEN})


@dataclass(frozen=True)
class Watching(Constant):
    """An advantage that wants to know the entropy."""

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({ENTROPY})


@pytest.fixture
def trainer(tmp_path: Path) -> TorchTrainer:
    trainer = TorchTrainer(max_tokens=20)
    trainer.open(save_llama(tmp_path / "model"), 0)
    return trainer


@torch.no_grad()
def test_notes_of_each_written_token(trainer: TorchTrainer, tmp_path: Path) -> None:
    groups = random_groups()
    for group in groups:
        for rollout in group.rollouts:
            rollout.advantages = None  # nobody gave advantage yet
    with torch.no_grad():
        trainer._ready().model.get_output_embeddings().weight.mul_(1.5)  # no longer the reference
    trainer.policy_statistic(groups, NOTES)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "model", attn_implementation="eager").eval()
    rollout = next(a for group in groups for a in group.rollouts if len(a.turns) == 2)
    tokens = np.concatenate([piece for turn in rollout.turns for piece in (turn.prompt, turn.tokens)])
    written = np.concatenate([[i] * len(p) for turn in rollout.turns for i, p in enumerate((turn.prompt, turn.tokens))])
    said = theirs(input_ids=torch.from_numpy(tokens)[None], output_hidden_states=True)
    rows = np.flatnonzero(written)
    states = said.hidden_states[-1][0]
    np.testing.assert_allclose(rollout.policy_statistics["hidden"], states[rows - 1], atol=1e-5)
    np.testing.assert_allclose(
        rollout.policy_statistics["hidden_after"], states[rows], atol=1e-5
    )  # the very last one as well
    np.testing.assert_allclose(
        rollout.policy_statistics["prompt_hidden"], states[: len(rollout.turns[0].prompt)], atol=1e-5
    )
    temperature = torch.tensor([t.sampling.temperature for t in rollout.turns for _ in t.tokens])[:, None]
    for name, scale in (("logprobs", 1.5), ("reference_logprobs", 1.0)):
        own = (said.logits[0][rows - 1] * scale / temperature).log_softmax(-1)
        expected = own.gather(1, torch.from_numpy(tokens[rows])[:, None])[:, 0]
        np.testing.assert_allclose(rollout.policy_statistics[name], expected, atol=1e-4)
        if name == "logprobs":
            np.testing.assert_allclose(rollout.policy_statistics["entropy"], -(own.exp() * own).sum(-1), atol=1e-4)


def test_all_notes_of_a_policy_take_one_pass() -> None:
    """Two of two policies here, however much is asked of each, for every batch."""
    passes: list[tuple[str, int]] = []

    def look(policy: str, batch: Batch, wanted: Sequence[Wanted]) -> list[torch.Tensor]:
        passes.append((policy, len(wanted)))
        return [torch.zeros(len(batch.tokens)) for _ in wanted]

    take_statistics(groups := random_groups(), NOTES, look, max_tokens=1_000_000)
    assert passes == [("proximal", 5), ("reference", 1)]
    assert all(
        set(a.policy_statistics) == {policy_statistic.name for policy_statistic in NOTES}
        for group in groups
        for a in group.scored
        if a.num_tokens
    )


def test_the_state_after_the_last_token_of_every_context(trainer: TorchTrainer, tmp_path: Path) -> None:
    """A rollout whose context begins anew has two of them."""
    rollout = make_rollout("fresh", [make_turn([1, 2], [3, 4]), make_turn([5], [6, 7], fresh=True)])
    trainer.policy_statistic([Group(0, rollout.task, [rollout])], frozenset({HIDDEN_AFTER}))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "model", attn_implementation="eager").eval()
    expected = []
    for context in ([1, 2, 3, 4], [5, 6, 7]):
        with torch.no_grad():
            said = theirs(input_ids=torch.tensor([context]), output_hidden_states=True)
        expected.append(said.hidden_states[-1][0, -2:])
    np.testing.assert_allclose(rollout.policy_statistics["hidden_after"], torch.cat(expected), atol=1e-5)


@torch.no_grad()
def test_a_part_may_want_a_note_that_nobody_else_knows(trainer: TorchTrainer, tmp_path: Path) -> None:
    largest = PolicyStatistic(
        "largest", lambda output: output.over_logits(lambda logits, tokens: logits.softmax(-1).amax(-1))
    )
    rollout = make_rollout("one", [make_turn([1, 2], [3, 4])])
    with pytest.raises(ConfigurationError, match="rollout one has no policy statistic largest"):
        largest.of(rollout)
    trainer.policy_statistic([Group(0, rollout.task, [rollout])], frozenset({largest, ENTROPY}))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "model", attn_implementation="eager").eval()
    expected = theirs(input_ids=torch.tensor([[1, 2, 3, 4]])).logits[0, 1:3].softmax(-1).amax(-1)
    np.testing.assert_allclose(largest.of(rollout), expected, atol=1e-5)


def test_several_ranks_take_no_notes() -> None:
    with pytest.raises(ConfigurationError, match="records no policy statistics"):
        Ranks().policy_statistic([], frozenset({ENTROPY}))


def test_other_models_are_asked_by_folder(trainer: TorchTrainer, tmp_path: Path) -> None:
    other = str(save_llama(tmp_path / "other", layers=1))
    (batch,) = pack(random_groups(), TokenMean(), 0, 10_000)
    trainer.annotate([batch], frozenset({Logprobs(other), Logprobs("reference"), Logits(other)}))
    assert set(batch.logprobs) == {other, "reference"} and list(batch.frozen) == [other]
    assert float((batch.logprobs[other] - batch.logprobs["reference"]).abs().max()) > 0.1
    again = TorchTrainer(reference=other)
    again.open(tmp_path / "model", 0)
    (same,) = pack(random_groups(), TokenMean(), 0, 10_000)
    again.annotate([same], frozenset({Logprobs("reference")}))
    assert torch.equal(same.logprobs["reference"], batch.logprobs[other])
    stranger = save_pocket_like(tmp_path / "stranger")
    with pytest.raises(ModelError, match="another vocabulary"):
        trainer.annotate([batch], frozenset({Logprobs(str(stranger))}))


def test_what_cannot_be_filled_is_refused_before_anything_starts(tmp_path: Path) -> None:
    run = Setting(model="pocket").run("test", Constant(), (Kdrl(str(tmp_path / "nowhere")),))
    with pytest.raises(ModelError, match="nowhere does not exist"):
        check(run)
    with pytest.raises(ConfigurationError, match="logits of proximal: needed, and Ranks fills logprobs of"):
        check(Setting(ranks=2).run("test", Constant(), (Rover(),)))
    with pytest.raises(ConfigurationError, match="records no policy statistics, and entropy are needed"):
        check(Setting(ranks=2, env="guess:2").run("test", Watching(), (Echo(),)))
    check(Setting(ranks=2, env="guess:2").run("test", Constant(), (Echo(),)))


def test_what_the_env_said_is_marked_and_shared_out() -> None:
    first = make_rollout("a", [make_turn([1, 2], [3]), make_turn([4, 5, 6], [7]), make_turn([8], [9])])
    second = make_rollout("b", [make_turn([1], [2, 3]), make_turn([4, 5], [6], fresh=True)])
    (group,) = random_groups(1, 1)
    group.rollouts = [first, second]
    (batch,) = pack([group], TokenMean(), 0, 100)
    assert batch.observed is not None and batch.observed_share is not None
    assert batch.tokens[batch.observed].tolist() == [4, 5, 6, 8]  # no first prompt, also not that of a fresh context
    assert batch.observed_share[batch.observed].tolist() == pytest.approx([1 / 8] * 4)  # 2 rollouts, 4 tokens
    assert not batch.observed_share[~batch.observed].any()


def test_aux_of_turns_comes_along_where_asked() -> None:
    marked = make_turn([1, 2], [3])
    marked.aux["hints"] = np.array([0, 1, 0])  # type: ignore[index]
    (group,) = random_groups(1, 1)
    group.rollouts = [make_rollout("a", [marked, make_turn([4], [5, 6])])]
    (batch,) = pack([group], TokenMean(), 0, 100, aux=frozenset({"hints"}))
    assert batch.aux["hints"].tolist() == [0, 1, 0, 0, 0, 0]
    (plain,) = pack([group], TokenMean(), 0, 100)
    assert plain.aux == {}
    marked.aux["hints"] = np.array([0, 1])  # type: ignore[index]
    with pytest.raises(ConfigurationError, match="2 rows for a turn of 3 tokens"):
        pack([group], TokenMean(), 0, 100, aux=frozenset({"hints"}))
