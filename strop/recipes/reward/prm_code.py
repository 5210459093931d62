"""PRM for code: PPO with line-level process rewards; labels by binary search for the first bad line.

Title: Process Supervision-Guided Policy Optimization for Code Generation
Paper: arXiv 2410.17621 (2024)
Claim: 28.2 to 29.8 % on LiveCodeBench and 31.8 to 35.8 % on a benchmark of the authors' own, against RL with tests.
Reading: Run it twice: the first run trains the line judge, with the policy frozen, on labels found by binary search. In
    the second run `judge`, the first one's `checkpoints/step-N/values`, rewards each line in addition to the tests, and
    initializes the critic. Line rewards are divided by the number of lines, and blank lines and comments earn nothing,
    because policies add lines to be paid; the weight was not found. The bundled model has never written a program, so a
    short supervised warm-up comes first.
Left out: Labels from several checkpoints of a former run.
Acts: fact/completed_places > 0 and line_labels > 0 and value_grad_norm > 0 with warmup_steps=0, steps=1, samples=2,
    model=CODER
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from strop.concurrency import together
from strop.environments.code_execution import Trials
from strop.errors import ConfigurationError
from strop.filter.judges.code_lines import LABEL, label_row, last_tokens, lines_in
from strop.filter.rewards.line_prm import JudgedLines
from strop.filter.rewards.unit_tests import PassedTests
from strop.generate.policy import Policy
from strop.generate.turn_ops import as_prefix, cut, noted
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Player, Strategy
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.constant import Constant
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.values.critic import Critic
from strop.training.values.line_judge import LineJudge
from strop.training.values.line_scores import LineScores
from strop.types import FilePath, Group, Origin, Rollout, Start

# Labels for lines of sampled programs (2410.17621): a line is good if some completion of the lines up to it passes.
#
# If no completion of a prefix passes, none of a longer prefix does, so binary search finds the first bad line: a
# program of n lines is completed `samples` times at no more than log2(n) places, rounded up. Reading: the empty prefix
# is good, and the whole of a failed program is bad. Completions are not returned: their tokens count as sampled, but
# are not trained on.

_PLACES, _GOOD = "completed_places", "good_lines"


@dataclass
class FirstBadLine(Strategy):
    """Rollouts of one completion, with labels of its lines in `Turn.aux`."""

    samples: int = 4  # completions per prefix; with too few a good line is labelled bad
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigurationError(f"FirstBadLine needs samples >= 1, got {self.samples}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        rollouts = await together(play(start) for start in starts)
        scores = await play.score(rollouts)
        return [await self._labelled(each, scored, play) for each, scored in zip(rollouts, scores, strict=True)]

    async def _labelled(self, rollout: Rollout, scored: Rollout | None, play: Player) -> Rollout:
        if self._policy is None:
            raise ConfigurationError("FirstBadLine has no policy: call meet(policy) first")
        lines = lines_in(rollout.completion)
        if scored is None or not rollout.is_scored or not lines:
            return rollout
        ends = self._policy.template.places(rollout.turns[-1].whole)
        tokens = last_tokens(lines, ends)
        bad, places = len(lines), 0  # lines before number `bad` are good
        if not is_right(scored):
            good, bad = 0, len(lines) - 1
            while good < bad:
                middle = (good + bad) // 2
                places += 1
                if await self._can_pass(rollout, tokens[middle] + 1, play):
                    good = middle + 1
                else:
                    bad = middle
        labels = {line.number: 1.0 if place < bad else -1.0 for place, line in enumerate(lines)}
        row = label_row(labels, rollout.completion, ends, rollout.turns[-1].num_prefix)
        facts = {_PLACES: float(places), _GOOD: bad / len(lines)}
        return replace(rollout, turns=noted(rollout.turns, LABEL, row), facts=rollout.facts | facts)

    async def _can_pass(self, rollout: Rollout, size: int, play: Player) -> bool:
        """Whether any completion of the first `size` tokens passes; those that the environment failed do not count."""
        prefix = as_prefix(cut(rollout.turns, size))
        starts = [play.another(turns=prefix, origin=Origin.BRANCHED, parent=rollout.id) for _ in range(self.samples)]
        made = await together(play(start) for start in starts)
        return any(scored is not None and is_right(scored) for scored in await play.score(made))


# Critic initialized from another run's value model (2410.17621): here the line judge.


@dataclass
class InitializedCritic(Critic):
    """PPO's critic, initialized from `checkpoints/step-N/values` of another run; empty folder: as `Critic`."""

    folder: FilePath = ""

    def open(self, model: Path, seed: int) -> None:
        super().open(model, seed)
        if self.folder:
            self._ready().model.load(Path(self.folder) / "critic_weights.safetensors")


def prm_code(
    setting: Setting = Setting(env="programs:2+programs:3"),
    judge: str = "",  # checkpoints/step-N/values of the first run; empty: this is the first run
    samples: int = 4,  # completions per prefix, in the first run
    weight: float = 0.25,  # weight of the line rewards; the tests have 1
    clip: float = 0.2,  # PPO clip range of the importance ratio
    warmup_steps: int = BundledOnly(30),  # supervised warm-up steps before RL
) -> Run:
    """Without `judge` the line judge is trained and the policy is frozen."""
    tests = PassedTests(trials=Trials(setting.isolation))
    if judge:
        parts = {"values": InitializedCritic(device=setting.device, folder=judge), "minibatches": 2}
        run = setting.run("prm_code", Gae(), (Clip(clip, clip),), reward_seconds=60.0, **parts)
        run.rewards = (tests, JudgedLines(LineScores(judge, setting.model, setting.device), weight))
    else:
        parts = {"values": LineJudge(device=setting.device), "strategy": FirstBadLine(samples)}
        run = setting.run("prm_code", Constant(), (Reinforce(weight=0.0),), reward_seconds=60.0, **parts)
        run.rewards = (tests,)
    run.warmup = shown(setting, "prm_code", warmup_steps)
    return run
