"""Draft model for speculative decoding, trained online on the target model's samples (Aurora).

It has no KV cache: the target's last hidden state and a token give the next state, which the target's own LM head
reads. Its loss matches the target's distribution at sampled tokens, several tokens deep, and at rejected draft tokens;
and, at more tokens because it is cheaper, the target's hidden state (as in EAGLE). Drafting uses the mean of its recent
weights. Drafts never change what is sampled, only the speed: a stale or untrained draft model is safe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strop.errors import ConfigurationError
from strop.kernels.attention import capped
from strop.kernels.decode import DecodeOperations, side_by_side
from strop.types import Group, Metrics

_FADE = 0.8  # weight of each guess relative to the one before it
_CLIP = 2.5  # of the gradient's norm
_POSITIONS, _READ = 1024, 256  # tokens of one lesson, and those of them whose distributions are compared
_DISTANCE = 10.0  # weight of states' squared distance, in squared lengths of states
_RATE = 0.1  # of the newest weights in the mean
_FASTEST, _BETAS = 1e-2, (0.9, 0.95)  # highest learning rate, and Adam's: lessons are few
_EPSILON = 1e-6
_MOST = 64  # guesses


class Trace(NamedTuple):
    """Sampled tokens, and the target's normalized hidden state before each."""

    states: Tensor  # [N, hidden]
    tokens: Tensor  # [N]


class Missed(NamedTuple):
    """Rejected draft tokens, and the target's hidden states before and after them."""

    before: Tensor  # [S, hidden]
    tokens: Tensor  # [S]; -1: there was none
    after: Tensor  # [S, hidden]


class Ends(NamedTuple):
    """Target's embedding and LM head."""

    embedding: Tensor  # [V, hidden]
    head: Tensor  # [V, hidden]
    cap: float | None = None  # of scores, which it then holds between -cap and cap


