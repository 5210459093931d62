"""Selection of the tokens that one engine step computes (prefill chunks and decode tokens)."""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.generate.engines.cpu.kv_cache import Share


@dataclass
class Work:
    """Tokens of a step: for each row, `counts` tokens from `starts` on."""

    budget: int
    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)

    def share(self, source: int, destination: int, length: int) -> None:
        last = self.shares[-1] if self.shares else None
        if last and (last.source, last.length) == (source, length):
            last.destinations.append(destination)
        else:
            self.shares.append(Share(source, [destination], length))
