"""A live program talks with the policy; what it says next is judged, and what it should have known is distilled.

Title: OpenClaw-RL: Train Any Agent Simply by Talking
Paper: arXiv 2603.10165 (2026)
Claim: Terminal, GUI, coding and tool agents, and personal ones, improve from what comes after each of their replies.
Reading: The combined form of the release: one sample per turn, advantage = judged score + gap to the same policy with a
    hint, no baseline, groups of one. Both logprobs of the gap are the trainer's, so that it holds no mismatch with the
    engine; the hint goes behind the last message, token for token. A turn that nobody answers earns nothing and is not
    masked. The bundled user (programs/lives.py) says thanks or that it is wrong; rules judge in place of a model, so
    three votes are one. Weights wait for a batch here, where the paper's proxy answers 503 meanwhile.
Left out: The variant on the teacher's 50 likeliest tokens, and calls that a client marks as no part of the talk.
Acts: hints > 0 and hint_gap > 0 and reward/next_state != 0 and served/turns > 0
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from strop.capabilities import Meets
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.batch_ask import all_of, key_of, text_of, verdict_or_none
from strop.filter.paid_text import Paid, Span
from strop.generate.agents.external_program import OutsideProgram
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.strategies.independent import Independent
from strop.generate.templates.chat_template import Template
from strop.generate.turn_ops import noted
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.roles import Advantage, LLMClient, Reward, Strategy
from strop.run import Run
from strop.text.llm_prompt import judgement
from strop.training.arithmetic.turn_returns import placed_payments
from strop.training.losses.clip import Clip
from strop.training.requirements import LOGPROBS
from strop.types import FloatArray, Group, IntArray, Message, Metrics, Rollout, Sampling, Start

# What followed each completion, and how somebody is asked about it (OpenClaw-RL, 2603.10165).

_SCORE = re.compile(r"score:\s*([+-]?1|0)\b")
_BARE = re.compile(rf"\W{{0,9}}{_SCORE.pattern}\W{{0,9}}")
_SAMPLING = Sampling(temperature=0.6, max_tokens=128)  # of the judge
_LONGEST = 2000  # characters of a completion or an answer that are shown
SHORTEST = 10  # characters that a hint must exceed
_WANTED = {
    "verdict": "Judge the completion by what was said after it. Answer with score: 1, score: 0 or score: -1.",
    "hint": "Could a hint have helped? Answer with score: 1 and the hint on the next line, or with score: -1.",
}


def next_states(rollout: Rollout) -> list[str]:
    """What was said after each turn within its context; empty where nothing is known."""
    found = [""] * len(rollout.turns)
    for number, turn in enumerate(rollout.turns[1:]):
        if not turn.fresh:
            found[number] = "\n".join(message.content for message in turn.told)
    return found


async def asked(judge: LLMClient, wanted: str, rollout: Rollout, number: int, vote: int) -> str:
    completion, state = rollout.turns[number].message.content[:_LONGEST], next_states(rollout)[number][:_LONGEST]
    text = judgement(_WANTED[wanted], wanted=wanted, task=text_of(rollout.task), completion=completion, other=state)
    return await verdict_or_none(judge, text, _BARE, _SAMPLING, key_of(f"{text}/{vote}"))


def score_in(said: str) -> int | None:
    """The vote of an answer; None: it has none."""
    found = _SCORE.search(said)
    return int(found.group(1)) if found else None


def majority(votes: Sequence[int | None]) -> float:
    """What more than half of the valid votes say; 0 where there is no such thing."""
    valid = [vote for vote in votes if vote is not None]
    return next((float(vote) for vote in (1, -1) if 2 * valid.count(vote) > len(valid)), 0.0)


def chosen_hint(answers: Sequence[str]) -> str:
    """The longest text of more than 10 characters behind a score of 1; empty: none."""
    good = [said for said in answers if score_in(said) == 1]
    texts = [_SCORE.sub("", said, count=1).strip() for said in good]
    return max((text for text in texts if len(text) > SHORTEST), key=len, default="")


# OpenClaw-RL's scalar signal (2603.10165): what was said after a completion is judged, and that is the completion's
# reward.


@dataclass(frozen=True)
class NextStateVotes(Reward):
    """-1, 0 or 1 at the end of each completion that was answered: what most of the judge's `votes` say, 0 in a tie."""

    judge: LLMClient
    votes: int = 3  # asked for each completion
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits for its judge
    name: ClassVar[str] = "next_state"

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise ConfigurationError(f"NextStateVotes needs votes >= 1, got {self.votes}")

    def __call__(self, group: Group) -> Awaitable[Sequence[Paid]]:
        return self._paid(group)

    async def _paid(self, group: Group) -> list[Paid]:
        return [Paid(0.0, tuple(await self._spans(rollout))) for rollout in group.rollouts]

    async def _spans(self, rollout: Rollout) -> list[Span]:
        found = []
        for number, state in enumerate(next_states(rollout)):
            if state and len(rollout.turns[number].whole):
                said = await all_of(asked(self.judge, "verdict", rollout, number, vote) for vote in range(self.votes))
                value = majority([score_in(each) for each in said])
                found.append(Span(number, 0, len(rollout.turns[number].message.content), value, name="answered"))
        return found


