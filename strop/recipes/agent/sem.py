"""SEM: GRPO on a first answer followed by an optional search, rewarding searches only where the first answer is wrong.

Title: SEM: Reinforcement Learning for Search-Efficient Large Language Models
Paper: arXiv 2505.07903 (2025)
Claim: Far fewer needless searches, with answers as right as before or better, in questions of several kinds.
Reading: A right first answer earns its F1 without a search and 0 with one; a wrong first answer earns the F1 of the
    last answer if there was a search. Right means an F1 of at least 0.5. The constants were not found, nor the
    optimizer's, so advantages are group-relative and the clip range is 0.2. Questions that need no search are short
    sums; the others are facts that no model knows; both are sampled equally often. The paper has general knowledge and
    multi-hop questions. A short supervised run demonstrates both, and in half of the sums a search after the answer:
    the paper's models search needlessly at first, and a policy that never does cannot unlearn it. On sums alone with a
    learning rate of 3e-4, 28 of 100 rollouts searched needlessly at first and none two steps later; with a reward for
    right answers only, the number rose to 53 of 100.
Left out: A dense index; a template of tags, since the first completion contains the first answer.
Acts: fact/needless > 0 and fact/first_right > 0 and fact/searched > 0 and fact/first_right < 1 with warmup_steps=8
Break: known=2: no search is ever needless
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
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.named_parts import named_search, reward_seconds
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Environment, Reward
from strop.run import Run
from strop.text.overlap import token_f1
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import ZERO_TO_ONE, Group, Message, Outcome, Rollout, ScoreRange

# Demonstrations with needless searches (SEM, 2505.07903): the reward can only remove what the policy does at first.

_DIGITS = 8  # hex digits of a task's id (a hash) that decide, so that the choice does not depend on the order


@dataclass(frozen=True)
class Rechecked(Toolbox):
    """Toolbox whose demonstrations, in a `share` of the tasks, answer, search needlessly and answer again."""

    share: float = 0.5  # share of tasks with a needless search

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"Rechecked needs a share from 0 to 1, got {self.share:g}")

    def episode(self) -> RecheckedEpisode:
        return RecheckedEpisode(self.inner.episode(), self.tools, self.longest, self.seconds, share=self.share)


@dataclass
class RecheckedEpisode(ToolboxEpisode):
    """Episode of `Rechecked`: only the demonstrations differ from those of a `ToolboxEpisode`."""

    share: float = 0.5

    def demonstrate(self) -> Message:
        shown = demonstrating(self.inner).demonstrate()  # with its chain of thought both times, for small models
        if self.heard or int(self.task.id[:_DIGITS], 16) >= self.share * 16**_DIGITS:
            return shown
        return calling(self.tools[0], shown.content, query=prompt_of(self.task))


# opening tags of tool calls in the chat templates of known model families
_CALL_TAGS = ("<call>", "<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<function_call>")


def before_calls(message: Message) -> str:
    """The text before the first tool call; the whole text without one."""
    text = message.content
    if message.tool_calls:
        text = text[: min((at for tag in _CALL_TAGS if (at := text.find(tag)) >= 0), default=len(text))]
    return text.strip()


# SEM's reward (2505.07903).
#
# A rollout answers in its first completion, before any tool call, and may then search. Readings (the paper's constants
# were not found): an answer counts as known from an F1 of 0.5; a missing first or last answer is a format error.


@dataclass(frozen=True)
class SearchOrAnswer(Reward):
    """F1(first answer) if it is known and there was no search; F1(last) if unknown and there was one; else 0."""

    known: float = 0.5  # F1 from which an answer counts as known

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE
    calls_tools: ClassVar[bool] = True
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.known <= 0:
            raise ConfigurationError(f"SearchOrAnswer needs known above 0, got {self.known:g}")

    def __call__(self, group: Group) -> list[float]:
        return [self._score(rollout) for rollout in group.rollouts]

    def _score(self, rollout: Rollout) -> float:
        if not rollout.turns:
            return 0.0
        completions, right = [turn.message for turn in rollout.turns], rollout.task.answer
        first, last = final_answer(before_calls(completions[0])), final_answer(before_calls(completions[-1]))
        has_searched = any(completion.tool_calls for completion in completions)
        knows = token_f1(first, right) >= self.known
        # first_right falls if the policy answers wrongly on purpose to be rewarded for a search
        facts = {"first_right": knows, "searched": has_searched, "needless": knows and has_searched}
        rollout.facts |= {name: float(is_so) for name, is_so in facts.items()}
        is_whole = bool(first and last) and rollout.outcome is Outcome.FINISHED and not completions[-1].tool_calls
        if not is_whole or knows == has_searched:
            return 0.0
        return token_f1(first if knows else last, right)


def sem(
    setting: Setting = Setting(env="search:1+arithmetic:2"),
    search: str = "rules",  # search tool: a folder or JSONL file of texts (or a named part)
    known: float = 0.5,  # F1 of the first answer from which a search is needless
    turns: int = 4,  # maximum number of turns of a rollout
    warmup_steps: int = BundledOnly(12),  # supervised steps on demonstrations before RL
    needless: float = 0.5,  # share of the sums' demonstrations with a needless search
) -> Run:
    """GRPO on environments that need a search and environments that do not, all with the search tool."""
    tool = named_search("search", search, setting)
    run = setting.run("sem", GroupStandard(), (Clip(0.2, 0.2),), agent=Chat(turns))
    run.warmup = shown(setting, "sem", warmup_steps)
    wrap_envs(run, lambda env: (_with_search(env, needless, tool, reward_seconds(search)),))
    run.rewards = (SearchOrAnswer(known),)
    run.evaluation = replace(run.evaluation, agent=run.agent)
    return run


def _with_search(env: Environment, needless: float, tool: Retrieval, seconds: float) -> Environment:
    if isinstance(env, Search):
        return replace(env, style="guess", tool=tool)
    return Rechecked(env, (tool,), seconds=seconds, share=needless)
