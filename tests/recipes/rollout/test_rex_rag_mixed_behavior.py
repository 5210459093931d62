"""REX-RAG's mixture: probabilities by hand, plain rollouts without probes as ever."""

from __future__ import annotations

from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes import build, recipe_named
from strop.recipes.rollout.rex_rag import PROBES, MixedBehavior
from strop.training.batch import ORIGINS
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.types import Origin
from tests.building import Said, advantages_of, lay_out, make_batch, make_group, say, written


def test_by_hand() -> None:
    """Four plain rollouts and a probe, in a batch of which a quarter are probes (a = 1/4).

    The plain token at 0.4 has 0.3; the probe's word, which the list gives 0.5 and the policy 0.1, has
    0.75 * 0.1 + 0.25 * 0.5 = 0.2; its sampled token at 0.6 keeps 0.6.
    """
    batch = make_batch(
        [[log(0.4)], [log(0.4)], [log(0.4)], [log(0.5), log(0.6)], [log(0.4)]],
        groups=[0, 0, 0, 0, 1],
        share=[[1.0]] * 3 + [[1.0, 1.0], [1.0]],
    )
    batch.origins = torch.tensor([0, 0, 0, ORIGINS.index(Origin.BRANCHED), 0])
    batch.aux = {PROBES.name: torch.full((len(batch.tokens),), 0.25)}
    batch.versions = torch.where(batch.trainable, 0, -1)
    batch.versions[7] = -1  # the probe's first token
    batch.fill("proximal", lay_out([[log(0.9)]] * 3 + [[log(0.1), log(0.9)], [log(0.9)]]))
    mixed, share = MixedBehavior(Clip()).mixed(batch)
    assert written(batch, mixed.exp()) == pytest.approx([0.3, 0.3, 0.3, 0.2, 0.6, 0.3])
    assert written(batch, share) == pytest.approx([0.25] * 6)
    output = say([[log(0.33)], [log(0.3)], [log(0.5)], [log(0.1), log(0.6)], [log(0.3)]])
    loss, metrics = MixedBehavior(Clip(0.2, 0.2))(output, batch)
    assert written(batch, loss) == pytest.approx([-1.1, -1.0, -1.2, -0.5, -1.0, -1.0])
    assert metrics["probes_share"] == pytest.approx(6 * 0.25) and metrics["clipped_share"] == 1.0


def test_without_probes_it_is_the_inner_loss() -> None:
    batch, output = make_batch([[-1.0, -0.4]], [2.0]), say([[-0.9, -0.5]])
    batch.fill("proximal", lay_out([[-7.0, -7.0]]))
    batch.aux = {PROBES.name: torch.zeros(3)}
    inner = Clip(0.1, 0.1, weight=0.5)
    one, other = MixedBehavior(inner)(output, batch)[0], inner(output, batch)[0]
    assert written(batch, one) == pytest.approx(written(batch, other)) and MixedBehavior(inner).weight == 0.5


def test_in_a_draw_the_right_rollouts_beside_a_probe_still_teach() -> None:
    """Eight groups of five and one probe: a = 1/41. Plain tokens begin at 41/40 and not at 6/5, which is clipped."""
    run = build(recipe_named("rex_rag"), {})
    groups = [make_group([1.0, 0.0, 0.0, 1.0, 0.0] + [0.0] * (number == 3), number=number) for number in range(8)]
    groups[3].rollouts[5].origin = Origin.BRANCHED
    groups.append(make_group([1.0, 0.0], lengths=[0, 1], failed=[1], number=8))  # neither of them counts
    run.advantage(groups)
    assert max(advantages_of(groups[3])) > 0.5  # type: ignore[type-var, operator]
    for most in (4096, 8):  # however a step is split
        for batch in pack(groups, TokenMean(), 0, most, aux=frozenset({PROBES.name})):
            said = batch.behavior_logprobs.clone().requires_grad_()
            batch.fill("proximal", batch.behavior_logprobs)
            loss, metrics = run.losses[0](Said(said, torch.zeros_like(said)), batch)
            loss.sum().backward()  # type: ignore[no-untyped-call]
            factor = torch.where(batch.on_tokens(batch.is_of(Origin.BRANCHED)), 1.0, 41 / 40)
            expected = torch.where(batch.trainable, -batch.advantages * factor, 0.0)
            torch.testing.assert_close(said.grad, expected)
            assert metrics["clipped_share"] == 0.0


def test_probes_that_nobody_counted_are_refused() -> None:
    batch = make_batch([[-1.0], [-2.0]])
    batch.origins = torch.tensor([0, ORIGINS.index(Origin.BRANCHED)])
    batch.fill("proximal", lay_out([[-1.0], [-2.0]]))
    batch.aux = {PROBES.name: torch.zeros(4)}
    with pytest.raises(ConfigurationError, match="got probes with a recorded share of 0: use ProbesCounted"):
        MixedBehavior(Clip()).mixed(batch)


def test_a_loss_without_a_ratio_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="got Reinforce"):
        MixedBehavior(Reinforce())
    with pytest.raises(ConfigurationError, match="got Clip"):
        MixedBehavior(Clip(anchor="proximal"))
