"""API keys of running rollouts: one key to request completions, another to step the episode."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

from strop.generate.conversation import Talk
from strop.generate.serve.app import Guests
from strop.generate.serve.ask_requests import Refusal
from strop.generate.serve.serve_session import Visit

_REMEMBERED = 20_000  # keys of rollouts that ended: a program that asks too late hears so


@dataclass
class Rollouts(Guests):
    """API keys and their rollouts."""

    model: str = "policy"
    _open: dict[str, Visit] = field(default_factory=dict, init=False, repr=False)
    _acting: dict[str, Visit] = field(default_factory=dict, init=False, repr=False)
    _ended: OrderedDict[str, None] = field(default_factory=OrderedDict, init=False, repr=False)

    def admit(self, talk: Talk) -> tuple[str, Visit]:
        """A key with which to ask the policy in this rollout."""
        key = f"sk-strop-{secrets.token_urlsafe(24)}"
        self._open[key] = Visit(talk, talk.policy.calls)
        return key, self._open[key]

    def let_act(self, visit: Visit) -> str:
        """A key with which to act in its episode, and nothing else."""
        key = f"env-strop-{secrets.token_urlsafe(24)}"
        self._acting[key] = visit
        return key

    async def end(self, key: str) -> None:
        """Nothing more is answered to the keys of this rollout, and what is being written is kept."""
        visit = self._open.pop(key)
        for each in (key, *(acting for acting, other in self._acting.items() if other is visit)):
            self._acting.pop(each, None)
            self._ended[each] = None
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        await visit.close()

    def visit(self, key: str) -> Visit:
        if key in self._acting:
            raise Refusal(403, "this key acts in the episode: the policy is asked with OPENAI_API_KEY")
        return self._found(key, self._open)

    def actor(self, key: str) -> Visit:
        if key in self._open:
            raise Refusal(403, "this key asks the policy: `episode_key` of the standard input acts here")
        return self._found(key, self._acting)

    def _found(self, key: str, known: dict[str, Visit]) -> Visit:
        if key in self._ended:
            raise Refusal(409, "this rollout has ended: nothing more can be asked in it")
        if key not in known:
            raise Refusal(401, "this key belongs to no rollout")
        return known[key]
