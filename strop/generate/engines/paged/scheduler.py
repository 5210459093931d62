"""Host-side scheduler of the paged engine: waiting queue, slots, and KV pages of each request."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from strop.generate.engines.paged.block_manager import Pages, digests_of, pages_for, stem_of
from strop.generate.engines.paged.device_state import Seat
from strop.generate.engines.paged.paged_request import Request
from strop.kernels.decode import PAGE
from strop.kernels.sampling.counter_random import as_key


class Seating:
    """First-come, first-served scheduler: a request gets a slot as soon as one is free and there are pages for its
    keys.

    Pages are allocated as sequences grow, `ahead` tokens in advance, not for the maximum length.
    """

    def __init__(self, slots: int, pages: Pages, ahead: int) -> None:
        self.pages, self._ahead = pages, ahead
        self.waiting: deque[Request] = deque()
        self.seated: dict[int, Request] = {}  # by slot, as they came
        self.free = list(range(slots - 1, -1, -1))
        self._epoch = 0  # grows when what was computed so far may serve nobody who comes later

    def __bool__(self) -> bool:
        return bool(self.waiting or self.seated)

    def holds(self, request: Request) -> bool:
        """Whether it still sits where it was put."""
        return self.seated.get(request.slot) is request

    def seat(self, most: int) -> list[Seat]:
        """Seat whoever finds a slot and pages, until their prompts lack `most` tokens."""
        seats: list[Seat] = []
        known: dict[bytes, list[bytes]] = {}  # digests by content: siblings have one prompt
        while self.waiting and self.free and most > 0:
            seat = self._find(self.waiting[0], known)
            if seat is None:
                break
            self.waiting.popleft()
            seats.append(seat)
            most -= seat.lacks
        return seats

    def _find(self, request: Request, known: dict[bytes, list[bytes]]) -> Seat | None:
        context = request.tokens
        content = context[:-1].tobytes()
        if content not in known:
            known[content] = digests_of(context[:-1])
        pages = self.pages.share(known[content], context[:-1])
        request.known = request.came = request.promised = len(context)
        start, need = len(pages) * PAGE, self._reach(request) - len(pages)
        if not self.pages.has_room(need):
            self.pages.release(pages)
            return None
        request.pages = pages + self.pages.take(need)
        self.pages.name(request.pages, known[content])
        request.slot, request.epoch, request.shown = self.free.pop(), self._epoch, len(request.pages)
        request.stem = stem_of(context[:-1], known[content])
        self.seated[request.slot] = request
        return Seat(request.slot, context, request.limit, as_key(request.key), request.sampling, request.pages, start)

    def grow(self) -> dict[int, list[int]] | None:
        """Pages of slots that needed more for what may be written next; None where there are too few: one must go."""
        for request in self.seated.values():
            if (need := self._reach(request) - len(request.pages)) > 0:
                if not self.pages.has_room(need):
                    return None
                request.pages += self.pages.take(need)
        grown = [request for request in self.seated.values() if len(request.pages) > request.shown]
        for request in grown:
            request.shown = len(request.pages)
        return {request.slot: request.pages for request in grown}

    def promise(self, most: int) -> int:
        """Steps that come next, at most so many; 0: all who sit reach their limits in those that are under way."""
        left = [request.limit - request.promised for request in self.seated.values()]
        steps = min(most, max([0, *left]))
        for request in self.seated.values():
            request.promised += steps
        return steps

    def _reach(self, request: Request) -> int:
        return pages_for(min(request.limit, request.known + self._ahead))

    def leave(self, request: Request, is_whole: bool = True) -> None:
        """Free its slot; where its keys are whole and of today's weights, they stay for who has the same prefix."""
        del self.seated[request.slot]
        self.free.append(request.slot)
        if is_whole and request.epoch == self._epoch and request.stem:
            self.pages.retire(request.pages, request.tokens[:-1], request.stem)
        else:
            self.pages.release(request.pages)
        request.pages = []

    def unseat(self, requests: Sequence[Request]) -> None:
        """They give their slots back and wait in front, to have their keys computed anew."""
        for request in requests:
            self.leave(request, is_whole=False)
        self.waiting.extendleft(reversed(requests))

    def forget(self) -> None:
        """Drop every kept prefix; what is seated now leaves none either."""
        self.pages.forget()
        self._epoch += 1
