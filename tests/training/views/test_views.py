"""What a trainer of a model that fills masks reads: which places are hidden, and what it says of each token there.

Papers: d1, tracerl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.backends import ORDER
from strop.errors import ConfigurationError
from strop.generate.turn_ops import as_prefix, cut, extended, handed_on, said
from strop.models.tokens.mask_token import canvas_places, mask_token
from strop.recipes.objective.d1 import AllHidden
from strop.recipes.objective.echo_env import Echo
from strop.roles import View
from strop.training.advantages.constant import Constant
from strop.training.batch import AS_SAMPLED, Batch
from strop.training.canvases import WrittenCanvas, canvases
from strop.training.comparison_groups import packed_steps
from strop.training.losses.clip import Clip
from strop.training.losses.exact_kl import ExactKl
from strop.training.losses.kl import Kl
from strop.training.losses.likelihood import Likelihood
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import HIDDEN_AFTER, Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.training.views.diffusion_views import Corrupted, InOrder
from strop.types import Group, Turn
from tests.generate.engines.mutual import mutual_logprobs
from tests.tiny_models import END, load_reference, save_tiny_model
from tests.training.tiny import make_turn
from tests.training.views.written import filled, filled_turn, group_of

MASK = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("tiny"), "llama", spread=8.0)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    return load_reference(folder)


def trainer(folder: Path, view: View, **fields: Any) -> TorchTrainer:
    found = TorchTrainer(view=view, **fields)
    found.open(folder, seed=0)
    return found


def talks() -> list[Group]:
    """Two turns, one that ended with room left, one that was cut, one that nobody filled, and one of a second group."""
    two = filled(
        "two",
        filled_turn([5, 6], [7, 8, END], [1, 2, 1], behind=3, is_ended=True),
        filled_turn([9, 10, 11], [12, 13, 14, 15], [1, 3, 2, 3]),
    )
    cut = filled("cut", filled_turn([5, 6], [20, 21, 22, 23], [2, 1, 1, 3], behind=4))
    told = filled("told", make_turn([5, 6], [16, 17, END], version=-1))
    other = filled("other", filled_turn([30, 31, 32, 33], [8, END, END], [3, 1, 2], behind=1, is_ended=True))
    return [group_of(two, cut, told), group_of(other, number=1)]


def packed(groups: Sequence[Group], most: int = 4096) -> list[Batch]:
    return pack(groups, TokenMean(), 0, most)


def logprobs(of: TorchTrainer, batches: Sequence[Batch]) -> torch.Tensor:
    """Of the written tokens of all batches: [N]."""
    of.annotate(batches, frozenset({Logprobs("proximal")}))
    return torch.cat([batch.logprobs["proximal"][batch.trainable] for batch in batches])


def test_canvases_of_a_batch() -> None:
    (batch,) = packed(talks())
    found = [(first, canvas.tokens.tolist(), canvas.start, canvas.stop) for first, canvas in canvases(batch, 0)]
    talk = [5, 6, 7, 8, END, 9, 10, 11, 12, 13, 14, 15]
    assert found == [
        (2, [5, 6, 7, 8, END, END, END, END], 2, 5),
        (8, talk, 8, 12),
        (14, [5, 6, 20, 21, 22, 23, 23, 23, 23, 23], 2, 6),  # what stands behind one that did not end is never seen
        (20, [5, 6, 16, 17, END], 2, 5),
        (27, [30, 31, 32, 33, 8, END, END, END], 4, 7),
    ]
    orders = [canvas.order.tolist() for _, canvas in canvases(batch, 0)]
    never = np.iinfo(np.int64).max
    assert orders[0] == [0, 0, 3, 4, 3, 3, 3, 3] and orders[2] == [0, 0, 4, 3, 3, 5, *[never] * 4]
    assert orders[1][:8] == [0] * 8 and orders[3] == [0] * 5


def test_a_completion_that_is_not_one_canvas_is_refused() -> None:
    """Cut, put together or without its policy statistics, nobody can say beside what its tokens were drawn."""
    whole = filled_turn([5, 6], [7, 8, 9, 10], [2, 1, 1, 3])
    parts = filled_turn([5, 6], [7, 8, 9, 10], [1, 2, 3, 3])
    policy_statistics = parts.aux[ORDER].copy()
    policy_statistics[2:4, 1], policy_statistics[4:, 1] = (
        5,
        3,
    )  # ended early after two of seven places, then gone on with
    again = replace(parts, aux={ORDER: policy_statistics})
    more = policy_statistics.copy()
    more[4:, 1] = 4  # in a larger canvas
    mixed = policy_statistics.copy()
    mixed[5] = 0  # somebody else's word

    def read(turn: Turn) -> list[int]:
        return [len(canvas.tokens) for _, canvas in canvases(packed([group_of(filled("a", turn))])[0], 0)]

    assert read(whole) == [6] and read(again) == [9]
    without, larger = replace(whole, aux={}), replace(again, aux={ORDER: more})
    for turn in (*cut([whole], 3), handed_on(whole, 2), without, larger, replace(again, aux={ORDER: mixed})):
        with pytest.raises(ConfigurationError, match="not come from one canvas"):
            read(turn)
    begun = as_prefix(cut([whole], 3))[0]  # read, and gone on with on a canvas of its own
    rest = np.array([[9, 1, 0], [8, 1, 0]])
    gone_on = replace(
        begun,
        tokens=np.array([11, 12]),
        logprobs=np.zeros(2, np.float32),
        versions=np.zeros(2, np.int64),
        aux=extended(begun, {ORDER: rest}, 2),
    )
    assert read(gone_on) == [8]
    with pytest.raises(ConfigurationError, match="cannot be inserted into a completion"):
        said(whole, np.array([5]))


def by_hand(reference: Any, step_of: Any) -> list[float]:
    """Logprobs of talks() in order, by plain loops: `step_of(orders)` says which steps share a glance."""
    found: list[float] = []
    completions = [
        ([5, 6], [7, 8, END], [1, 2, 1], 3, True),
        ([5, 6, 7, 8, END, 9, 10, 11], [12, 13, 14, 15], [1, 3, 2, 3], 0, False),
        ([5, 6], [20, 21, 22, 23], [2, 1, 1, 3], 4, False),
        ([5, 6], [16, 17, END], [0, 0, 0], 0, False),
        ([30, 31, 32, 33], [8, END, END], [3, 1, 2], 1, True),
    ]
    for context, tokens, orders, behind, is_ended in completions:
        steps = step_of(orders)
        for place, token in enumerate(tokens):
            seen = [t if s < steps[place] else MASK for t, s in zip(tokens, steps, strict=True)]
            rest = tokens[-1] if is_ended and steps[-1] < steps[place] else MASK
            canvas = np.array([*context, *seen, *[rest] * behind])
            found.append(float(mutual_logprobs(reference, canvas)[len(context) + place, token]))
    return found


def test_in_order_every_token_is_judged_as_it_was_drawn(folder: Path, reference: Any) -> None:
    expected = torch.tensor(by_hand(reference, lambda orders: orders))
    assert (logprobs(trainer(folder, InOrder(1)), packed(talks())) - expected).abs().max() < 1e-4


def test_as_sampled_is_in_order_whatever_the_view(folder: Path, reference: Any) -> None:
    """What proves that an engine holds the weights it says must not depend on what a loss estimates."""
    expected = torch.tensor(by_hand(reference, lambda orders: orders))
    batches = [replace(batch, view=AS_SAMPLED) for batch in packed(talks())]
    assert (logprobs(trainer(folder, AllHidden()), batches) - expected).abs().max() < 1e-4


def test_neighbouring_steps_share_a_glance(folder: Path, reference: Any) -> None:
    def pairs(orders: list[int]) -> list[int]:
        return [sorted(set(orders)).index(order) // 2 for order in orders]

    expected = torch.tensor(by_hand(reference, pairs))
    assert (logprobs(trainer(folder, InOrder(2)), packed(talks())) - expected).abs().max() < 1e-4


def canvas_of(order: Sequence[int], behind: int = 0, key: int = 0) -> WrittenCanvas:
    tokens = np.arange(4, 4 + len(order) + 2 + behind)
    steps = np.array([0, 0, *order, *[np.iinfo(np.int64).max] * behind])
    return WrittenCanvas(tokens, steps, 2, 2 + len(order), key)


def test_steps_three_nought_one_two_in_pairs() -> None:
    """The card's numbers: steps (3, 0, 1, 2), two at a time, are (3, 1, 1, 3)."""
    first, second = InOrder(2)(canvas_of([4, 1, 2, 3]))
    assert first.judged[2:].tolist() == [False, True, True, False] and first.hidden[2:].tolist() == [True] * 4
    assert second.judged[2:].tolist() == [True, False, False, True] == second.hidden[2:].tolist()


