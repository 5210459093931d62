"""Health rules about completions: chat template, answer parsing, truncation, length."""

from __future__ import annotations

import re

import numpy as np

from strop.observe.health import HealthFinding
from strop.observe.run_files.run_history import History
from strop.roles import HealthRule
from strop.types import IntArray, Rollout

# Nothing is ever right, and the right answer stands in the completions: the rule that reads answers does not find it.

_MANY = 0.3  # of the rollouts that are read
_LEAST = 16  # rollouts
_SHOWN = 80  # letters of a completion, its end


class UnreadAnswer(HealthRule):
    """No rollout of the last quarter has a reward, but three of ten completions contain the answer as a word."""

    def judge(self, history: History) -> HealthFinding | None:
        read = [rollout for rollout in history.rollouts if rollout.turns and rollout.task.answer.strip()]
        if len(read) < _LEAST or any(rollout.reward > 0 for rollout in read):
            return None
        if any(group.right > 0 for group in history.late_groups(1 / 4)):
            return None
        holding = [rollout for rollout in read if _holds(rollout)]
        if len(holding) < _MANY * len(read):
            return None
        completion = holding[0].completion[-_SHOWN:]
        evidence = (
            f"{len(holding)} of {len(read)} completions of the last step hold the right answer and earned nothing, for "
            f"example {completion!r} where {holding[0].task.answer[-_SHOWN:]!r} is right"
        )
        remedy = "choose how answers are read (answer=number, boxed or math), or ask for bare answers in the prompt"
        return HealthFinding("answers that are not found", evidence, remedy, is_grave=True)


def _holds(rollout: Rollout) -> bool:
    """As a word of its own: 6 is not in 66."""
    answer = rollout.task.answer.strip().splitlines()[-1].removeprefix("#### ")
    return re.search(rf"(?<![\w.]){re.escape(answer)}(?![\w])", rollout.completion) is not None


# Completions that do not look like those of this model's template: other roles' markers in them, or nothing at all.

_CHAT_TEMPLATE_MANY = 0.3  # of the rollouts that are read
_CHAT_TEMPLATE_LEAST = 8  # rollouts
_CUT = 0.95  # of the rollouts
_REMEDY = (
    "compare a prompt (`strop show`) with the model's own template, and its eos tokens with what ends a completion"
)


class TemplateWarning(HealthRule):
    """Template markers within completions, empty completions, a doubled start of the prompt, or completions that never
    end.
    """

    def judge(self, history: History) -> HealthFinding | None:
        read = [rollout for rollout in history.rollouts if rollout.turns and rollout.num_sampled]
        if len(read) < _CHAT_TEMPLATE_LEAST:
            return None
        markers, limit, told = dict(history.specials), _CHAT_TEMPLATE_MANY * len(read), list[str]()
        inside = [token for rollout in read if (token := _marker_within(rollout, markers)) is not None]
        empty = sum(_is_empty(rollout) for rollout in read)
        twice = [rollout.turns[0].prompt[0] for rollout in read if _begins_twice(rollout, markers)]
        if len(inside) >= limit:
            told.append(
                f"{len(inside)} of {len(read)} completions hold markers of the template such as {markers[inside[0]]!r}"
            )
        if empty >= limit:
            told.append(f"{empty} of {len(read)} completions are empty")
        if twice:
            told.append(f"prompts begin with {markers[int(twice[0])]!r} twice")
        never = min(history.early("truncated_share"), history.late("truncated_share")) >= _CUT
        if never and not any(history.is_ended(turn) for rollout in read for turn in rollout.turns):
            told.append("from the first step to the last nearly no completion came to an end")
        return (
            HealthFinding("tokenizer or template mismatch", "; ".join(told), _REMEDY, is_grave=True) if told else None
        )


def _marker_within(rollout: Rollout, markers: dict[int, str]) -> int | None:
    """A special token of the prompt that the policy wrote itself, before the end of a completion, which may be
    repeated.
    """
    known = markers.keys() & set(rollout.turns[0].prompt.tolist())
    inner = (turn.tokens[: len(turn.tokens) - _repeated(turn.tokens)] for turn in rollout.turns)
    return next((token for tokens in inner for token in tokens.tolist() if token in known), None)


