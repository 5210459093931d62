"""Where pairs of preferred completions come from: the policy's own rollouts, or a table that brings them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from strop.control.budgets.fixed import Fixed
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.rewards.from_environment import Earned
from strop.generate.strategies.preference_pairs_from_data import RecitedPair
from strop.training.reductions.means import SequenceMean

Pairs: TypeAlias = Literal["sampled", "given"]


def pairing(pairs: Pairs) -> dict[str, Any]:
    """Parts of a run that learns from pairs, whatever its loss."""
    if pairs == "sampled":
        return {"gates": (BestAndWorst(),), "reduction": SequenceMean()}
    given = {"strategy": RecitedPair(), "budget": Fixed(2), "rewards": (Earned(),)}
    return given | {"gates": (BestAndWorst(),), "reduction": SequenceMean()}