@pytest.mark.parametrize("merged", [1, 2, 3, 8])
def test_glances_share_out_the_tokens_of_a_completion(merged: int) -> None:
    random = np.random.default_rng(merged)
    for _ in range(20):
        it = canvas_of(random.integers(1, 7, 9).tolist(), behind=3)
        glances = InOrder(merged)(it)
        assert sum(glance.judged.astype(int) for glance in glances).tolist() == it.is_completion.astype(int).tolist()
        assert all((glance.hidden | ~glance.judged).all() and not glance.hidden[:2].any() for glance in glances)
    if merged >= 6:  # one glance of all: what AllHidden shows where it hides nothing of the prompt
        (only,), (same,) = glances, AllHidden(0.0)(it)
        assert (only.hidden == same.hidden).all() and (only.judged == same.judged).all()


def test_all_hidden_is_a_product_of_marginals(folder: Path, reference: Any) -> None:
    expected = torch.tensor(by_hand(reference, lambda orders: [0] * len(orders)))
    found = logprobs(trainer(folder, AllHidden(0.0)), packed(talks()))
    assert (found - expected).abs().max() < 1e-4
    for seed in (1, 2):  # without hidden words of the prompt there is nothing left to chance
        other = TorchTrainer(view=AllHidden(0.0))
        other.open(folder, seed)
        batches = [replace(batch, view=seed) for batch in packed(talks())]
        assert torch.equal(logprobs(other, batches), found)


