"""Roles: the interfaces of everything that can be plugged in; a mechanism is a dataclass that implements a role."""

from __future__ import annotations

from strop.roles.compute import Channel, Engine, Trainer, View
from strop.roles.extensions import Asks, CountsUnread, Guidance, HealthRule, Instrument, Tracker
from strop.roles.pipeline_roles import (
    Admission,
    Advantage,
    Agent,
    Budget,
    Buffer,
    Correction,
    Environment,
    Episode,
    Gate,
    LLMClient,
    Loss,
    PassRateEstimator,
    Reduction,
    Reward,
    Sampler,
    StepScale,
    Strategy,
    TaskGenerator,
    ValueModel,
)
from strop.roles.rollout_interfaces import Dialogue, Player

__all__ = [
    "Admission",
    "Advantage",
    "Agent",
    "Asks",
    "Budget",
    "Buffer",
    "Channel",
    "Correction",
    "CountsUnread",
    "Dialogue",
    "Engine",
    "Environment",
    "Episode",
    "Gate",
    "Guidance",
    "HealthRule",
    "Instrument",
    "LLMClient",
    "Loss",
    "PassRateEstimator",
    "Player",
    "Reduction",
    "Reward",
    "Sampler",
    "StepScale",
    "Strategy",
    "TaskGenerator",
    "Tracker",
    "Trainer",
    "ValueModel",
    "View",
]
