"""Example of an external agent: a minimal loop of chat completions and environment steps.

It depends on strop only through two addresses and their keys; use it as a template, with any client library.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any


def _post(url: str, key: str, body: dict[str, Any]) -> Any:
    head = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head)) as answer:
        return json.load(answer)


def main() -> None:
    told = json.load(sys.stdin)
    messages = told["messages"]
    policy = os.environ["OPENAI_BASE_URL"] + "/chat/completions", os.environ["OPENAI_API_KEY"]
    env = os.environ["STROP_URL"] + "/rollout/step", told["episode_key"]
    while True:
        made = _post(*policy, {"model": "policy", "messages": messages})
        completion = made["choices"][0]["message"].get("content") or ""
        answer = _post(*env, {"content": completion})
        if answer["done"]:
            return
        messages += [{"role": "assistant", "content": completion}, *answer["messages"]]


if __name__ == "__main__":
    main()
