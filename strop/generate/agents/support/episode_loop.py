"""Turn loop of an episode: from the start, after replayed turns, or after messages of other roles and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import LLMClientError
from strop.generate.rollout import EnvironmentFailed
from strop.roles import Dialogue, Episode, LLMClient
from strop.text.sanitize import quoted
from strop.types import Message, Observation, Sampling, Task


async def acted(
    dialogue: Dialogue, episode: Episode, max_turns: int, before: Sequence[Observation] = ()
) -> list[Observation]:
    """Alternate completions and answers until the environment ends the episode, the context is full, or there were
    `max_turns` turns, those of `before` included.
    """
    answers = list(before)

    def goes_on() -> bool:
        return len(answers) < max_turns and not (answers and answers[-1].done)

    while goes_on() and not dialogue.is_cut:
        answers.append(await episode.step(await dialogue.completion()))
        if goes_on():
            dialogue.hear(answers[-1].messages)
    return answers


async def played_on(
    dialogue: Dialogue, talk: Speaker, episode: Episode, answer: Message, max_turns: int
) -> tuple[float, ...]:
    """Rewards of the turns after side conversations ended in `answer`: its speaker goes on to the episode's end.

    What another model earns stands at the last turn of the policy.
    """
    before, answers = len(dialogue.turns) - 1, [await episode.step(answer)]
    while not answers[-1].done and len(answers) < max_turns and not talk.is_cut:
        talk.hear(answers[-1].messages)
        answers.append(await episode.step(await talk.completion()))
    paid = payments(answers, before)
    return (*paid[:before], sum(paid[before:])) if paid and isinstance(talk, OtherModel) else paid


def payments(answers: Sequence[Observation], num_asides: int = 0) -> tuple[float, ...]:
    """Reward of each turn, with 0 for side conversations before; empty if the environment never pays."""
    if all(answer.reward is None for answer in answers):
        return ()
    return (*[0.0] * num_asides, *(answer.reward or 0.0 for answer in answers))


# Rollouts with earlier turns: replay of these turns in a new episode.


async def where_it_stands(
    task: Task, dialogue: Dialogue, episode: Episode, must_go_on: bool = False
) -> list[Observation]:
    """Replay the turns that exist already; the dialogue then reads the environment's answer to the last of them.

    An environment that ends earlier, or at the last turn with `must_go_on`, is not the one of these turns: an error.
    """
    await episode.reset(task)
    answers, turns = list[Observation](), dialogue.turns
    for turn in turns:
        answers.append(await episode.step(turn.message))
        if answers[-1].done and (must_go_on or len(answers) < len(turns)):
            raise EnvironmentFailed(
                f"it ended after {len(answers)} of {len(turns)} replayed turns, where it had continued before"
            )
    if answers and not answers[-1].done:
        dialogue.hear(answers[-1].messages)
    return answers


# Messages of other roles after the question, and roles that other models play.

HINTED = "{question} hint: {said}"  # as the bundled model was taught it
TOLD = "{question}\n\nOther agents of your team said:\n{said}\n\nAnswer the question."


def told_by_others(task: Task, said: Sequence[str], asks: str = HINTED) -> tuple[Message, ...]:
    """The task's messages; if others have spoken, the last one is formatted by `asks`."""
    words = " ".join(quoted(each.replace(OPEN, " ").replace(CLOSE, " ")).strip() for each in said)
    if not words:
        return task.messages
    *before, question = task.messages
    return (*before, replace(question, content=asks.format(question=question.content, said=words)))


class Speaker(Protocol):
    """Role in a conversation: a side context of the policy, or another model."""

    @property
    def is_cut(self) -> bool: ...
    def hear(self, messages: Sequence[Message]) -> None: ...
    async def completion(self) -> Message: ...


@dataclass
class OtherModel:
    """Role that another model plays: its messages are read by the policy and are no tokens of the rollout."""

    role: str
    client: LLMClient
    heard: list[Message]
    key: int
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=1024))  # of its messages

    is_cut = False

    def hear(self, messages: Sequence[Message]) -> None:
        self.heard += messages

    async def completion(self) -> Message:
        try:
            said = Message("assistant", await self.client.ask(self.heard, self.sampling, self.key))
        except LLMClientError as error:
            raise EnvironmentFailed(f"the {self.role} gave no answer: {error}") from error
        self.heard.append(said)
        return said


def speaker(dialogue: Dialogue, messages: Sequence[Message], role: str, models: Mapping[str, LLMClient]) -> Speaker:
    """Whoever plays a role: the model that is named for it, or the policy in a context of its own."""
    if role in models:
        return OtherModel(role, models[role], [*messages], dialogue.key)
    return dialogue.aside(messages, role)
