"""R^3L: the policy reflects on a rollout and retries from its first wrong step; trained without the reflection.

Title: R^3L: Reflect-then-Retry Reinforcement Learning with Language-Guided Exploration, Pivotal Credit, and Positive
    Amplification
Paper: arXiv 2601.03715 (2026)
Claim: Relative improvements of 5 to 52 % over baselines on agentic and reasoning tasks.
Reading: Half of group_size are first rollouts. A reflection says in JSON whether a rollout is good, and otherwise from
    which turn to retry and what to do differently; an invalid one, or one that points beyond the end, is ignored. The
    turns that both rollouts share are not trained, in neither. The advantage is the release's: 1 for every success, the
    distance above the mean times three, the distance below it as it is; the paper multiplies successes, too
    (success_advantage=0). No ratio and no clipping, the mean over tokens after the pivot, divided by 1 + 1, one
    optimizer step per batch. Where a retry helped, the retry behind its guidance and the reflection are trained as
    groups of one. The bundled model writes no JSON: its reflections are canned, and call wrong what earned nothing,
    which it has learned to use. teacher=itself lets a model reflect by itself.
Left out: Training on a reflection that rightly finds a rollout good; random replay of earlier rollouts.
Acts: share/guided > 0 and share/replayed > 0 and raised_share > 0
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.rewards.from_strategy import Noted
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.llm_clients.without_model import Canned
from strop.generate.strategies.support.ask_policy import OneCompletion
from strop.generate.strategies.support.prompt_swap import twin
from strop.generate.turn_ops import as_prefix
from strop.recipes.named_parts import named_part
from strop.recipes.setting import Setting
from strop.roles import Advantage, LLMClient, Player, Reduction, Strategy
from strop.run import Run
from strop.success import is_right
from strop.text.sanitize import set_in
from strop.training.losses.reinforce import Reinforce
from strop.types import FloatArray, Group, Message, Metrics, Origin, Rollout, Sampling, Start

# The reflection request, and the parsed answer: the rollout is good, or from which turn to retry.

REWARD = "[reward]"  # tag before the rollout's reward
_ASKED = (
    'Look back at this try. Answer in JSON: "outcome" (success, inefficient or failure), "retry_from_step" (how '
    'many of its steps are good), "guidance" (what to do differently from there).'
)


@dataclass(frozen=True)
class Reflection:
    """Parsed reflection on a rollout."""

    is_perfect: bool  # no retry is needed
    turns: int = 0  # good turns, which are kept
    guidance: str = ""


def question(rollout: Rollout, scored: Rollout) -> str:
    """The reflection request: the task, each turn, the reward, and whether it was right."""
    lines = [f"task: {set_in(prompt_of(rollout.task))}"]
    for number, turn in enumerate(rollout.turns):
        lines += [f"[env] {set_in(message.content)}" for message in turn.told]
        lines.append(f"[step {number}] {set_in(turn.message.content)}")
    return "\n".join([*lines, f"{REWARD} {scored.reward:g} ({'right' if is_right(scored) else 'wrong'})", "", _ASKED])


def read(text: str, num_turns: int) -> Reflection | None:
    """The reflection; None where it is invalid or its retry starts beyond a rollout of so many turns."""
    try:
        answer = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
    match answer:
        case {"outcome": "success"}:
            return Reflection(is_perfect=True)
        case {"outcome": "inefficient" | "failure", "retry_from_step": int(turns), "guidance": str(guidance)}:
            is_possible = 0 <= turns < num_turns and not isinstance(turns, bool) and guidance != ""
            return Reflection(False, turns, guidance) if is_possible else None
    return None


# R3L's rollouts (2601.03715): half of them are first ones; the policy reflects on each and retries from where it
# failed.
#
# Reading: the guidance of a retry stands before its first turn, behind the task and the last completion of the first
# rollout, also where it continues from a later turn; the release puts it there.


@dataclass(frozen=True)
class _Second:
    """A first rollout with its reflection and its retry."""

    first: Rollout
    thought: Rollout | None = None  # the reflection, where the policy wrote it
    retry: Rollout | None = None  # behind its guidance, as it was sampled
    read: tuple[Message, ...] = ()  # the retry's messages, in place of the task's


@dataclass(frozen=True)
class ReflectRetry(Strategy):
    """Strategy: a first rollout, a reflection on it, and, unless that finds it good, a retry that is trained without
    the guidance.

    The turns that a retry keeps are its prefix; the fact `pivot` of the first rollout is their number. Where the retry
    is right, and the first rollout was not or needed more turns, the reflection and the guided retry are returned, too,
    as groups of one.
    """

    llm_client: LLMClient | None = None  # writes the reflections; None: the policy itself
    strips: bool = True  # whether the guidance is removed from a retry's messages before training

    needs_success: ClassVar[bool] = True

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        half = len(starts) // 2
        if len(starts) != 2 * half or not half:
            raise ConfigurationError(f"ReflectRetry pairs rollouts: need an even number per group, got {len(starts)}")
        firsts = await together(play(start) for start in starts[:half])
        scores = await play.score(firsts)
        asking = [play.another() for _ in firsts]  # ids must not depend on which one finishes first
        rest = zip(firsts, scores, asking, starts[half:], strict=True)
        seconds = await together(self._second(*each, play) for each in rest)
        again = await play.score([each.retry for each in seconds if each.retry is not None])
        scores_after = iter(again)
        extra: list[Rollout] = []
        for second, score in zip(seconds, scores, strict=True):
            after = next(scores_after) if second.retry is not None else None
            if after is not None and self._has_helped(second, score, after):
                extra += self._extra(second, after.reward, play)
        retries = [self._stripped(each, play) for each in seconds if each.retry is not None]
        return [*firsts, *retries, *extra]

    async def _second(
        self, first: Rollout, scored: Rollout | None, asking: Start, start: Start, play: Player
    ) -> _Second:
        if scored is None or not first.turns:
            return _Second(first)  # it failed: it has no reward to reflect on
        text, thought = await self._reflect(question(first, scored), asking, play)
        reflection = read(text, len(first.turns))
        if reflection is None or reflection.is_perfect:
            return _Second(first, thought)
        first.facts["pivot"] = float(reflection.turns)
        messages = _guided(first, reflection)
        start_of_retry = replace(start, messages=messages, origin=Origin.GUIDED, parent=first.id)
        if reflection.turns:
            kept = replace(first, turns=as_prefix(first.turns[: reflection.turns]))
            start_of_retry = replace(start_of_retry, turns=play.retold(kept, messages).turns)
        return _Second(first, thought, await play(start_of_retry), messages)

    async def _reflect(self, request: str, start: Start, play: Player) -> tuple[str, Rollout | None]:
        messages = (Message("user", request),)
        if self.llm_client is not None:
            return await _reflection_by(self.llm_client, messages, start.key), None
        thought = await play(replace(start, messages=messages), OneCompletion())
        return thought.completion, thought

    def _has_helped(self, second: _Second, before: Rollout | None, after: Rollout) -> bool:
        assert second.retry is not None
        if before is None or not is_right(after):
            return False
        return after.reward > before.reward or len(second.retry.turns) < len(second.first.turns)

    def _stripped(self, second: _Second, play: Player) -> Rollout:
        retry = second.retry
        assert retry is not None
        return play.retold(retry, retry.task.messages) if self.strips and retry.turns else retry

    def _extra(self, second: _Second, reward: float, play: Player) -> list[Rollout]:
        """The reflection, with the retry's reward, and the retry behind its guidance: a comparison group each."""
        found = []
        if second.thought is not None:
            thought = second.thought
            found.append(replace(thought, comparison_group=f"reflection {thought.id}", facts={"noted": reward}))
        if self.strips and second.retry is not None:
            again = twin(second.retry, second.read, play)
            found.append(replace(again, comparison_group=f"guided {again.id}"))
        return found


