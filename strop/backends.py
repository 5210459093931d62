"""Data that engines, trainers and channels exchange: completions, weight versions, objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from strop.types import FloatArray, IntArray, Metrics

if TYPE_CHECKING:
    from torch import Tensor

    from strop.training.batch import Batch, Output

    fact = property  # a fact about a mechanism: a property with a default
else:

    class fact:  # noqa: N801 (a property that a field of a dataclass can redefine, with a default of its own or none)
        def __init__(self, default):
            self.default, self.__doc__ = default, default.__doc__

        def __get__(self, part, owner):
            if part is None:
                raise AttributeError(f"{owner.__name__}.{self.default.__name__} is a fact of its parts")
            return self.default(part)


Objective: TypeAlias = "Callable[[Output, Batch], tuple[Tensor, Metrics]]"


EXPERTS = "experts"  # in `aux`: those that each token of the context went through, from 1 on, layer by layer
# in `aux`, of tokens that filled a canvas of masks: the step that each came in, how many places were left behind the
# completion, and whether it had ended, so that those hold its last token from then on
ORDER = "order"


class Stop(Enum):
    """Reason why a completion ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORTED = "aborted"


@dataclass(frozen=True, eq=False)
class Completion:
    """Result of an engine: tokens, each with the logprob it was sampled with and the weight version."""

    tokens: IntArray  # [N], the stop token included
    logprobs: FloatArray  # [N]
    versions: IntArray  # [N]
    stop: Stop
    # what the trainer must see again, see `Turn.aux`: one row per token, or one per token of the whole context
    aux: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class WeightVersion:
    """Published weights; an engine that loads them returns the fingerprint of what it really holds."""

    step: int
    fingerprint: str = field(compare=False, default="")
    location: Any = field(compare=False, default=None, repr=False)  # a folder, or tensors by name
