"""Tree of a group's rollouts: branches, hints, pruned rollouts with the reason, and token costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strop.environments.data.heldout_split import prompt_of
from strop.storage.ledger.ledger import Ledger
from strop.success import SURVIVAL
from strop.types import SUCCESS, Group, Origin, Outcome, Rollout

_SHOWN = 3  # groups
_MOST = 40  # rollouts of one
_FACTS = 3  # of one rollout
_LETTERS = 80  # of a completion, its end
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
    """One rollout; `shared` tokens of its completions are its parent's, `sampled` are its own cost."""

    name: str
    depth: int  # below the rollout that nobody was parent of
    kind: str
    comparison_group: str
    shared: int
    written: int
    sampled: int
    tone: str  # right, partly, wrong; pruned, failed
    reward: str  # its reward, where it has one
    why: str  # what became of it
    completion: str

    @property
    def words(self) -> str:
        comparison_group = f" ({self.comparison_group})" if self.comparison_group else ""
        begun = f" after {self.shared} shared tokens" if self.shared else ""
        cost = (
            f"{self.sampled} tokens"
            if self.sampled or not self.written
            else f"{self.written} tokens that nobody sampled"
        )
        return f"{self.kind}{comparison_group}{begun}, {cost}, {self.why}"


@dataclass(frozen=True)
class Shown:
    """Group with its rollouts as a tree from top to bottom."""

    number: int
    version: int
    asked: str
    rows: tuple[Made, ...]
    left: int  # rollouts that are not among the rows
    reason: str  # why it was left out, where it was

    @property
    def longest(self) -> int:
        return max((row.shared + row.written for row in self.rows), default=1) or 1

    @property
    def words(self) -> str:
        sampled, shared = sum(row.sampled for row in self.rows), sum(row.shared for row in self.rows)
        thrown = sum(row.sampled for row in self.rows if row.tone == "pruned")
        said = f"{len(self.rows)} rollouts, {sampled:,} tokens sampled"
        said += f", {thrown:,} of them in rollouts that were given up" if thrown else ""
        said += f"; {shared:,} more were read from a parent and cost nothing again" if shared else ""
        said += f"; {self.left} more rollouts are not shown" if self.left else ""
        return f"{said}. Left out: {self.reason}." if self.reason else f"{said}."


def groups_of(ledger: Ledger, count: int = _SHOWN) -> list[Shown]:
    """The groups of most kinds of rollouts, in the order in which they were made; none where all are plain."""
    found = sorted(ledger.composed(count), key=lambda each: each[0].number)
    return [shown_group(group, fates) for group, fates in found]


def shown_group(group: Group, fates: Mapping[str, str]) -> Shown:
    rows = [_row(rollout, depth, fates) for rollout, depth in _tree(group.rollouts)]
    asked = f"{group.task.source} level {group.task.level}: {prompt_of(group.task)[:_ASKED]}"
    left = max(len(rows) - _MOST, 0)
    return Shown(group.number, group.version, asked, tuple(rows[:_MOST]), left, fates.get("", ""))


def _tree(rollouts: Sequence[Rollout]) -> Iterator[tuple[Rollout, int]]:
    """Every rollout below its parent, siblings in the order of their names; a parent of another group is none."""
    known = {rollout.id for rollout in rollouts}
    ordered = sorted(rollouts, key=_order)

    def below(parent: str, depth: int) -> Iterator[tuple[Rollout, int]]:
        for rollout in ordered:
            its = rollout.parent if rollout.parent in known and rollout.parent != rollout.id else ""
            if its == parent:
                yield rollout, depth
                yield from below(rollout.id, depth + 1)

    return below("", 0)


def _order(rollout: Rollout) -> tuple[int, str]:
    last = rollout.id.rpartition("/")[2]
    return (int(last) if last.isdigit() else 0), rollout.id


def _row(rollout: Rollout, depth: int, fates: Mapping[str, str]) -> Made:
    is_scored = rollout.is_scored
    return Made(
        rollout.id,
        depth,
        _ORIGINS[rollout.origin],
        rollout.comparison_group,
        sum(turn.num_prefix for turn in rollout.turns),
        rollout.num_tokens,
        rollout.num_sampled,
        tone_of(rollout),
        f"{rollout.reward:.3g}" if is_scored else "–",
        _why(rollout, fates.get(rollout.id, "")),
        rollout.completion[-_LETTERS:],
    )


def tone_of(rollout: Rollout) -> str:
    """Its colour: by reward, or by why it has none."""
    if not rollout.is_scored:
        return rollout.outcome.value
    return "right" if rollout.reward >= 1 else ("wrong" if rollout.reward <= 0 else "partly")


def _why(rollout: Rollout, fate: str) -> str:
    told = [f"{name} {value:.3g}" for name, value in sorted(rollout.facts.items()) if name != SUCCESS]
    facts = f" ({', '.join(told[:_FACTS])})" if told else ""
    if rollout.outcome is Outcome.FAILED:
        return f"failed: {rollout.error}"
    if rollout.outcome is Outcome.PRUNED:
        is_probability = SURVIVAL in rollout.facts
        return f"given up midway{facts}" if is_probability else "made on the way and not brought"
    cut = "cut off, " if rollout.outcome is Outcome.TRUNCATED else ""
    return f"{cut}{'trained' if fate == 'trained' else 'left out' if fate == 'gated' else fate}{facts}"
