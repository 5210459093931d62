"""Questions to the named parts of a run before it starts: one that gives no readable answer is refused then.

Rewards score two completions of a task, and so ask their judge what they will ask it in the run; other parts put a
question of their own (`Asks`). The probe leaves the run unchanged.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from copy import deepcopy
from typing import Any

from strop.attack.untrusted_tasks import places, said, shown
from strop.capabilities import Closes, Meets, inside, outermost
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.scoring import Scorer
from strop.generate.llm_clients.named import Named
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.roles import Asks, Environment, Reward
from strop.run import Run
from strop.text.llm_prompt import question
from strop.types import Group, Message, Rollout, Sampling, Task

_WRONG = "I looked at the question for a while and I am not sure.\n\nMy guess is 1."
_ASKED = "Solve the task. Say the answer in one line."


def ask_parts(run: Run) -> None:
    """ConfigurationError that names each part without a readable answer, what it was asked, and what came back.

    The policy and the reference answer only within the run, whose engine they need; a policy may also learn to answer
    while it trains. Their questions are counted from the first one on, under the same limit.
    """
    parts = (run.rewards, run.strategy, run.agent, run.task_generator, run.envs)
    if not _asked(parts):
        return
    named = [(part, each) for part in _asked(parts) for each in inside(part, Endpoint)]
    if closed := [f"{part.role}={part.called}: {text}" for part, each in named if (text := each.unreachable())]:
        raise ConfigurationError("\n".join(dict.fromkeys(closed)))
    env = run.envs[0]
    plain = [each for each in inside(run.envs, Environment) if not inside(each, Named)]
    kept = {id(each): each for each in (*plain, *inside(run, Meets))}
    problems = asyncio.run(_problems(deepcopy(parts, kept), env, env.task(0), run.reward_seconds))
    if problems:
        raise ConfigurationError("\n".join(problems))


def _asked(parts: Any) -> list[Named]:
    return [each for each in inside(parts, Named) if not inside(each, Meets)]


async def _problems(parts: Any, env: Environment, task: Task, seconds: float) -> list[str]:
    try:
        rewards = [each for each in parts[0] if _asked(each)]
        if rewards:
            await _score(rewards, env, task, seconds)
        for _, part in [each for value in parts[1:] for each in outermost(value, Asks)]:
            with suppress(LLMClientError):
                await part.try_clients(task)
        for each in _asked(parts):
            if not each.num_asked:
                with suppress(LLMClientError):
                    await each.ask([Message("user", question(_ASKED, task=_text(task)))], Sampling(), 0)
    finally:
        for _, closing in outermost(parts, Closes):
            await closing.close()
    return list(dict.fromkeys(text for each in _asked(parts) if (text := each.problem(least=1))))


async def _score(rewards: list[Reward], env: Environment, task: Task, seconds: float) -> None:
    """Two different completions, one of them right where the environment says how."""
    played = [await shown(env, task), await said(env, task, _WRONG)]
    rollouts = [each for each in played if each.is_scored or each.turns] or played
    scorer = Scorer(rewards, seconds, workers=1)
    scorer.places = places
    try:
        await scorer(Group(0, task, [_numbered(each, number) for number, each in enumerate(rollouts)]))
    finally:
        await scorer.close()


def _numbered(rollout: Rollout, number: int) -> Rollout:
    rollout.id = f"asked/{number}"
    return rollout


def _text(task: Task) -> str:
    return "\n".join(message.content for message in task.messages)
