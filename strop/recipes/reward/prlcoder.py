"""PRLCoder: PPO with line-level process rewards learned from teacher-mutated programs labelled by tests.

Title: Process-Supervised Reinforcement Learning for Code Generation
Paper: arXiv 2502.01715 (2025)
Claim: Better than RL with outcomes alone, above all where programs are long.
Reading: Only the abstract was found, the rest is ours. Run it twice: the first run trains the line judge, with the
    policy frozen, on programs with one line refactored or mutated, good if all tests pass. In the second run `judge`,
    the first one's `checkpoints/step-N/values`, rewards each line, and the tests reward the end. Rules stand in for the
    teacher. Line rewards are divided by the number of lines, which bounds their sum. A short supervised warm-up comes
    first.
Left out: A model of its own kind for the judge: it has the policy's architecture.
Acts: fact/good_lines < 1 and line_labels > 0 and value_grad_norm > 0 with warmup_steps=1, steps=1
Break: strategy.share=0: no line of a known program is rewritten
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.concurrency import together
from strop.environments.code.cases import cases_of
from strop.environments.code_execution import Trials
from strop.environments.needs import PROGRAMS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.judges.code_lines import LABEL, label_row, lines_in
from strop.filter.rewards.line_prm import JudgedLines
from strop.filter.rewards.unit_tests import PassedTests
from strop.generate.policy import Policy
from strop.generate.turn_ops import noted
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Agent, Dialogue, Episode, Player, Strategy
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.constant import Constant
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.losses.reinforce import Reinforce
from strop.training.values.critic import Critic
from strop.training.values.line_judge import LineJudge
from strop.training.values.line_scores import LineScores
from strop.types import Group, Message, Origin, Rollout, Start, Task

# A teacher's change of one line of a program (2502.01715), by rules here: a refactoring or a small mistake.
#
# Tests decide whether the program is still right: some mistakes change nothing.

_NUMBER = re.compile(r"\d+")
_SUM = re.compile(r"\bx([+*])(\d+)")
_WORKED = re.compile(r"^(\s*(?:return |\w+ ?= ?(?!=)))(.+)$")
_SWAPPED = {"+": "-", "-": "+", "*": "+", "%": "*", ">": "<"}
_SIGN = re.compile(r"(?<=[xi])[+\-*%>](?=\d)")
_OTHERS = {
    " + ": " - ", " - ": " + ", " * ": " + ", " // ": " / ", " % ": " * ", " < ": " <= ", " > ": " >= ", " <= ": " < ",
    " >= ": " > ", " == ": " != ", " != ": " == ", " and ": " or ", " or ": " and ", "True": "False", "False": "True",
    "min(": "max(", "max(": "min(",
}  # fmt: skip
_HEADS = ("def ", "class ", "import ", "from ", "@", "#", '"', "'")  # lines that are never changed


def refactored(line: str, stream: random.Random) -> str:
    """The line written differently, with the same meaning."""
    turned = _SUM.sub(r"\2\1x", line, count=1)
    worked = _WORKED.match(line)
    bracketed = f"{worked[1]}({worked[2]})" if worked and _is_expression(worked[2]) else line
    return stream.choice([each for each in (turned, bracketed) if each != line] or [line])


def mutated(line: str, stream: random.Random) -> str:
    """The line with a number or an operator changed; a line with neither returns or assigns x."""
    ways: list[Callable[[str], str]] = []
    if _NUMBER.search(line):
        ways.append(lambda text: _NUMBER.sub(lambda found: str(int(found.group()) + 1), text, count=1))
    if _SIGN.search(line):
        ways.append(lambda text: _SIGN.sub(lambda found: _SWAPPED[found.group()], text, count=1))
    if not ways:
        ways += [_swapping(old, new) for old, new in _OTHERS.items() if old in line]
    if not ways and _WORKED.search(line):
        ways.append(lambda text: _WORKED.sub(r"\1x", text, count=1))
    return stream.choice(ways)(line) if ways else line


def _swapping(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def rewritten(program: str, key: int) -> tuple[str, int]:
    """The program with one line of its body refactored or mutated, 1/2 each, and the number of that line."""
    stream = random.Random(key)
    lines = program.split("\n")
    code = [at for at, line in enumerate(lines) if line.strip() and not line.strip().startswith(_HEADS)]
    at = stream.choice([at for at in code if at > 0] or list(range(len(lines))))
    lines[at] = (mutated if stream.random() < 0.5 else refactored)(lines[at], stream)
    return "\n".join(lines), at + 1


# Labels for lines of known programs (2502.01715): a teacher rewrites one line, and tests decide its label.
#
# Reading, since only the abstract was found: the line is good if all tests still pass and bad otherwise. Lines before
# it are good; lines after a bad line have no label.

_GOOD = "good_lines"


@dataclass(frozen=True)
class Recite(Agent):
    """Fixed completion to any task, with the environment's reward for it."""

    text: str
    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await episode.reset(task)
        dialogue.say(message := Message("assistant", self.text))
        return ((await episode.step(message)).reward or 0.0,)


