"""A mechanism is its own configuration: its repr builds it again, and it survives the way to another process."""

from __future__ import annotations

import importlib
import pickle

import pytest

MECHANISMS = [
    ("strop.training.losses.clip", "Clip(low=0.1, high=0.28, dual=3.0, weight=0.5, anchor='old')"),
    ("strop.training.losses.reinforce", "Reinforce(weight=1.0)"),
    ("strop.training.losses.cispo", "Cispo(low=1.0, high=4.0, weight=1.0)"),
    ("strop.training.losses.gspo", "Gspo(low=0.0003, high=0.0004, weight=1.0)"),
    ("strop.training.losses.likelihood", "Likelihood(weight=1.0)"),
    ("strop.training.losses.preference_pairs", "Dpo(beta=0.1, weight=1.0, against='reference', apart=0.0)"),
    ("strop.training.losses.kl", "Kl(estimator='k2', weight=0.04, policy='reference')"),
    ("strop.training.losses.entropy", "Entropy(weight=0.01)"),
    (
        "strop.recipes.system.areal",
        "Decoupled(low=0.2, high=0.2, cap=5.0, dual=3.0, anchor='averaged', weight=1.0)",
    ),
    ("strop.training.losses.aipo", "Aipo(cap=8.0, is_detached=True, weight=1.0)"),
    (
        "strop.recipes.system.tba",
        "TrajectoryBalance(beta=0.05, weight=1.0, last_beta=0.05, beta_steps=0)",
    ),
    ("strop.recipes.objective.vcpo", "MinimumVariance(cap=8.0, epsilon=1e-08, weight=1.0)"),
    ("strop.training.corrections.importance_weights", "Truncated(cap=2.0, target='current')"),
    ("strop.training.corrections.importance_weights", "Masked(low=0.5, high=2.0, target='current')"),
    ("strop.training.corrections.importance_weights", "Clamped(low=0.5, high=2.0, target='proximal')"),
    ("strop.training.corrections.importance_weights", "SequenceTruncated(cap=8.0, target='current')"),
    ("strop.training.corrections.importance_weights", "SequenceMasked(cap=8.0, target='current')"),
    ("strop.training.corrections.geometric", "Geometric(low=0.999, high=1.001, target='current', inner=None)"),
    ("strop.recipes.system.ring_1t", "IcePop(low=0.5, high=5.0, target='old')"),
    ("strop.recipes.objective.missing_old_logits", "MismatchMask(limit=2.0, target='averaged')"),
    ("strop.training.step_scales.effective_sample_size", "EffectiveSampleSize(full=1.0, power=0.5)"),
    ("strop.training.reductions.means", "TokenMean()"),
    ("strop.training.reductions.means", "SequenceMean()"),
    ("strop.training.reductions.means", "ConstantLength(length=64)"),
    ("strop.training.advantages.group_relative", "GroupStandard(epsilon=1e-06)"),
    ("strop.training.advantages.group_relative", "GroupMean()"),
    ("strop.training.advantages.group_relative", "LeaveOneOut()"),
    ("strop.training.advantages.batch_relative", "BatchStandard(epsilon=1e-08)"),
    ("strop.training.advantages.gae", "Gae(discount=1.0, trace=0.95, whiten=True)"),
    ("strop.training.advantages.constant", "Constant(value=1.0)"),
    ("strop.filter.gates.zero_variance", "ZeroVariance()"),
    ("strop.filter.gates.successes_only", "Successes(threshold=1.0)"),
    ("strop.filter.gates.best_vs_worst_pair", "BestAndWorst()"),
    ("strop.filter.rewards.overlong_penalty", "Overlong(max_tokens=64, cushion=16, weight=1.0)"),
    ("strop.filter.rewards.from_environment", "Earned(weight=1.0, grades=ScoreRange(low=0.0, high=1.0))"),
    ("strop.filter.rewards.controls", "Flat(value=1.0, weight=1.0)"),
    ("strop.control.budgets.fixed", "Fixed(size=8)"),
    ("strop.control.admission.bounded_lag", "BoundedLag(lag=1)"),
    ("strop.replay.fifo", "Fifo()"),
    ("strop.replay.mostly_recent", "MostlyRecent(recent=0.95, capacity=1000, seed=0, answers=0, sharpness=0.0)"),
]


@pytest.mark.parametrize(("module", "source"), MECHANISMS)
def test_repr_is_its_source_and_it_pickles(module: str, source: str) -> None:
    mechanism = eval(source, vars(importlib.import_module(module)))
    assert repr(mechanism) == source
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
