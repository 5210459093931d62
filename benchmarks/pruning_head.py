"""How much the head that prunes midway (arrol) knows of a rollout's end, by how much of the completion it has read.

    python benchmarks/pruning_head.py [--seeds 6] [--json] [--save NAME]

The bundled model writes 16 groups of 8 rollouts of arithmetic:6 for each of 8 versions. The strategy itself reads each
rollout up to a share of its tokens, lets all go on, is shown what became of them, and learns as in a run: groups of a
version are predicted from those of earlier ones. AUC is the probability that of a right and a wrong rollout of the last
4
versions, which it has not seen, the right one was predicted the higher success; 1/2 knows nothing. The rollouts are the
same for every share. *Within*: the same over pairs of one group alone, where knowing the task does not help. The
`ratio` is the AUC at half of the completion.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from strop.environments.bundled.arithmetic import Arithmetic
from strop.filter.rewards.from_environment import Earned
from strop.filter.scoring import Scorer
from strop.generate.agents.chat import Chat
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.policy import Policy
from strop.generate.strategies.independent import Independent
from strop.models.loading.model_names import model_folder
from strop.recipes.rollout.arrol import PREDICTED, PrunedMidway
from strop.roles import Agent, Player
from strop.success import success
from strop.training.requirements import HIDDEN, PolicyStatistic
from strop.training.trainers.torch import TorchTrainer
from strop.types import SUCCESS, Group, Message, Outcome, Rollout, Sampling, Start, Task, Turn

SHARES = tuple(eighth / 8 for eighth in range(1, 9))
VERSIONS, LEARNED, GROUPS, ROLLOUTS, LEVEL = 8, 4, 16, 8, 6


@dataclass
class Recorded(Player):
    """Rollouts that were written before: first a share of each, then the rest."""

    rollouts: dict[str, Rollout]
    share: float
    cuts: dict[str, int] = field(default_factory=dict)

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        whole = self.rollouts[start.id]
        if not start.pause:
            return replace(whole, facts={SUCCESS: success(whole)})
        (turn,) = whole.turns
        self.cuts[whole.id] = max(1, math.ceil(self.share * len(turn.tokens)))
        return replace(whole, turns=(first(turn, self.cuts[whole.id]),), outcome=Outcome.PRUNED)

    async def look(self, rollouts: Sequence[Rollout], needs: frozenset[PolicyStatistic]) -> list[dict[str, Any]]:
        return [{HIDDEN.name: self.rollouts[t.id].policy_statistics[HIDDEN.name][: self.cuts[t.id]]} for t in rollouts]

    def another(self, **changes: Any) -> Start:
        raise NotImplementedError

    async def score(self, rollouts: Sequence[Rollout]) -> list[Rollout | None]:
        raise NotImplementedError

    def apart(self, start: Start) -> Player:
        raise NotImplementedError

    def retold(self, rollout: Rollout, messages: Sequence[Message]) -> Rollout:
        raise NotImplementedError

    def joined(self, pieces: Sequence[Rollout]) -> Rollout:
        raise NotImplementedError


def first(turn: Turn, count: int) -> Turn:
    """A turn as it was after `count` tokens."""
    kept = turn.tokens[:count], turn.logprobs[:count], turn.versions[:count]
    return replace(turn, tokens=kept[0], logprobs=kept[1], versions=kept[2])


async def written(seed: int, versions: int, groups: int, rollouts: int) -> list[Group]:
    """Scored groups of the bundled model, with its state at every token."""
    model = model_folder("pocket")
    env, engine, trainer = Arithmetic(LEVEL, seed), TorchEngine(), TorchTrainer()
    engine.open(model)
    trainer.open(model, seed)
    policy, scorer = Policy.load(model, engine, Sampling(max_tokens=64), 512), Scorer((Earned(),))

    async def made(number: int) -> Group:
        group = Group(number, env.task(number), [], number // groups)
        player = GroupPlayer(group, policy, [env], Chat(), seed, scorer)
        group.rollouts = await Independent()(group, [player.another() for _ in range(rollouts)], player)
        await scorer(group)
        return group

    found = list(await asyncio.gather(*(made(number) for number in range(versions * groups))))
    trainer.policy_statistic(found, frozenset({HIDDEN}))
    await scorer.close()
    return found


async def predicted(groups: Sequence[Group], share: float) -> list[Group]:
    """The same groups with what the head said of each rollout after a share of it, version by version."""
    strategy, told = PrunedMidway(keep=1.0), list[Group]()
    for group in groups:
        player = Recorded({t.id: t for t in group.rollouts}, share)
        starts = [Start(t.id, number) for number, t in enumerate(group.rollouts)]
        told.append(replace(group, rollouts=await strategy(group, starts, player)))
        strategy.observe(told[-1])
    return told


def auc(groups: Sequence[Group]) -> float:
    """How often a right rollout was predicted more than a wrong one, a tie for a half; NaN where there is no pair."""
    judged = [(t.facts[PREDICTED], success(t) >= 0.5) for group in groups for t in group.rollouts if t.is_scored]
    right, wrong = (
        np.array([probability for probability, is_right in judged if is_right is wanted]) for wanted in (True, False)
    )
    if not len(right) or not len(wrong):
        return math.nan
    gaps = right[:, None] - wrong  # [R, W]
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean())


def within(groups: Sequence[Group]) -> float:
    """The mean of the groups' own, over those that have a pair."""
    found = [each for group in groups if not math.isnan(each := auc([group]))]
    return float(np.mean(found)) if found else math.nan


def measure(
    seeds: int, versions: int = VERSIONS, learned: int = LEARNED, groups: int = GROUPS, rollouts: int = ROLLOUTS
) -> dict[str, Any]:
    """AUC by share, of versions from `learned` on."""
    found: dict[float, list[tuple[float, float]]] = {share: [] for share in SHARES}
    rates: list[float] = []
    for seed in range(seeds):
        made = asyncio.run(written(seed, versions, groups, rollouts))
        rates.append(float(np.mean([success(t) for group in made for t in group.scored])))
        for share in SHARES:
            late = [group for group in asyncio.run(predicted(made, share)) if group.version >= learned]
            found[share].append((auc(late), within(late)))
    rows = []
    for share, pairs in found.items():
        means, spreads = np.nanmean(pairs, axis=0), np.nanstd(pairs, axis=0)
        figures = {"auc": means[0], "auc_spread": spreads[0], "within": means[1], "within_spread": spreads[1]}
        rows.append({"share": share} | {name: float(value) for name, value in figures.items()})
    half = next(row["auc"] for row in rows if row["share"] == 0.5)
    return {"ratio": half, "seeds": seeds, "right": float(np.mean(rates)), "rows": rows}


def table(found: dict[str, Any]) -> str:
    lines = ["| share of the completion | AUC | within a group |", "|---|---|---|"]
    for row in found["rows"]:
        own = f"{row['within']:.2f} ± {row['within_spread']:.2f}"
        lines.append(f"| {row['share']:.3f} | {row['auc']:.2f} ± {row['auc_spread']:.2f} | {own} |")
    lines.append(f"{found['seeds']} seeds with their deviation; {found['right']:.0%} of all rollouts were right")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    from machine import measure_seeds

    measure_seeds(__doc__, 6, measure, table, words)


if __name__ == "__main__":
    main()
