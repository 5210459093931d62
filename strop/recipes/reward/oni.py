"""PPO on the task's sparse reward and on what an LLM client, asked while training, thinks of the environment's
messages.

Title: Online Intrinsic Rewards for Decision Making Agents from Large Language Model Feedback
Paper: arXiv 2410.23022 (2024)
Claim: On tasks of NetHack with sparse rewards as good as rewards learned beforehand from collected data, in one run.
Reading: The form that retrieves labels from a table. Weights 0.4 and 10 are the release's for sparse tasks, the power 3
    of sightings too. Labels count from the step after the one whose draw held the message. Messages are what a store
    behind tool calls says, and a rule that likes whatever is no error stands for the language model; the policy is a
    language model here. PPO's other numbers are ours.
Left out: The forms that classify and rank messages by a model of their own, and labelling on a machine of its own.
Acts: labels > 0 and reward/labelled_messages > 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import YES_OR_NO, all_of, key_of, verdict_or_none
from strop.filter.paid_text import Paid, Span
from strop.filter.rewards.from_environment import Earned
from strop.generate.llm_clients.scripted import Procedural
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.steps import labelled
from strop.text.llm_prompt import judgement
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic
from strop.types import Group, Metrics, Rollout, Sampling, Task

# ONI's intrinsic reward (2410.23022): what an LLM client thinks of an environment's messages, asked while training.
#
# The form that retrieves: an LLM client says yes or no to each message once, a table keeps it, and what is not in the
# table yet earns nothing. Labels come late: those of a batch's messages are in the table from the next step on, whoever
# was quick, so that a run has the same bits every time. Beyond `queue` messages that wait nobody asks for more.

_ASKED = "Does this message of the environment show progress on the task? Answer with yes or no."
_SAMPLING = Sampling(temperature=0.0, max_tokens=8)  # of the LLM client
_LONGEST = 500  # characters of a message


@dataclass
class LabelledMessages(Reward):
    """label / N^power at the end of each completion that made the environment say something, N its sightings in the
    rollout.
    """

    llm_client: LLMClient
    power: float = 3.0  # of the number of sightings of a message in its rollout
    queue: int = 1000  # messages that may wait for their label
    weight: float = 1.0

    _labels: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _waiting: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _asking: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)  # no answer came yet

    is_inline: ClassVar[bool] = True  # its table is in the run's own process; it waits for its LLM client

    def __post_init__(self) -> None:
        if self.power < 0 or self.queue < 1:
            raise ConfigurationError(f"LabelledMessages needs power >= 0, queue >= 1, got {self.power}, {self.queue}")

    def __call__(self, group: Group) -> Awaitable[Sequence[Paid]]:
        return self._paid(group)

    async def _paid(self, group: Group) -> list[Paid]:
        paid = [Paid(0.0, tuple(self._spans(rollout))) for rollout in group.rollouts]
        await self._ask(group)
        return paid

    def _spans(self, rollout: Rollout) -> list[Span]:
        seen: Counter[str] = Counter()
        found = []
        for number, messages in enumerate(said_after(rollout)):
            value = 0.0
            for message in messages:
                seen[message] += 1
                value += self._labels.get(message, 0.0) / seen[message] ** self.power
            if messages:
                found.append(Span(number, 0, len(rollout.turns[number].message.content), value))
        return found

    async def _ask(self, group: Group) -> None:
        """Labels of messages that nobody knows; they wait until the step is made.

        What another group asks about at this moment is asked again, or its label would depend on who was quick; it has
        its place in the queue already.
        """
        new = self._new(group)
        self._asking.update(new)
        try:
            labels = await all_of(self._label(group.task, text) for text in new)
        finally:
            self._asking -= Counter(new)
        self._waiting |= {text: label for text, label in zip(new, labels, strict=True) if text not in self._labels}

    def _new(self, group: Group) -> list[str]:
        said = [text for each in group.rollouts for messages in said_after(each) for text in messages]
        unknown = [text for text in dict.fromkeys(said) if text not in self._labels and text not in self._waiting]
        room = self.queue - len(self._waiting.keys() | self._asking.keys())
        fresh = [text for text in unknown if text not in self._asking][: max(room, 0)]
        return [text for text in unknown if text in self._asking or text in fresh]

    async def _label(self, task: Task, text: str) -> float:
        """1 for yes, 0 for no and for whatever else is said; asked about the kind of task, not about this one."""
        asked = judgement(_ASKED, task=task.source, completion=text[:_LONGEST])
        said = await verdict_or_none(self.llm_client, asked, YES_OR_NO, _SAMPLING, key_of(asked))
        return float(said.strip().lower().startswith("yes"))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """From the next step on the labels of these groups' messages count."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        for text in (each for rollout in rollouts for messages in said_after(rollout) for each in messages):
            if text in self._waiting:
                self._labels[text] = self._waiting.pop(text)
        yes = sum(self._labels.values())
        return {"labels": float(len(self._labels)), "labels_yes": yes, "labels_waiting": float(len(self._waiting))}

    def state(self) -> dict[str, Any]:
        return {"labels": dict(self._labels), "waiting": dict(self._waiting)}

    def restore(self, state: dict[str, Any]) -> None:
        self._labels, self._waiting = dict(state["labels"]), dict(state["waiting"])


def said_after(rollout: Rollout) -> list[list[str]]:
    """What the environment said after each turn; what it said after the last one is not known."""
    told = [[message.content for message in turn.told] for turn in rollout.turns[1:]]
    return [*told, *([[]] if rollout.turns else [])]


def oni(
    setting: Setting = Setting(env="keyvalue:3"),
    intrinsic: float = 0.4,  # weight of labels
    extrinsic: float = 10.0,  # weight of the task's own reward, which is sparse
    power: float = 3.0,  # of the number of sightings by which a label is divided
    queue: int = 1000,  # messages that may wait for their label
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """What a message is worth is asked once and remembered."""
    run = setting.run("oni", Gae(), (Clip(clip, clip),), values=Critic(device=setting.device), minibatches=4)
    llm_client = Procedural(labelled)
    run.rewards = (Earned(weight=extrinsic), LabelledMessages(llm_client, power, queue, weight=intrinsic))
    return run
