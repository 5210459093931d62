"""Every legal pair of loss and correction passes; a ratio counted twice, or a part of it forgotten, never does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.control.admission.bounded_lag import BoundedLag
from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError
from strop.launch.checks.preflight import check
from strop.recipes.classics.rloo import rloo
from strop.recipes.objective.missing_old_logits import MismatchMask
from strop.recipes.objective.vcpo import MinimumVariance
from strop.recipes.setting import Setting
from strop.recipes.system.areal import Decoupled
from strop.recipes.system.ring_1t import IcePop
from strop.recipes.system.tba import TrajectoryBalance
from strop.roles import Correction, Loss
from strop.run import Run
from strop.training.corrections.geometric import Geometric
from strop.training.corrections.importance_weights import Clamped, Masked, SequenceTruncated, Truncated, Veto
from strop.training.losses.aipo import Aipo
from strop.training.losses.among import Among
from strop.training.losses.cispo import Cispo
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.losses.reinforce import Reinforce
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer
from strop.types import Origin, Sampling


def run_with(loss: Loss, correction: Correction | None, window: int = 0) -> Run:
    trainer = TorchTrainer(snapshots=5, average_window=window)
    return replace(
        rloo(Setting()), losses=(loss, Kl()), correction=correction, trainer=trainer, admission=BoundedLag(lag=4)
    )


@pytest.mark.parametrize(
    ("loss", "correction", "window"),
    [
        (Reinforce(), None, 0),
        (Reinforce(), Truncated(), 0),
        (Reinforce(), SequenceTruncated(), 0),
        (Reinforce(), Geometric(inner=Clamped()), 0),
        (Reinforce(), IcePop(), 0),  # leaves staleness alone, counts nothing twice
        (Clip(), None, 0),
        (Clip(anchor="proximal"), Masked(target="proximal"), 0),
        (Clip(anchor="proximal"), Veto(Truncated(target="proximal"), target="proximal"), 0),
        (Clip(anchor="old"), IcePop(), 0),
        (Clip(anchor="old"), MismatchMask(), 0),
        (Clip(anchor="averaged"), MismatchMask(target="averaged"), 4),
        (Decoupled(), None, 0),
        (Decoupled(anchor="averaged"), None, 4),
        (Decoupled(anchor="interpolated"), None, 0),
        (Aipo(), None, 0),
        (TrajectoryBalance(), None, 0),
        (MinimumVariance(), None, 0),
    ],
    ids=repr,
)
def test_legal(loss: Loss, correction: Correction | None, window: int) -> None:
    check(run_with(loss, correction, window))


@pytest.mark.parametrize(
    "loss", [Clip(), Cispo(), Decoupled(), Aipo(), TrajectoryBalance(), MinimumVariance()], ids=repr
)
@pytest.mark.parametrize("correction", [Truncated(), Masked(target="proximal"), IcePop()], ids=repr)
def test_a_whole_ratio_is_never_corrected_again(loss: Loss, correction: Correction) -> None:
    with pytest.raises(ConfigurationError, match="twice"):
        check(run_with(loss, correction))


@pytest.mark.parametrize(
    ("loss", "correction", "message"),
    [
        (Clip(anchor="old"), None, "begins at the old policy and nothing weighs what comes before"),
        (Clip(anchor="old"), Truncated(), r"Truncated\(target='current'\) ends elsewhere.*target='old'"),
        (Clip(anchor="old"), Truncated(target="proximal"), "twice or not at all"),
        (Clip(anchor="proximal"), IcePop(), "use a correction with target='proximal'"),
        (Reinforce(), Veto(Truncated(target="old")), "the current policy and what it holds with the old one"),
    ],
)
def test_parts_that_do_not_meet_are_refused(loss: Loss, correction: Correction | None, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check(run_with(loss, correction))


@pytest.mark.parametrize("loss", [Decoupled(), Aipo(), MinimumVariance()], ids=repr)
def test_truncated_sampling_is_refused_where_a_loss_is_the_correction(loss: Loss) -> None:
    with pytest.raises(ConfigurationError, match=f"{type(loss).__name__} compares the policy.*top_p 0.9"):
        check(replace(run_with(loss, None), sampling=Sampling(top_p=0.9)))


def test_weights_that_will_be_needed_must_be_kept() -> None:
    run = run_with(Clip(anchor="old"), IcePop())
    with pytest.raises(ConfigurationError, match="at lag 4: need snapshots >= 5, got 0"):
        check(replace(run, trainer=TorchTrainer()))
    with pytest.raises(ConfigurationError, match="at lag 6: need snapshots >= 7, got 5"):
        check(replace(run, admission=BoundedLag(lag=6)))
    with pytest.raises(ConfigurationError, match="need average_window >= 1, got 0"):
        check(run_with(Decoupled(anchor="averaged"), None))
    with pytest.raises(ConfigurationError, match="average_window is 4, and no loss"):
        check(run_with(Decoupled(), None, window=4))


def test_a_balance_of_one_rollout_is_refused() -> None:
    run = replace(run_with(TrajectoryBalance(), None), budget=Fixed(1))
    with pytest.raises(ConfigurationError, match="TrajectoryBalance compares siblings: need >= 2 rollouts"):
        check(run)


@pytest.mark.parametrize(
    ("loss", "missing"),
    [(MinimumVariance(), "score norms"), (Decoupled(anchor="averaged"), "of averaged"), (Clip(anchor="old"), "of old")],
    ids=repr,
)
def test_what_several_ranks_cannot_fill_is_refused(loss: Loss, missing: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"{missing}: needed, and Ranks fills logprobs of proximal, logprobs of reference only"
    ):
        check(replace(run_with(loss, None), trainer=Ranks()))


def test_a_ratio_within_another_loss_is_seen() -> None:
    with pytest.raises(ConfigurationError, match="Clip holds the importance ratio already"):
        check(run_with(Among(Clip(), (Origin.POLICY,)), Truncated()))
    check(run_with(Among(Clip(), (Origin.POLICY,)), None))
