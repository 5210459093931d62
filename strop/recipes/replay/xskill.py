"""XSkill: memories of experiences and skills from compared rollouts, merged, put into later prompts; no training.

Title: XSkill: Continual Learning from Experience and Skills in Multimodal Agents
Paper: arXiv 2603.12056 (2026)
Claim: Better than agents without such memories on five benchmarks with four models, without an update of weights.
Reading: Thresholds, operations and limits are the release's. The loss has weight 0: a step is a batch of tasks from
    which both memories grow. Held-out tasks read the memories and add nothing. Overlap of short pieces of text replaces
    cosine similarity of embeddings and is recomputed after every merge. A stand-in rule for the bundled environments
    compares, merges and adapts in place of an LLM; teacher=itself asks the policy. The number of experiences
    retrieved per part of a task was not found.
Left out: Images.
Acts: lessons > 0 and fact/experiences > 0 and fact/skill_words > 0
Break: strategy.longest=0: the memory is written and never shown
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import unread
from strop.filter.judges.readers import plain
from strop.generate.memory.inject import fitting, topic, with_help
from strop.generate.memory.reflect import reflected, reflections, trace, try_reflection
from strop.generate.memory.store import Change, Lesson, Library, add, lines, tells, used
from strop.recipes.named_parts import named_reflector
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, Strategy
from strop.run import Run
from strop.success import is_right, success
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Message, Metrics, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.roles import Player


# XSkill's two memories (2603.12056): short experiences (what to do in which situation), and one document of skills.
#
# An LLM compares each group's rollouts and returns at most two operations: add an experience, or modify one. A new
# experience that overlaps with a stored one by `library.same` is merged with it. When the library is full, the closest
# pairs are merged, too. Skills of a batch of groups are merged into the document at once, which is shortened when it is
# too long. Before a task, experiences are retrieved for each of its parts and adapted to it. Readings: results of one
# version are merged at the start of the next, by its first group unless a merge is in flight; similarity is overlap of
# short pieces of text, between the part and the topic of an experience.

EXPERIENCES, SKILL, FRAGMENTS = "experiences", "skill", "fragments"
_OPERATION = re.compile(r"\W*(?:\d{1,2}[.)]\W*)?(add|modify\s+(\S+?))\W*:\W*(\S.*)$", re.IGNORECASE)
_PARTS = 4  # most parts of a task
_ROUNDS = 3  # merges when the library is full


@dataclass
class SkillsAndExperiences(Strategy, Asks):
    """Rollouts that read the skill document and experiences; with `learns`, comparisons of rollouts extend both."""

    library: Library
    llm_client: LLMClient | None = None  # compares, merges and adapts; None: the policy itself
    shown: int = 3  # experiences for each part of a task
    operations: int = 2  # operations per group
    forced: float = 0.6  # overlap from which two experiences are merged when the library is full
    words: int = 1000  # longest document; a longer one is shortened
    longest: int = 200  # characters of memory text before a task
    learns: bool = True
    prompts: dict[str, str] = field(
        default_factory=lambda: reflections(
            "subtasks", "adapted", "experience", "skill", "merged", "skills", "shortened"
        )
    )  # what is asked, by request

    # version -> the group that merges; it merges again if it was in flight when a run was killed
    _firsts: dict[int, int] = field(default_factory=lambda: {0: -1}, init=False, repr=False, compare=False)
    _made: dict[int, list[Change]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by group
    _read: dict[int, list[Lesson]] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.shown < 1 or self.operations < 1 or self.words < 1:
            raise ConfigurationError(
                f"SkillsAndExperiences needs shown, operations and words >= 1, got {self.shown}, {self.operations} "
                f"and {self.words}"
            )

    async def try_clients(self, task: Task) -> None:
        await try_reflection(self.llm_client, "experience", task, prompts=self.prompts)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not self.learns:
            texts, _ = await replace(self, library=self.library.predicted()).recalled(group.task, play)
            return await together(play(with_help(start, group.task, texts)) for start in starts)
        self.library.catch_up(group.version)
        is_merging = any(first in self._made for first in self._firsts.values())  # one merge at a time
        made = self._made.setdefault(group.number, [])
        if not is_merging and self._firsts.setdefault(group.version, group.number) == group.number:
            made += await self.consolidated(play)
        texts, read = await self.recalled(group.task, play)
        self._read.setdefault(group.number, []).extend(read)
        rollouts = await together(play(with_help(start, group.task, texts)) for start in starts)
        made += await self._compared(rollouts, await play.score(rollouts), play)
        document = self._document.text
        words = len(document.split()) * (document in texts)
        facts = {"experiences": float(len(texts) - (document in texts)), "skill_words": float(words)}
        return [replace(rollout, facts=rollout.facts | facts) for rollout in rollouts]

    # ---- reading

    async def recalled(self, task: Task, play: Player) -> tuple[list[str], list[Lesson]]:
        """The memory text for a task's prompt, and the experiences it comes from."""
        asked, known = prompt_of(task), self._document.text
        if not self.library.on(EXPERIENCES):
            return fitting([known], self.longest), []
        parts = lines(await reflected(self.llm_client, "subtasks", play, task=asked, prompts=self.prompts), _PARTS) or [
            asked
        ]
        topics = [topic(replace(task, messages=(Message("user", part),))) for part in parts]
        found = [lesson for each in topics for _, lesson in self.library.about(each, EXPERIENCES, self.shown)]
        read = list({lesson.name: lesson for lesson in found}.values())
        texts = [lesson.text for lesson in read]
        adapted = await reflected(
            self.llm_client, "adapted", play, task=asked, ideas="\n".join(texts), prompts=self.prompts
        )
        return fitting([known, *(lines(adapted, len(texts)) or texts)], self.longest), read

    @property
    def _document(self) -> Lesson:
        return next(iter(self.library.on(SKILL)), Lesson("", "", SKILL))

    # ---- learning

    async def _compared(
        self, rollouts: Sequence[Rollout], scores: Sequence[Rollout | None], play: Player
    ) -> list[Change]:
        """Changes to the library from a comparison of the rollouts of one task."""
        known = [scored for scored in scores if scored is not None]
        if not known:
            return []
        task = rollouts[0].task
        traces = "\n".join(f"({'right' if is_right(each) else 'wrong'}) {trace(each)}" for each in known)
        kept = "\n".join(f"{each.name}: {each.text}" for _, each in self.library.about(topic(task), EXPERIENCES, 10))
        shown = {"task": prompt_of(task), "completion": traces}
        operations = await reflected(self.llm_client, "experience", play, **shown, ideas=kept, prompts=self.prompts)
        answers = [final_answer(each.completion) for each in known if is_right(each)][:1]
        said = [match for line in plain(operations).splitlines() if (match := _OPERATION.match(line))]
        if operations and not said:
            unread(self.llm_client, operations, "no `add:` and no `modify NAME:` in")
        found = [match for match in said[: self.operations] if not tells(match[3], task, *answers)]
        changes = [await self._changed(match, task, play) for match in found]
        skill = " ".join((await reflected(self.llm_client, "skill", play, **shown, prompts=self.prompts)).split())
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
        """Both as one text under the older name; the older text if the LLM returns nothing."""
        merged = await reflected(
            self.llm_client, "merged", play, ideas=one.text, other=other.text, prompts=self.prompts
        )
        text = " ".join(merged.split())[: self.library.longest] or one.text
        return Change("rewrite", replace(one, text=text, support=other.support + 1))

    async def consolidated(self, play: Player) -> list[Change]:
        """Up to three merges of close experiences if the library is full, and the document with the new skills."""
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
        """The document with the skill fragments of the last batch merged in, at most `words` long."""
        fragments, known = self.library.on(FRAGMENTS), self._document
        if not fragments:
            return []
        added = "\n".join(each.text for each in fragments)
        text = await reflected(self.llm_client, "skills", play, ideas=known.text, other=added, prompts=self.prompts)
        text = text or f"{known.text} {added}"
        if len(text.split()) > self.words:
            text = await reflected(self.llm_client, "shortened", play, ideas=text, prompts=self.prompts) or text
        document = replace(known, text=" ".join(text.split()[: self.words])[: self.library.longest], support=1)
        return [Change("rewrite", document), *(Change("remove", each) for each in fragments)]

    def observe(self, group: Group) -> None:
        made, read = self._made.pop(group.number, []), self._read.pop(group.number, [])
        wins = sum(success(rollout) for rollout in group.scored)
        self.library.propose(group, [*(used(lesson, len(group.scored), wins) for lesson in read), *made])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Reports what the library holds; learning happens in `observe`."""
        return self.library.metrics() if self.learns else {}

    def state(self) -> dict[str, Any]:
        return {"firsts": [list(each) for each in self._firsts.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        self._firsts = {int(version): int(number) for version, number in state["firsts"]}


def xskill(
    setting: Setting = Setting(env="arithmetic:5", group_size=2, steps=4),
    teacher: str = "rules",  # compares, merges and adapts (a named part)
    shown: int = 3,  # experiences for each part of a task
    operations: int = 2,  # add or modify operations per group
    same: float = 0.7,  # overlap from which a new experience is merged with a stored one
    forced: float = 0.6,  # overlap from which experiences are merged when the library is full
    most: int = 120,  # experiences that are kept
    words: int = 1000,  # longest document of skills; a longer one is shortened
    longest: int = 0,  # characters of memory text before a task; 0: 200, and 1000 for a model of yours
) -> Run:
    """group_size rollouts of each task, compared; eight tasks per batch."""
    longest = setting.text_room(longest)
    library = Library(most, same, longest=10 * words)
    learning = SkillsAndExperiences(
        library, named_reflector(teacher, setting), shown, operations, forced, words, longest
    )
    run = setting.run("xskill", Constant(), (Reinforce(weight=0.0),), strategy=learning)
    return replace(run, evaluation=replace(run.evaluation, strategy=replace(learning, learns=False)))
