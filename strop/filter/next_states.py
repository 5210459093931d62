"""What followed each reply, and how somebody is asked about it (OpenClaw-RL, 2603.10165)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from strop.filter.judges.batch_ask import key_of, text_of, verdict_or_none
from strop.roles import Adviser
from strop.text.llm_prompt import judgement
from strop.types import Sampling, Trajectory

_SCORE = re.compile(r"score:\s*([+-]?1|0)\b")
_BARE = re.compile(rf"\W{{0,9}}{_SCORE.pattern}\W{{0,9}}")
_SAMPLING = Sampling(temperature=0.6, max_tokens=128)  # of the judge
_LONGEST = 2000  # characters of a reply or an answer that are shown
SHORTEST = 10  # characters that a hint must exceed
_WANTED = {
    "verdict": "Judge the reply by what was said after it. Answer with score: 1, score: 0 or score: -1.",
    "hint": "Could a hint have helped? Answer with score: 1 and the hint on the next line, or with score: -1.",
}


def next_states(attempt: Trajectory) -> list[str]:
    """What was said after each turn within its context; empty where nothing is known."""
    found = [""] * len(attempt.turns)
    for number, turn in enumerate(attempt.turns[1:]):
        if not turn.fresh:
            found[number] = "\n".join(message.content for message in turn.told)
    return found


async def asked(judge: Adviser, wanted: str, attempt: Trajectory, number: int, vote: int) -> str:
    reply, state = attempt.turns[number].message.content[:_LONGEST], next_states(attempt)[number][:_LONGEST]
    text = judgement(_WANTED[wanted], wanted=wanted, task=text_of(attempt.task), reply=reply, other=state)
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
