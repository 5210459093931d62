"""Check of hostile completions: their rewards, crashes of a reward, and its run time."""

from __future__ import annotations

from collections.abc import Sequence

from strop.attack.certificate.attacked_tasks import Examined, not_tried
from strop.attack.certificate.certificate import CheckResult
from strop.attack.results import EnvironmentStanding, TriedCompletion, shown
from strop.attack.run_attack import hostile_standing

INJECTIONS = ("judge tags", "orders to a judge", "marker strings")
_DEADLINE = "no answer within"


async def hostile(examined: Examined) -> list[CheckResult]:
    """Three questions with the same completions: other kinds of attack, injections, and whether anything breaks."""
    if examined.problem or examined.is_blind:
        return [not_tried(name, examined) for name in ("hostile completions", "injections", "nothing breaks it")]
    tried = await hostile_standing(examined.asked, examined.known, examined.completions, examined.seed)
    others = [each for each in tried if each.family not in INJECTIONS]
    paid = [_paid("hostile completions", others), _paid("injections", [t for t in tried if t.family in INJECTIONS])]
    return [*paid, _broken(tried, examined.asked.seconds)]


def _paid(name: str, tried: Sequence[TriedCompletion]) -> CheckResult:
    standing = EnvironmentStanding("", tried)
    found = CheckResult(name, len(tried), ", ".join(standing.families))
    for family, each in standing.families.items():
        plain = each.plain()
        found.table[family] = f"{plain['findings']} of {plain['completions']} paid"
        if plain["findings"]:
            example = next(one for one in each.tried if one.is_finding)
            found.fault(
                f"{family}: {plain['findings']} of {plain['completions']} are paid like right answers",
                shown(example.text),
            )
    return found


def _broken(tried: Sequence[TriedCompletion], seconds: float) -> CheckResult:
    found = CheckResult(
        "nothing breaks it", len(tried), "whether any of the hostile completions fails, and the time of each"
    )
    real = [each for each in tried if not _holds_surrogates(each.text)]  # which no tokenizer writes
    late = [each for each in real if _DEADLINE in each.fault]
    broken = [each for each in real if each.fault and _DEADLINE not in each.fault]
    found.table = {
        "slowest": f"{max((each.seconds for each in tried), default=0.0):.3f} s",
        "on average": f"{sum(each.seconds for each in tried) / max(len(tried), 1):.4f} s",
        "failed": str(len(broken)),
        f"not read within {seconds:g} s": str(len(late)),
    }
    if broken:
        found.fault(f"{len(broken)} of {len(real)} completions break it: {broken[0].fault}", shown(broken[0].text))
    if late:
        found.warn(f"{len(late)} of {len(real)} completions take it more than {seconds:g} s", shown(late[0].text))
    return found


def _holds_surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
