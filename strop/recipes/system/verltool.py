"""VerlTool: GRPO on asynchronous multi-turn rollouts with tools, with loss on the policy's own tokens only.

Title: VerlTool: Towards Holistic Agentic Reinforcement Learning with Tool Use
Paper: arXiv 2509.01055 (2025)
Claim: One interface for tools (code, search, SQL, images) and rollouts that do not wait for each other and take
    about half the time, in six domains at the level of systems made for one.
Reading: At most 10 turns; tool results of up to 512, without the middle of longer ones; lengths are in characters
    here. Tool results are tokenized alone and appended. A tool that fails or exceeds its time limit fails the
    rollout; the release returns an error message and trains on it. A malformed tool call is reported to the policy.
    The tool is a calculator. The bundled model has never seen one, so a short supervised run on demonstrations comes
    first. Group-relative advantages, clip range 0.2.
Left out: A tool server, images, retries of a call.
Acts: turns > 1 with warmup_steps=6
Break: turns=1: a tool is never answered
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.tools.calculator import Calculator
from strop.environments.tools.toolbox import Toolbox
from strop.generate.agents.chat import Chat
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


@dataclass(frozen=True)
class OfferedTools(Toolbox):
    """Tasks with tools that the model must be shown."""

    calls_tools: ClassVar[bool] = True


def verltool(
    setting: Setting = Setting(env="arithmetic:6"),
    turns: int = 10,  # maximum number of turns of a rollout
    longest: int = 512,  # maximum characters of a tool result
    seconds: float = 10.0,  # time limit of a tool call, after which the rollout fails
    warmup_steps: int = BundledOnly(8),  # supervised steps on demonstrations before RL
) -> Run:
    """GRPO on the tasks of any environment, with a calculator."""
    run = setting.run("verltool", GroupStandard(), (Clip(0.2, 0.2),), agent=Chat(turns))
    run.warmup = shown(setting, "verltool", warmup_steps)
    wrap_envs(run, lambda env: (OfferedTools(env, (Calculator(),), longest, seconds),))
    run.evaluation = replace(run.evaluation, agent=run.agent)
    return run
