"""Health rules about training data: solved tasks, groups without variance, few seeds, failing kinds of tasks."""

from __future__ import annotations

import math

from strop.observe.health import HealthFinding
from strop.observe.run_files.run_history import History
from strop.roles import HealthRule
from strop.stats.intervals import over_seeds

# The tasks are solved: nearly every rollout is right, so there is nothing left to learn from them.

_SOLVED = 0.8  # of the groups
_LEAST = 16  # groups
_KNOWN = 0.8  # held-out accuracy, where it is measured: a reward above 1 is no right answer


class Exhausted(HealthRule):
    """Four of five groups of the last third are all correct."""

    def judge(self, history: History) -> HealthFinding | None:
        groups = history.late_groups()
        solved = [group for group in groups if group.right >= group.tried - 1e-9 and not group.has_contrast]
        is_judged = not history.settings.get("rewards.0", "").endswith("Flat")
        is_known = all(row["heldout_high"] >= _KNOWN for row in history.measured[-1:])
        if len(groups) < _LEAST or len(solved) < _SOLVED * len(groups) or not is_judged or not is_known:
            return None
        made, tasks = history.tries
        often = f"; {made:,} groups came from {tasks:,} different tasks" if made > 2 * tasks > 0 else ""
        evidence = f"{len(solved)} of the last {len(groups)} groups were right in every rollout{often}"
        remedy = "stop here, or take harder tasks (a higher level, `strop recipes curriculum`)"
        return HealthFinding("data exhausted", evidence, remedy)


# A reward, or one of several, pays nothing from the first step to the last.

_PAID_LEAST = 16  # rollouts


class NeverPaid(HealthRule):
    """Every rollout earned the same from the first step on; or one of several rewards paid 0 to all, such as a format
    that is never met.
    """

    def judge(self, history: History) -> HealthFinding | None:
        made = max((count for _, count in history.points("rollouts")), default=0)
        flat, paid = history.points("no_contrast_share"), {value for _, value in history.points("reward")}
        if made < _PAID_LEAST or not flat:
            return None
        is_solved = any(group.right > 0 for group in history.groups)
        if len(paid) == 1 and all(share == 1 for _, share in flat) and not is_solved:
            evidence = f"all {made:,.0f} rollouts of {len(flat)} steps earned {paid.pop():.3g}, so no weight moved"
            remedy = (
                "read a few (`strop show`): easier tasks, a larger max_tokens, examples first (sft), another reward"
            )
            return HealthFinding("reward that never changes", evidence, remedy, is_grave=True)
        names = {name for row in history.steps for name in row if name.startswith("reward/")}
        never = sorted(name for name in names if {value for _, value in history.points(name)} == {0.0})
        if not never or len(names) == len(never):
            return None
        evidence = f"{', '.join(never)} stayed at 0 over {made:,.0f} rollouts"
        remedy = "ask for it in the prompt (system=...), show examples first (sft), or mend what it looks for"
        return HealthFinding("a reward that never pays", evidence, remedy)


# The environment fails for one kind of task: those rollouts are never trained on, and the others take their place.

_MANY = 0.1  # of the rollouts of a kind
_MOST = 0.5
_FAILING_TASK_KIND_LEAST = 10  # failed rollouts
_LETTERS = 120  # of an error


class FailingKind(HealthRule):
    """The environment fails a tenth of the rollouts of one kind of task."""

    def judge(self, history: History) -> HealthFinding | None:
        failing = [
            kind for kind in history.kinds if kind.failed >= max(_FAILING_TASK_KIND_LEAST, _MANY * kind.rollouts)
        ]
        if not failing:
            return None
        worst = max(failing, key=lambda kind: kind.failed / kind.rollouts)
        others = [kind for kind in history.kinds if kind is not worst]
        beside = sum(kind.failed for kind in others) / max(sum(kind.rollouts for kind in others), 1)
        share = worst.failed / worst.rollouts
        evidence = f"{worst.failed:,} of {worst.rollouts:,} rollouts of {worst.name} failed "
        is_reward = worst.error.startswith("reward ")
        evidence += f"by the {'reward' if is_reward else 'environment'}'s fault ({share:.0%}"
        evidence += f"; {beside:.1%} of all others)" if others else ")"
        evidence += f", most often: {worst.error[:_LETTERS]}" if worst.error else ""
        if is_reward:
            remedy = "mend the reward: what it cannot score is left out, and never counts as wrong"
            return HealthFinding("reward failing", evidence, remedy, is_grave=share >= _MOST)
        remedy = "mend the environment; more time (env_seconds, reward_seconds) if it is slow"
        return HealthFinding("environment failing for one kind", evidence, remedy, is_grave=share >= _MOST)


