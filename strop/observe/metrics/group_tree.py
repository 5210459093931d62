"""Groups as what they were: who branched from whom, who had help, what was given up and why, and what each cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strop.environments.data.heldout_split import prompt_of
from strop.storage.ledger import Ledger
from strop.success import SURVIVAL
from strop.types import Group, Origin, Outcome, Trajectory

_SHOWN = 3  # groups
_MOST = 40  # attempts of one
_FACTS = 3  # of one attempt
_LETTERS = 80  # of a reply, its end
_ASKED = 200  # letters of a task, its beginning
_ORIGINS = {
    Origin.POLICY: "plain",
    Origin.GUIDED: "with help",
    Origin.TEACHER: "demonstrated",
    Origin.BRANCHED: "branch",
    Origin.RESUMED: "resumed",
    Origin.REPLAYED: "from an earlier step",
}


@dataclass(frozen=True)
class Made:
    """One attempt; `shared` tokens of its replies are its parent's, `sampled` are its own cost."""

    name: str
    depth: int  # below the attempt that nobody was parent of
    kind: str
    family: str
    shared: int
    written: int
    sampled: int
    tone: str  # right, partly, wrong; pruned, failed
    mark: str  # its reward, where it has one
    why: str  # what became of it
    reply: str

    @property
    def words(self) -> str:
        family = f" ({self.family})" if self.family else ""
        begun = f" after {self.shared} shared tokens" if self.shared else ""
        cost = (
            f"{self.sampled} tokens"
            if self.sampled or not self.written
            else f"{self.written} tokens that nobody sampled"
        )
        return f"{self.kind}{family}{begun}, {cost}, {self.why}"


@dataclass(frozen=True)
class Shown:
    """A group, its attempts as a tree from top to bottom."""

    number: int
    version: int
    asked: str
    rows: tuple[Made, ...]
    left: int  # attempts that are not among the rows
    reason: str  # why it was left out, where it was

    @property
    def longest(self) -> int:
        return max((row.shared + row.written for row in self.rows), default=1) or 1

    @property
    def words(self) -> str:
        sampled, shared = sum(row.sampled for row in self.rows), sum(row.shared for row in self.rows)
        thrown = sum(row.sampled for row in self.rows if row.tone == "pruned")
        said = f"{len(self.rows)} attempts, {sampled:,} tokens sampled"
        said += f", {thrown:,} of them in attempts that were given up" if thrown else ""
        said += f"; {shared:,} more were read from a parent and cost nothing again" if shared else ""
        said += f"; {self.left} more attempts are not shown" if self.left else ""
        return f"{said}. Left out: {self.reason}." if self.reason else f"{said}."


def groups_of(ledger: Ledger, count: int = _SHOWN) -> list[Shown]:
    """The groups of most kinds of attempts, in the order in which they were made; none where all are plain."""
    found = sorted(ledger.composed(count), key=lambda each: each[0].number)
    return [shown_group(group, fates) for group, fates in found]


def shown_group(group: Group, fates: Mapping[str, str]) -> Shown:
    rows = [_row(attempt, depth, fates) for attempt, depth in _tree(group.trajectories)]
    asked = f"{group.task.source} level {group.task.level}: {prompt_of(group.task)[:_ASKED]}"
    left = max(len(rows) - _MOST, 0)
    return Shown(group.number, group.version, asked, tuple(rows[:_MOST]), left, fates.get("", ""))


def _tree(attempts: Sequence[Trajectory]) -> Iterator[tuple[Trajectory, int]]:
    """Every attempt below its parent, siblings in the order of their names; a parent of another group is none."""
    known = {attempt.id for attempt in attempts}
    ordered = sorted(attempts, key=_order)

    def below(parent: str, depth: int) -> Iterator[tuple[Trajectory, int]]:
        for attempt in ordered:
            its = attempt.parent if attempt.parent in known and attempt.parent != attempt.id else ""
            if its == parent:
                yield attempt, depth
                yield from below(attempt.id, depth + 1)

    return below("", 0)


def _order(attempt: Trajectory) -> tuple[int, str]:
    last = attempt.id.rpartition("/")[2]
    return (int(last) if last.isdigit() else 0), attempt.id


def _row(attempt: Trajectory, depth: int, fates: Mapping[str, str]) -> Made:
    is_marked = attempt.is_scored
    return Made(
        attempt.id,
        depth,
        _ORIGINS[attempt.origin],
        attempt.family,
        sum(turn.num_prefix for turn in attempt.turns),
        attempt.num_tokens,
        attempt.num_sampled,
        tone_of(attempt),
        f"{attempt.reward:.3g}" if is_marked else "–",
        _why(attempt, fates.get(attempt.id, "")),
        attempt.reply[-_LETTERS:],
    )


def tone_of(attempt: Trajectory) -> str:
    """Its colour: by reward, or by why it has none."""
    if not attempt.is_scored:
        return attempt.outcome.value
    return "right" if attempt.reward >= 1 else ("wrong" if attempt.reward <= 0 else "partly")


def _why(attempt: Trajectory, fate: str) -> str:
    told = [f"{name} {value:.3g}" for name, value in sorted(attempt.facts.items())]
    facts = f" ({', '.join(told[:_FACTS])})" if told else ""
    if attempt.outcome is Outcome.FAILED:
        return f"failed: {attempt.error}"
    if attempt.outcome is Outcome.PRUNED:
        is_chance = SURVIVAL in attempt.facts
        return f"given up midway{facts}" if is_chance else "made on the way and not brought"
    cut = "cut off, " if attempt.outcome is Outcome.TRUNCATED else ""
    return f"{cut}{'trained' if fate == 'trained' else 'left out' if fate == 'gated' else fate}{facts}"