# OpenClaw-RL's directive signal (2603.10165): how much likelier a completion were, had a hint been read that came too
# late.

GAP = "hint_gap"


@dataclass
class HindsightHints(Strategy, Meets):
    """Notes log p(token | with the hint) - log p(token | as it was) at each token of a completion for which there is a
    hint.

    A judge reads a completion and what was said after it; its hint is put behind the last thing that was read before
    the
    completion, and the policy itself scores the tokens that it wrote, both ways. No hint: no note, which is not a gap
    of 0 logprobs but no teacher at all.
    """

    inner: Strategy
    judge: LLMClient
    votes: int = 1  # asked for each completion

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise ConfigurationError(f"HindsightHints needs votes >= 1, got {self.votes}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        brought = await self.inner(group, starts, play)
        return [await self._taught(rollout, play) for rollout in brought]

    async def _taught(self, rollout: Rollout, play: Player) -> Rollout:
        hints = await self._hints(rollout) if rollout.is_scored else {}
        retold = {number: self._behind(rollout, number, hint) for number, hint in hints.items()}
        found = {number: told for number, told in retold.items() if told is not None}
        rollout.facts["hints"] = float(len(found))
        if not found:
            return rollout
        own, *taught = await play.look([rollout, *found.values()], frozenset({LOGPROBS}))
        gaps = np.zeros(rollout.num_tokens, np.float32)
        ends = np.cumsum([0, *(len(turn.tokens) for turn in rollout.turns)])
        for number, notes in zip(found, taught, strict=True):
            low, high = ends[number], ends[number + 1]
            gaps[low:high] = gap(notes[LOGPROBS.name], own[LOGPROBS.name][low:high])
        rollout.turns = noted(rollout.turns, GAP, gaps)
        return rollout

    async def _hints(self, rollout: Rollout) -> dict[int, str]:
        """By the number of the turn."""
        found = {}
        for number, state in enumerate(next_states(rollout)):
            if state and len(rollout.turns[number].tokens):
                found[number] = await self._hint(rollout, number)
        return {number: hint for number, hint in found.items() if hint}

    async def _hint(self, rollout: Rollout, number: int) -> str:
        """Empty: none, or nobody could be asked."""
        try:
            said = await all_of(asked(self.judge, "hint", rollout, number, vote) for vote in range(self.votes))
        except LLMClientError:
            return ""
        return chosen_hint(said)

    def _behind(self, rollout: Rollout, number: int, hint: str) -> Rollout | None:
        """The turn alone, behind its whole context with the hint in it; None where there is no place for it."""
        if self._policy is None:
            raise ConfigurationError("HindsightHints has met no policy: it works within a run only")
        turn = rollout.turns[number]
        first = max(place for place in range(number + 1) if place == 0 or rollout.turns[place].fresh)
        before = [piece for each in rollout.turns[first:number] for piece in (each.prompt, each.tokens)]
        prompt = with_hint(self._policy.template, turn.prompt, hint)
        if prompt is None or turn.num_prefix:
            return None
        whole = np.concatenate([*before, prompt])
        if len(whole) + len(turn.tokens) > self._policy.context:
            return None
        return replace(rollout, id=f"{rollout.id}~{number}", turns=(replace(turn, prompt=whole, aux={}, fresh=True),))


def with_hint(template: Template, prompt: IntArray, hint: str) -> IntArray | None:
    """What was read, with a hint at the end of its last message; token for token as it was besides."""
    one, other = (template.opening((Message("user", text),), ()) for text in ("1", "2"))
    size = next(count for count in range(len(one)) if one[len(one) - 1 - count] != other[len(other) - 1 - count])
    closing = one[len(one) - size :]  # what a template puts between a message and the completion
    if size == 0 or len(prompt) <= size or not np.array_equal(prompt[-size:], closing):
        return None
    return np.concatenate([prompt[:-size], template.encode(f" {hint}"), closing])


def gap(taught: FloatArray, own: FloatArray) -> FloatArray:
    """[N]; logprobs that are missing are no probabilities of 1."""
    if len(taught) != len(own):
        raise ConfigurationError(f"a teacher must score every token of a completion: got {len(taught)} for {len(own)}")
    return np.asarray(taught - own, dtype=np.float32)


# OpenClaw-RL's advantage (2603.10165): what a completion's answer was judged to be, plus what a hint would have
# changed.

_GAP = "hint_gap"  # see `HindsightHints`


@dataclass(frozen=True)
class JudgedAndHinted(Advantage):
    """A_t = judged * r of the turn + hinted * (log p with the hint - log p without it) at t; no baseline, undivided.

    A turn that nobody answered has r = 0, one without a hint no second term.
    """

    judged: float = 1.0  # weight of what was judged
    hinted: float = 1.0  # weight of the hint's gap

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            paid, lengths = placed_payments(rollout), [len(turn.tokens) for turn in rollout.turns]
            turns = np.split(paid, np.cumsum(lengths)[:-1]) if lengths else []
            judged = np.repeat([part.sum() for part in turns], lengths) if lengths else paid
            rollout.advantages = (self.judged * judged + self.hinted * gaps_of(rollout)).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how many completions there was a hint for, and how far it is from them."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        gaps = [float(np.abs(gaps_of(rollout)).sum()) for rollout in rollouts]
        hints = sum(rollout.facts.get("hints", 0.0) for rollout in rollouts)
        return {"hint_gap": sum(gaps) / max(len(gaps), 1), "hints": hints / max(len(rollouts), 1)}


def gaps_of(rollout: Rollout) -> FloatArray:
    """[N]."""
    none = [np.zeros(len(turn.tokens), np.float32) for turn in rollout.turns]
    rows = [t.aux[_GAP][len(t.prompt) :] if _GAP in t.aux else n for t, n in zip(rollout.turns, none, strict=True)]
    return np.concatenate(rows) if rows else np.zeros(0, np.float32)


_RULES = "strop.standins.judges.next_state:judged"


def openclaw_rl(
    setting: Setting = Setting(group_size=1, groups_per_step=16, learning_rate=1e-5),
    command: str = "python {programs}/lives.py",  # who talks with the policy; {programs}: those that come with strop
    seconds: float = 300.0,  # of one rollout
    judge: str = "rules",  # rules, itself (the policy), a model's folder, or http://HOST:PORT/v1#MODEL
    votes: int = 3,  # of the judge on each completion
    judged: float = 1.0,  # weight of what was judged
    hinted: float = 1.0,  # weight of the gap to the policy that read a hint
    low: float = 0.2,  # a token whose ratio fell by more gets no gradient
    high: float = 0.28,  # nor one whose ratio rose by more
) -> Run:
    """Two signals from what comes next, in a clipped policy gradient."""
    llm_client = parse_judge(judge, _RULES)
    run = setting.run(
        "openclaw_rl",
        JudgedAndHinted(judged, hinted),
        (Clip(low, high),),
        agent=OutsideProgram(command, "env", seconds, isolation=setting.isolation),
        strategy=HindsightHints(Independent(), llm_client),
        reward_seconds=judge_seconds(judge),
    )
    run.rewards = (NextStateVotes(llm_client, votes), measured(run.envs))
    return run