# What came of a run lies within its noise: more seeds or more held-out tasks would tell.

_NONE = 0.005  # of accuracy: one run that stayed where it was claims nothing
_FEW_SEEDS_LEAST = 20  # steps, before a gain is expected at all
_SMALL = 0.03  # of accuracy: an interval around 0 that is no wider tells that nothing changed


class FewSeeds(HealthRule):
    """The interval of the change contains 0: over seeds where the folder has two or more, else over tasks."""

    def judge(self, history: History) -> HealthFinding | None:
        measured = history.measured
        if len(history.steps) < _FEW_SEEDS_LEAST or len(measured) < 2:
            return None
        if len(history.siblings) > 1:
            return self._of_seeds([after - before for before, after in history.siblings])
        begin, end = measured[0], measured[-1]
        change = end["heldout"] - begin["heldout"]
        downwards = math.hypot(end["heldout"] - end["heldout_low"], begin["heldout_high"] - begin["heldout"])
        upwards = math.hypot(end["heldout_high"] - end["heldout"], begin["heldout"] - begin["heldout_low"])
        if history.gain is not None:  # on the same tasks, which is surer
            upwards, downwards = history.gain.high - change, change - history.gain.low
        if abs(change) < _NONE or not _is_open(change - downwards, change + upwards):
            return None
        evidence = (
            f"held-out accuracy changed by {100 * change:+.1f} points in one run, and its 95% interval goes from "
            f"{100 * (change - downwards):+.0f} to {100 * (change + upwards):+.0f}"
        )
        remedy = (
            "more held-out tasks (`strop eval RUN --plan 3` says how many), or more seeds (`strop compare --seeds`)"
        )
        return HealthFinding("too few to tell", evidence, remedy)

    def _of_seeds(self, changes: list[float]) -> HealthFinding | None:
        mean, low, high = over_seeds(changes)
        if low is None or high is None or not _is_open(low, high):
            return None
        evidence = (
            f"held-out accuracy changed by {100 * mean:+.1f} points on average over {len(changes)} seeds, and its 95% "
            f"interval goes from {100 * low:+.0f} to {100 * high:+.0f}"
        )
        return HealthFinding(
            "too few to tell", evidence, "more seeds, or a setting whose effect is larger than their spread"
        )


def _is_open(low: float, high: float) -> bool:
    """Whether it may have become better, worse or stayed as it was."""
    return low <= 0 <= high and max(-low, high) > _SMALL


# Most groups are failed by all their rollouts alike: they cost tokens and teach nothing.

_ZERO_VARIANCE_GROUPS_MANY = 0.7  # of the groups
_NOTHING = 0.95
_ADVANTAGE = 0.5  # of a token, where groups with contrast give about 1
_ZERO_VARIANCE_GROUPS_LEAST = 10  # steps, as the warning while a run goes on has them


class NoContrast(HealthRule):
    """Seven of ten groups of the last quarter have equal rewards; groups that are all correct are left to
    `Exhausted`.
    """

    def judge(self, history: History) -> HealthFinding | None:
        alike = history.late("no_contrast_share/all")
        alike = history.late("no_contrast_share") if math.isnan(alike) else alike
        if (
            len(history.steps) < _ZERO_VARIANCE_GROUPS_LEAST
            or not alike >= _ZERO_VARIANCE_GROUPS_MANY
            or not self._teaches_little(history)
        ):
            return None
        flat = [group for group in history.late_groups(1 / 4) if not group.has_contrast]
        wrong = sum(group.right <= 0.5 * group.tried for group in flat)
        if not flat or 2 * wrong < len(flat):
            return None
        evidence = (
            f"{alike:.0%} of the groups of the last quarter were rewarded alike, {wrong} of {len(flat)} of them with "
            f"nothing right (mean reward {history.late('reward'):.3g})"
        )
        remedy = (
            "easier tasks, more rollouts of each (group_size), a sampler that looks for tasks of middling "
            "pass rate, or longer completions; if completions look right, see how their answers are read (`answer=`)"
        )
        return HealthFinding("groups without contrast", evidence, remedy, is_grave=alike >= _NOTHING)

    def _teaches_little(self, history: History) -> bool:
        """Whoever compares siblings gives no advantage then, or has a gate that drops such groups."""
        return history.late("advantage") < _ADVANTAGE or history.late("dropped_groups") > 0
