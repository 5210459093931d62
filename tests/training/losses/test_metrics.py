"""What losses report about a batch, by hand: three tokens of ratios 2, 0.5 and 1.3 with unequal shares and
advantage.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt
from typing import Any

import pytest
import torch

from strop.recipes.distill.ift import Intuitive
from strop.recipes.distill.kdrl import Kdrl
from strop.recipes.distill.language_irl import InverseSoftQ
from strop.recipes.objective.archer_dual_token import DualToken
from strop.recipes.objective.calibrl import Calibrated
from strop.recipes.objective.cpgd import Cpgd
from strop.recipes.objective.direct_preference import DirectPreference
from strop.recipes.objective.h_dpo import HDpo
from strop.recipes.objective.reg_grpo import RegGrpo
from strop.recipes.objective.rl_plus import RlPlus
from strop.recipes.system.areal import Decoupled
from strop.recipes.system.tba import TrajectoryBalance
from strop.roles import Loss
from strop.training.batch import Batch
from strop.training.losses.aipo import Aipo
from strop.training.losses.cispo import Cispo
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy, EntropyClamp
from strop.training.losses.gspo import Gspo
from strop.training.losses.kl import Kl
from strop.training.losses.kto import Kto
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.preference_pairs import Ipo, Orpo, SimPo
from strop.training.losses.reinforce import Reinforce
from strop.training.losses.sapo import Sapo
from tests.building import Said, lay_out, make_batch, say

RATIOS = [[2.0, 0.5], [1.3]]
SHARES = [[0.2, 0.3], [0.5]]
BASE = 0.1  # every token's probability when it was sampled
CREDIT = [2.0, 3.0]


def scene() -> tuple[Batch, Said]:
    base = [[log(BASE)] * len(each) for each in RATIOS]
    batch = make_batch(base, CREDIT, rewards=[1.0, 0.0], reference=base, share=SHARES)
    batch.logprobs |= {"proximal": batch.logprobs["reference"], "T": lay_out(base)}
    output = say([[log(BASE * ratio) for ratio in each] for each in RATIOS], [[0.5, 1.5], [4.0]])
    return batch, output


def mean(of: Callable[[float], float]) -> float:
    """Of a function of the ratio, by shares."""
    return sum(s * of(r) for rs, ss in zip(RATIOS, SHARES, strict=True) for r, s in zip(rs, ss, strict=True))


def k3(ratio: float) -> float:
    return ratio - 1 - log(ratio)


def bell(ratio: float) -> float:
    """4 s (1 - s) of SAPO's gate."""
    gate = 1 / (1 + exp(1 - ratio))
    return 4 * gate * (1 - gate)


PLAIN = {"ratio": mean(lambda r: r), "kl": mean(k3)}
CLIPPED = 0.2 + 0.5  # ratios 2 and 1.3 above 1.2, with advantage above 0; 0.5 is free
LENGTHS = (2, 1)
GAINS = (log(2) + log(0.5), log(1.3))  # of whole rollouts
SUMS = (2 * log(BASE), log(0.13))  # their log-probabilities
MEANS = tuple(total / length for total, length in zip(SUMS, LENGTHS, strict=True))

REPORTED: list[tuple[Loss, dict[str, float]]] = [
    (Clip(), {"clipped_share": CLIPPED, **PLAIN}),
    (Clip(anchor="proximal"), {"clipped_share": CLIPPED, **PLAIN}),
    (Cispo(low=0.4, high=0.5), {"clipped_share": 0.5, **PLAIN}),
    (Cispo(low=0.4, high=1.5), {"clipped_share": 0.3, **PLAIN}),
    (Gspo(), {"clipped_share": 0.5, "ratio": 0.5 * 1.0 + 0.5 * 1.3, "kl": mean(k3)}),
    (Sapo(), {"gate": mean(bell), "ratio": mean(lambda r: r)}),
    (Cpgd(), {"clipped_share": CLIPPED, **PLAIN}),
    (DualToken(quantile=1.0), {"clipped_share": CLIPPED, "high_share": 0.0, "reference_kl": mean(log)}),
    (Decoupled(), {"clipped_share": CLIPPED, "masked_share": 0.0}),
    (Aipo(cap=1.5), {"capped_share": 0.2}),
    (Aipo(cap=1.2, is_detached=False), {"capped_share": 0.7}),
    (Reinforce(), PLAIN),
    (Kl("k3"), {"reference_kl": mean(log)}),
    (Kdrl("T"), {"teacher_kl": mean(log), "distilled_share": 1.0}),
    (Kdrl("T", mask="response"), {"teacher_kl": mean(log), "distilled_share": 0.5}),
    (Kdrl("T", mask="group"), {"teacher_kl": mean(log), "distilled_share": 0.0}),
    (Likelihood(), {"nll": mean(lambda r: -log(BASE * r))}),
    (Entropy(), {"entropy": 0.2 * 0.5 + 0.3 * 1.5 + 0.5 * 4.0}),
    (EntropyClamp(0.2, 2.0), {"outside_band": 0.5}),  # means 1 and 4
    (EntropyClamp(1.1, 5.0), {"outside_band": 0.5}),
    (DirectPreference(), {"preferred_share": float(MEANS[0] > MEANS[1])}),
    (HDpo(0.5, 2.0), {"preferred_share": 1.0, "margin": 2.0 * (GAINS[0] - GAINS[1] - 0.5 * (SUMS[0] - SUMS[1]))}),
    (Ipo(), {"margin": GAINS[0] - GAINS[1]}),
    (Ipo(is_averaged=True), {"margin": GAINS[0] / 2 - GAINS[1]}),
    (Kto(), {"expected_kl": (GAINS[0] + GAINS[1]) / 2}),
    (Orpo(), {"margin": MEANS[0] - log(1 - exp(MEANS[0])) - MEANS[1] + log(1 - exp(MEANS[1]))}),
    (SimPo(2.0, 1.0), {"margin": 2.0 * (MEANS[0] - MEANS[1])}),
    (
        TrajectoryBalance(0.5),  # surpluses: gain - 2 * reward
        {"log_normaliser": -(GAINS[0] - 2.0 + GAINS[1]) / 2, "reference_kl": mean(log)},
    ),
]


