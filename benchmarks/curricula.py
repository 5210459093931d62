"""What curricula gain over uniform choice on a simulated learner, beside an oracle and their own permuted choices.

    python benchmarks/curricula.py [--json] [--seeds 6] [--save NAME] [--only sec+pcl]

Tokens to the held-out accuracy that uniform sampling ends at, as a share of uniform's tokens; dropped groups count.
Each rule is a recipe with its own sampler, pass-rate estimator and budget, except where `RULES` says otherwise. The
`ratio` is the largest share on the haystack among the rules that are bound to 0.35.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from machine import circumstances, output_arguments, publish

from strop.cli.commands.simulate import maker_of
from strop.simulate.compare_samplers import BOUNDS, Maker, contest, permuted
from strop.simulate.scenarios import SCENARIOS

# by name: recipe, fields, and a pass-rate estimator in place of its own. SEC's temperature is 0.2 where its arms cross
# type and
# difficulty, as here. PCL's pass-rate estimator is a language model's, so it has the one that all rules can share, and
# so has VADE,
# whose forgetting was not published; a pool of this size is scored whole, and by PCL's four candidates for each place.
RULES = {
    "sec": ("sec", {}, ""),
    "sec, temperature 1": ("sec", {"softness": "1.0"}, ""),
    "dump": ("dump", {}, ""),
    "pcl": ("pcl", {"pool": "256", "candidates": "16"}, "offsets"),
    "pcl, 4 candidates": ("pcl", {"pool": "256"}, "offsets"),
    "vade": ("vade", {}, "offsets"),
    "vade, its own counts": ("vade", {}, ""),
    "dps": ("dps", {}, ""),
    "cures": ("cures", {}, ""),
}
BOUND_TO = {"haystack": 0.35, "ladder-impossible": 0.40}
_BOUND = ("sec", "pcl", "vade")  # rules that these limits are for


def measure(rules: list[str], scenarios: list[str], seeds: int) -> dict[str, Any]:
    """Every rule and its permuted choices, beside the bounds, in each scenario."""
    arms: dict[str, Maker] = dict(BOUNDS)
    for rule in rules:
        arms[rule], _ = maker_of(*RULES[rule])
        arms[f"{rule}, permuted"] = permuted(arms[rule])
    found = {name: contest(SCENARIOS[name], arms, seeds) for name in scenarios}
    return {name: {arm: each.plain() for arm, each in rows.items()} for name, rows in found.items()}


def judged(rows: dict[str, Any]) -> dict[str, Any]:
    """Whether the rules that are bound keep their limits."""
    shares = {name: {rule: rows[name][rule]["mean"] for rule in _BOUND if rule in rows[name]} for name in rows}
    held = {name: max(shares[name].values()) <= most for name, most in BOUND_TO.items() if shares.get(name)}
    worst = max(shares.get("haystack", {}).values(), default=None)
    return {"ratio": worst, "limits": BOUND_TO, "held": held}


def table_of(found: dict[str, Any]) -> str:
    rows = found["scenarios"]
    lines = [f"{'tokens, of uniform':24s}" + "".join(f"{name:>22s}" for name in rows)]
    for arm in next(iter(rows.values())):
        lines.append(f"{arm:24s}" + "".join(f"{_cell(rows[name][arm]):>22s}" for name in rows))
    return "\n".join([*lines, f"limits {found['limits']}, kept: {found['held']}; {found['seconds']:.0f} s"])


def _cell(found: dict[str, Any]) -> str:
    least = ">=" if found["not_reached"] else ""
    return f"{least}{found['mean']:.2f} ({found['low']:.2f} to {found['high']:.2f})"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--only", default="+".join(RULES), help="rules, joined by +")
    parser.add_argument("--env", default=",".join(SCENARIOS), help="scenarios, joined by commas")
    output_arguments(parser)
    asked = parser.parse_args(words)
    began = time.monotonic()
    rows = measure([each for each in asked.only.split("+") if each], asked.env.split(","), asked.seeds)
    found = {**judged(rows), "seeds": asked.seeds, "seconds": time.monotonic() - began, "scenarios": rows}
    publish(found | circumstances("cpu"), table_of(found), asked)


if __name__ == "__main__":
    main()