@dataclass
class RewrittenLines(Strategy):
    """Rollouts of the task's own program with one line rewritten, with labels of its lines in `Turn.aux`."""

    share: float = 1.0  # of rollouts in which a line is rewritten; the others recite the program

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (PROGRAMS,)

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        known = cases_of(group.task).solution
        chosen = [random.Random(f"{start.key}/rewritten").random() < self.share for start in starts]
        texts = [
            rewritten(known, s.key) if is_changed else (known, 0) for s, is_changed in zip(starts, chosen, strict=True)
        ]
        rollouts = await together(play(start, Recite(text)) for start, (text, _) in zip(starts, texts, strict=True))
        scores = await play.score(rollouts)
        rows = zip(rollouts, scores, texts, strict=True)
        return [self._labelled(rollout, scored, number) for rollout, scored, (_, number) in rows]

    def _labelled(self, rollout: Rollout, scored: Rollout | None, number: int) -> Rollout:
        if self._policy is None:
            raise ConfigurationError("RewrittenLines has no policy: call meet(policy) first")
        if scored is None or not rollout.is_scored:
            return rollout
        has_passed = is_right(scored)
        lines = [line.number for line in lines_in(rollout.completion)]
        labels = {each: 1.0 for each in lines if has_passed or each < number}
        labels |= {number: 1.0 if has_passed else -1.0} if number in lines else {}
        row = label_row(labels, rollout.completion, self._policy.template.places(rollout.turns[-1].whole))
        good = sum(label > 0 for label in labels.values()) / max(len(labels), 1)
        return replace(rollout, turns=noted(rollout.turns, LABEL, row), facts=rollout.facts | {_GOOD: good})


def prlcoder(
    setting: Setting = Setting(env="programs:2+programs:3"),
    judge: str = "",  # checkpoints/step-N/values of the first run; empty: this is the first run
    weight: float = 1.0,  # weight of the line rewards; the tests have 1
    clip: float = 0.2,  # PPO clip range of the importance ratio
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
    warmup_steps: int = BundledOnly(30),  # supervised warm-up steps before RL
) -> Run:
    """Without `judge` the line judge is trained and the policy is frozen."""
    tests = PassedTests(trials=Trials(setting.isolation))
    if judge:
        parts = {"values": Critic(device=setting.device), "minibatches": 2}
        run = setting.run("prlcoder", Gae(), (Clip(clip, clip), Kl("k2", kl)), reward_seconds=60.0, **parts)
        run.rewards = (tests, JudgedLines(LineScores(judge, setting.model, setting.device), weight))
    else:
        parts = {"values": LineJudge(device=setting.device), "strategy": RewrittenLines()}
        run = setting.run("prlcoder", Constant(), (Reinforce(weight=0.0),), reward_seconds=60.0, **parts)
        run.rewards = (tests,)
    run.warmup = shown(setting, "prlcoder", warmup_steps)
    return run