@pytest.mark.parametrize(("loss", "expected"), REPORTED, ids=[repr(loss) for loss, _ in REPORTED])
def test_by_hand(loss: Any, expected: dict[str, float]) -> None:
    batch, output = scene()
    assert loss(output, batch)[1] == pytest.approx(expected)


def test_moves_and_their_error() -> None:
    # Moves 0 and log 1.3, centred -+0.131, held deviation 1: errors (2 + 0.131)^2 and (3 - 0.131)^2
    batch, output = scene()
    half = log(1.3) / 2
    expected = {"regression_error": 0.5 * (2 + half) ** 2 + 0.5 * (3 - half) ** 2, "abs_log_ratio": 0.5 * log(1.3)}
    assert RegGrpo(floor=1.0)(output, batch)[1] == pytest.approx(expected)


def test_own_and_outside_tokens() -> None:
    # The second rollout is a demonstration: p = 0.13 now, 0.1 before the step, guessed at 0.01
    batch, output = scene()
    batch.versions = torch.where(batch.rollouts == 1, -1, batch.versions)
    outside = 2 * 0.13 / (1.5 * 0.1 + 0.5 * 0.01) * sqrt(1 - 0.13)
    expected = {"outside_share": 0.5, "ratio": 0.2 * 2 + 0.3 * 0.5 + 0.5 * outside}
    assert RlPlus(0.01)(output, batch)[1] == pytest.approx(expected)


@pytest.mark.parametrize("first", [True, False])
def test_how_far_above_the_expert(first: bool) -> None:
    """Wherever the demonstration stands among its siblings; what is beyond its end is not compared."""
    policy = [[-1.0], [-0.5, -3.0]] if first else [[-0.5, -3.0], [-1.0]]
    share = [[0.2], [0.5, 0.3]] if first else [[0.5, 0.3], [0.2]]
    batch = make_batch(policy, rewards=[1.0, 1.0], share=share)
    batch.fill("proximal", lay_out([[-2.0], [-9.0, -9.0]] if first else [[-9.0, -9.0], [-2.0]]))
    batch.versions = torch.where(batch.rollouts == (0 if first else 1), -1, batch.versions)
    expected = {"guided_share": 0.5, "above_expert": 0.5 * (-0.5 + 2.0)}
    assert Calibrated()(say(policy), batch)[1] == pytest.approx(expected)


def logits_of(rows: list[list[float]], tokens: list[int]) -> tuple[Batch, Said]:
    """One rollout; a row of logits for each of its tokens, after a prompt's of zeros."""
    logits = torch.tensor([[0.0] * len(rows[0]), *rows], dtype=torch.float64)
    batch = make_batch([[0.0] * len(rows)], share=[[0.2, 0.8]])
    batch.tokens = torch.tensor([0, *tokens])
    chosen = logits.log_softmax(-1).gather(1, batch.tokens.unsqueeze(1)).squeeze(1) * batch.trainable
    return batch, Said(chosen, torch.zeros_like(chosen), logits, batch.tokens)


def test_guesses_that_were_right() -> None:
    # Probabilities 1/4 and 3/4, tokens 1 and 0: the first is no guess of the policy's, the second is
    rows = [[log(3), 0.0], [log(3), 0.0]]
    batch, output = logits_of(rows, [1, 0])
    expected = {"nll": 0.2 * log(4) + 0.8 * log(4 / 3), "guessed_share": 0.8}
    assert Intuitive()(output, batch)[1] == pytest.approx(expected)


def test_implied_rewards() -> None:
    # Q = 0 then log 3, V = log 4 both times: r = 0 - 0.5 log 4 and log 3
    batch, output = logits_of([[log(3), 0.0], [log(3), 0.0]], [1, 0])
    expected = {"nll": 0.2 * log(4) + 0.8 * log(4 / 3), "implied_reward": -0.2 * 0.5 * log(4) + 0.8 * log(3)}
    assert InverseSoftQ(discount=0.5)(output, batch)[1] == pytest.approx(expected)
