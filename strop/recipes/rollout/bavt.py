"""BAVT: budget-aware value tree search; an LLM judge rates each turn. Evaluation only: nothing is trained.

Title: Spend Less, Reason Better: Budget-Aware Value Tree Search for LLM Agents
Paper: arXiv 2603.12634 (2026)
Claim: Better than plain tree searches with four times its budget, on four agent benchmarks.
Reading: Nothing is trained. Held-out tasks are searched in the same way, so `strop train bavt` measures the search;
    `calls=1` is the policy alone with one turn, and the paper's tiers are 5, 10 and 20 calls. By default a rule of the
    bundled environment stands in for the judge, which is the same language model in the paper.
Left out: Tools. The judge's tokens, which the paper charges to the budget.
Acts: fact/turns_spent > 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import judged_or_none
from strop.filter.judges.progress_frames import frames
from strop.filter.judges.step_gain import ASKED, GAIN, question
from strop.generate.agents.support.episode_loop import where_it_stands
from strop.generate.turn_ops import as_prefix
from strop.recipes.named_parts import named_part
from strop.recipes.setting import Setting
from strop.roles import Agent, Dialogue, Episode, LLMClient, Player, Strategy
from strop.run import Run
from strop.standins.judges.progress import narrowing
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Message, Origin, Outcome, Rollout, Sampling, Start, Task

# BAVT's search (2603.12634): a tree of turns that expands where a judge saw progress, greedier as the budget runs out.
#
# A node is a dialogue after some turns. The judge says by how much the last turn helped; a node's value is its parent's
# plus that, clipped to 0 to 1, and a turn that did not help closes its node. The next node to expand is sampled with
# probability proportional to V^(1 / rho), rho the share of the budget that is left, of turns or of tokens, whichever is
# smaller. Readings: the root has the value one half. The judge is an LLM client; its tokens are not charged.

_FIRST = 0.5  # value of a dialogue without a turn


@dataclass(frozen=True)
class _Node:
    """A dialogue that may continue."""

    rollout: Rollout | None  # None: no turn yet
    value: float
    helped: float = 0.0  # what its last turn added, before clipping


@dataclass
class OneTurn(Agent):
    """Agent that plays one more turn and keeps the environment's answer."""

    answer: tuple[Message, ...] = field(default=(), init=False)

    origin: ClassVar[Origin] = Origin.POLICY

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        answers = await where_it_stands(task, dialogue, episode, must_go_on=True)
        answers.append(await episode.step(await dialogue.completion()))
        self.answer = answers[-1].messages
        return tuple(answer.reward or 0.0 for answer in answers)


@dataclass(frozen=True)
class BudgetedTree(Strategy):
    """Strategy that grows a tree of at most `calls` turns and `tokens` tokens per start and returns its best finished
    dialogue.

    Where none is finished, it returns the one of highest value, unfinished.
    """

    judge: LLMClient  # rates by how much a turn helped
    calls: int = 10  # turns of one search, over all branches
    tokens: int = 512  # completion tokens of one search, over all branches
    prompt: str = ASKED  # what the judge is asked, below the task and its steps

    def __post_init__(self) -> None:
        if self.calls < 1 or self.tokens < 1:
            raise ConfigurationError(f"BudgetedTree needs calls >= 1 and tokens >= 1, got {self.calls}, {self.tokens}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return [await self._search(start, play) for start in starts]

    def left(self, calls: int, tokens: int) -> float:
        """The smaller share of both budgets that is left after so many turns and tokens."""
        return min(1 - calls / self.calls, 1 - tokens / self.tokens)

    async def _search(self, start: Start, play: Player) -> Rollout:
        random, spent = np.random.default_rng(start.key), 0
        live, ended, made = [_Node(None, _FIRST)], list[_Node](), list[_Node]()
        for call in range(self.calls):
            left = self.left(call, spent)
            if left <= 0 or not live:
                break
            parent = live[int(random.choice(len(live), p=probabilities([node.value for node in live], left)))]
            node = await self._grown(parent, start if not made else play.another(), play)
            assert node.rollout is not None
            spent += node.rollout.num_tokens
            made.append(node)
            is_open = node.rollout.outcome is Outcome.TRUNCATED and node.helped > 0
            (live if is_open else ended).append(node)
        best = max([node for node in ended if _is_answer(node)] or made, key=lambda node: node.value)
        assert best.rollout is not None
        return replace(best.rollout, facts=best.rollout.facts | {"turns_spent": float(len(made)), "value": best.value})

    async def _grown(self, parent: _Node, start: Start, play: Player) -> _Node:
        """A child of `parent`, one turn longer."""
        before = () if parent.rollout is None else parent.rollout.turns
        turn = OneTurn()
        if before:
            start = replace(start, turns=as_prefix(before), origin=Origin.BRANCHED, parent=_id(parent))
        rollout = await play(start, turn)
        if not rollout.turns or rollout.outcome is Outcome.FAILED:
            return _Node(rollout, 0.0)
        *earlier, last = frames(rollout, turn.answer)
        asked = question(prompt_of(rollout.task), earlier, last, self.prompt)
        gain = await judged_or_none(self.judge, asked, GAIN, Sampling(temperature=0.0), start.key)
        helped = (gain or 0.0) / 100
        return _Node(rollout, min(max(parent.value + helped, 0.0), 1.0), helped)


def probabilities(values: Sequence[float], left: float) -> NDArray[np.float64]:
    """Proportional to V^(1 / left), computed in logarithms; uniform where all values are 0."""
    with np.errstate(divide="ignore"):
        powers = np.log(np.asarray(values, dtype=np.float64)) / left
    if not np.isfinite(powers).any():
        return np.full(len(powers), 1 / len(powers))
    weights = np.exp(powers - powers.max())
    return np.asarray(weights / weights.sum())


def _is_answer(node: _Node) -> bool:
    return node.rollout is not None and node.rollout.outcome is Outcome.FINISHED


def _id(node: _Node) -> str:
    return "" if node.rollout is None else node.rollout.id


def bavt(
    setting: Setting = Setting(env="guess:4", group_size=1, steps=4),
    judge: str = "rules",  # rates how much a turn helped (a named part)
    calls: int = 10,  # turns of one search, over all branches
    tokens: int = 512,  # completion tokens of one search, over all branches
) -> Run:
    """group_size searches of each task; the best dialogue of each is the rollout."""
    search = BudgetedTree(named_part("judge", judge, setting, narrowing, ("guess",)), calls, tokens)
    run = setting.run("bavt", Constant(), (Reinforce(weight=0.0),), strategy=search)
    return replace(run, evaluation=replace(run.evaluation, strategy=search))
