"""Satori: PPO with restarts from cut prefixes of earlier right and wrong rollouts, followed by a reflection marker.

Title: Satori: Reinforcement Learning with Chain-of-Action-Thought Enhances LLM Reasoning via Autoregressive Search
Paper: arXiv 2502.02508 (2025)
Claim: A 7B model that reflects and explores by itself leads those of its size on mathematics, and carries over.
Reading: First a short supervised training on demonstrations with the marker in their middle; then PPO with a bonus of
    0.5 for restarts, no KL penalty, temperature 0.6. Prompt, right and wrong prefixes are equally likely where all are
    known. The release's prefixes are sampled before the run; here they are the run's own, so tasks have to repeat: a
    pool of them, from step 9 on with 8 tasks per step. At most two steps are dropped; the release's number was not
    found. Optimizer steps per batch are not known: two. The marker is one character, which the bundled model learns in
    a few steps.
Left out: The outcome reward model, whose score between 0 and 1 is added. The markers to continue and to explore. A
    second round on the base model after the policy was distilled into it.
Acts: share/branched > 0 and reward_of/branched != 0 with pool=4, warmup_steps=2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from strop.concurrency import together
from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.errors import ConfigurationError
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.agents.demonstrate_reflection import DemonstrateReflection
from strop.recipes.rollout.satori.reward import RESTART, RestartBonus
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Player, Strategy
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic
from strop.types import Group, Origin, Rollout, Start

# Satori's restarts (2502.02508): rollouts start from the prompt, or from a prefix of an earlier rollout of the task.
#
# Readings: the prefixes come from this run, not from samples made before it: of each task the newest right and the
# newest wrong rollout of the policy's own, with one turn. Steps are separated by `separator`. Only rollouts of earlier
# weight versions are used, so the order in which groups are scored does not matter.

_COMPLETIONS = 4  # remembered of each task and kind: a group of an older version may not use the newest
_TASKS = 1024  # remembered, the last ones
_LONGEST = 2000  # characters of a remembered completion


@dataclass
class Restarts(Strategy):
    """Strategy that starts each rollout from the prompt, from a right prefix or from a wrong one, whichever are known.

    The last 1 to `dropped` steps of the earlier completion are replaced by `reflect`; both are prefix tokens, so only
    what follows is trained. A restart is BRANCHED, its parent the rollout that its prefix is from.
    """

    reflect: str = "?"  # marker inserted where an earlier completion is cut
    dropped: int = 2  # steps that are dropped at most
    separator: str = " "  # between two steps

    # by task: version, number of the group, whether it was right, id of the rollout, its completion
    _known: dict[str, list[tuple[int, int, bool, str, str]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.reflect or not self.separator or self.dropped < 1:
            raise ConfigurationError(
                "Restarts needs a text for reflect and separator, and dropped >= 1, got "
                f"{self.reflect!r}, {self.separator!r} and {self.dropped}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        known = self.known(group.task.id, group.version)
        return await together(self._played(start, known, play) for start in starts)

    def known(self, task: str, version: int) -> dict[bool, tuple[str, str]]:
        """The newest right and the newest wrong rollout of earlier versions: id and completion."""
        earlier = [each for each in self._known.get(task, []) if each[0] < version]
        return {is_right: (id_, text) for _, _, is_right, id_, text in earlier}  # the last of each kind wins

    def prefill(self, completion: str, steps: int) -> str:
        """The completion without its last `steps` steps, followed by the marker."""
        parts = completion.split(self.separator)
        return "".join(part + self.separator for part in parts[: max(len(parts) - steps, 0)]) + self.reflect

    async def _played(self, start: Start, known: dict[bool, tuple[str, str]], play: Player) -> Rollout:
        rng = np.random.default_rng(start.key)
        choice = [None, *sorted(known)][int(rng.integers(1 + len(known)))]
        if choice is None:
            rollout = await play(start)
            return replace(rollout, facts=rollout.facts | {RESTART: 0.0})
        parent, completion = known[choice]
        prefill = self.prefill(completion, int(rng.integers(1, self.dropped + 1)))
        rollout = await play(replace(start, prefill=prefill, origin=Origin.BRANCHED, parent=parent))
        return replace(rollout, facts=rollout.facts | {RESTART: 1.0 if choice else -1.0})

    def observe(self, group: Group) -> None:
        """Remember the first right and the first wrong completion of the policy's own."""
        found: dict[bool, tuple[str, str]] = {}
        for rollout in group.own:
            if len(rollout.turns) == 1 and len(rollout.completion) <= _LONGEST:
                found.setdefault(is_right(rollout), (rollout.id, rollout.completion))
        if not found:
            return
        rows = [*self._known.pop(group.task.id, []), *((group.version, group.number, r, *t) for r, t in found.items())]
        kinds = [[row for row in sorted(rows) if row[2] is is_right] for is_right in (False, True)]
        self._known[group.task.id] = sorted(row for kind in kinds for row in kind[-_COMPLETIONS:])
        while len(self._known) > _TASKS:
            del self._known[next(iter(self._known))]

    def state(self) -> dict[str, Any]:
        return {"known": [[task, [list(row) for row in rows]] for task, rows in self._known.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        self._known = {
            str(task): [
                (int(at), int(number), bool(right), str(id_), str(text)) for at, number, right, id_, text in rows
            ]
            for task, rows in state["known"]
        }


def satori(
    setting: Setting = Setting(env="arithmetic:6", temperature=0.6),
    pool: int = OfEndless(64),  # repeating tasks of each environment; all of a table
    dropped: int = 2,  # steps of an earlier completion that are dropped at most
    reflect: str = "?",  # marker inserted where an earlier completion is cut
    bonus: float = 0.5,  # for a wrong prefix that was corrected; failing from a right prefix costs as much
    warmup_steps: int = 20,  # of supervised training first
) -> Run:
    """A rollout may start with the first steps of an earlier one and a marker, both untrained."""
    run = setting.run(
        "satori",
        Gae(trace=0.95),
        (Clip(0.2, 0.2),),
        values=Critic(device=setting.device),
        strategy=Restarts(reflect, dropped),
        minibatches=2,
    )
    run.sampler = Few(run.envs, covering(run.envs, pool))
    judged = as_one(run.rewards)
    run.rewards = (RestartBonus(judged, bonus),)
    if (supervised := shown(setting, "satori", warmup_steps)) is not None:
        run.warmup = replace(supervised, agent=DemonstrateReflection(supervised.agent, reflect))
    return run
