"""Weights by policy name, where several models are trained at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from strop.errors import ConfigurationError
from strop.weights.shared_base_weights import Loan, Shared


def check_policies(policy_names: Sequence[str], count: int, what: str) -> None:
    """Refuse names that two parts would share, or that are no names of folders."""
    is_named = all(
        policy_name and policy_name.replace("_", "").replace(" ", "").isalnum() for policy_name in policy_names
    )
    if not policy_names or len(set(policy_names)) != len(policy_names) or len(policy_names) != count or not is_named:
        raise ConfigurationError(
            f"need different policy names of letters, digits, blanks and _, one for each of the {what}, got "
            f"{list(policy_names)} "
            f"for {count} {what}"
        )


def place_of(policy_name: str, policy_names: Sequence[str]) -> int:
    """The policy name's own weights; whoever has none speaks with the first."""
    return policy_names.index(policy_name) if policy_name in policy_names else 0


def part_of(weights: Mapping[str, Tensor], policy_name: str) -> dict[str, Tensor]:
    """What was published under the prefix of a policy name (`POLICY/`), without it."""
    prefix = f"{policy_name}/"
    part = {name.removeprefix(prefix): each for name, each in weights.items() if name.startswith(prefix)}
    if not part:
        raise ConfigurationError(
            f"no weights were published for policy name {policy_name!r}: use trainer=TrainerPerPolicy(...)"
        )
    return part


def together(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """All parts under the prefixes of their policy names."""
    return {f"{policy_name}/{name}": each for policy_name, part in parts.items() for name, each in part.items()}


@dataclass(frozen=True, eq=False)
class SharedByPolicy(Loan):
    """Shared base weights of all policy names, with separate adapters."""

    parts: Mapping[str, Shared]

    @property
    def adapters(self) -> dict[str, Tensor]:
        return together({policy_name: shared.adapters for policy_name, shared in self.parts.items()})

    def published(self, adapters: Mapping[str, Tensor]) -> str:
        names = [shared.published(part_of(adapters, policy_name)) for policy_name, shared in self.parts.items()]
        return hashlib.sha256("|".join(names).encode()).hexdigest()[:32]
