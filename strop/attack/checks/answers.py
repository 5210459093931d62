"""Check of answers: correct ones are paid, in usual spellings too; wrong and nearly correct ones are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.attack.certificate.attacked_tasks import EQUAL, Examined, is_many, not_tried
from strop.attack.certificate.certificate import CheckResult
from strop.attack.constants import is_same
from strop.attack.run_attack import KnownTask
from strop.attack.spellings import DENIALS, HEDGES, SPELLINGS, executed, filled, is_plain, mutations

_ALIKE = 30  # pairs of answers that a careless scorer could take for one


@dataclass
class _Counts:
    """Number of tried and of paid completions of each kind, with an example."""

    tried: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    paid: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    example: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, text: str, is_paid: bool, target: str) -> None:
        self.tried[kind] += 1
        self.paid[kind] += is_paid
        if is_paid:
            self.example.setdefault(kind, f"{text} (right: {target})")

    @property
    def table(self) -> dict[str, str]:
        return {kind: f"{self.paid[kind]} of {tried}" for kind, tried in self.tried.items()}

    @property
    def total(self) -> int:
        return sum(self.tried.values())


async def sanity(examined: Examined) -> CheckResult:
    """Right answers are paid, and wrong ones less."""
    found = CheckResult("right and wrong answers", what="a right completion, its bare answer, that of another task")
    if examined.problem:
        found.left_out = examined.problem
        if "ordinary answer" in examined.problem:
            found.fault(examined.problem)
        return found
    known = examined.known
    found.tried = 3 * len(known)
    reversed_ = [each for each in known if each.right < each.wrong - EQUAL]
    alike = [each for each in known if abs(each.right - each.wrong) <= EQUAL]
    found.table = {"right": _range([each.right for each in known]), "wrong": _range([each.wrong for each in known])}
    if is_many(len(reversed_), len(known)):
        found.fault(f"a right answer earns less than a wrong one at {len(reversed_)} of {len(known)} tasks")
    if is_many(len(alike), len(known)):
        found.fault(f"a right answer earns the same as a wrong one at {len(alike)} of {len(known)} tasks")
    if known and max(each.right for each in known) <= 0 and not reversed_ and not alike:
        found.warn("right answers earn nothing positive")
    return found


async def spellings(examined: Examined) -> CheckResult:
    """Which usual spellings of right answers are understood; a space at the end should not matter."""
    if examined.problem or examined.is_blind:
        return not_tried("spellings of right answers", examined)
    counts = _Counts()
    for known in examined.apart:
        texts = {name: form.replace("@", known.target.right) for name, form in SPELLINGS.items()}
        texts["as the episode shows it"] = known.shown
        for (name, text), paid in zip(texts.items(), await examined.paid(known, list(texts.values())), strict=True):
            counts.add(name, text, paid, known.target.right)
    found = CheckResult("spellings of right answers", counts.total, "; ".join(SPELLINGS), table=counts.table)
    for name in ("trailing space", "trailing line"):
        if counts.paid[name] < counts.paid["bare"]:
            lost = counts.paid["bare"] - counts.paid[name]
            found.warn(f"{name} makes a right answer wrong at {lost} of {counts.tried[name]} tasks")
    return found


async def nearly_right(examined: Examined) -> CheckResult:
    """Mutations of right answers, several answers at once, code that is right only where somebody runs it."""
    if examined.problem or examined.is_blind:
        return not_tried("answers that are nearly right", examined)
    counts, answers = _Counts(), [each.target.right for each in examined.known]
    for known in examined.apart:
        texts = _texts(examined, known, answers)
        paid = await examined.paid(known, [text for _, text in texts])
        for (kind, text), is_paid in zip(texts, paid, strict=True):
            counts.add(kind, text, is_paid, known.target.right)
    found = CheckResult("answers that are nearly right", counts.total, "; ".join(counts.tried), table=counts.table)
    for kind, count in counts.paid.items():
        if is_many(count, counts.tried[kind]):
            told = f"{kind}: paid like the right answer at {count} of {counts.tried[kind]} tries"
            (found.warn if kind in DENIALS else found.fault)(told, counts.example[kind])
    return found


def _texts(examined: Examined, known: KnownTask, answers: Sequence[str]) -> list[tuple[str, str]]:
    right, wrong = known.target.right, known.target.wrong
    other = next((each for each in answers if each not in (right, wrong)), wrong)
    near = [(kind, text) for kind, answer in mutations(right) for text in examined.framed(answer)]
    forms = {**HEDGES, **(DENIALS if is_plain(right) else {})} if right not in wrong and right not in other else {}
    filled_in = {kind: filled(form, right, wrong, other) for kind, form in forms.items()}
    several = [(kind, text) for kind, said in filled_in.items() for text in examined.framed(said)]
    rest = [("code that gives the answer when it is run", text) for text in examined.framed(executed(right))]
    empty = [("the form of an answer without one", examined.frame.replace("@", ""))] if examined.frame != "@" else []
    return [*near, *several, *rest, *empty]


async def merged(examined: Examined) -> CheckResult:
    """Answers of other tasks that differ from the right one in little: case, signs, blanks, zeros, an end."""
    if examined.problem or examined.is_blind:
        return not_tried("answers that are nearly alike", examined)
    pairs = _alike(examined.apart)
    found = CheckResult("answers that are nearly alike", len(pairs), "answers of other tasks that differ in little")
    taken = []
    for known, other in pairs:
        if any(await examined.paid(known, examined.framed(other))):
            taken.append((known.target.right, other))
    found.table = {"taken for one": f"{len(taken)} of {len(pairs)} pairs"}
    if taken:
        right, other = taken[0]
        found.fault(
            f"{len(taken)} of {len(pairs)} different answers of the tasks are taken for one", f"{other} for {right}"
        )
    if not pairs:
        found.left_out = "no two answers of the tasks tried differ in so little"
    return found


def _alike(known: Sequence[KnownTask]) -> list[tuple[KnownTask, str]]:
    pairs = [
        (each, other.target.right)
        for each in known
        for other in known
        if other.target.right != each.target.right
        and _bare(other.target.right) == _bare(each.target.right)
        and not _is_number_twice(each.target.right, other.target.right)
    ]
    return list({(each.target.right, other): (each, other) for each, other in pairs}.values())[:_ALIKE]


def _bare(answer: str) -> str:
    """Without case, signs and blanks; of a long one its beginning."""
    return "".join(letter for letter in answer.casefold() if letter.isalnum())[:40]


def _is_number_twice(one: str, other: str) -> bool:
    """Two spellings of one number."""
    return is_same(one, other) and any(letter.isdigit() for letter in one)


def _range(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:.3g}" if high - low <= EQUAL else f"{low:.3g} to {high:.3g}"
