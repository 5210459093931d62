"""Metrics of a step, counted where things happen; those that depend on the wall clock are separate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from strop.errors import UnreadVerdictError
from strop.filter.overruns import is_overrun
from strop.observe.metrics.advantage_metrics import advantage_metrics
from strop.stats.task_lineage import is_written
from strop.types import GateResult, Group, Metrics, Origin, Outcome, Rollout


@dataclass
class Tally:
    """Counts since the last step, and totals that survive a restart."""

    tokens_generated: int = 0
    tokens_trained: int = 0
    tokens_advised: int = 0  # that LLM clients sampled: no rollout holds them
    rollouts: int = 0
    _since: list[tuple[Group, Group | None]] = field(default_factory=list)  # as made, and as gates left it
    tokens_since: int = 0  # the last step
    _told: int = 0  # by LLM clients, since they were opened
    _offers: Counter[str] = field(default_factory=Counter)  # of written tasks, by why they were refused

    def finished(self, group: Group, result: GateResult, unused: Sequence[Rollout] = ()) -> None:
        """A group was scored and kept or dropped; tokens count where they were sampled, whatever became of them."""
        tokens = sum(t.num_sampled for t in (*group.rollouts, *unused))
        self.tokens_generated += tokens
        self.tokens_since += tokens
        self.rollouts += len(group.rollouts) + len(unused)
        self._since.append((group, result.group))

    def llm_client_tokens(self, total: int) -> None:
        """LLM clients have sampled so many tokens since they were opened."""
        self.tokens_advised += total - self._told
        self._told = total

    def offered(self, refused: str) -> None:
        """A task was written and taken, or refused for this reason."""
        self._offers[refused] += 1

    def trained(self, groups: Sequence[Group], version: int) -> Metrics:
        """Metrics of the batch that was just trained, and of everything that finished since the last one."""
        since, self._since = self._since, []
        finished, left = [group for group, _ in since], [kept for _, kept in since]
        skipped = sum(not group.rollouts for group in finished)  # given no rollout
        offers, self._offers = self._offers, Counter()
        rollouts = [t for group in groups for t in group.scored]
        self.tokens_trained += sum(t.num_tokens for t in rollouts)
        return {
            **_of_rollouts([t for group in finished for t in group.rollouts] or rollouts),
            **_contrast(finished or groups),
            "dropped_groups": float(sum(kept is None and bool(group.rollouts) for group, kept in since)),
            **({"skipped_groups": float(skipped)} if skipped else {}),
            "kept_share": _kept_share(finished, left),
            "replayed_share": _mean([_is_replayed(t, group) for group in groups for t in group.scored]),
            **advantage_metrics(groups),
            **_lag(rollouts, version),
            **_of_offers(offers, groups),
            "rollouts": float(self.rollouts),
            "tokens_generated": float(self.tokens_generated),
            "tokens_trained": float(self.tokens_trained),
            **({"tokens_advised": float(self.tokens_advised)} if self.tokens_advised else {}),
        }

    def timing(self, seconds: Metrics) -> Metrics:
        """Seconds and rates of the last step."""
        tokens, self.tokens_since = self.tokens_since, 0
        return {**seconds, "tokens_per_second": tokens / max(seconds["seconds"], 1e-9)}

    def state(self) -> dict[str, int]:
        names = ("tokens_generated", "tokens_trained", "tokens_advised", "rollouts")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, int]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


def _of_rollouts(rollouts: Sequence[Rollout]) -> Metrics:
    scored = [t for t in rollouts if t.is_scored]
    lengths = np.array([t.num_tokens for t in scored] or [0])
    metrics = {
        "length": float(lengths.mean()),
        "length_max": float(lengths.max()),
        "truncated_share": _mean([t.outcome is Outcome.TRUNCATED for t in scored]),
        "failed_share": _mean([t.outcome is Outcome.FAILED for t in rollouts]),
        "turns": _mean([len(t.turns) for t in scored]),
    }
    if any(faults := [t.error.startswith("reward ") and t.outcome is Outcome.FAILED for t in rollouts]):
        metrics["reward_failed_share"] = _mean(faults)  # of rollouts that a reward failed to score
    if any(overruns := [is_overrun(t) for t in scored]):
        metrics["overrun_share"] = _mean(overruns)
    if any(unread := [UnreadVerdictError.__name__ in t.error for t in rollouts]):
        metrics["unread_share"] = _mean(unread)  # of rollouts that a judge was asked about in vain
    return metrics | _of_rewards(scored) | _means("fact", [t.facts for t in scored])


def _of_rewards(scored: Sequence[Rollout]) -> Metrics:
    """What the policy earns by itself; all that was shown, helped, branched or kept stands beside it, by its origin."""
    own = [t for t in scored if t.origin is Origin.POLICY]
    metrics = {"reward": _mean([t.reward for t in own]), **_means("reward", [t.rewards for t in own])} if own else {}
    for name in sorted({t.origin.value for t in scored} - {Origin.POLICY.value}):
        metrics[f"share/{name}"] = _mean([t.origin.value == name for t in scored])
        metrics[f"reward_of/{name}"] = _mean([t.reward for t in scored if t.origin.value == name])
    return metrics


def _means(kind: str, named: Sequence[Mapping[str, float]]) -> Metrics:
    """Of each number, over the rollouts that have it."""
    names = sorted({name for numbers in named for name in numbers})
    return {f"{kind}/{name}": _mean([numbers[name] for numbers in named if name in numbers]) for name in names}


def _of_offers(offers: Counter[str], groups: Sequence[Group]) -> Metrics:
    """Tasks that were written since the last step, why some were refused, and the share of such tasks in the batch."""
    share = _mean([is_written(group.task) for group in groups])
    if not offers and not share:
        return {}
    reasons = {f"refused/{reason}": float(offers[reason]) for reason in sorted(offers) if reason}
    return {"written": float(offers[""]), "refused": float(sum(reasons.values())), **reasons, "written_share": share}


def _lag(rollouts: Sequence[Rollout], version: int) -> Metrics:
    """How many versions behind the tokens were when they were trained."""
    versions = [turn.versions for t in rollouts for turn in t.turns if len(turn.versions)]
    stamped = np.concatenate(versions) if versions else np.zeros(0, dtype=np.int64)
    lags = version - stamped[stamped >= 0]  # tokens nobody sampled carry -1
    if not len(lags):
        return {"lag": 0.0, "lag_max": 0.0}
    return {"lag": float(lags.mean()), "lag_max": float(lags.max())}


def _kept_share(made: Sequence[Group], left: Sequence[Group | None]) -> float:
    """Of the rollouts that counted, those that gates let through; what a gate adds is not among them."""
    ids = [{t.id for t in kept.scored} if kept else set() for kept in left]
    return _mean([t.id in kept for group, kept in zip(made, ids, strict=True) for t in group.scored] or [True])


def _is_replayed(rollout: Rollout, group: Group) -> bool:
    return rollout.origin is Origin.REPLAYED or group.times_trained > 1


def _contrast(groups: Sequence[Group]) -> Metrics:
    """Groups whose rollouts were rewarded alike: the policy's own, and beside it all, where others made some."""
    named = {"no_contrast_share": [group.own for group in groups]}
    if any(len(group.own) < len(group.scored) for group in groups):
        named["no_contrast_share/all"] = [group.scored for group in groups]
    return {name: _mean([_is_flat(each) for each in made if each]) for name, made in named.items() if any(made)}


def _is_flat(rollouts: Sequence[Rollout]) -> bool:
    return float(np.ptp([t.reward for t in rollouts])) <= 1e-9


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
