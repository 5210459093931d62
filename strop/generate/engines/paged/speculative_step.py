"""Speculative decoding step: a draft model proposes tokens, the target verifies them in one pass and samples its own.

Each position is sampled with its own random number, with or without a draft. A draft token is accepted if it equals the
token that the target samples there, so the output is identical token by token, and good drafts only save passes. Drafts
are sampled with the random numbers of their positions too: two similar distributions then often give the same token,
nearly as often as possible with the exponential race (`strop.kernels.sampling.exponential_race`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from strop.generate.engines.paged.draft_model import Draft, Missed, Trace
from strop.generate.engines.paged.paged_llama import Cache, PagedLlama
from strop.kernels.decode import DecodeOperations, Sheet, TokenPlaces
from strop.kernels.sampling.sample_token import Draws

_WINDOW = 128  # newest states of a slot that are kept: of 1,024 slots 0.9 GiB at 7B
_FEW = 64  # tokens of a step that read keys one by one, by as many programs; more of them share what they read


class Ahead:
    """Speculative decoder: keeps the target's hidden states of each slot, and takes steps of several tokens."""

    def __init__(
        self, draft: Draft, llama: PagedLlama, operations: DecodeOperations, sheet: Sheet, tables: Tensor, draws: Draws
    ) -> None:
        self.draft, self._llama, self._operations, self._sheet, self._tables = draft, llama, operations, sheet, tables
        self._draws, ends = draws, llama.ends()
        draft.open(ends)
        slots, self._size = len(sheet.lengths), ends.embedding.shape[1]
        self._idle = slots - 1
        blank = torch.zeros(slots, self._size, dtype=ends.embedding.dtype, device=ends.embedding.device)
        self._states = blank.repeat(_WINDOW, 1).view(slots, _WINDOW, self._size)  # by position, the oldest overwritten
        self._missed = Missed(blank, torch.full_like(sheet.lengths, -1, dtype=torch.int64), blank.clone())
        self._rows = torch.arange(slots, dtype=torch.int32, device=blank.device)
        self._ahead = self._rows.new_tensor(range(draft.tokens + 1))

    def keep(self, slots: Tensor, positions: Tensor, states: Tensor) -> None:
        """The states after these tokens [T], [T, hidden]."""
        self._states.view(-1, self._size).index_copy_(0, slots.long() * _WINDOW + positions.long() % _WINDOW, states)

    def step(self, slots: Tensor, last: Tensor, cache: Cache, is_truncated: bool) -> None:
        """Let each of these slots [B], whose last tokens are `last` [B], write as many tokens as are guessed right."""
        sheet, count = self._sheet, self.draft.tokens + 1
        lengths, is_active = sheet.lengths[slots], sheet.is_active[slots]
        places = lengths.unsqueeze(1) + self._ahead  # [B, count], of what will be drawn
        guesses = self._guesses(slots, last, places, is_truncated)  # [B, count - 1]
        tokens = torch.cat((last.long().unsqueeze(1), guesses), 1)
        is_room = places <= sheet.limits[slots].unsqueeze(1)
        owners = torch.where(is_room, slots.unsqueeze(1), self._idle).flatten()
        positions = torch.where(is_room, places - 1, 0).flatten()
        room = is_room.sum(1, dtype=torch.int32)
        runs = None
        if len(owners) > _FEW:
            runs = torch.stack((self._rows[: len(slots)] * count, lengths - 1, room), 1)
        where = TokenPlaces(owners.int(), positions, self._tables, runs)
        states = self._llama.states(tokens.flatten(), where, cache)
        self.keep(owners, positions, states)
        how = self._draws.of(slots.repeat_interleave(count))
        drawn = self._operations.draw(self._llama.scores(states), how, places.flatten(), is_truncated)
        found, logprobs = (each.view(-1, count) for each in drawn)
        right = (found[:, :-1] == guesses).cumprod(1).sum(1)  # [B], guesses that hold
        self._operations.write(sheet, slots, found, logprobs, right + 1)
        self.draft.count(is_active, sheet.lengths[slots] - lengths)
        is_read = is_active & (right + 1 < room)  # of a guess beyond its limit the model knows nothing
        missing = torch.where(is_read, slots, self._idle)
        self._miss(missing, guesses, states.view(len(slots), count, -1), right)

    def take(self, slot: int, length: int, newest: int, beyond: int) -> None:
        """Teach the draft the newest of so many tokens, as far as their states are kept: the slot stands still.

        It may have run on for some tokens beyond them, where a string ended them. The host knows all these numbers: it
        waits for nothing here.
        """
        count = max(0, min(newest, length - 1, _WINDOW - self.draft.tokens - 2 - beyond))
        written = self._sheet.tokens[slot, length - count : length].long()
        places = torch.arange(length - count - 1, length - 1, device=written.device) % _WINDOW
        missed = Missed(*(each[slot : slot + 1].clone() for each in self._missed))
        self._missed.tokens[slot].fill_(-1)  # whoever sits there next has missed nothing yet
        self.draft.take(Trace(self._states[slot].index_select(0, places), written), missed)

    def forget(self) -> None:
        """The model has changed."""
        self.draft.forget()
        self._missed.tokens.fill_(-1)

    def _guesses(self, slots: Tensor, last: Tensor, places: Tensor, is_truncated: bool) -> Tensor:
        """[B, tokens of the draft], drawn for these places [B, as many and one]."""
        before = slots * _WINDOW + (places[:, 0] - 2).clamp(min=0) % _WINDOW
        state, token, how = self._states.view(-1, self._size)[before].float(), last, self._draws.of(slots)
        guesses = []
        for number in range(self.draft.tokens):
            state = self.draft.guess(state, token, self._operations)
            scores = self._llama.scores(state.to(self._states.dtype))
            token, _ = self._operations.draw(scores, how, places[:, number].contiguous(), is_truncated)
            guesses.append(token)
        return torch.stack(guesses, 1)

    def _miss(self, owners: Tensor, guesses: Tensor, states: Tensor, right: Tensor) -> None:
        """Keep the first guess that did not hold for each of its owners [B]; states [B, count, hidden]."""
        first = right.clamp(max=guesses.shape[1] - 1)
        row = self._rows[: len(owners)]
        self._missed.before.index_copy_(0, owners, states[row, first])
        self._missed.tokens.index_copy_(0, owners, guesses[row, first])
        self._missed.after.index_copy_(0, owners, states[row, first + 1])
