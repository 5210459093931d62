"""A first answer, then a search only where it is wrong: half of the questions need one, the other half do not.

Title: SEM: Reinforcement Learning for Search-Efficient Large Language Models
Paper: arXiv 2505.07903 (2025)
Claim: Far fewer needless searches, with answers as right as before or better, in questions of several kinds.
Reading: A first answer that is right earns its F1 where nothing is searched, and nothing where something is; one that
    is wrong earns the F1 of the last answer, if there was a search. Right is an F1 of a half: the constants were
    not found, and neither were the optimizer's, so group-relative advantages and a clip of 0.2. Questions that need no
    search are short sums here and facts that no model knows are the others, drawn equally often; the paper has general
    knowledge and questions of several hops. A short supervised run shows both, and half of the sums looked up after
    they were answered: the paper's models search needlessly to begin with, and one that never does cannot unlearn it.
    On sums alone with a rate of 3e-4, 28 of 100 rollouts searched needlessly at first and none two steps later; paid
    for right answers alone they became 53 of 100.
Left out: A dense index; a template of tags, since the first completion's words are the first answer.
Acts: fact/needless > 0 and fact/first_right > 0 and fact/searched > 0 and fact/first_right < 1 with warmup_steps=8
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.bundled.search import Search
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.demonstrations import demonstrating
from strop.environments.format.think_tags import final_answer
from strop.environments.tools.search_tool import Retrieval
from strop.environments.tools.toolbox import Toolbox, ToolboxEpisode, calling
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.recipes.wrapped_environments import wrap_envs
from strop.roles import Environment, Reward
from strop.run import Run
from strop.text.token_f1 import token_f1
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Message, Outcome, Rollout

# Tools in an environment whose demonstrations look some answers up though they have just said them.
#
# It is what a policy must have learned before a reward can take it away again (SEM, 2505.07903): demonstrations that
# call a tool only where it is needed leave no needless call to be punished.

_DIGITS = 8  # of a task's id, which is a hash: the share is the same whenever and in whatever order tasks are shown


@dataclass(frozen=True)
class Rechecked(Toolbox):
    """A `share` of the demonstrations answers, calls the first tool with the question, and answers again."""

    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"Rechecked needs a share from 0 to 1, got {self.share:g}")

    def episode(self) -> RecheckedEpisode:
        return RecheckedEpisode(self.inner.episode(), self.tools, self.longest, self.seconds, share=self.share)


@dataclass
class RecheckedEpisode(ToolboxEpisode):
    """Its tools and its environment as they are; only what is shown differs."""

    share: float = 0.5

    def demonstrate(self) -> Message:
        shown = demonstrating(
            self.inner
        ).demonstrate()  # with its working each time: small models find it again by that
        if self.heard or int(self.task.id[:_DIGITS], 16) >= self.share * 16**_DIGITS:
            return shown
        return calling(self.tools[0], shown.content, query=prompt_of(self.task))


# What a completion says beside its calls.

# how calls open in the chat templates of the comparison groups that are known
_SCORES = ("<call>", "<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<function_call>")


def before_calls(message: Message) -> str:
    """What stands before the first call; all, where nothing is called."""
    text = message.content
    if message.tool_calls:
        text = text[: min((at for score in _SCORES if (at := text.find(score)) >= 0), default=len(text))]
    return text.strip()


# SEM's reward (2505.07903): who knows the answer says so and does not search; who does not searches first.
#
# A rollout gives a first answer in its first completion, before any call, and may then search. Readings (the paper's
# constants were not found): an answer is known where its F1 is at least a half; a completion without a first answer, or
# an
# rollout without a last one, is of bad form.


@dataclass(frozen=True)
class SearchOrAnswer(Reward):
    """S(first) where it is known and nothing was searched; S(last) where it is not and something was; else 0."""

    known: float = 0.5  # F1 from which on an answer is known

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.known <= 1:
            raise ConfigurationError(f"SearchOrAnswer needs known above 0 and at most 1, got {self.known:g}")

    def __call__(self, group: Group) -> list[float]:
        return [self._score(rollout) for rollout in group.rollouts]

    def _score(self, rollout: Rollout) -> float:
        if not rollout.turns:
            return 0.0
        completions, right = [turn.message for turn in rollout.turns], rollout.task.answer
        first, last = final_answer(before_calls(completions[0])), final_answer(before_calls(completions[-1]))
        has_searched = any(completion.tool_calls for completion in completions)
        knows = token_f1(first, right) >= self.known
        # a policy may say something wrong on purpose, to be paid for a search: this metric would fall
        facts = {"first_right": knows, "searched": has_searched, "needless": knows and has_searched}
        rollout.facts |= {name: float(is_so) for name, is_so in facts.items()}
        is_whole = bool(first and last) and rollout.outcome is Outcome.FINISHED and not completions[-1].tool_calls
        if not is_whole or knows == has_searched:
            return 0.0
        return token_f1(first if knows else last, right)


def sem(
    setting: Setting = Setting(env="search:1+arithmetic:2"),
    known: float = 0.5,  # F1 of a first answer from which on a search is needless
    turns: int = 4,  # maximum number of turns of a rollout
    warmup_steps: int = 12,  # supervised steps on demonstrations before RL
    needless: float = 0.5,  # of what it shows in environments that need no search: searched for all the same
) -> Run:
    """Environments that need a search and environments that do not, all with the tool."""
    run = setting.run("sem", GroupStandard(), (Clip(0.2, 0.2),), agent=Chat(turns))
    run.warmup = shown(setting, "sem", warmup_steps)
    wrap_envs(run, lambda env: (_with_search(env, needless),))
    run.rewards = (SearchOrAnswer(known),)
    run.evaluation = replace(run.evaluation, agent=run.agent)
    return run


def _with_search(env: Environment, needless: float) -> Environment:
    if isinstance(env, Search):
        return replace(env, style="guess")
    return Rechecked(env, (Retrieval(),), share=needless)
