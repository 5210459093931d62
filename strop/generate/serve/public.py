"""Server of a frozen model for evaluation and use: independent requests, client-chosen sampling settings, one token."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from strop.generate.policy import Policy, rollout_key
from strop.generate.serve.app import Guests
from strop.generate.serve.ask_requests import Refusal
from strop.generate.serve.serve_session import Visit
from strop.types import Message, Start, Task

_NOTHING = Task((Message("user", ""),), "", "served")  # a request brings its own messages


@dataclass
class Public(Guests):
    """API access to a model that is not trained."""

    policy: Policy
    model: str
    token: str = field(repr=False)
    seed: int = 0
    _number: int = field(default=0, init=False)

    def visit(self, key: str) -> Visit:
        self._check(key)
        self._number += 1
        start = Start(f"served/{self._number}", rollout_key(self.seed, f"served/{self._number}"))
        return Visit(self.policy.dialogue(_NOTHING, start), self.policy.calls, is_free=True)

    def actor(self, key: str) -> Visit:
        self._check(key)
        raise Refusal(403, "this server asks a model and has no episode to act in")

    def _check(self, key: str) -> None:
        if not secrets.compare_digest(key.encode(), self.token.encode()):
            raise Refusal(401, "this key is not the token that the server was started with")
