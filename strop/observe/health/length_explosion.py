"""Replies grow and grow, and nothing comes of it."""

from __future__ import annotations

from strop.observe.health import HealthRule, RunVerdict
from strop.observe.run_files.run_history import History

_FACTOR = 1.5  # of the length at the beginning
_CUT = 0.2  # share of attempts
_LEAST = 8  # steps


class LengthExplosion(HealthRule):
    """Half as long again at the end, with a sure slope, and either no sure gain in reward or many attempts cut."""

    def judge(self, history: History) -> RunVerdict | None:
        before, after = history.early("length"), history.late("length")
        if len(history.steps) < _LEAST or not after >= _FACTOR * before or history.rise("length") <= 0:
            return None
        gain, cut = history.rise("reward"), history.late("truncated_share")
        if gain > 0 and not cut >= _CUT:
            return None  # longer and better
        paid = f"the reward {'rose by' if gain > 0 else 'did not rise, fell by' if gain < 0 else 'did not rise'}"
        paid += f" {abs(gain):.3g}" if gain else " beyond its noise"
        evidence = (
            f"replies went from {before:.0f} to {after:.0f} tokens; {paid}, and {max(cut, 0):.0%} were cut at the end"
        )
        remedy = (
            "weigh tokens alike (TokenMean or a constant divisor in place of SequenceMean), price length as recipe "
            "dapo does, or read what long replies earn (`strop show`)"
        )
        return RunVerdict("length explosion", evidence, remedy, is_grave=cut >= 0.5)
