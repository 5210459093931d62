"""A live program talks with the policy; what it says next is judged, and what it should have known is distilled.

Title: OpenClaw-RL: Train Any Agent Simply by Talking
Paper: arXiv 2603.10165 (2026)
Claim: Terminal, GUI, coding and tool agents, and personal ones, improve from what comes after each of their replies.
Reading: The combined form of the release: one sample per turn, credit = judged score + gap to the same policy with a
    hint, no baseline, groups of one. Both logprobs of the gap are the trainer's, so that it holds no mismatch with the
    engine; the hint goes behind the last message, token for token. A turn that nobody answers earns nothing and is not
    masked. The bundled user (programs/lives.py) says thanks or that it is wrong; rules judge in place of a model, so
    three votes are one. Weights wait for a draw here, where the paper's proxy answers 503 meanwhile.
Left out: The variant on the teacher's 50 likeliest tokens, and calls that a client marks as no part of the talk.
Acts: hints > 0 and hint_gap > 0 and reward/next_state != 0 and served/turns > 0
"""

from __future__ import annotations

from strop.filter.rewards.conversation.next_state_votes import NextStateVotes
from strop.generate.agents.external_program import OutsideProgram
from strop.generate.strategies.hindsight_hints import HindsightHints
from strop.generate.strategies.independent import Independent
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.steps.judged_and_hinted import JudgedAndHinted
from strop.training.losses.clip import Clip

_RULES = "strop.standins.judges.next_state:judged"


def openclaw_rl(
    setting: Setting = Setting(group_size=1, groups_per_step=16, learning_rate=1e-5),
    command: str = "python {programs}/lives.py",  # who talks with the policy; {programs}: those that come with strop
    seconds: float = 300.0,  # of one attempt
    judge: str = "rules",  # rules, itself (the policy), a model's folder, or http://HOST:PORT/v1#MODEL
    votes: int = 3,  # of the judge on each reply
    judged: float = 1.0,  # weight of what was judged
    hinted: float = 1.0,  # weight of the gap to the policy that read a hint
    low: float = 0.2,  # a token whose ratio fell by more gets no gradient
    high: float = 0.28,  # nor one whose ratio rose by more
) -> Run:
    """Two signals from what comes next, in a clipped policy gradient."""
    adviser = parse_judge(judge, _RULES)
    run = setting.run(
        "openclaw_rl",
        JudgedAndHinted(judged, hinted),
        (Clip(low, high),),
        agent=OutsideProgram(command, "world", seconds, isolation=setting.isolation),
        strategy=HindsightHints(Independent(), adviser),
        reward_seconds=judge_seconds(judge),
    )
    run.rewards = (NextStateVotes(adviser, votes), measured(run.worlds))
    return run
