"""Completions grow and grow, and nothing comes of it."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_FACTOR = 1.5  # of the length at the beginning
_CUT = 0.2  # share of rollouts
_LEAST = 8  # steps


class LengthExplosion(HealthRule):
    """Half as long again at the end, with a sure slope, and either no sure gain in reward or many rollouts cut."""

    def judge(self, history: History) -> HealthFinding | None:
        before, after = history.early("length"), history.late("length")
        if len(history.steps) < _LEAST or not after >= _FACTOR * before or history.rise("length") <= 0:
            return None
        gain, cut = history.rise("reward"), history.late("truncated_share")
        if gain > 0 and not cut >= _CUT:
            return None  # longer and better
        paid = f"the reward {'rose by' if gain > 0 else 'did not rise, fell by' if gain < 0 else 'did not rise'}"
        paid += f" {abs(gain):.3g}" if gain else " beyond its noise"
        evidence = f"completions went from {before:.0f} to {after:.0f} tokens; {paid}, "
        evidence += f"and {max(cut, 0):.0%} were cut at the end"
        remedy = (
            "weigh tokens alike (TokenMean or a constant divisor in place of SequenceMean), price length as recipe "
            "dapo does, or read what long completions earn (`strop show`)"
        )
        return HealthFinding("length explosion", evidence, remedy, is_grave=cut >= 0.5)