def test_an_estimate_does_not_depend_on_the_completion_around_a_token(folder: Path) -> None:
    def of(tokens: list[int]) -> torch.Tensor:
        turn = filled_turn([5, 6, 7], tokens, [1, 2, 3], behind=2)
        return logprobs(trainer(folder, AllHidden(0.3)), packed([group_of(filled("a", turn))]))

    first, second = of([8, 9, 10]), of([11, 9, 12])
    assert first[1] == second[1] and first[0] != second[0]


def test_words_of_the_prompt_are_hidden_by_probability_anew_in_every_epoch() -> None:
    shares = []
    hidden = []
    for key in range(400):
        canvas = WrittenCanvas(np.arange(30), np.zeros(30, np.int64), 20, 30, key)
        (glance,) = AllHidden(0.15)(canvas)
        assert glance.hidden[20:].all() and glance.judged.tolist() == [False] * 20 + [True] * 10
        shares.append(glance.hidden[:20].mean())
        hidden.append(tuple(glance.hidden[:20]))
    assert abs(np.mean(shares) - 0.15) < 4 * (0.15 * 0.85 / (400 * 20)) ** 0.5
    assert len(set(hidden)) > 300
    (batch,) = packed(talks())
    keys = [[canvas.key for _, canvas in canvases(replace(batch, view=view), 0)] for view in (0, 0, 1)]
    assert keys[0] == keys[1] and not set(keys[0]) & set(keys[2]) and len(set(keys[0])) == 5
    assert [canvas.key for _, canvas in canvases(batch, seed=1)] != keys[0]


