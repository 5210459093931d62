"""LightSearcher: GRPO with an experience text in training prompts, and a penalty on needless tool calls.

Title: LightSearcher: Efficient DeepSearch via Experiential Memory
Paper: arXiv 2512.06653 (2025)
Claim: Accuracy of the best deep search method with 39.6 % fewer tool calls, 48.6 % less time and 21.2 % fewer tokens.
Reading: GRPO on a key-value store queried by tool calls, in place of a search engine; tool outputs are not trained on.
    The environment's score replaces F1. The smallest sufficient number of calls is known only after a task was solved,
    so tasks are repeated. A stand-in rule for the bundled environments writes the experience text in place of an LLM;
    teacher=itself asks the policy. The bundled model was not trained with such text: with it, the recipe only shows
    that the mechanism runs.
Left out: Prompts, and rates that were not found.
Acts: lessons > 0 and fact/memory > 0 and fact/least_calls > 0 and fact/examples > 0 with every=1, tasks=2
Break: strategy.longest=0: the memory is written and never shown
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from strop.concurrency import together
from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.memory.inject import fitting, topic, with_help
from strop.generate.memory.reflect import reflected, reflections, trace, try_reflection
from strop.generate.memory.store import Change, Lesson, Library, add
from strop.recipes.named_parts import named_reflector
from strop.recipes.replay.lightsearcher.reward import LEAST, RIGHT, FewestCalls, calls_of
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, Strategy
from strop.run import Run
from strop.success import reaches, success
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.roles import Player


# LightSearcher's memory (2512.06653): an experience text written by contrasting good rollouts with bad ones.
#
# The text is rewritten every few versions; rollouts read it with one good rollout as an example. Readings: the example
# is a random one of another task; only the newest are kept. Later versions read what was learned from a version; the
# first group of a version writes the text when it is due. The smallest number of calls that solved a task is recorded
# in the facts of its rollouts for the reward (`FewestCalls`); successes of the same version do not count.

MEMORY, GOOD, BAD = "memory", "good", "bad"
_CONTRASTED = 4  # good rollouts, and as many bad ones, in one comparison


@dataclass
class ExperientialMemory(Strategy, Asks):
    """Experience text from rollouts of reward `best` versus those below `worst`, renewed every `every` versions."""

    library: Library
    llm_client: LLMClient | None = None  # writes the text; None: the policy itself
    every: int = 5  # versions
    best: float = 1.0  # success of a good rollout
    worst: float = 0.3  # success below which a rollout is bad
    longest: int = 200  # characters of text and example before a task; an example loses its end
    prompts: dict[str, str] = field(default_factory=lambda: reflections("memory"))  # what is asked, by request

    # period of `every` versions -> the group that writes; it writes again if it was in flight when a run was killed
    _firsts: dict[int, int] = field(default_factory=lambda: {0: -1}, init=False, repr=False, compare=False)
    _made: dict[int, list[Change]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by group
    # by task: calls of successes, and the version of each
    _calls: dict[str, list[tuple[int, int]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.every < 1 or self.worst > self.best:
            raise ConfigurationError(
                f"ExperientialMemory needs every >= 1 and worst <= best, got {self.every}, {self.worst} and {self.best}"
            )

    async def try_clients(self, task: Task) -> None:
        await try_reflection(self.llm_client, "memory", task, prompts=self.prompts)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        self.library.catch_up(group.version)
        period = group.version // self.every  # a late group may miss the version itself
        if self._firsts.setdefault(period, group.number) == group.number and group.number not in self._made:
            self._made[group.number] = await self._written(play)
        memory = fitting([self._memory.text], self.longest)
        room = self.longest - sum(len(text) + 1 for text in memory)
        texts = fitting([*memory, self.example(group.task, starts)[: max(room, 0)]], self.longest)
        rollouts = await together(play(with_help(start, group.task, texts)) for start in starts)
        facts = {"memory": float(len(memory)), "examples": float(len(texts) - len(memory))}
        if (least := self.least(group.task, group.version)) is not None:
            facts[LEAST] = float(least)
        return [replace(rollout, facts=rollout.facts | facts) for rollout in rollouts]

    def example(self, task: Task, starts: Sequence[Start]) -> str:
        """A random good rollout of another task."""
        known = [lesson for lesson in self.library.on(GOOD) if lesson.about != topic(task)]
        if not known or not starts:
            return ""
        return known[int(np.random.default_rng(starts[0].key).integers(len(known)))].text

    def least(self, task: Task, version: int) -> int | None:
        """The smallest number of calls among successes of earlier versions."""
        return min((calls for at, calls in self._calls.get(task.id, ()) if at < version), default=None)

    @property
    def _memory(self) -> Lesson:
        return next(iter(self.library.on(MEMORY)), Lesson("", "", MEMORY))

    async def _written(self, play: Player) -> list[Change]:
        """The rewritten text, if there are good and bad rollouts; bad rollouts are used once."""
        good, bad = self.library.best(GOOD, _CONTRASTED), self.library.best(BAD, _CONTRASTED)
        if not good or not bad:
            return []
        traces = ["\n".join(lesson.text for lesson in kept) for kept in (bad, good)]
        answer = await reflected(
            self.llm_client,
            "memory",
            play,
            ideas=self._memory.text,
            completion=traces[0],
            other=traces[1],
            prompts=self.prompts,
        )
        text = " ".join(answer.split())[: self.library.longest]
        written = [Change("rewrite", replace(self._memory, text=text, support=1))] if text else []
        return [*written, *(Change("remove", lesson) for lesson in self.library.on(BAD))]

    def observe(self, group: Group) -> None:
        self._count(group)
        made, asked = self._made.pop(group.number, []), prompt_of(group.task)
        good = [rollout for rollout in group.scored if reaches(success(rollout), self.best)][:1]
        bad = [rollout for rollout in group.scored if success(rollout) < self.worst][:1]
        for category, rollouts in ((GOOD, good), (BAD, bad)):
            texts = [f"{asked} {trace(rollout)}"[: self.library.longest] for rollout in rollouts]
            made += [add(" ".join(text.split()), topic(group.task), category, group.version) for text in texts]
        self.library.propose(group, made)

    def _count(self, group: Group) -> None:
        calls = [calls_of(rollout) for rollout in group.scored if success(rollout) >= RIGHT]
        if calls:
            self._calls.setdefault(group.task.id, []).append((group.version, min(calls)))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing: `observe` does; says what the library holds."""
        return self.library.metrics()

    def state(self) -> dict[str, Any]:
        return {
            "firsts": [list(each) for each in self._firsts.items()],
            "calls": {name: [list(row) for row in rows] for name, rows in self._calls.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._firsts = {int(period): int(number) for period, number in state["firsts"]}
        self._calls = {name: [(int(at), int(calls)) for at, calls in rows] for name, rows in state["calls"].items()}


def lightsearcher(
    setting: Setting = Setting(env="keyvalue:2", group_size=12),
    teacher: str = "rules",  # writes the text (a named part)
    tasks: int = OfEndless(64),  # tasks per environment, which are repeated; all of a table
    every: int = 5,  # steps between two rewrites of the text
    best: float = 1.0,  # success of a good rollout
    worst: float = 0.3,  # success below which a rollout is bad
    price: float = 0.75,  # exponential penalty rate per call above the fewest
    most: int = 64,  # good rollouts that are kept, and as many bad ones
    longest: int = 0,  # characters of text and example together; 0: 160, and 1000 for a model of yours
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """group_size rollouts that read the memory and an example; held-out tasks are evaluated without them."""
    longest = setting.text_room(longest, bundled=160)
    library = Library(most, longest=max(Library.longest, longest))
    memory = ExperientialMemory(library, named_reflector(teacher, setting), every, best, worst, longest)
    run = setting.run("lightsearcher", GroupStandard(), (Clip(clip, clip),), strategy=memory)
    judged = as_one(run.rewards)
    run.rewards = (FewestCalls(judged, price),)
    run.sampler = Few(run.envs, covering(run.envs, tasks))
    return run
