"""AMPO: GRPO with several teachers; failed groups get the teacher traces that the policy comprehends best.

Title: More Than One Teacher: Adaptive Multi-Guidance Policy Optimization for Diverse Exploration
Paper: arXiv 2510.02227 (2025)
Claim: 4.3 % above GRPO on mathematics and 12.2 % outside of it, with four teachers of the policy's own size.
Reading: Traces replace two of the rollouts. Rewards minus their mean; a teacher token has the weight p / (p + 0.1),
    without an old policy and without clipping. Token sums are divided by the largest completion length; two optimizer
    steps per batch, as in the release. The paper's teachers are four models; here they are four rules that solve a sum
    in different ways, or models at addresses. A teacher without a solution for a kind of task is skipped.
Acts: teacher/shaped > 0 and fact/comprehended > 0 with env=arithmetic:7
Break: traces=0: the teachers are mute
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from strop.concurrency import together
from strop.environments.data.rows import columns_of
from strop.environments.format.demonstrations import demonstration
from strop.environments.format.think_tags import CLOSE, OPEN
from strop.environments.needs import EnvNeed
from strop.errors import ConfigurationError, LLMClientError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.llm_agent import LLMAgent
from strop.generate.policy import Policy
from strop.recipes.named_parts import named_part
from strop.recipes.setting import Setting
from strop.roles import Agent, Dialogue, Episode, Player, Strategy
from strop.run import Run
from strop.standins.solution_styles import backward, brief, largest_first
from strop.success import ROUNDING, success
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.outside.shaped_probability import ShapedProbability
from strop.training.reductions.means import ConstantLength
from strop.training.requirements import LOGPROBS
from strop.types import FloatArray, Group, Message, Origin, Outcome, Rollout, Start, Task

# AMPO's teachers (2510.02227): in a failed group, some rollouts are replaced by the best comprehended traces.
#
# Readings: the comprehension score of a trace is the mean probability that the policy gives to the tokens of the right
# answer after the trace's chain of thought, plus a small format term. Traces without environment reward are not used;
# the release gives each of them reward 1. A teacher that fails contributes none. Unscored rollouts do not count.

COMPREHENDED = "comprehended"  # the fact that holds a trace's comprehension score, from 0 to 1
_MOST_COLUMNS = 8  # traces of a row
_ANSWER, _FORM = 0.9, 0.1  # weights of the answer's probability and of the format


@dataclass
class TeachersWhenLost(Strategy):
    """Rollouts of the policy; in a failed group, up to `count` of them are replaced by teacher traces."""

    teachers: tuple[Agent, ...]
    count: int = 2  # most traces in a group

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.teachers or self.count < 0:
            raise ConfigurationError(
                f"TeachersWhenLost needs teachers and count >= 0, got {len(self.teachers)} and {self.count}"
            )

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        own = await together(play(start) for start in starts)
        if group.rollouts or not self.count or not await self._is_lost(own, play):
            return own
        traces = await self._comprehended(await self._traces(play), play)
        count = min(self.count, len(traces), len(own) - 1)
        leaving = set(np.random.default_rng(starts[0].key).choice(len(own), count, replace=False).tolist())
        return [*(each for place, each in enumerate(own) if place not in leaving), *traces[:count]]

    async def _is_lost(self, rollouts: Sequence[Rollout], play: Player) -> bool:
        scored = [each for each in await play.score(rollouts) if each is not None]
        return bool(scored) and not any(success(each) > ROUNDING for each in scored)

    async def _traces(self, play: Player) -> list[Rollout]:
        """Teacher traces with a reward, in the order of teachers."""
        tried = await together(_trace(play.another(), teacher, play) for teacher in self.teachers)
        found = [rollout for rollout in tried if rollout is not None and rollout.is_scored]
        paid = await play.score(found)
        return [
            each for each, scored in zip(found, paid, strict=True) if scored is not None and success(scored) > ROUNDING
        ]

    async def _comprehended(self, traces: Sequence[Rollout], play: Player) -> list[Rollout]:
        """The traces with their comprehension scores, best first; ties in the order of teachers."""
        if not traces:
            return []
        ends = [self._with_answer(trace) for trace in traces]
        looks = await play.look([end for end, _ in ends], frozenset({LOGPROBS}))
        scores = [
            _ANSWER * _mean_probability(look[LOGPROBS.name], place) + _FORM * _is_formed(trace.completion)
            for trace, look, (_, place) in zip(traces, looks, ends, strict=True)
        ]
        found = [replace(each, facts={**each.facts, COMPREHENDED: s}) for each, s in zip(traces, scores, strict=True)]
        return sorted(found, key=lambda each: -each.facts[COMPREHENDED])

    def _with_answer(self, trace: Rollout) -> tuple[Rollout, slice]:
        """The trace's chain of thought followed by the right answer, and the slice of the answer's tokens."""
        if self._policy is None:
            raise ConfigurationError("TeachersWhenLost has no policy yet: call meet(policy) first")
        template, last = self._policy.template, trace.turns[-1]
        thought, closed, _ = trace.completion.rpartition(CLOSE)
        if not closed:  # prose: all of its steps
            shown = demonstration(trace.completion, trace.task.answer)
            thought = f"{steps}\n" if (steps := shown.beginning(len(shown.pieces))) else ""
        before, answer = template.encode_completion(thought + closed), template.encode(trace.task.answer)
        tokens = np.concatenate([before, answer])
        count = len(tokens)
        turn = replace(last, tokens=tokens, logprobs=np.zeros(count, np.float32), versions=np.full(count, -1), aux={})
        at = sum(len(each.tokens) for each in trace.turns[:-1]) + len(before)
        whole = replace(trace, turns=(*trace.turns[:-1], turn), outcome=Outcome.FINISHED)
        return whole, slice(at, at + len(answer))


async def _trace(start: Start, teacher: Agent, play: Player) -> Rollout | None:
    try:
        return await play(start, teacher)
    except LLMClientError:
        return None


def _mean_probability(logprobs: FloatArray, place: slice) -> float:
    """Mean probability of the answer's tokens; 0 for an empty answer."""
    answer = np.exp(logprobs[place].astype(np.float64))
    return float(answer.mean()) if len(answer) else 0.0


