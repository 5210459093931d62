"""A draft guesses the next tokens from the model's last state, and learns from what the model then said (Aurora).

It has no keys of its own: a state and a token give the next state, and the model's own head reads it. What is taught is
the model's distribution at every token that was sampled, several guesses deep, and at guesses that were not taken. A
guess never changes what is sampled, only how soon: so a draft may be of older weights, or know nothing at first.
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
_POSITIONS = 256  # tokens of one lesson
_EPSILON = 1e-6


class Trace(NamedTuple):
    """Tokens as they were sampled, and the model's normalised state before each."""

    states: Tensor  # [N, hidden]
    tokens: Tensor  # [N]


class Missed(NamedTuple):
    """Guesses that were not taken, and the model's states before and after them."""

    before: Tensor  # [S, hidden]
    tokens: Tensor  # [S]; -1: there was none
    after: Tensor  # [S, hidden]


class Ends(NamedTuple):
    """What is the model's own between tokens and states."""

    embedding: Tensor  # [V, hidden]
    head: Tensor  # [V, hidden]
    cap: float | None = None  # of scores, which it then holds between -cap and cap


class Next(nn.Module):
    """State and token -> the next state; at first the same one."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * hidden, width)
        self.outer = nn.Linear(width, hidden)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, state: Tensor, embedded: Tensor) -> Tensor:
        """[N, hidden], [N, hidden] -> [N, hidden], in float32."""
        moved: Tensor = self.outer(F.silu(self.inner(side_by_side(state, embedded, _EPSILON))))
        return state.float() + moved


@dataclass
class Draft:
    """Guesses `tokens` ahead while at most `rows` sequences are decoded, and learns every so many completions."""

    tokens: int = 4
    rows: int = 32  # with more the model is busy enough without guesses
    width: int = 4  # hidden units, in widths of the model
    learning_rate: float = 3e-3
    every: int = 4  # completions between two lessons
    pool: int = 64  # completions that lessons are drawn from; new weights empty it
    discarded: float = 0.1  # weight of guesses that were not taken
    _next: Next | None = field(init=False, repr=False, compare=False, default=None)
    _rounded: list[Tensor] = field(init=False, repr=False, compare=False)  # its weights and biases, as they guess
    _ends: Ends = field(init=False, repr=False, compare=False)
    _optimizer: torch.optim.Optimizer = field(init=False, repr=False, compare=False)
    _chance: torch.Generator = field(init=False, repr=False, compare=False)
    _traces: deque[Trace] = field(init=False, repr=False, compare=False, default_factory=deque)
    _missed: deque[Missed] = field(init=False, repr=False, compare=False, default_factory=deque)
    _new: int = field(init=False, repr=False, compare=False, default=0)  # completions since the last lesson
    _counts: Tensor = field(init=False, repr=False, compare=False)  # looks of the model, and tokens they gave
    _seen: tuple[float, float] = field(init=False, repr=False, compare=False, default=(0.0, 0.0))

    def __post_init__(self) -> None:
        if min(self.tokens, self.rows, self.width, self.every, self.pool) < 1 or self.discarded < 0:
            raise ConfigurationError("Draft needs tokens, rows, width, every and pool >= 1, and discarded >= 0")

    def open(self, ends: Ends) -> None:
        """Begin anew, with a draft that knows nothing."""
        size, device = ends.embedding.shape[1], ends.embedding.device
        self._ends = Ends(ends.embedding.detach(), ends.head.detach(), ends.cap)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._next = Next(size, self.width * size).to(device)
        self._rounded = [each.detach().to(ends.embedding.dtype, copy=True) for each in self._next.parameters()]
        self._optimizer = torch.optim.AdamW(self._next.parameters(), lr=self.learning_rate, weight_decay=0.0)
        self._chance = torch.Generator(device).manual_seed(0)
        self._counts = torch.zeros(2, dtype=torch.float64, device=device)  # float32 stops at 2^24
        self._traces, self._missed = deque(maxlen=self.pool), deque(maxlen=self.pool)
        self._new, self._seen = 0, (0.0, 0.0)

    def next_state(self, state: Tensor, tokens: Tensor) -> Tensor:
        """[N, hidden] and [N] -> [N, hidden]."""
        assert self._next is not None
        found: Tensor = self._next(state, F.embedding(tokens, self._ends.embedding))
        return found

    def guess(self, state: Tensor, tokens: Tensor, does: DecodeOperations) -> Tensor:
        """`next_state` with the operations of a decode step, rounded as the model's own: [N, hidden] in float32."""
        weight, bias, outer, last = self._rounded
        both = does.pair(state, tokens, self._ends.embedding, _EPSILON)
        return state + does.linear(F.silu(does.linear(both, weight, bias)), outer, last)

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
            apart = self._divergence(missed.after, guessed).where(is_there, 0.0)
            loss = loss + self.discarded * apart.sum() / is_there.sum().clamp(min=1)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self._next.parameters(), _CLIP)
        self._optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self._rounded, list(self._next.parameters()))
        return loss.detach()

    def _sampled(self, traces: Sequence[Trace]) -> Tensor:
        """Sum over depths of the mean divergence, from states of sampled tokens drawn at random."""
        states, tokens = (torch.cat(each) for each in zip(*traces, strict=True))
        until = accumulate(len(trace.tokens) for trace in traces)
        ends = torch.cat([torch.full_like(trace.tokens, end) for trace, end in zip(traces, until, strict=True)])
        at = torch.randint(len(tokens), (_POSITIONS,), generator=self._chance, device=tokens.device)
        ends, state, last = ends[at], states[at], len(tokens) - 1
        total = states.new_zeros((), dtype=torch.float32)
        for depth in range(self.tokens):
            state = self.next_state(state, tokens[(at + depth).clamp(max=last)])
            is_there = at + depth + 1 < ends
            apart = self._divergence(states[(at + depth + 1).clamp(max=last)], state).where(is_there, 0.0)
            total = total + _FADE**depth * apart.sum() / is_there.sum().clamp(min=1)
        return total

    def _divergence(self, state: Tensor, guessed: Tensor) -> Tensor:
        """KL(the model's distribution || the draft's) after each of two states [N, hidden]: [N]."""
        head, cap = self._ends.head, self._ends.cap
        scores = (F.linear(each.to(head.dtype), head).float() for each in (state, guessed))
        target, ours = (capped(each, cap).log_softmax(-1) for each in scores)
        return (target.exp() * (target - ours)).sum(-1)
