"""Inverse specification: GRPO on quality gained per turn, including how well a guesser recovers the brief.

Title: Learning to Present: Inverse Specification Rewards for Agentic Slide Generation
Paper: arXiv 2603.16839 (2026)
Claim: With 0.5 % of its parameters trained on 48 briefs, a 7B model reaches 91.2 % of a far larger one's quality,
    33.1 % above its initial quality.
Reading: The weights of structure (1), content (2) and inverse specification (2) are the release's, as are the formula
    of the guess and the bonus per turn. An unnamed audience scores 0, where the release gives 0.7; a component that
    fails fails the rollout. A sum stands in for a brief and its chain of thought for the slides: structure is the
    layout of the completion, content the environment's reward. Rules write briefs, and guess them from correct steps
    (`judge=http://...#MODEL` asks a model).
Left out: Slides: rendering and looks, 5 of the 10 weights; the tools that edit them.
Acts: reward/quality_gained > 0 and reward/inverse_specification < 1 and fact/quality > 0
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import Lines, all_of, text_of, unread, verdict
from strop.filter.judges.readers import plain
from strop.filter.paid_text import Paid, Span
from strop.filter.rewards.format import Formatted
from strop.filter.rewards.from_environment import Checked, Earned
from strop.recipes.named_parts import named_parts, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.outcomes import guessed, told
from strop.text.llm_prompt import judgement
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Outcome, Rollout

# Briefs: the request behind a work, read from the task or guessed from the work alone, and their agreement.

_FORM = "Answer in four lines, as in\ntopic: trade by sea\naudience: students\nsize: 5\nthemes: ports, winds, insurance"
ASK_OF_TASK = f"What does this task ask for? {_FORM}"
ASK_OF_WORK = f"You see a work and not what it was asked to be. What was it? {_FORM}"
_LINE = re.compile(r"[ \t*-]*(topic|audience|size|themes)[ \t]*:[ \t]*(.*)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_TOPIC, _AUDIENCE, _SIZE, _THEMES = 0.40, 0.25, 0.15, 0.20
_CONTAINED, _OVERLAP = 0.7, 0.4  # scores of an audience contained in the other, and of shared words
_EASE = 1.5  # 2/3 of the themes give the full score


@dataclass(frozen=True)
class WorkBrief:
    """Request behind a work; fields that are not stated are empty or 0."""

    topic: str = ""
    audience: str = ""
    size: int = 0
    themes: str = ""


def brief_in(text: str) -> WorkBrief | None:
    """The brief in an answer; None if it has no filled line."""
    found = [_LINE.fullmatch(line.rstrip()) for line in plain(text).splitlines()]
    fields = {each.group(1).lower(): each.group(2).strip() for each in found if each}
    if not any(fields.values()):
        return None
    size = re.fullmatch(r"(\d{1,6})\b.*", fields.get("size", ""))
    return WorkBrief(
        fields.get("topic", ""), fields.get("audience", ""), int(size[1]) if size else 0, fields.get("themes", "")
    )


async def brief_of(llm_client: LLMClient, wanted: str, **shown: str) -> WorkBrief:
    """The brief that an LLM client writes for a task or a completion."""
    text = await verdict(llm_client, judgement(wanted, **shown), Lines(_LINE))
    if (found := brief_in(text)) is None:
        raise unread(llm_client, text, "need a brief with topic, audience, size and themes, got")
    return found


def agreement(true: WorkBrief, guess: WorkBrief) -> float:
    """From 0 to 1: recall of the topic's words, the audience, the size, and recall of the themes' words."""
    return (
        _TOPIC * _recall(true.topic, guess.topic)
        + _AUDIENCE * _same_audience(true.audience, guess.audience)
        + _SIZE * (min(true.size, guess.size) / max(true.size, guess.size, 1))
        + _THEMES * min(1.0, _EASE * _recall(true.themes, guess.themes))
    )


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _recall(true: str, guess: str) -> float:
    wanted = _words(true)
    return len(wanted & _words(guess)) / len(wanted) if wanted else 0.0


def _same_audience(true: str, guess: str) -> float:
    """Match of two audiences, from 0 to 1; an unnamed one matches none, although it is contained in every other."""
    one, other = true.lower().strip(), guess.lower().strip()
    if not one or not other:
        return 0.0
    if one == other:
        return 1.0
    both = _words(one) | _words(other)
    shared = len(_words(one) & _words(other)) / max(len(both), 1)
    return _CONTAINED if one in other or other in one else _OVERLAP * shared


# Inverse specification (2603.16839): a guesser sees the work alone; the closer its brief to the true one, the better.


@dataclass(frozen=True)
class InverseSpecification(Reward):
    """0.40 topic + 0.25 audience + 0.15 size + 0.20 themes, each from 0 to 1; an empty guess is an error.

    The guesser sees the last completion and nothing of the task; an empty completion earns 0.
    """

    task_generator: LLMClient  # writes the brief of the task
    guesser: LLMClient  # guesses it from the completion alone
    weight: float = 1.0
    prompt: str = ASK_OF_TASK  # what is asked for the brief of a task
    prompt_guess: str = ASK_OF_WORK  # what is asked for the brief of a completion

    is_inline: ClassVar[bool] = True  # awaits its LLM clients

    async def __call__(self, group: Group) -> list[float]:
        if not group.rollouts:
            return []
        true = await brief_of(self.task_generator, self.prompt, task=text_of(group.task))
        return await all_of(self._score(rollout, true) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout, true: WorkBrief) -> float:
        if not rollout.completion.strip():
            return 0.0
        return agreement(true, await brief_of(self.guesser, self.prompt_guess, completion=rollout.completion))


# Quality gained by each turn (2603.16839): the work's quality after a turn minus that before.
#
# Reading: a component that fails fails the rollout, where the release scores it 0 and keeps its weight. A turn failed
# if the environment answered with an error; the last turn of a finished rollout finished the work.

_WORKED, _FAILED, _FINISHED = 0.01, -0.02, 0.1  # added to the quality gained, per turn


@dataclass(frozen=True)
class QualityGained(Reward):
    """Q(after turn k) - Q(before) plus a small bonus at the end of turn k, Q the weighted mean of `components`.

    The gains add up to the quality of the whole rollout, because Q is 0 before the first turn.
    """

    components: tuple[Reward, ...]  # each from 0 to 1, with its weight in the mean
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # if its components are

    def __post_init__(self) -> None:
        if not self.components or not all(each.weight > 0 for each in self.components):
            raise ConfigurationError(f"QualityGained needs components with weights > 0, got {self.components}")

    async def __call__(self, group: Group) -> list[Paid]:
        return [await self._score(group, rollout) for rollout in group.rollouts]

    async def _score(self, group: Group, rollout: Rollout) -> Paid:
        prefixes = [_until(rollout, count) for count in range(1, len(rollout.turns) + 1)]
        quality = await self._quality(replace(group, rollouts=prefixes)) if prefixes else []
        rollout.facts["quality"] = quality[-1] if quality else 0.0
        gains = [after - before for before, after in zip([0.0, *quality], quality, strict=False)]
        spans = [
            Span(number, 0, len(turn.message.content), gain + _turn_bonus(rollout, number))
            for number, (turn, gain) in enumerate(zip(rollout.turns, gains, strict=True))
        ]
        written = [span for span in spans if len(rollout.turns[span.turn].whole)]
        return Paid(sum(span.value for span in spans if span not in written), tuple(written))

    async def _quality(self, group: Group) -> list[float]:
        """Quality of each rollout of a group."""
        scored = [(each.weight, await _scores(each, group)) for each in self.components]
        total = sum(weight for weight, _ in scored)
        return [
            sum(weight * scores[place] for weight, scores in scored) / total for place in range(len(group.rollouts))
        ]


def _until(rollout: Rollout, count: int) -> Rollout:
    """The rollout's first `count` turns, with facts of their own."""
    return replace(rollout, turns=rollout.turns[:count], turn_rewards=rollout.turn_rewards[:count], facts={})


