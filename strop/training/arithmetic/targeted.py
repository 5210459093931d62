"""Corrections that weigh tokens to one policy, which a field names."""

from __future__ import annotations

from strop.roles import Correction
from strop.training.arithmetic.ratios import FROZEN, check_policy, needed
from strop.training.requirements import Need


class Targeted(Correction):
    """The policy that tokens are weighed to is one that is there, and the trainer is asked for it."""

    target: str

    def __post_init__(self) -> None:
        check_policy(self.target, ("current", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)
