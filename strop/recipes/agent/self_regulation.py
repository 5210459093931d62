"""Self-regulation: random help requests, a tabular policy that decides when help is worth its price, and its imitation.

Title: Self-Regulation and Requesting Interventions
Paper: arXiv 2502.04576 (2025)
Claim: Asking where it is worth it makes an agent as good as asking always, with a fraction of the help.
Reading: Dynamic programming on a table of transitions, within a budget of help requests, labels every state as help or
    act. The price of help is the smallest that keeps to the budget. A state is the kind of task and the turn. Help is
    a right completion from the environment, at most `most` times in a rollout, independently of the plan. Help knows
    the answer, so held-out tasks are solved without: a request gets none and costs its turn.
Left out: A process reward model that predicts success in unseen states, and a helper model apart from the policy.
    Only the abstract and the project page were read.
Acts: helps > 0 and help_states > 0 and advantage < 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from strop.environments.bundled.ask_for_help import HELP, HelpOffered, asks
from strop.environments.needs import DEMONSTRATIONS, TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.generate.agents.support.episode_loop import where_it_stands
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Dialogue, Episode
from strop.run import Run
from strop.success import kind, success
from strop.training.arithmetic.turn_returns import set_turn_advantages
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Message, Metrics, Origin, Rollout, Task

# Exploration (2502.04576): random help requests show where help is worth its price.


@dataclass(frozen=True)
class HelpAtRandom(Agent):
    """Agent whose turn is a scripted `help` with probability `share`; the policy may also ask on its own."""

    share: float = 0.3  # probability of a scripted help request in a turn
    max_turns: int = 8  # maximum number of turns of a rollout

    origin: ClassVar[Origin] = Origin.GUIDED
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (DEMONSTRATIONS, TURNS)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.max_turns < 1:
            raise ConfigurationError(
                f"HelpAtRandom needs 0 <= share <= 1 and max_turns >= 1, got {self.share} and {self.max_turns}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        answers = await where_it_stands(task, dialogue, episode)
        probabilities = np.random.default_rng(dialogue.key).random(self.max_turns)
        while len(answers) < self.max_turns and not (answers and answers[-1].done) and not dialogue.is_cut:
            is_helped = bool(probabilities[len(answers)] < self.share)
            answers.append(await episode.step(await _completed(dialogue, is_helped)))
            if not answers[-1].done:
                dialogue.hear(answers[-1].messages)
        return tuple(answer.reward or 0.0 for answer in answers)


async def _completed(dialogue: Dialogue, is_helped: bool) -> Message:
    if not is_helped:
        return await dialogue.completion()
    message = Message("assistant", HELP)
    dialogue.say(message)
    return message


# Transition table of the two decisions, and the optimal plan within a help budget (2502.04576).
#
# J(s) = max(E[J(s') | act], E[J(s') | help] - price), at the end J is the success; a tie is an act. U(s) is the number
# of helps to expect under that plan. U falls in steps as the price rises, so the price is the smallest with U <=
# budget.

Counts: TypeAlias = dict[str, dict[str, dict[str, float]]]  # counts by state, decision and next state

ACT, ASK = "act", "help"
_RIGHT, _WRONG = "right", "wrong"  # final states
_HALVINGS = 50


@dataclass(frozen=True)
class HelpPlan:
    """Plan by state: the decision, its value, and the expected number of help requests."""

    asks: Mapping[str, bool]
    worth: Mapping[str, float]
    helps: Mapping[str, float]


@dataclass
class HelpTable:
    """Transition counts of rollouts; a state is a kind of task and a turn number, so the table has no cycles."""

    counts: Counts = field(default_factory=dict)

    def add(self, kind: str, decisions: list[bool], success: float) -> None:
        """Add a rollout: its decision in each turn (True: help), and its success from 0 to 1."""
        for number, is_help in enumerate(decisions):
            is_last = number == len(decisions) - 1
            ends = {_RIGHT: success, _WRONG: 1.0 - success} if is_last else {state_of(kind, number + 1): 1.0}
            row = self.counts.setdefault(state_of(kind, number), {}).setdefault(ASK if is_help else ACT, {})
            for name, times in ends.items():
                row[name] = row.get(name, 0.0) + times

    def plan(self, price: float) -> HelpPlan:
        """The optimal plan, by backward induction; a decision that was never observed is never taken."""
        asks = dict[str, bool]()
        worth, helps = {_RIGHT: 1.0, _WRONG: 0.0}, {_RIGHT: 0.0, _WRONG: 0.0}
        for state in sorted(self.counts, key=_turn_of, reverse=True):
            rows = self.counts[state]
            values = {each: _mean(row, worth) - (price if each == ASK else 0.0) for each, row in rows.items()}
            asks[state] = values.get(ASK, float("-inf")) > values.get(ACT, float("-inf"))
            chosen = ASK if asks[state] else ACT
            worth[state] = values[chosen]
            helps[state] = _mean(rows[chosen], helps) + float(asks[state])
        return HelpPlan(asks, worth, helps)

    def price(self, budget: float) -> float:
        """The smallest price with at most `budget` expected help requests per rollout, by 50 bisections."""
        if budget < 0:
            raise ConfigurationError(f"a help budget must be at least 0, got {budget}")
        low, high = 0.0, 1.0  # help is worth 1 at most
        if self.expected(self.plan(low)) <= budget:
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self.expected(self.plan(middle)) <= budget:
                high = middle
            else:
                low = middle
        return high

    def expected(self, plan: HelpPlan) -> float:
        """Expected help requests per rollout, with first states weighted by their counts."""
        first = {state: _times(self.counts[state]) for state in self.counts if _turn_of(state) == 0}
        total = sum(first.values())
        return sum(times * plan.helps[state] for state, times in first.items()) / total if total else 0.0


def state_of(kind: str, turn: int) -> str:
    return f"{kind}/{turn}"


def _turn_of(state: str) -> int:
    return int(state.rpartition("/")[2])


def _times(rows: Mapping[str, Mapping[str, float]]) -> float:
    return sum(sum(row.values()) for row in rows.values())


def _mean(row: Mapping[str, float], values: Mapping[str, float]) -> float:
    return sum(times * values[name] for name, times in row.items()) / sum(row.values())


# Imitation of the plan's decisions (2502.04576).
#
# Reading: the paper trains a separate helper offline, on labels of a process reward model; here the policy's own
# completion is the decision, and probabilities are counted over all rollouts so far. Advantage 1 for turns whose
# decision equals the label and 0 for others is a supervised loss on the labels; it prefers no act over another.


@dataclass
class HelpLabels(Advantage):
    """Advantage 1 where the decision is that of the optimal plan, else 0; the table counts all rollouts so far."""

    budget: float = 1.0  # mean help requests per rollout

    _table: HelpTable = field(default_factory=HelpTable, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.budget < 0:
            raise ConfigurationError(f"HelpLabels needs budget >= 0, got {self.budget}")

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        for rollout in rollouts:
            self._table.add(kind(rollout.task), _decisions(rollout), success(rollout))
        labels = self._table.plan(self._table.price(self.budget)).asks
        for rollout in rollouts:
            states = [state_of(kind(rollout.task), number) for number in range(len(rollout.turns))]
            pairs = zip(states, _decisions(rollout), strict=True)
            set_turn_advantages(rollout, [float(labels[state] == is_help) for state, is_help in pairs])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the price of help, planned requests, and requests per rollout, in total and by the policy."""
        price = self._table.price(self.budget)
        plan = self._table.plan(price)
        asked = [turn for group in groups for rollout in group.scored for turn in rollout.turns if asks(turn.message)]
        count = max(sum(len(group.scored) for group in groups), 1)
        return {
            "help_price": price,
            "helps_planned": self._table.expected(plan),
            "help_states": sum(plan.asks.values()) / max(len(plan.asks), 1),
            "helps": len(asked) / count,
            "helps_own": sum(bool((turn.versions >= 0).any()) for turn in asked) / count,
        }

    def state(self) -> dict[str, Any]:
        return {"counts": self._table.counts}

    def restore(self, state: dict[str, Any]) -> None:
        self._table = HelpTable(state["counts"])


def _decisions(rollout: Rollout) -> list[bool]:
    return [asks(turn.message) for turn in rollout.turns]


def self_regulation(
    setting: Setting = Setting(env="keyvalue:4"),
    budget: float = 1.0,  # mean help requests per rollout
    most: int = 3,  # maximum help requests of a rollout
    share: float = 0.3,  # probability of a scripted help request in a turn
) -> Run:
    """A policy gradient whose advantage is 1 or 0: likelihood of the labelled decisions."""
    run = setting.run("self_regulation", HelpLabels(budget), (Reinforce(),), agent=HelpAtRandom(share))
    alone = tuple(HelpOffered(env, 0) for env in run.envs)
    wrap_envs(run, lambda env: (HelpOffered(env, most),))
    run.evaluation = replace(run.evaluation, envs=alone)
    return run
