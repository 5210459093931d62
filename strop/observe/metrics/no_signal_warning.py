"""Warning that nothing is learned: for many steps all rollouts of each task had equal rewards."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strop.capabilities import inside
from strop.environments.data.answer_extraction import extracted
from strop.environments.data.table import Table
from strop.filter.rewards.controls import Flat
from strop.roles import Advantage
from strop.storage.ledger.ledger import Ledger
from strop.types import Metrics, Rollout

if TYPE_CHECKING:
    from strop.run import Run

_SHOWN = 120  # letters of a completion


@dataclass
class Contrast:
    """Watcher that counts steps in which no group had unequal rewards."""

    run: Run
    ledger: Ledger
    patience: int = 10  # steps
    steps: int = 0  # without contrast, up to now
    is_said: bool = False

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        share = metrics.get("no_contrast_share/all", metrics.get("no_contrast_share"))
        is_flat = share == 1.0 and self._learns_from(metrics.get("reward"))
        self.steps = self.steps + 1 if is_flat else 0
        if self.steps >= self.patience and not self.is_said:
            self.is_said = True
            print(f"\nwarning: {self._sentence(step, metrics)}", file=sys.stderr)

    def _learns_from(self, reward: float | None) -> bool:
        """Without contrast those learn nothing who compare siblings, and with no reward at all nobody does."""
        compares = any(each.min_group > 1 for each in inside(self.run.advantage, Advantage))
        is_shown = all(isinstance(each, Flat) for each in self.run.rewards)  # supervised
        return not is_shown and (compares or reward == 0)

    def _sentence(self, step: int, metrics: Metrics) -> str:
        reward = f" (mean reward {metrics['reward']:.3g})" if "reward" in metrics else ""
        said = f"for {self.steps} steps all rollouts of a task were rewarded alike{reward}, so nothing is learned"
        if (cut := metrics.get("truncated_share", 0.0)) > 0.5:
            said += f"; {cut:.0%} of the completions were cut at max_tokens={self.run.sampling.max_tokens}"
        rules = {env.name: env.chosen[0] for env in self.run.envs if isinstance(env, Table)}
        examples = [rollout for rollout in self.ledger.sample(step, 64) if rollout.turns]
        return said + (f". For example, {example(examples[0], rules)}" if examples else "")


def example(rollout: Rollout, rules: Mapping[str, str]) -> str:
    """One completion, what was read in it, and what would have been right."""
    completion = rollout.completion if len(rollout.completion) <= _SHOWN else f"...{rollout.completion[-_SHOWN:]}"
    said = (
        f"the completion {completion!r} got {rollout.reward:.3g}, and the answer is {rollout.task.answer[-_SHOWN:]!r}"
    )
    if (rule := rules.get(rollout.task.source)) is not None:
        said += f"; answer={rule} found {extracted(rule, rollout.completion)[-_SHOWN:]!r} in it"
    return said