def test_micro_batches_change_nothing(folder: Path) -> None:
    for view in (AllHidden(0.4), InOrder(1), Corrupted()):
        it = trainer(folder, view)
        whole, parts = packed(talks()), packed(talks(), most=8)
        assert len(parts) > 2
        assert (logprobs(it, whole) - logprobs(it, parts)).abs().max() < 1e-5


def test_corrupted_tokens_weigh_one_in_the_mean() -> None:
    """E[1[hidden] / t] = 1 for t from `least` on: hence the bound is one of the whole completion's log-likelihood."""
    least, weights, shares = 0.05, [], []
    for key in range(4000):
        canvas = WrittenCanvas(np.arange(12), np.zeros(12, np.int64), 4, 10, key)
        (glance,) = Corrupted(least)(canvas)
        assert not glance.hidden[:4].any() and glance.hidden[10:].all() and not glance.judged[10:].any()
        assert (glance.judged[4:10] == glance.hidden[4:10]).all()
        weights.append(glance.weight * glance.judged[4:10])
        shares.append(1 / glance.weight)
    found = np.array(weights)
    assert (abs(found.mean(0) - 1) < 4 * found.std(0) / len(found) ** 0.5).all()
    assert abs(np.mean(shares) - (1 + least) / 2) < 0.02 and min(shares) > least


def test_a_supervised_step_minimizes_the_weighted_loss_of_hidden_tokens(folder: Path, reference: Any) -> None:
    groups, it = talks(), trainer(folder, Corrupted(), learning_rate=1e-12)
    (batch,) = packed(groups)
    expected = 0.0
    for first, canvas in canvases(batch, 0):
        (glance,) = Corrupted()(canvas)
        scores = mutual_logprobs(reference, np.where(glance.hidden, MASK, canvas.tokens))
        for place in np.flatnonzero(glance.judged):
            share = float(batch.share[first + place - canvas.start])
            expected -= share * glance.weight * float(scores[place, canvas.tokens[place]])
    metrics = it.step([batch], Objective((Likelihood(),)))
    assert metrics["loss"] == pytest.approx(expected, rel=1e-4)


class _Run:
    """As much of a run as its batches ask for."""

    def __init__(self, of: TorchTrainer, epochs: int, minibatches: int = 1) -> None:
        self.trainer, self.epochs, self.minibatches, self.reduction = of, epochs, minibatches, TokenMean()
        self.advantage = Constant()


def steps_of(of: TorchTrainer, objective: Objective, epochs: int, minibatches: int = 1) -> list[list[Batch]]:
    run: Any = _Run(of, epochs, minibatches)
    return packed_steps(run, talks(), objective, 0)


def test_every_epoch_has_its_own_estimate_and_ratios_begin_at_one(folder: Path) -> None:
    """The policy before the step and the reference are asked under the same masks as the policy that learns."""
    it, objective = trainer(folder, AllHidden(0.5), learning_rate=1e-12), Objective((Clip(anchor="proximal"), Kl()))
    steps = steps_of(it, objective, epochs=3, minibatches=2)
    assert [batch.view for batches in steps for batch in batches] == [0, 0, 1, 1, 2, 2]
    it.annotate([batch for batches in steps for batch in batches], objective.needs)
    estimates = [steps[2 * epoch][0].logprobs["proximal"] for epoch in range(3)]
    assert not torch.equal(estimates[0], estimates[1]) and not torch.equal(estimates[1], estimates[2])
    for batches in steps:
        metrics = it.step(batches, Objective((Clip(anchor="proximal"),)))
        assert metrics["kl"] == pytest.approx(0, abs=1e-6) and metrics["clipped_share"] == 0.0


def test_without_probability_epochs_share_their_batches(folder: Path) -> None:
    steps = steps_of(trainer(folder, InOrder(1)), Objective((Clip(anchor="proximal"),)), epochs=3)
    assert len(steps) == 3 and steps[0] is steps[1] is steps[2]