class Next(nn.Module):
    """Network from state and token to the next state; initialized to return its input state."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * hidden, 2 * width, bias=False)
        self.outer = nn.Linear(width, hidden, bias=False)
        nn.init.zeros_(self.outer.weight)

    def forward(self, state: Tensor, embedded: Tensor) -> Tensor:
        """[N, hidden], [N, hidden] -> [N, hidden], in float32."""
        gate, up = self.inner(side_by_side(state, embedded, _EPSILON)).chunk(2, -1)
        moved: Tensor = self.outer(F.silu(gate) * up)
        return state.float() + moved


@dataclass
class Draft:
    """Draft of `tokens` tokens while at most `rows` sequences are decoded, trained at intervals of completions."""

    tokens: int = 4
    rows: int = 32  # with more the model is busy enough without guesses
    width: int = 3  # hidden units, in widths of the model
    learning_rate: float = 0.6  # over the model's width, as products of more numbers move further
    every: int = 4  # completions between two lessons
    pool: int = 128  # completions that lessons are drawn from; new weights empty it
    discarded: float = 0.1  # weight of guesses that were not taken
    _next: Next | None = field(init=False, repr=False, compare=False, default=None)
    _mean: list[Tensor] = field(init=False, repr=False, compare=False)  # of its weights
    _rounded: list[Tensor] = field(init=False, repr=False, compare=False)  # the same as they guess
    _lessons: int = field(init=False, repr=False, compare=False, default=0)
    _ends: Ends = field(init=False, repr=False, compare=False)
    _optimizer: torch.optim.Optimizer = field(init=False, repr=False, compare=False)
    _probability: torch.Generator = field(init=False, repr=False, compare=False)
    _traces: deque[Trace] = field(init=False, repr=False, compare=False, default_factory=deque)
    _missed: deque[Missed] = field(init=False, repr=False, compare=False, default_factory=deque)
    _new: int = field(init=False, repr=False, compare=False, default=0)  # completions since the last lesson
    _counts: Tensor = field(init=False, repr=False, compare=False)  # looks of the model, and tokens they gave
    _seen: tuple[float, float] = field(init=False, repr=False, compare=False, default=(0.0, 0.0))

    def __post_init__(self) -> None:
        if min(self.tokens, self.rows, self.width, self.every, self.pool) < 1 or self.discarded < 0:
            raise ConfigurationError("Draft needs tokens, rows, width, every and pool >= 1, and discarded >= 0")
        if self.tokens > _MOST:  # of 128 states that are kept lessons need some
            raise ConfigurationError(f"a Draft guesses at most {_MOST} tokens ahead, got {self.tokens}")

    def open(self, ends: Ends) -> None:
        """Begin anew, with a draft that knows nothing."""
        size, device = ends.embedding.shape[1], ends.embedding.device
        self._ends = Ends(ends.embedding.detach(), ends.head.detach(), ends.cap)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)  # `torch.manual_seed` would seed GPUs too, and they are not forked
            self._next = Next(size, self.width * size).to(device)
        self._mean = [each.detach().clone() for each in self._next.parameters()]
        self._rounded = [each.to(ends.embedding.dtype, copy=True) for each in self._mean]
        rate = min(_FASTEST, self.learning_rate / size)
        self._optimizer = torch.optim.Adam(self._next.parameters(), lr=rate, betas=_BETAS)
        self._probability = torch.Generator(device).manual_seed(0)
        self._counts = torch.zeros(2, dtype=torch.float64, device=device)  # float32 stops at 2^24
        self._traces, self._missed = deque(maxlen=self.pool), deque(maxlen=self.pool)
        self._new, self._lessons, self._seen = 0, 0, (0.0, 0.0)

    def next_state(self, state: Tensor, tokens: Tensor) -> Tensor:
        """[N, hidden] and [N] -> [N, hidden]."""
        assert self._next is not None
        found: Tensor = self._next(state, F.embedding(tokens, self._ends.embedding))
        return found

    def guess(self, state: Tensor, tokens: Tensor, does: DecodeOperations) -> Tensor:
        """`next_state` of the mean, with the operations of a decode step and rounded as they are: in float32."""
        inner, outer = self._rounded
        both = does.pair(state, tokens, self._ends.embedding, _EPSILON)
        return state + does.linear(does.gated(both, inner, None, None, is_gelu=False), outer, None)

    def count(self, is_looked: Tensor, tokens: Tensor) -> None:
        """Note how many tokens [B] looks of the model at these rows gave."""
        self._counts += torch.stack((is_looked.to(tokens.dtype), tokens)).sum(1, dtype=self._counts.dtype)

    def take(self, trace: Trace, missed: Missed) -> None:
        """Keep what was sampled and what was missed, and have a lesson when it is time."""
        if len(trace.tokens) < 2:
            return
        self._traces.append(trace)
        self._missed.append(missed)
        self._new += 1
        if self._new >= self.every:
            self._new = 0
            self.lesson(self._traces, Missed(*(torch.cat(each) for each in zip(*self._missed, strict=True))))

    def forget(self) -> None:
        """The model has changed: what its older weights said is no lesson any more."""
        self._traces.clear()
        self._missed.clear()

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Tokens per look of the model since the last step; lessons come from completions, not from groups."""
        if self._next is None:
            return {}
        looks, tokens = self._counts.tolist()
        before, self._seen = self._seen, (looks, tokens)
        return {"draft/tokens_per_look": (tokens - before[1]) / (looks - before[0])} if looks > before[0] else {}

    @torch.enable_grad()
    def lesson(self, traces: Iterable[Trace], missed: Missed) -> Tensor:
        """One step of the optimizer; its loss before. Nothing here waits for the device, nor may whoever asks."""
        assert self._next is not None
        self._optimizer.zero_grad()
        loss = self._sampled(list(traces))
        if self.discarded and len(missed.tokens):
            is_there = missed.tokens >= 0
            guessed = self.next_state(missed.before, missed.tokens.clamp(min=0))
            loss = loss + self.discarded * _mean_where(is_there, self._divergence(missed.after, guessed))
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self._next.parameters(), _CLIP)
        self._optimizer.step()
        self._average(list(self._next.parameters()))
        return loss.detach()

    @torch.no_grad()
    def _average(self, weights: list[Tensor]) -> None:
        """Of all weights so far while they are few, of the newest more than of older ones later."""
        self._lessons += 1
        torch._foreach_lerp_(self._mean, weights, max(_RATE, 1 / (self._lessons + 1)))
        torch._foreach_copy_(self._rounded, self._mean)

    def _sampled(self, traces: Sequence[Trace]) -> Tensor:
        """Sum over depths of what is apart in the mean, from states of sampled tokens drawn at random."""
        states, tokens = (torch.cat(each) for each in zip(*traces, strict=True))
        ends = _ends_of([len(trace.tokens) for trace in traces], tokens.device)
        at = torch.randint(len(tokens), (_POSITIONS,), generator=self._probability, device=tokens.device)
        ends, state, last = ends[at], states[at], len(tokens) - 1
        length = state.float().square().sum(-1).mean()  # squared
        total = states.new_zeros((), dtype=torch.float32)
        for depth in range(self.tokens):
            state = self.next_state(state, tokens[(at + depth).clamp(max=last)])
            aim, is_there = states[(at + depth + 1).clamp(max=last)], at + depth + 1 < ends
            apart = _mean_where(is_there[:_READ], self._divergence(aim[:_READ], state[:_READ]))
            far = _mean_where(is_there, (state - aim.float()).square().sum(-1)) / length
            total = total + _FADE**depth * (apart + _DISTANCE * far)
        return total

    def _divergence(self, state: Tensor, guessed: Tensor) -> Tensor:
        """KL(the model's distribution || the draft's) after each of two states [N, hidden]: [N]."""
        head, cap = self._ends.head, self._ends.cap
        scores = (F.linear(each.to(head.dtype), head).float() for each in (state, guessed))
        target, ours = (capped(each, cap).log_softmax(-1) for each in scores)
        return (target.exp() * (target - ours)).sum(-1)


def _mean_where(is_there: Tensor, found: Tensor) -> Tensor:
    """Of those that are there [N]; 0 if none is."""
    return found.where(is_there, 0.0).sum() / is_there.sum().clamp(min=1)


def _ends_of(sizes: Sequence[int], device: torch.device) -> Tensor:
    """Where the trace of each token ends, traces one behind the other: [N]. Waits for no device."""
    ends, counts = (torch.tensor(each).to(device, non_blocking=True) for each in (list(accumulate(sizes)), sizes))
    return ends.repeat_interleave(counts, output_size=sum(sizes))
