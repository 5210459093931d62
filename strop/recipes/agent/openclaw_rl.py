"""OpenClaw-RL: PPO clipping on live conversations, with judge votes on next states and hindsight-hint distillation.

Title: OpenClaw-RL: Train Any Agent Simply by Talking
Paper: arXiv 2603.10165 (2026)
Claim: Terminal, GUI, coding and tool agents, and personal ones, improve from what comes after each of their
    completions.
Reading: The combined form of the release: one sample per turn, advantage = judge score + log-probability gap to the
    same policy with a hint, no baseline, groups of one. The trainer computes both logprobs of the gap, so the gap
    contains no mismatch between engine and trainer; the hint is appended to the last message, token for token. A turn
    without an answer has reward 0 and is not masked. The bundled user (programs/lives.py) either thanks or says that
    the completion is wrong; rules replace the judge model, so three votes agree. New weights wait for a full training
    batch, where the paper's proxy answers 503 meanwhile.
Left out: The variant on the teacher's 50 likeliest tokens, and calls that a client excludes from the conversation.
Acts: hints > 0 and hint_gap > 0 and reward/next_state != 0 and served/turns > 0
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from strop.capabilities import Meets
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.batch_ask import all_of, judged_or_none, key_of, text_of
from strop.filter.judges.readers import Number, plain
from strop.filter.paid_text import Paid, Span
from strop.generate.agents.external_program import OutsideProgram
from strop.generate.policy import Policy
from strop.generate.strategies.independent import Independent
from strop.generate.templates.chat_template import Template
from strop.generate.turn_ops import noted
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import Advantage, LLMClient, Player, Reward, Strategy
from strop.run import Run
from strop.standins.judges.outcomes import judged_next_state
from strop.text.llm_prompt import json_object, judgement
from strop.training.arithmetic.turn_returns import placed_payments
from strop.training.losses.clip import Clip
from strop.training.requirements import LOGPROBS
from strop.types import FloatArray, Group, IntArray, Message, Metrics, Rollout, Sampling, Start

# Next states and questions to the judge about them (OpenClaw-RL, 2603.10165).

_VOTE = Number(-1, 1, clamps=False)
_SCORE = re.compile(r"\W{0,9}score\W{1,6}?([+\-\u2212]?1|0)\b", re.IGNORECASE)
_HINT = re.compile(r"^\W*(?:hint\W+)?", re.IGNORECASE)
_SAMPLING = Sampling(temperature=0.6, max_tokens=512)  # of the judge
SHORTEST = 10  # a hint must have more characters
WANTED = {
    "verdict": "Judge the completion by what was said after it. Answer with score: 1, score: 0 or score: -1.",
    "hint": "Could a hint have helped? Answer with score: 1 and the hint on the next line, or with score: -1.",
}


def next_states(rollout: Rollout) -> list[str]:
    """The messages that followed each turn in its context; empty where there are none."""
    found = [""] * len(rollout.turns)
    for number, turn in enumerate(rollout.turns[1:]):
        if not turn.fresh:
            found[number] = "\n".join(message.content for message in turn.told)
    return found


@dataclass(frozen=True)
class Vote:
    """Reader of -1, 0 or 1 and of the hint behind it: `**Score:** 1`, or `{"score": 1, "hint": "..."}`."""

    def read(self, text: str) -> tuple[int, str] | None:
        spoken, found = plain(text), json_object(plain(text))
        said = None if found else _SCORE.search(spoken)
        vote = float(said[1].replace("\u2212", "-")) if said else _VOTE.read(spoken)
        behind = next((each for each in found.values() if isinstance(each, str)), "") if found else ""
        hint = _HINT.sub("", spoken[said.end() :]) if said else behind
        return None if vote is None else (round(vote), hint)

    def quote(self, text: str) -> str:
        return _VOTE.quote(text)

    def fullmatch(self, text: str, /) -> bool:
        return _SCORE.match(plain(text)) is not None or _VOTE.fullmatch(text)


async def asked(judge: LLMClient, prompt: str, rollout: Rollout, number: int, key: str) -> tuple[int, str] | None:
    wanted = key.partition("/")[0]
    completion, state = rollout.turns[number].message.content, next_states(rollout)[number]
    text = judgement(prompt, wanted=wanted, task=text_of(rollout.task), completion=completion, other=state)
    return await judged_or_none(judge, text, Vote(), _SAMPLING, key_of(f"{text}/{key}"))


def majority(votes: Sequence[int | None]) -> float:
    """The vote of more than half of the valid votes; 0 without such a majority."""
    valid = [vote for vote in votes if vote is not None]
    return next((float(vote) for vote in (1, -1) if 2 * valid.count(vote) > len(valid)), 0.0)


def chosen_hint(answers: Sequence[tuple[int, str] | None]) -> str:
    """The longest text of more than 10 characters after a score of 1; empty: none."""
    texts = [answer[1].strip() for answer in answers if answer is not None and answer[0] == 1]
    return max((text for text in texts if len(text) > SHORTEST), key=len, default="")


# OpenClaw-RL's scalar signal (2603.10165): a judge scores a completion by its next state.


@dataclass(frozen=True)
class NextStateVotes(Reward):
    """-1, 0 or 1 at the end of each completion with a next state: the majority of the judge's `votes`, 0 in a tie."""

    judge: LLMClient
    votes: int = 3  # judge calls per completion
    weight: float = 1.0
    prompt: str = WANTED["verdict"]  # what the judge is asked, below task, completion and next state

    is_inline: ClassVar[bool] = True  # it waits for its judge
    name: ClassVar[str] = "next_state"

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise ConfigurationError(f"NextStateVotes needs votes >= 1, got {self.votes}")

    async def __call__(self, group: Group) -> list[Paid]:
        return [Paid(0.0, tuple(await self._spans(rollout))) for rollout in group.rollouts]

    async def _spans(self, rollout: Rollout) -> list[Span]:
        found = []
        for number, state in enumerate(next_states(rollout)):
            if state and len(rollout.turns[number].whole):
                votes = await all_of(
                    asked(self.judge, self.prompt, rollout, number, f"verdict/{vote}") for vote in range(self.votes)
                )
                value = majority([None if each is None else each[0] for each in votes])
                found.append(Span(number, 0, len(rollout.turns[number].message.content), value, name="answered"))
        return found