def _repeated(tokens: IntArray) -> int:
    """How often the last token stands at the end, one behind the other."""
    differs = np.flatnonzero(tokens != tokens[-1]) if len(tokens) else np.zeros(0)
    return len(tokens) - (int(differs[-1]) + 1 if len(differs) else 0)


def _is_empty(rollout: Rollout) -> bool:
    last = rollout.turns[-1].message
    return not last.content.strip() and not last.tool_calls


def _begins_twice(rollout: Rollout, markers: dict[int, str]) -> bool:
    first = rollout.turns[0].prompt[:2].tolist()
    return len(first) == 2 and first[0] == first[1] and first[0] in markers


# Completions grow and grow, and nothing comes of it.

_FACTOR = 1.5  # of the length at the beginning
_LENGTH_EXPLOSION_CUT = 0.2  # share of rollouts
_LENGTH_EXPLOSION_LEAST = 8  # steps


class LengthExplosion(HealthRule):
    """Completions half as long again at the end, with a significant slope, and either no significant gain in reward or
    many truncated rollouts.
    """

    def judge(self, history: History) -> HealthFinding | None:
        before, after = history.early("length"), history.late("length")
        if len(history.steps) < _LENGTH_EXPLOSION_LEAST or not after >= _FACTOR * before or history.rise("length") <= 0:
            return None
        gain, cut = history.rise("reward"), history.late("truncated_share")
        if gain > 0 and not cut >= _LENGTH_EXPLOSION_CUT:
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


# Many rollouts are cut before they end: what they would have said is never judged.

_MANY_TRUNCATED_MANY = 0.3  # of the rollouts
_MOST = 0.7
_MANY_TRUNCATED_LEAST = 3  # steps, or
_MANY_TRUNCATED_ROLLOUTS = 16


class ManyTruncated(HealthRule):
    """Three of ten rollouts of the last quarter are truncated; seven of ten are grave."""

    def judge(self, history: History) -> HealthFinding | None:
        before, cut = history.early("truncated_share"), history.late("truncated_share")
        made = max((count for _, count in history.points("rollouts")), default=0)
        is_short = made < _MANY_TRUNCATED_ROLLOUTS and len(history.points("truncated_share")) < _MANY_TRUNCATED_LEAST
        if is_short or not cut >= _MANY_TRUNCATED_MANY:
            return None
        if history.cut_by == "design":
            return None  # a part that asks for less than a completion
        if history.cut_by == "turns":
            most = history.number("agent.max_turns", 0)
            told = f"{cut:.0%} of the last rollouts ran out of turns (max_turns={most:.0f})"
            return HealthFinding(
                "too many truncated", told, "more turns, or an environment that ends when a task is done"
            )
        limits = [
            f"max_tokens={history.number('sampling.max_tokens', 0):.0f}",
            f"context={history.number('context', 0):.0f}",
        ]
        evidence = f"{cut:.0%} of the last rollouts were cut ({before:.0%} of the first) at {' and '.join(limits)}"
        remedy = (
            "raise max_tokens (and context), or price length; if no completion ever ends, look at the chat template"
        )
        return HealthFinding("too many truncated", evidence, remedy, is_grave=cut >= _MOST)


# Rollouts that were cut earn as much as those that came to their end: the reward does not need an end.

_TRUNCATED_REWARDED_LEAST = 20  # rollouts that were cut, and that were not
_SHARE = 0.05  # of all
_NEARLY = 0.9  # of what finished ones earn


class PaidThoughCut(HealthRule):
    """Truncated rollouts earn nine tenths of the mean reward of finished ones, over the whole run."""

    def judge(self, history: History) -> HealthFinding | None:
        cut, ended = sum(kind.truncated for kind in history.kinds), sum(kind.finished for kind in history.kinds)
        if min(cut, ended) < _TRUNCATED_REWARDED_LEAST or cut < _SHARE * (cut + ended):
            return None
        paid_cut = sum(kind.paid_truncated for kind in history.kinds) / cut
        paid = sum(kind.paid_finished for kind in history.kinds) / ended
        if paid_cut <= 0 or paid_cut < _NEARLY * paid:
            return None
        evidence = (
            f"{cut:,} rollouts that were cut earned {paid_cut:.3g} on average, and {ended:,} that ended {paid:.3g}"
        )
        remedy = (
            "pay the end of a completion only (an answer behind the last line), leave cut rollouts out, "
            "or raise max_tokens"
        )
        return HealthFinding("truncated ones rewarded", evidence, remedy)
