"""ONI: PPO on sparse task rewards plus intrinsic rewards, an LLM's labels of environment messages made online.

Title: Online Intrinsic Rewards for Decision Making Agents from Large Language Model Feedback
Paper: arXiv 2410.23022 (2024)
Claim: On tasks of NetHack with sparse rewards as good as rewards learned beforehand from collected data, in one run.
Reading: The variant that retrieves labels from a table. Weights 0.4 and 10 are the release's for sparse tasks, as is
    the power 3 of the count. Labels count from the step after the one whose training batch held the message. Messages
    are the answers of a store behind tool calls, and a rule that likes every answer without an error stands in for the
    language model; the policy is a language model here. PPO's other hyperparameters are ours.
Left out: The variants that classify and rank messages with a separate model, and labelling on a separate machine.
Acts: labels > 0 and reward/labelled_messages > 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import all_of, judged_or_none, key_of
from strop.filter.judges.readers import YES_NO
from strop.filter.paid_text import Paid, Span
from strop.filter.rewards.from_environment import Earned
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.steps import labelled
from strop.text.llm_prompt import judgement
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic
from strop.types import Group, Metrics, Rollout, Sampling, Task

# ONI's intrinsic reward (2410.23022): an LLM client's labels of an environment's messages, requested while training.
#
# Retrieval variant: an LLM client labels each message once with yes or no, a table keeps the label, and messages that
# are not in the table earn nothing. Labels of a batch's messages enter the table only at the next step, however early
# they arrive, so that runs are reproducible to the bit. Beyond `queue` waiting messages no more labels are requested.

ASKED = "Does this message of the environment show progress on the task? Answer with yes or no."
_SAMPLING = Sampling(temperature=0.0, max_tokens=256)  # of the LLM client


@dataclass
class LabelledMessages(Reward):
    """label / N^power at the end of each completion that a message answers, N its count in the rollout so far."""

    llm_client: LLMClient
    power: float = 3.0  # exponent of a message's count in its rollout
    queue: int = 1000  # largest number of messages that wait for their label
    weight: float = 1.0
    prompt: str = ASKED  # what the judge is asked, below the task's environment and the message

    _labels: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _waiting: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _asking: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)  # requests in flight

    is_inline: ClassVar[bool] = True  # its table is in the run's own process; awaits its LLM client
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

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
        for number, messages in enumerate(messages_after(rollout)):
            value = 0.0
            for message in messages:
                seen[message] += 1
                value += self._labels.get(message, 0.0) / seen[message] ** self.power
            if messages:
                found.append(Span(number, 0, len(rollout.turns[number].message.content), value))
        return found

    async def _ask(self, group: Group) -> None:
        """Request labels of unknown messages; the labels wait until the step is complete.

        A message that another group is requesting now is requested again, so that its label does not depend on timing;
        it already has its place in the queue.
        """
        new = self._new(group)
        self._asking.update(new)
        try:
            labels = await all_of(self._label(group.task, text) for text in new)
        finally:
            self._asking -= Counter(new)
        self._waiting |= {text: label for text, label in zip(new, labels, strict=True) if text not in self._labels}

    def _new(self, group: Group) -> list[str]:
        texts = [text for each in group.rollouts for messages in messages_after(each) for text in messages]
        unknown = [text for text in dict.fromkeys(texts) if text not in self._labels and text not in self._waiting]
        room = self.queue - len(self._waiting.keys() | self._asking.keys())
        fresh = [text for text in unknown if text not in self._asking][: max(room, 0)]
        return [text for text in unknown if text in self._asking or text in fresh]

    async def _label(self, task: Task, text: str) -> float:
        """1 for yes, 0 for every other answer; the question names the kind of task, not this task."""
        asked = judgement(self.prompt, task=task.source, completion=text)
        return await judged_or_none(self.llm_client, asked, YES_NO, _SAMPLING, key_of(asked)) or 0.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Enter the labels of these groups' messages into the table, from the next step on."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        for text in (each for rollout in rollouts for messages in messages_after(rollout) for each in messages):
            if text in self._waiting:
                self._labels[text] = self._waiting.pop(text)
        yes = sum(self._labels.values())
        return {"labels": float(len(self._labels)), "labels_yes": yes, "labels_waiting": float(len(self._waiting))}

    def state(self) -> dict[str, Any]:
        return {"labels": dict(self._labels), "waiting": dict(self._waiting)}

    def restore(self, state: dict[str, Any]) -> None:
        self._labels, self._waiting = dict(state["labels"]), dict(state["waiting"])


def messages_after(rollout: Rollout) -> list[list[str]]:
    """The environment's messages after each turn; those after the last one are not recorded."""
    found = [[message.content for message in turn.told] for turn in rollout.turns[1:]]
    return [*found, *([[]] if rollout.turns else [])]


def oni(
    setting: Setting = Setting(env="keyvalue:3"),
    judge: str = "rules",  # labels messages (a named part)
    intrinsic: float = 0.4,  # weight of the labels
    extrinsic: float = 10.0,  # weight of the task's own reward, which is sparse
    power: float = 3.0,  # exponent of the message's count, by which a label is divided
    queue: int = 1000,  # largest number of messages that wait for their label
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """Each message is labelled once; the label is kept."""
    run = setting.run("oni", Gae(), (Clip(clip, clip),), values=Critic(device=setting.device), minibatches=4)
    llm_client = named_part("judge", judge, setting, labelled)
    run.reward_seconds = reward_seconds(judge)
    run.rewards = (Earned(weight=extrinsic), LabelledMessages(llm_client, power, queue, weight=intrinsic))
    return run