async def _scores(component: Reward, group: Group) -> Sequence[float]:
    returned = component(group)
    scores = await returned if inspect.isawaitable(returned) else returned
    return [
        score.end + sum(span.value for span in score.spans) if isinstance(score, Paid) else score for score in scores
    ]


def _turn_bonus(rollout: Rollout, number: int) -> float:
    """Bonus of a turn that succeeded, failed, or finished the work."""
    if number + 1 == len(rollout.turns):
        return _FINISHED if rollout.outcome is Outcome.FINISHED else _FAILED
    response = " ".join(message.content for message in rollout.turns[number + 1].told)
    return _FAILED if response.lower().lstrip().startswith("error") else _WORKED


def inverse_spec(
    setting: Setting = Setting(),
    judge: str = "rules",  # writes and guesses briefs (a named part)
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """The inverse specification reward is also logged on its own, with weight 0."""
    run = setting.run("inverse_spec", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)))
    content = Earned(weight=2.0) if all(env.pays for env in run.envs) else Checked(run.envs, weight=2.0)
    task_generator, guesser = named_parts("judge", judge, setting, told, guessed)
    inverse = InverseSpecification(task_generator, guesser, 2.0)
    run.rewards = (
        QualityGained((Formatted(weight=1.0), content, inverse)),
        InverseSpecification(task_generator, guesser, 0.0),
    )
    run.reward_seconds = reward_seconds(judge)
    return run
