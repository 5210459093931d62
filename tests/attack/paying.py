"""Rewards that pay completions which never change, each another one."""

from __future__ import annotations

import time


def generous(reply: str, answer: str) -> float:
    said = {"yes": "True", "1": "True", "no": "False", "0": "False"}.get(reply, reply)
    return float(said == answer)


def everything(reply: str) -> float:
    return 1.0


def nothing(reply: str) -> float:
    return 0.0


def length(reply: str) -> float:
    return len(reply) / 10


def echo(reply: str, prompt: str, answer: str) -> float:
    return float(reply in (prompt, answer))


def blank(reply: str, answer: str) -> float:
    return float(reply.isspace() or reply == answer)


def half(reply: str, answer: str) -> float:
    return 10.0 if reply == answer else 6.0 * (reply == "nan")


def closeness(reply: str, answer: str) -> float:
    return 1 / (1 + abs(int(reply) - int(answer))) if reply.isdigit() else 0.0


def slow(reply: str, answer: str) -> float:
    time.sleep(0.3)
    return float(reply == answer)


def nearly_slow(reply: str, answer: str) -> float:
    time.sleep(0.01)
    return float(reply == answer)
