"""Router-R1: GRPO on multi-turn calls to priced expert models, with a reward for the answer's F1 and a low price.

Title: Router-R1: Teaching LLMs Multi-Round Routing and Aggregation via Reinforcement Learning
Paper: arXiv 2506.09033 (2025)
Claim: On seven sets of questions it answers more than routers that ask once, and its price can be steered.
Reading: Format first (-1), then the answer, then the price, as released. The release's weight of the price is 0, which
    disables it, so it is 0.5 here. The price score uses quantiles of the square roots of prices over the last 1,000
    rollouts, which are stored with the run. By default the experts are three rules that add one, two and any number of
    digits for 1, 4 and 16; `experts=` names models, each with the price of an answer, and gives any environment the
    tool that asks them. The bundled model has never called an expert, so a short supervised run on demonstrations comes
    first, each with a random expert that can answer. Its chat template shows no tools, so it learns what each expert
    can do from the answers.
Left out: Prices per token; PPO with a critic.
Acts: fact/asked > 0 and price_spread > 0 and fact/price > 0 and fact/price_score > 0 with warmup_steps=8
Break: share=0: experts cost nothing
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from strop.environments.format.think_tags import final_answer
from strop.environments.needs import EnvNeed
from strop.environments.tools.paid_experts import EXPERTS, AskedExperts, Experts, PricedExpert
from strop.environments.tools.toolbox import Toolbox
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.named_parts import named_list, reward_seconds
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Reward
from strop.run import Run
from strop.text.overlap import token_f1
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import ZERO_TO_ONE, Group, Metrics, Outcome, Rollout, ScoreRange, ToolCall

# Router-R1's reward (2506.09033): -1 for a format error, 0 for a wrong answer, more for a right one at a low price.
#
# The price of a rollout is the sum over its calls. The price score is relative: c = 1 - clip((x - q05) / (q95 - q05)),
# with x the square root of the price and quantiles of the last `window` rollouts. Reading: the window is extended once
# per training batch, so that scores do not depend on the order of scoring; the release has one window per worker and
# extends it with each rollout.

_PRICE = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_FLAT = 1e-6  # range of prices below which all score 0.5


_EXPERTS = EnvNeed(
    "experts with prices",
    "name them, each with its price: experts=NAME:PRICE=PART,NAME:PRICE=PART, or take env=market:1",
    is_met_by=lambda env, task: any(tool.name == Experts.name for tool in task.tools),
)


@dataclass
class Routed(Reward):
    """-1 for a format error, 0 for a wrong answer, else (1 - share) * F1 + share * c."""

    share: float = 0.0  # weight of the price score
    window: int = 1000  # latest rollouts, for the price quantiles
    prices: dict[str, float] = field(default_factory=lambda: {name: each.price for name, each in EXPERTS.items()})
    _price_roots: list[float] = field(
        default_factory=list, init=False, repr=False, compare=False
    )  # square roots of prices

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE
    calls_tools: ClassVar[bool] = True
    is_inline: ClassVar[bool] = True
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (_EXPERTS,)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.window < 2:
            raise ConfigurationError(
                f"Routed needs a share from 0 to 1 and window >= 2, got {self.share}, {self.window}"
            )

    def __call__(self, group: Group) -> list[float]:
        return [self._score(rollout) for rollout in group.rollouts]

    def cheapness(self, price: float) -> float:
        """Price score c: 1 at the window's lowest prices, 0 at its highest; 0.5 where all are equal."""
        low, high = np.quantile(self._price_roots, (0.05, 0.95)) if self._price_roots else (0.0, 0.0)
        if high - low < _FLAT:
            return 0.5
        return float(1 - np.clip((np.sqrt(price) - low) / (high - low), 0, 1))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Add the prices of the training batch to the window, in the order of admission."""
        ordered = sorted(groups, key=lambda group: (group.version, group.number))
        self._price_roots += [float(np.sqrt(self.price_of(rollout))) for group in ordered for rollout in group.scored]
        del self._price_roots[: -self.window]
        return {"price_spread": float(np.ptp(self._price_roots)) if self._price_roots else 0.0}

    def state(self) -> dict[str, Any]:
        return {"paid": self._price_roots}

    def restore(self, state: dict[str, Any]) -> None:
        self._price_roots = list(state["paid"])

    def _score(self, rollout: Rollout) -> float:
        price = self.price_of(rollout)
        cheap = self.share * self.cheapness(price)
        rollout.facts |= {"price": price, "asked": float(len(_calls(rollout))), "price_score": cheap}
        answer = final_answer(rollout.completion)
        is_ended = (
            rollout.outcome is Outcome.FINISHED and bool(rollout.turns) and not rollout.turns[-1].message.tool_calls
        )
        if not is_ended or not answer or not all(map(self._expert, _calls(rollout))):
            return -1.0
        right = token_f1(answer, rollout.task.answer)
        return (1 - self.share) * right + cheap if right > 0 else 0.0

    def price_of(self, rollout: Rollout) -> float:
        """The sum of the prices of all valid calls."""
        return sum(self.prices[name] for call in _calls(rollout) if (name := self._expert(call)))

    def _expert(self, call: ToolCall) -> str:
        """The expert that a call names; empty for an unknown expert or an empty question."""
        try:
            arguments = json.loads(call.arguments or "null")
        except ValueError:
            return ""
        if not isinstance(arguments, Mapping) or not str(arguments.get("question", "")).strip():
            return ""
        name = arguments.get("expert")
        return name if isinstance(name, str) and name in self.prices else ""


def _calls(rollout: Rollout) -> list[ToolCall]:
    return [call for turn in rollout.turns for call in turn.message.tool_calls]


def router_r1(
    setting: Setting = Setting(env="market:3"),
    experts: str = "rules",  # models to ask, with the price of an answer: NAME:PRICE=PART,NAME:PRICE=PART (named parts)
    share: float = 0.5,  # weight of the price score in the reward
    window: int = 1000,  # latest rollouts, for the price quantiles
    turns: int = 4,  # maximum number of turns of a rollout
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
    warmup_steps: int = BundledOnly(12),  # supervised steps on demonstrations before RL
) -> Run:
    """GRPO on the router's own tokens."""
    run = setting.run("router_r1", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), agent=Chat(turns))
    run.warmup = shown(setting, "router_r1", warmup_steps)
    if experts == "rules":
        run.rewards = (Routed(share, window),)
    else:
        tool = _asked(experts, setting, share)
        wrap_envs(run, lambda env: (Toolbox(env, (tool,), seconds=reward_seconds(experts)),))
        run.rewards = (Routed(share, window, tool.prices),)
    run.evaluation = replace(run.evaluation, agent=run.agent)
    return run


def _asked(text: str, setting: Setting, share: float) -> AskedExperts:
    """The tool that asks the experts of a text; without a difference in price nothing could be saved."""
    found = named_list("experts", text, setting)
    priced = [(*name.partition(":")[::2], client) for name, client in found.items()]
    if any(_PRICE.fullmatch(price) is None for _, price, _ in priced):
        raise ConfigurationError(f"experts={text}: need experts=NAME:PRICE=PART, as in small:1=PART,large:4=PART")
    tool = AskedExperts(tuple(PricedExpert(name, float(price), client) for name, price, client in priced))
    if share and len({each.price for each in tool.experts}) < 2:
        raise ConfigurationError(
            f"experts={text}: their prices are equal, so nothing can be saved: name experts of different prices, or "
            "set share=0 to leave the price out"
        )
    return tool
