"""ACECODER: REINFORCE++ on programs, rewarded by all tests passed or by a reward model of test-made pairs.

Title: ACECODER: Acing Coder RL via Automated Test-Case Synthesis
Paper: arXiv 2502.01718 (2025)
Claim: Best of 32 by its reward model gains 10 points for an 8B model; 80 steps of RL with tests gain over 25 points on
    HumanEval-plus for a 7B one.
Reading: The reward is 1 if all tests pass and 0 otherwise, as released; paying a share of tests invites special cases.
    learns_pairs=true trains the reward model instead: programs sampled from the initial model form pairs, and
    `reward_model` reads a checkpoint of that run. The tests are the environment's own and correct by construction; the
    paper's are written by a model and kept if a program of a stronger model passes them. The bundled model has never
    written a program, so a short supervised warm-up comes first.
Left out: Tests that a model writes, which hardtests has; best of N at the end.
Acts: reward/passed_tests > 0 and advantage > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strop.concurrency import together
from strop.environments.code.cases import cases_of
from strop.environments.code_execution import Trials, program_in
from strop.environments.judging.verdict_questions import BAD, GOOD
from strop.errors import ConfigurationError
from strop.filter.rewards.reward_model import Scored
from strop.filter.rewards.unit_tests import PassedTests
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.policy import Policy
from strop.generate.reward_model import RewardModel
from strop.generate.rollout_limits import REFERENCE
from strop.generate.strategies.support.forced_completion import ForcedCompletion
from strop.generate.verdict_tokens import as_verdict, has_verdict, word_ids
from strop.recipes.named_parts import named_model
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Player, Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.reductions.means import SequenceMean
from strop.types import Group, IntArray, Rollout, Start

# AceCoder's pairs (2502.01718): a program that passes many tests against one that passes clearly fewer, but some.
#
# Reading: pairs are sorted by the winner's pass rate, then by the loser's; ties keep the order of the rollouts.

_ROUNDING = 1e-9  # 1 - 0.6 is a little less than 0.4


@dataclass(frozen=True)
class PassRatePairs:
    """Pairs whose winner passes at least `least` of the tests and `gap` more than the loser, which passes some.

    A program that passes no test usually crashes and makes an uninformative loser. Equal programs count once.
    """

    least: float = 0.8  # share of tests that a winner passes
    gap: float = 0.4  # least difference between both pass rates
    most: int = 3  # pairs per task

    def __post_init__(self) -> None:
        if not (0 < self.gap <= self.least <= 1 and self.most >= 1):
            raise ConfigurationError(
                f"pairs need 0 < gap <= least <= 1 and most >= 1, got {self.gap:g}, {self.least:g} and {self.most}"
            )

    def __call__(self, programs: Sequence[str], rates: Sequence[float]) -> list[tuple[int, int]]:
        """Indices (winner, loser) of each pair."""
        once = [place for place, text in enumerate(programs) if text not in programs[:place]]
        ranked = sorted(once, key=lambda place: -rates[place])
        found = [
            (winner, loser)
            for above, winner in enumerate(ranked)
            for loser in ranked[above + 1 :]
            if self.is_pair(rates[winner], rates[loser])
        ]
        return found[: self.most]

    def is_pair(self, better: float, worse: float) -> bool:
        is_clear = better - worse >= self.gap - _ROUNDING
        return better >= self.least - _ROUNDING and is_clear and worse > 0


# AceCoder's reward model (2502.01718): sampled programs form pairs by the tests they pass; each gets a forced verdict.


@dataclass
class ProgramPairs(Strategy):
    """Two one-token verdicts per pair, as one comparison group; the winner's is rewarded 1, the loser's 0.

    The reference policy samples the programs, because the policy becomes the reward model; this needs the engine
    `WithReference`. The sampled programs themselves are not returned. A task without a pair returns no rollout.
    """

    pairs: PassRatePairs = field(default_factory=PassRatePairs)
    trials: Trials = field(default_factory=Trials)
    _ids: IntArray | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._ids = word_ids(policy.template)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        sampled = await together(play(replace(start, policy_name=REFERENCE)) for start in starts)
        scored = [rollout for rollout in sampled if rollout.is_scored]
        trials = await together(self.trials.of(rollout.completion, cases_of(group.task)) for rollout in scored)
        programs = [program_in(rollout.completion).text for rollout in scored]
        pairs = self.pairs(programs, [trial.share for trial in trials])
        labelled = [
            (scored[place].completion, word, f"pair {number}")
            for number, pair in enumerate(pairs)
            for place, word in zip(pair, (GOOD, BAD), strict=True)
        ]
        forced = [
            (play.another(comparison_group=name), ForcedCompletion(word, float(word == GOOD), completion))
            for completion, word, name in labelled
        ]
        verdicts = await together(play(start, agent) for start, agent in forced)
        # a pair is dropped if the context has no room for one of its verdicts
        short = {rollout.comparison_group for rollout in verdicts if not has_verdict(rollout)}
        return [as_verdict(rollout, self._ids) for rollout in verdicts if rollout.comparison_group not in short]


def acecoder(
    setting: Setting = Setting(env="programs:1+programs:2"),
    is_binary: bool = True,  # reward 1 for all tests passed; false: the share of tests passed
    learns_pairs: bool = False,  # train the reward model instead of a policy
    reward_model: str = "",  # checkpoints/step-N of a learns_pairs run, whose scores replace the tests
    kl: float = 0.001,  # coefficient of the per-token KL penalty log(policy / reference)
    clip: float = 0.2,  # PPO clip range of the importance ratio
    warmup_steps: int = BundledOnly(20),  # supervised warm-up steps before RL
) -> Run:
    """Advantages are returns standardized over the batch; the KL penalty is part of the return."""
    trials = Trials(setting.isolation)
    if learns_pairs:
        engine = WithReference(engine_on(setting.device), engine_on(setting.device))
        parts = {"strategy": ProgramPairs(trials=trials), "engine": engine, "reduction": SequenceMean()}
        run = setting.run("acecoder", Constant(), (BradleyTerry(),), **parts)
    else:
        run = setting.run("acecoder", TokenReturns(kl=kl), (Clip(clip, clip),), minibatches=2, reward_seconds=60.0)
        tests = PassedTests("all" if is_binary else "share", trials, weight=0.0 if reward_model else 1.0)
        judged = (
            (Scored(RewardModel(named_model("reward_model", reward_model), setting.device)),) if reward_model else ()
        )
        run.rewards = (tests, *judged)
    run.warmup = shown(setting, "acecoder", warmup_steps)
    return run