def test_same_glances_are_computed_once(folder: Path) -> None:
    """Siblings read the same prompt before the same masks: without probability, one glance serves all."""
    turns = [filled_turn([5, 6, 7], [8 + i, 9, 10], [1, 2, 3], behind=2) for i in range(4)]
    groups = [group_of(*(filled(str(i), turn) for i, turn in enumerate(turns)))]
    opened = [trainer(folder, view) for view in (AllHidden(0.0), AllHidden(0.5), InOrder(1))]
    counts = []
    for it in opened:
        (batch,) = packed(groups)
        assert it._opened is not None
        counts.append(it._opened.forward._sequences(batch).num_computed)
    assert counts[0] == 8 and counts[1] > 8 and counts[2] == 8 * (1 + 4 + 4)


def test_gradients_move_what_was_judged(folder: Path, reference: Any) -> None:
    """Against autograd through transformers' own model, at one step of one completion."""
    it = trainer(folder, InOrder(1), clip_norm=None)
    turn = filled_turn([5, 6], [7, 8], [1, 1], behind=2)
    (batch,) = packed([group_of(filled("a", turn, advantage=2.0))])
    found = it.gradient([batch], Objective((Likelihood(),)))
    reference.zero_grad()
    mask = torch.zeros(1, 1, 6, 6)
    tokens = torch.tensor([[5, 6, MASK, MASK, MASK, MASK]])
    scores = reference(input_ids=tokens, attention_mask=mask, use_cache=False).logits[0].log_softmax(-1)
    (-(scores[2, 7] + scores[3, 8]) / 2).backward()
    for name, parameter in reference.named_parameters():
        assert (found[name] - parameter.grad).abs().max() < 1e-4 * max(1.0, float(parameter.grad.abs().max())), name


def test_what_has_no_meaning_is_refused(folder: Path) -> None:
    it = trainer(folder, InOrder(1))
    with pytest.raises(ConfigurationError, match="no state of a token"):
        it.policy_statistic(talks(), frozenset({HIDDEN_AFTER}))
    for make in (lambda: InOrder(0), lambda: AllHidden(1.0), lambda: AllHidden(-0.1), lambda: Corrupted(0.0)):
        with pytest.raises(ConfigurationError):
            make()


def test_only_what_was_hidden_can_be_asked_about(folder: Path) -> None:
    """Of what the environment said, and of tokens that a view left visible, there is no distribution to learn from."""
    for view, loss, why in ((InOrder(1), Echo(), "only read"), (Corrupted(), ExactKl(), "no distributions")):
        it, objective = trainer(folder, view), Objective((loss,))
        (batch,) = packed(talks())
        it.annotate([batch], objective.needs)
        with pytest.raises(ConfigurationError, match=why):
            it.step([batch], objective)
    it, objective = trainer(folder, InOrder(1)), Objective((ExactKl(),))
    (batch,) = packed(talks())
    it.annotate([batch], objective.needs)
    assert it.step([batch], objective)["loss"] == pytest.approx(0, abs=1e-5)


def test_a_batch_without_completions_can_be_read(folder: Path) -> None:
    """A rank that has nothing to train must keep step."""
    it = trainer(folder, InOrder(1))
    (batch,) = packed(talks())
    empty = replace(batch, trainable=torch.zeros_like(batch.trainable))
    assert it._opened is not None
    assert float(it._opened.forward.nothing(it._opened.model, empty).detach()) == 0.0


def test_a_folder_says_that_its_model_fills_masks(folder: Path, tmp_path: Path) -> None:
    it = trainer(folder, InOrder(1))
    logprobs(it, packed(talks()))
    it.save(tmp_path)
    assert mask_token(tmp_path) == MASK and canvas_places(tmp_path) == 8  # four tokens and four places behind them
    again = trainer(tmp_path, InOrder(1))
    again.save(tmp_path / "again")
    assert canvas_places(tmp_path / "again") == 8 and canvas_places(folder) is None