# OpenClaw-RL's directive signal (2603.10165): the log-probability gain of a completion under a hindsight hint.

GAP = "hint_gap"


@dataclass
class HindsightHints(Strategy, Meets):
    """Strategy that records log p(token | prompt with hint) - log p(token | prompt) for completions with a hint.

    A judge reads a completion and its next state and may write a hint, which is appended to the last message before the
    completion. The policy then scores its own tokens with and without it. Without a hint nothing is recorded.
    """

    inner: Strategy
    judge: LLMClient
    votes: int = 1  # judge calls per completion
    prompt: str = WANTED["hint"]  # what the judge is asked, below task, completion and next state

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise ConfigurationError(f"HindsightHints needs votes >= 1, got {self.votes}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        rollouts = await self.inner(group, starts, play)
        return [await self._with_gaps(rollout, play) for rollout in rollouts]

    async def _with_gaps(self, rollout: Rollout, play: Player) -> Rollout:
        hints = await self._hints(rollout) if rollout.is_scored else {}
        hinted = {number: self._with_hint(rollout, number, hint) for number, hint in hints.items()}
        found = {number: turn for number, turn in hinted.items() if turn is not None}
        rollout.facts["hints"] = float(len(found))
        if not found:
            return rollout
        own, *with_hints = await play.look([rollout, *found.values()], frozenset({LOGPROBS}))
        gaps = np.zeros(rollout.num_tokens, np.float32)
        ends = np.cumsum([0, *(len(turn.tokens) for turn in rollout.turns)])
        for number, statistics in zip(found, with_hints, strict=True):
            low, high = ends[number], ends[number + 1]
            gaps[low:high] = gap(statistics[LOGPROBS.name], own[LOGPROBS.name][low:high])
        rollout.turns = noted(rollout.turns, GAP, gaps)
        return rollout

    async def _hints(self, rollout: Rollout) -> dict[int, str]:
        """Hints by turn number."""
        found = {}
        for number, state in enumerate(next_states(rollout)):
            if state and len(rollout.turns[number].tokens):
                found[number] = await self._hint(rollout, number)
        return {number: hint for number, hint in found.items() if hint}

    async def _hint(self, rollout: Rollout, number: int) -> str:
        """The hint for a turn; empty: none, or the judge failed."""
        try:
            answers = await all_of(
                asked(self.judge, self.prompt, rollout, number, f"hint/{vote}") for vote in range(self.votes)
            )
        except LLMClientError:
            return ""
        return chosen_hint(answers)

    def _with_hint(self, rollout: Rollout, number: int, hint: str) -> Rollout | None:
        """The turn alone, after its whole context with the hint; None where the hint does not fit."""
        if self._policy is None:
            raise ConfigurationError("HindsightHints has no policy: it works within a run only")
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
    """The prompt with a hint at the end of its last message; all other tokens are unchanged."""
    one, other = (template.opening((Message("user", text),), ()) for text in ("1", "2"))
    size = next(count for count in range(len(one)) if one[len(one) - 1 - count] != other[len(other) - 1 - count])
    closing = one[len(one) - size :]  # what a template puts between a message and the completion
    if size == 0 or len(prompt) <= size or not np.array_equal(prompt[-size:], closing):
        return None
    return np.concatenate([prompt[:-size], template.encode(f" {hint}"), closing])


def gap(taught: FloatArray, own: FloatArray) -> FloatArray:
    """Difference of the logprobs [N]; missing logprobs are an error, not probabilities of 1."""
    if len(taught) != len(own):
        raise ConfigurationError(
            f"hint_gap needs a logprob for each of the {len(own)} tokens of a completion, got {len(taught)}"
        )
    return np.asarray(taught - own, dtype=np.float32)


# OpenClaw-RL's advantage (2603.10165): the judge's score of a completion plus the gap of its hint.


@dataclass(frozen=True)
class JudgedAndHinted(Advantage):
    """A_t = judged * r of the turn + hinted * (log p with the hint - log p without it) at t.

    No baseline and no standardization. r = 0 for a turn without an answer; no second term without a hint.
    """

    judged: float = 1.0  # weight of the judge's score
    hinted: float = 1.0  # weight of the log-probability gap of hints

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            rewards, lengths = placed_payments(rollout), [len(turn.tokens) for turn in rollout.turns]
            turns = np.split(rewards, np.cumsum(lengths)[:-1]) if lengths else []
            judged = np.repeat([part.sum() for part in turns], lengths) if lengths else rewards
            rollout.advantages = (self.judged * judged + self.hinted * gaps_of(rollout)).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: hints per rollout, and the mean sum of absolute gaps of a rollout."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        gaps = [float(np.abs(gaps_of(rollout)).sum()) for rollout in rollouts]
        hints = sum(rollout.facts.get("hints", 0.0) for rollout in rollouts)
        return {"hint_gap": sum(gaps) / max(len(gaps), 1), "hints": hints / max(len(rollouts), 1)}


def gaps_of(rollout: Rollout) -> FloatArray:
    """The gap at each token, 0 where there is no hint: [N]."""
    none = [np.zeros(len(turn.tokens), np.float32) for turn in rollout.turns]
    rows = [t.aux[GAP][len(t.prompt) :] if GAP in t.aux else n for t, n in zip(rollout.turns, none, strict=True)]
    return np.concatenate(rows) if rows else np.zeros(0, np.float32)


def openclaw_rl(
    setting: Setting = Setting(group_size=1, groups_per_step=16, learning_rate=1e-5),
    command: str = "python {programs}/lives.py",  # program that talks with the policy; {programs}: bundled ones
    seconds: float = 300.0,  # time limit of a rollout
    judge: str = "rules",  # scores next states (a named part)
    votes: int = 3,  # judge votes per completion
    judged: float = 1.0,  # weight of the judge's score
    hinted: float = 1.0,  # weight of the log-probability gap to the policy with a hint
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.28,  # upper clip range: ratios are at most 1 + high
) -> Run:
    """A clipped policy gradient on two signals from the next state: the judge's score and its hint."""
    llm_client = named_part("judge", judge, setting, judged_next_state)
    run = setting.run(
        "openclaw_rl",
        JudgedAndHinted(judged, hinted),
        (Clip(low, high),),
        agent=OutsideProgram(command, "env", seconds, isolation=setting.isolation),
        strategy=HindsightHints(Independent(), llm_client),
        reward_seconds=reward_seconds(judge),
    )
    run.rewards = (NextStateVotes(llm_client, votes), measured(run.envs))
    return run
