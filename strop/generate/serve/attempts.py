"""Attempts that are being made: each has a key, and whoever has it talks in that attempt alone."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

from strop.generate.serve.app import Guests
from strop.generate.serve.asks import Refusal
from strop.generate.serve.visit import Visit
from strop.generate.talk import Talk

_REMEMBERED = 10_000  # attempts that ended: a program that asks too late hears so


@dataclass
class Attempts(Guests):
    """Keys and the attempts that they open."""

    model: str = "policy"
    _open: dict[str, Visit] = field(default_factory=dict, init=False, repr=False)
    _ended: OrderedDict[str, None] = field(default_factory=OrderedDict, init=False, repr=False)

    def admit(self, talk: Talk) -> tuple[str, Visit]:
        """A key for this attempt."""
        key = f"sk-strop-{secrets.token_urlsafe(24)}"
        self._open[key] = Visit(talk, talk.policy.calls)
        return key, self._open[key]

    async def end(self, key: str) -> None:
        """Nothing more is answered to this key, and what is being written is kept."""
        visit = self._open.pop(key)
        self._ended[key] = None
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        await visit.close()

    def visit(self, key: str) -> Visit:
        if key in self._ended:
            raise Refusal(409, "this attempt has ended: nothing more can be asked in it")
        if key not in self._open:
            raise Refusal(401, "this key belongs to no attempt")
        return self._open[key]
