"""Quantities that a part needs: of a batch (`Trainer.annotate`) or of rollouts (`Trainer.policy_statistic`).

Policies go by name: `reference` (the first weights, or the folder set on the trainer), `proximal` (the weights before
the step), `old` (the weights that sampled each token, with the trainer's kernels), `averaged` (a running average). Any
other name is the folder of another model with the same vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from strop.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from strop.training.machine.logprobs import PolicyOutput
    from strop.types import Rollout

POLICIES = ("reference", "proximal", "old", "averaged")


@dataclass(frozen=True)
class Logprobs:
    """`batch.logprobs[policy]`: [T]."""

    policy: str

    def __str__(self) -> str:
        return f"logprobs of {self.policy}"


@dataclass(frozen=True)
class Logits:
    """`batch.frozen[policy]`, whole distributions for `Output.over_both`."""

    policy: str

    def __str__(self) -> str:
        return f"logits of {self.policy}"


@dataclass(frozen=True)
class ScoreNorms:
    """`batch.score_norms`: [A]."""

    def __str__(self) -> str:
        return "score norms"


@dataclass(frozen=True)
class Aux:
    """`batch.aux[name]`, values of `Turn.aux` under this name: [T, ...]."""

    name: str

    def __str__(self) -> str:
        return f"aux {self.name}"


Need: TypeAlias = Logprobs | Logits | ScoreNorms | Aux


@dataclass(frozen=True)
class PolicyStatistic:
    """Quantity of a policy at each completion token of a rollout: `look(output)` [T, ...]."""

    name: str  # key in `Rollout.policy_statistics`
    look: Callable[[PolicyOutput], Tensor]
    policy: str = "proximal"

    def __str__(self) -> str:
        return self.name

    def of(self, rollout: Rollout) -> NDArray[Any]:
        """The recorded values: [N, ...]."""
        if self.name not in rollout.policy_statistics:
            raise ConfigurationError(
                f"rollout {rollout.id} has no policy statistic {self.name}: the part that reads it must need it"
            )
        return rollout.policy_statistics[self.name]


ENTROPY = PolicyStatistic("entropy", lambda output: output.entropy)
LOGPROBS = PolicyStatistic("logprobs", lambda output: output.logprobs)
REFERENCE_LOGPROBS = PolicyStatistic("reference_logprobs", lambda output: output.logprobs, "reference")
HIDDEN = PolicyStatistic("hidden", lambda output: output.states)  # the state that predicts a token: [N, H]
HIDDEN_AFTER = PolicyStatistic("hidden_after", lambda output: output.hidden)  # the state after the token: [N, H]
PROMPT_HIDDEN = PolicyStatistic("prompt_hidden", lambda output: output.hidden)  # of the first prompt's tokens: [P, H]


def folders(needs: Iterable[Need]) -> list[str]:
    """Folders of the other models among the policies, sorted."""
    asked = {need.policy for need in needs if isinstance(need, Logprobs | Logits)}
    return sorted(asked - set(POLICIES))


def listed(needs: Iterable[Need | PolicyStatistic]) -> str:
    """The needs as text for a message."""
    return ", ".join(sorted(map(str, needs)))
