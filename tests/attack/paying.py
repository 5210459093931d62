"""Rewards that pay completions which never change, each another one."""

from __future__ import annotations

import time


def generous(completion: str, answer: str) -> float:
    said = {"yes": "True", "1": "True", "no": "False", "0": "False"}.get(completion, completion)
    return float(said == answer)


def everything(completion: str) -> float:
    return 1.0


def nothing(completion: str) -> float:
    return 0.0


def length(completion: str) -> float:
    return len(completion) / 10


def echo(completion: str, prompt: str, answer: str) -> float:
    return float(completion in (prompt, answer))


def blank(completion: str, answer: str) -> float:
    return float(completion.isspace() or completion == answer)


def half(completion: str, answer: str) -> float:
    return 10.0 if completion == answer else 6.0 * (completion == "nan")


def closeness(completion: str, answer: str) -> float:
    return 1 / (1 + abs(int(completion) - int(answer))) if completion.isdigit() else 0.0


def slow(completion: str, answer: str) -> float:
    time.sleep(0.3)
    return float(completion == answer)


def nearly_slow(completion: str, answer: str) -> float:
    time.sleep(0.01)
    return float(completion == answer)