def _is_formed(completion: str) -> bool:
    return completion.startswith(OPEN) and completion.count(CLOSE) == 1 and not completion.endswith(CLOSE)


_DUAL = 10.0  # dual clip: the loss of a token with A < 0 is at most 10 * |A|


def ampo(
    setting: Setting = Setting(env="arithmetic:7+arithmetic:5"),
    teachers: str = "rules",  # write solutions (named parts, joined by commas); columns: those of `teacher_...`
    traces: int = 2,  # most teacher traces in a failed group
    shift: float = 0.1,  # probability at which a teacher token has weight 1/2
    entropy: float = 0.001,  # weight of the entropy bonus
) -> Run:
    """Dr. GRPO with teacher traces in failed groups."""
    return setting.run(
        "ampo",
        GroupMean(),
        (
            Among(Clip(0.2, 0.2, dual=_DUAL), (Origin.POLICY,)),
            Among(ShapedProbability(shift), (Origin.TEACHER,)),
            Entropy(entropy),
        ),
        strategy=TeachersWhenLost(_teachers(teachers, setting), traces),
        reduction=ConstantLength(setting.max_tokens),
        minibatches=2,
    )


_COLUMN = "teacher_"  # begins the names of columns with teachers' traces
TRACES = EnvNeed(
    "teacher traces",
    f"add columns such as `{_COLUMN}1` and `{_COLUMN}2`, each with a worked completion, to each row",
    is_met_by=lambda env, task: bool(_traces_of(task)),
)


@dataclass(frozen=True)
class TeacherColumn(Agent):
    """Trace number `place` that a row brings in its columns `teacher_...`, in the order of their names."""

    place: int
    origin: ClassVar[Origin] = Origin.TEACHER
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TRACES,)

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        traces = _traces_of(task)
        if self.place >= len(traces):
            raise LLMClientError(f"task {task.id} has {len(traces)} teacher traces")
        await episode.reset(task)
        dialogue.say(message := Message("assistant", traces[self.place]))
        return ((await episode.step(message)).reward or 0.0,)


def _traces_of(task: Task) -> list[str]:
    found = sorted((name, text) for name, text in columns_of(task).items() if name.startswith(_COLUMN))
    return [text for _, text in found if isinstance(text, str) and text.strip()]


def _teachers(text: str, setting: Setting) -> tuple[Agent, ...]:
    if text == "columns":
        return tuple(TeacherColumn(place) for place in range(_MOST_COLUMNS))
    if text == "rules":
        styles = (backward, largest_first, brief)
        solving = (named_part("teachers", text, setting, style, ("arithmetic",)) for style in styles)
        return (Demonstrate(), *map(LLMAgent, solving))
    return tuple(LLMAgent(named_part("teachers", each.strip(), setting)) for each in text.split(","))
