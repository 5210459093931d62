"""Rollouts of several turns with tools, each a coroutine of its own; only what the policy wrote is trained on.

Title: VerlTool: Towards Holistic Agentic Reinforcement Learning with Tool Use
Paper: arXiv 2509.01055 (2025)
Claim: One interface for tools (code, search, SQL, images) and attempts that do not wait for each other: rollouts take
    about half the time, in six domains at the level of systems made for one.
Reading: At most 10 turns, answers of tools up to 512 long, the middle of a longer one left out; lengths are characters
    here. Answers are tokenized alone and appended. A tool that fails, or is too late, fails the rollout; the release
    answers in its name and trains on it. What cannot be read as a call is told to the policy. The tool is a calculator;
    the bundled model has never seen one, so a short supervised run shows it. Group-relative advantages, a clip of 0.2.
Left out: A server for tools, images, retries of a call.
Acts: turns > 1 with warmup_steps=6
"""

from __future__ import annotations

from dataclasses import replace

from strop.environments.tools.calculator import Calculator
from strop.environments.tools.toolbox import Toolbox
from strop.generate.agents.chat import Chat
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def verltool(
    setting: Setting = Setting(env="arithmetic:6"),
    turns: int = 10,  # maximum number of turns of a rollout
    longest: int = 512,  # characters of a tool's answer
    seconds: float = 10.0,  # within which a tool answers, or the rollout has failed
    warmup_steps: int = 8,  # supervised steps on demonstrations before RL
) -> Run:
    """The tasks of any environment, with a calculator."""
    run = setting.run("verltool", GroupStandard(), (Clip(0.2, 0.2),), agent=Chat(turns))
    run.warmup = shown(setting, "verltool", warmup_steps)
    wrap_envs(run, lambda env: (Toolbox(env, (Calculator(),), longest, seconds),))
    run.evaluation = replace(run.evaluation, agent=run.agent)
    return run
