"""Experiences and skills from rollouts that are compared, merged where they overlap and read later; no training.

Title: XSkill: Continual Learning from Experience and Skills in Multimodal Agents
Paper: arXiv 2603.12056 (2026)
Claim: Better than agents without such memories on five benchmarks with four models, without an update of weights.
Reading: Thresholds, operations and limits are the release's. The loss weighs nothing: a step is a batch of tasks from
    which both memories grow. Held-out tasks are tried with what is there, and leave nothing. Overlap of short
    pieces of text stands for cosines of embeddings, and is taken anew after every merge. A rule of the bundled
    environments compares, merges and adapts in place of a language model; llm_client=itself asks the policy.
Left out: Images; the number of experiences that are found for a part of a task was not found.
Acts: lessons > 0 and fact/experiences > 0 and fact/skill_words > 0
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting, topic, with_help
from strop.generate.memory.reflect import reflected, trace
from strop.generate.memory.store import Change, Lesson, Library, add, lines, tells, used
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Strategy
from strop.run import Run
from strop.success import is_right, success
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Message, Metrics, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


# XSkill's two memories (2603.12056): short experiences of what to do where, and one document of skills.
#
# Of each group's rollouts a critic says what is to be learned, as at most two operations: add an experience, or modify
# one. What is added and overlaps with an experience by `library.same` is merged with it. When the shelf is full, the
# closest pairs are merged, too. Skills of a batch of groups are merged into the document at once, and it is shortened
# when it is too long. Before a task, experiences are found for each of its parts and adapted to it. Readings: what
# groups of one version learn is merged when the next one begins, by its first group that finds no other at work on
# that; overlap is of short pieces of text in place of embeddings, between the part and what an experience is about.

EXPERIENCES, SKILL, FRAGMENTS = "experiences", "skill", "fragments"
_OPERATION = re.compile(r"^(add|modify (\S+)):\s*(.+)$")
_PARTS = 4  # of a task, most
_ROUNDS = 3  # of merging where the shelf is full


@dataclass
class SkillsAndExperiences(Strategy):
    """Rollouts read the document and the experiences; where `learns`, both grow by what is said of the rollouts."""

    library: Library
    llm_client: LLMClient | None = None  # who compares, merges and adapts; None: the policy itself
    shown: int = 3  # experiences for each part of a task
    operations: int = 2  # that follow from one group
    forced: float = 0.6  # overlap from which two experiences are merged where there is no more room
    words: int = 1000  # of the document, before it is shortened
    longest: int = 200  # characters of all that stands before a task
    learns: bool = True

    # by version: the group that merges, none at first; it does so again where it was in flight when a run was killed
    _firsts: dict[int, int] = field(default_factory=lambda: {0: -1}, init=False, repr=False, compare=False)
    _made: dict[int, list[Change]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by group
    _read: dict[int, list[Lesson]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.shown < 1 or self.operations < 1 or self.words < 1:
            raise ConfigurationError(
                f"SkillsAndExperiences needs shown, operations and words >= 1, got {self.shown}, {self.operations} "
                f"and {self.words}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not self.learns:
            texts, _ = await replace(self, library=self.library.predicted()).recalled(group.task, play)
            return await together(play(with_help(start, group.task, texts)) for start in starts)
        self.library.catch_up(group.version)
        is_merging = any(first in self._made for first in self._firsts.values())  # nor twice what is not carried out
        made = self._made.setdefault(group.number, [])
        if not is_merging and self._firsts.setdefault(group.version, group.number) == group.number:
            made += await self.consolidated(play)
        texts, read = await self.recalled(group.task, play)
        self._read.setdefault(group.number, []).extend(read)
        rollouts = await together(play(with_help(start, group.task, texts)) for start in starts)
        made += await self._compared(rollouts, await play.score(rollouts), play)
        facts = {"experiences": float(len(read)), "skill_words": float(len(self._document.text.split()))}
        return [replace(rollout, facts=rollout.facts | facts) for rollout in rollouts]

    # ---- reading

    async def recalled(self, task: Task, play: Player) -> tuple[list[str], list[Lesson]]:
        """What stands before a task, and the experiences it comes from."""
        asked, known = prompt_of(task), self._document.text
        if not self.library.on(EXPERIENCES):
            return fitting([known], self.longest), []
        parts = lines(await reflected(self.llm_client, "subtasks", play, task=asked), _PARTS) or [asked]
        topics = [topic(replace(task, messages=(Message("user", part),))) for part in parts]
        found = [lesson for each in topics for _, lesson in self.library.about(each, EXPERIENCES, self.shown)]
        read = list({lesson.name: lesson for lesson in found}.values())
        texts = [lesson.text for lesson in read]
        said = await reflected(self.llm_client, "adapted", play, task=asked, ideas="\n".join(texts))
        return fitting([known, *(lines(said, len(texts)) or texts)], self.longest), read

    @property
    def _document(self) -> Lesson:
        return next(iter(self.library.on(SKILL)), Lesson("", "", SKILL))

    # ---- learning

    async def _compared(
        self, rollouts: Sequence[Rollout], scores: Sequence[float | None], play: Player
    ) -> list[Change]:
        """What a critic says of rollouts of one task, as changes."""
        known = [(rollout, score) for rollout, score in zip(rollouts, scores, strict=True) if score is not None]
        if not known:
            return []
        task = rollouts[0].task
        told = "\n".join(f"({'right' if is_right(score) else 'wrong'}) {trace(a)}" for a, score in known)
        kept = "\n".join(f"{each.name}: {each.text}" for _, each in self.library.about(topic(task), EXPERIENCES, 10))
        shown = {"task": prompt_of(task), "completion": told}
        said = await reflected(self.llm_client, "experience", play, **shown, ideas=kept)
        answers = [final_answer(rollout.completion) for rollout, score in known if is_right(score)][:1]
        found = [_OPERATION.match(line) for line in lines(said, self.operations)]
        changes = [
            await self._changed(match, task, play) for match in found if match and not tells(match[3], task, *answers)
        ]
        skill = " ".join((await reflected(self.llm_client, "skill", play, **shown)).split())
        if skill and not tells(skill, task, *answers):
            changes.append(add(skill, "", FRAGMENTS))
        return [change for change in changes if change is not None]

    async def _changed(self, operation: re.Match[str], task: Task, play: Player) -> Change | None:
        text = operation[3]
        if (name := operation[2]) is not None:
            known = self.library.get(name)
            return None if known is None else Change("rewrite", replace(known, text=text, support=1))
        near = self.library.like(text, EXPERIENCES, 1)
        if not near or near[0][0] < self.library.same:
            return add(text, topic(task), EXPERIENCES)
        return await self._merged(near[0][1], Lesson(text, "", EXPERIENCES), play)

    async def _merged(self, one: Lesson, other: Lesson, play: Player) -> Change:
        """Both as one text under the older name; where nothing is said, the older text."""
        said = await reflected(self.llm_client, "merged", play, ideas=one.text, other=other.text)
        text = " ".join(said.split())[: self.library.longest] or one.text
        return Change("rewrite", replace(one, text=text, support=other.support + 1))

    async def consolidated(self, play: Player) -> list[Change]:
        """Merge the closest where the shelf is full, three times if as many are close, and skills into the document."""
        scratch, changes = copy.deepcopy(self.library), list[Change]()
        for _ in range(_ROUNDS if len(scratch.on(EXPERIENCES)) >= scratch.most else 0):
            pair = scratch.closest(EXPERIENCES)
            if pair is None or pair[0] < self.forced:
                break
            step = [await self._merged(pair[1], pair[2], play), Change("remove", pair[2])]
            for change in step:
                scratch.carry_out(change)
            changes += step
        return [*changes, *await self._rewritten(play)]

    async def _rewritten(self, play: Player) -> list[Change]:
        """The document with the fragments of the last batch in it, and no longer than it may be."""
        fragments, known = self.library.on(FRAGMENTS), self._document
        if not fragments:
            return []
        told = "\n".join(each.text for each in fragments)
        text = await reflected(self.llm_client, "skills", play, ideas=known.text, other=told) or f"{known.text} {told}"
        if len(text.split()) > self.words:
            text = await reflected(self.llm_client, "shortened", play, ideas=text) or text
        document = replace(known, text=" ".join(text.split()[: self.words])[: self.library.longest], support=1)
        return [Change("rewrite", document), *(Change("remove", each) for each in fragments)]

    def observe(self, group: Group) -> None:
        made, read = self._made.pop(group.number, []), self._read.pop(group.number, [])
        wins = sum(success(rollout) for rollout in group.scored)
        self.library.propose(group, [*(used(lesson, len(group.scored), wins) for lesson in read), *made])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing: `observe` does; says what the library holds."""
        return self.library.metrics() if self.learns else {}

    def state(self) -> dict[str, Any]:
        return {"firsts": [list(each) for each in self._firsts.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        self._firsts = {int(version): int(number) for version, number in state["firsts"]}


def xskill(
    setting: Setting = Setting(env="arithmetic:5", group_size=2, steps=4),
    llm_client: str = "rules",  # who compares, merges and adapts: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    shown: int = 3,  # experiences for each part of a task
    operations: int = 2,  # add or modify, from one group
    same: float = 0.7,  # overlap from which what is added is merged with an experience
    forced: float = 0.6,  # overlap from which experiences are merged where there is no more room
    most: int = 120,  # experiences
    words: int = 1000,  # of the document of skills, before it is shortened
    longest: int = 200,  # characters of all that stands before a task
) -> Run:
    """group_size rollouts of each task, compared; eight tasks are a batch."""
    library = Library(most, same, longest=10 * words)
    learning = SkillsAndExperiences(library, parse_reflector(llm_client), shown, operations, forced, words, longest)
    run = setting.run("xskill", Constant(), (Reinforce(weight=0.0),), strategy=learning)
    return replace(run, evaluation=replace(run.evaluation, strategy=replace(learning, learns=False)))
