"""Explanation of a run's status: which part waits for which and for how long, in one sentence and in a few lines."""

from __future__ import annotations

from typing import Any

_SHOWN = 8  # groups


def sentence(status: dict[str, Any]) -> str:
    """What the run is doing or waiting for."""
    training, waiting, running = status["loops"].get("training"), status["waiting"], status["num_running"]
    if training is None:
        return "the run is being opened"
    since = _seconds(training["seconds"])
    if training["what"] == "waits for groups":
        return _waiting(status)
    if training["what"] == "trains":
        return f"step {status['step'] + 1} has been training for {since}; {running} groups run, {waiting} wait for it"
    doing = {"publishes": "been on their way to the engines", "evaluates": "been tried on held-out tasks"}
    return f"the weights have {doing.get(training['what'], 'been written to disk')} for {since}"


def _waiting(status: dict[str, Any]) -> str:
    """Training has nothing to do: whose fault is it?"""
    missing = status["groups_per_step"] - status["waiting"]
    count = f"{missing} group{'s' if missing > 1 else ''}" if missing > 0 else "older groups, or they exceed the lag"
    if not status["groups"]:
        generation = status["loops"].get("generation", {"what": "has not begun", "seconds": 0.0})
        return f"training waits for {count}; none is running: generation {generation['what']}"
    oldest = status["groups"][0]
    subject, seconds = blocked_on(oldest)
    waited = f"has waited {_seconds(seconds)} for {subject}"
    return f"training waits for {count}; the oldest, group {oldest['number']}, {waited}"


def blocked_on(group: dict[str, Any]) -> tuple[str, float]:
    """Whom a group waits for, and how long it has."""
    if group["what"] == "rewards":
        return "its rewards", group["seconds"]
    if group["in_env"]:
        return "its environment", max(group["in_env"].values())
    return "an engine", group["seconds"]


def lines(status: dict[str, Any]) -> list[str]:
    """The state of each loop, then the groups in flight, the oldest first."""
    told = [f"step {status['step']} of {status['steps']}, {status['waiting']} groups kept and waiting to be trained"]
    told += [f"{who} {at['what']}, for {_seconds(at['seconds'])}" for who, at in status["loops"].items()]
    told += [f"{name} {value}" for name, value in status["engine"].items()]
    told += [f"nothing has moved for {_seconds(status['still_seconds'])}"] if status["still_seconds"] >= 5 else []
    told.append(f"{status['num_running']} groups in flight" + (", the oldest first:" if status["groups"] else ""))
    for group in status["groups"][:_SHOWN]:
        subject, seconds = blocked_on(group)
        age = _seconds(group["seconds"])
        in_env = f" ({len(group['in_env'])} rollouts in it)" if group["in_env"] else ""
        told.append(f"  group {group['number']}: {age} old, waits {_seconds(seconds)} for {subject}{in_env}")
    return told


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
