"""Sources of preference pairs: the policy's own rollouts, or a table with chosen and rejected completions."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from strop.control.budgets.fixed import Fixed
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.rewards.from_environment import Earned
from strop.generate.strategies.preference_pairs_from_data import RecitedPair
from strop.training.reductions.means import SequenceMean

Pairs: TypeAlias = Literal["sampled", "given"]


def pairing(pairs: Pairs) -> dict[str, Any]:
    """The parts of a `Run` that learns from pairs, with any pairwise loss."""
    if pairs == "sampled":
        return {"gates": (BestAndWorst(),), "reduction": SequenceMean()}
    from_table = {"strategy": RecitedPair(), "budget": Fixed(2), "rewards": (Earned(),)}
    return from_table | {"gates": (BestAndWorst(),), "reduction": SequenceMean()}
