"""The task and the tools of the key-value environment, for programs that know nothing else of strop."""

import json
import os
import sys
import urllib.request

MOST_TURNS = 8
_TOLD = json.load(sys.stdin)
TASK = _TOLD["messages"][-1]["content"]
_is_over = False


def get(key: str) -> str:
    """Look up a number.

    Args:
        key: what it is stored under
    """
    return _step(f"<call>get {key}</call>")


def set(key: str, value: str) -> str:
    """Store a number.

    Args:
        key: what to store it under
        value: the number
    """
    return _step(f"<call>set {key} {value}</call>")


def finish(completion: str) -> None:
    """The answer, for the environment to judge."""
    _step(completion)


def _step(content: str) -> str:
    global _is_over
    if _is_over:
        return "error: the task is over"
    head = {"authorization": "Bearer " + _TOLD["episode_key"]}
    body = json.dumps({"content": content}).encode()
    with urllib.request.urlopen(
        urllib.request.Request(os.environ["STROP_URL"] + "/rollout/step", body, head)
    ) as answer:
        told = json.load(answer)
    _is_over = told["done"]
    return "\n".join(message["content"] for message in told["messages"])
