"""Packed tensors of one forward pass, and the outputs of the policy and of frozen policies on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from strop.backends import EXPERTS
from strop.errors import ConfigurationError
from strop.types import Origin

if TYPE_CHECKING:
    from torch import Tensor

ORIGINS = tuple(Origin)
AS_SAMPLED = -1


@dataclass(frozen=True, eq=False)
class Frozen:
    """Frozen policy at the R trainable tokens of a batch: `head(hidden)` are its logits [R, V]."""

    hidden: Tensor  # [R, H], the state that predicts each token
    head: Callable[[Tensor], Tensor]


@dataclass(eq=False)
class Batch:
    """Packed tensors without padding for one forward pass: T tokens of A rollouts of G groups.

    A per-token quantity at t belongs to token t given the tokens before it in its segment. `share` is the weight that
    the reduction gave: the step's loss is the sum of `share * loss` over its batches, however they were split.
    """

    tokens: Tensor  # [T] int64
    positions: Tensor  # [T] int64
    segments: Tensor  # [T] int64, contiguous contexts, ascending
    rollouts: Tensor  # [T] int64, index of the rollout in this batch, ascending
    groups: Tensor  # [A] int64, index of the rollout's group in this batch, ascending
    trainable: Tensor  # [T] bool, the tokens the policy sampled
    behavior_logprobs: Tensor  # [T], of the policy that sampled the token
    advantages: Tensor  # [T]
    share: Tensor  # [T]
    temperature: Tensor  # [T]
    versions: Tensor  # [T] int64, -1 where not trainable
    rewards: Tensor  # [A]
    successes: Tensor  # [A], from 0 to 1; NaN where no reward says how right a rollout is
    origins: Tensor  # [A] int64, indices into `ORIGINS`
    group_numbers: tuple[int, ...]  # [G]
    rollout_ids: tuple[str, ...]  # [A]
    task_ids: tuple[str, ...]  # [A]
    policy_names: tuple[str, ...] = ("",)  # see `Sampling.policy_name`
    policy_indices: Tensor | None = None  # [T] int64, indices into `policy_names`, by turn; None: all have the first
    version: int = 0  # the weights the step starts from
    view: int = 0  # index of the random mask of a `View`; AS_SAMPLED: no mask, tokens in the order they were sampled
    step_tokens: int = 0  # trainable tokens of the whole step, over all its batches
    returns: Tensor | None = None  # [T]
    values: Tensor | None = None  # [T]
    score_norms: Tensor | None = None  # [A], squared norm of the gradient of a rollout's log-probability
    observed: Tensor | None = (
        None  # [T] bool, what the environment returned after the first completion token: read, not sampled
    )
    observed_share: Tensor | None = None  # [T], the mean over a rollout's observed tokens, then over rollouts
    aux: dict[str, Tensor] = field(default_factory=dict)  # [T, ...] from `Turn.aux`, 0 where a turn has none
    logprobs: dict[str, Tensor] = field(
        default_factory=dict
    )  # [T], of policies that a loss or correction needs, see `requirements.py`
    frozen: dict[str, Frozen] = field(default_factory=dict)  # whole distributions of frozen policies

    @property
    def num_rollouts(self) -> int:
        return len(self.rollout_ids)

    def logprobs_of(self, policy: str) -> Tensor:
        """Log-probabilities [T] of a policy; "behavior" is the one that sampled, others exist if a part needs them."""
        if policy == "behavior":
            return self.behavior_logprobs
        if policy not in self.logprobs:
            raise ConfigurationError(
                f"the batch has no logprobs of {policy}: the part that reads them must need Logprobs({policy!r})"
            )
        return self.logprobs[policy]

    def fill(self, policy: str, logprobs: Tensor) -> None:
        """Add a policy's logprobs [T]; copies made before do not contain them."""
        self.logprobs = {**self.logprobs, policy: logprobs}

    def read_by(self, policy: str) -> Batch:
        """Input of a policy: a reference or teacher routes to its own experts, not to the recorded ones."""
        if policy == "proximal" or EXPERTS not in self.aux:
            return self
        return replace(self, aux={name: each for name, each in self.aux.items() if name != EXPERTS})

    def changed(self, change: Callable[[str, Tensor], Tensor]) -> Batch:
        """A copy with `change(name, tensor)` in place of every tensor except those of frozen policies."""
        found: dict[str, Any] = {}
        for name, value in ((each.name, getattr(self, each.name)) for each in fields(self)):
            if isinstance(value, dict) and name != "frozen":
                found[name] = {key: change(name, tensor) for key, tensor in value.items()}
            elif hasattr(value, "dtype"):
                found[name] = change(name, value)
        return replace(self, **found)

    def is_of(self, *origins: Origin) -> Tensor:
        """Rollouts of these origins: [A] bool."""
        places = self.origins.new_tensor([ORIGINS.index(origin) for origin in origins])
        return (self.origins.unsqueeze(1) == places).any(1)

    def per_rollout(self, values: Tensor) -> Tensor:
        """Sum a [T] quantity over the trainable tokens of each rollout: [A]."""
        kept = values.where(self.trainable, values.new_zeros(()))
        return values.new_zeros(self.num_rollouts).index_add(0, self.rollouts, kept)

    def on_tokens(self, values: Tensor) -> Tensor:
        """Spread an [A] quantity over tokens: [T]."""
        return values[self.rollouts]

    def log_ratio(self, new: Tensor, old: Tensor) -> Tensor:
        """log(new / old) per trainable token: [T], 0 elsewhere.

        Clamped to +-20, so that its exponential and sums stay finite; a clamped token has no gradient.
        """
        difference = (new - old).nan_to_num(nan=0.0)  # -inf - -inf
        return difference.clamp(-20.0, 20.0).where(self.trainable, new.new_zeros(()))

    def token_mean(self, values: Tensor) -> Tensor:
        """This batch's part of the mean over all trainable tokens of the step."""
        count = self.step_tokens or int(self.trainable.sum())
        return values.where(self.trainable, values.new_zeros(())).sum() / max(count, 1)

    def metric(self, values: Tensor) -> float:
        """Metric: the sum of `share * values` over the trainable tokens."""
        kept = values.detach().where(self.trainable, values.new_zeros(()))
        return as_metric((self.share * kept).sum())


class Output(Protocol):
    """Output of the policy on a batch, with gradient; everything is [T] and zero where not trainable."""

    @property
    def logprobs(self) -> Tensor: ...
    @property
    def entropy(self) -> Tensor: ...
    @property
    def states(self) -> Tensor:
        """The hidden state that predicts each token, the last before the output layer: [T, H]."""
        ...

    def over_logits(self, function: Callable[..., Tensor], *columns: Tensor, where: Tensor | None = None) -> Tensor:
        """Apply `function(logits [C, V], tokens [C]) -> [C]` in chunks, so that full logits never exist: [T].

        Further [T] columns are chunked alike and passed on. `where` [T] selects other tokens than the trainable ones.
        """
        ...

    def over_both(self, function: Callable[..., Tensor], policy: str, *columns: Tensor) -> Tensor:
        """The same for `function(logits, frozen_logits, tokens, ...)`; the loss `needs` the policy's `Logits`."""
        ...

    def reread(self, others: Tensor, share: float) -> Output:
        """The forward pass repeated with embeddings (1 - share) * own + share * that of `others` [T], without gradient.

        Tokens that the policy read and did not sample keep their embeddings.
        """
        ...


def as_metric(value: Tensor) -> float:
    """A value to log; on a GPU it stays a tensor until the trainer fetches all values of a step at once."""
    return value.detach() if value.is_cuda else float(value)  # type: ignore[return-value]