async def _reflection_by(llm_client: LLMClient, messages: Sequence[Message], key: int) -> str:
    """The reflection of another model; empty where it does not answer, which counts as none."""
    try:
        return await llm_client.ask(messages, Sampling(max_tokens=512), key)
    except LLMClientError:
        return ""


def _guided(first: Rollout, reflection: Reflection) -> tuple[Message, ...]:
    tried = Message("assistant", first.completion, is_completion=True)
    return (*first.task.messages, tried, Message("user", reflection.guidance))


# The pivot: tokens before it are common to both rollouts and get no advantage.

_NAME = "pivot"  # fact: number of turns before the pivot


def num_before(rollout: Rollout) -> int:
    """Tokens of the rollout before the pivot; 0 where it has none."""
    turns = int(rollout.facts.get(_NAME, 0.0))
    return sum(len(turn.tokens) for turn in rollout.turns[:turns])


# R3L's advantage (2601.03715): positive ones are amplified, and tokens before the pivot get none.


@dataclass(frozen=True)
class Amplified(Advantage):
    """Advantage r - mean, times `factor` where positive; `success` for a reward of 1, whatever its siblings earned.

    The baseline of a group of one is 0. Tokens before a rollout's pivot get 0.
    """

    factor: float = 3.0  # of advantages above 0
    success: float = 1.0  # advantage of a full success, as released; 0: amplified as any other, as in the paper

    is_local: ClassVar[bool] = True

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.factor < 1 or self.success < 0:
            raise ConfigurationError(f"Amplified needs factor >= 1 and success >= 0, got {self.factor}, {self.success}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = group.rewards
            mean = float(rewards.mean()) if len(rewards) > 1 else 0.0
            for rollout in group.scored:
                rollout.set_advantage(self._advantage(rollout, mean))
                assert rollout.advantages is not None
                rollout.advantages[: num_before(rollout)] = 0.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: share of tokens before a pivot, and share of rollouts with a positive advantage."""
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        before = sum(num_before(rollout) for rollout in rollouts)
        raised = [bool(np.any(rollout.advantages > 0)) for rollout in rollouts if rollout.advantages is not None]
        tokens = sum(rollout.num_tokens for rollout in rollouts)
        return {"before_pivot": before / max(tokens, 1), "raised_share": sum(raised) / max(len(raised), 1)}

    def _advantage(self, rollout: Rollout, mean: float) -> float:
        if self.success and is_right(rollout):
            return self.success
        difference = rollout.reward - mean
        return self.factor * difference if difference > 0 else difference


# R3L's token mean (2601.03715): tokens before the pivot are not counted.


@dataclass(frozen=True)
class AfterPivot(Reduction):
    """Reduction with weight 1 / tokens of the whole batch from each rollout's pivot on, and 0 before it."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        rollouts = [rollout for group in groups for rollout in group.scored]
        return {
            rollout.id: (np.arange(rollout.num_tokens) >= num_before(rollout)).astype(np.float32) / np.float32(count)
            for rollout in rollouts
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """Total number of counted tokens, for a batch that these groups are a part of."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        return float(sum(rollout.num_tokens - num_before(rollout) for rollout in rollouts))


_CANNED = {
    "(right)\n": '{"outcome": "success"}',
    REWARD: '{"outcome": "failure", "retry_from_step": 0, "guidance": "wrong, try again"}',
}


def r3l(
    setting: Setting = Setting(env="arithmetic:6"),
    teacher: str = "rules",  # reflects on rollouts (a named part)
    strips: bool = True,  # whether the guidance is removed from a retry's messages before training
    factor: float = 3.0,  # of advantages above 0
    success_advantage: float = 1.0,  # advantage of a full success; 0: amplified as any other
) -> Run:
    """A group is group_size / 2 first rollouts, and a retry of each that its reflection rejects."""
    llm_client = None if teacher == "itself" else named_part("teacher", teacher, setting, Canned(_CANNED))
    run = setting.run(
        "r3l",
        Amplified(factor, success_advantage),
        (Reinforce(weight=0.5),),
        strategy=ReflectRetry(llm_client, strips),
        reduction=AfterPivot(),
    )
    judged = as_one(run.rewards)
    run.rewards = (Noted(judged),)
    return run
