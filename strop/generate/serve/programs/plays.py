"""A harness in the smallest sense: a loop around chat completions that plays in the task's world.

It knows nothing of strop but three addresses; write your own after it, with whatever client you like.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

_KEY = os.environ.get("OPENAI_API_KEY", "")


def _post(url: str, body: dict[str, Any]) -> Any:
    head = {"authorization": f"Bearer {_KEY}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head)) as answer:
        return json.load(answer)


def main() -> None:
    messages = json.load(sys.stdin)["messages"]
    policy, world = os.environ["OPENAI_BASE_URL"] + "/chat/completions", os.environ["STROP_URL"] + "/attempt/step"
    while True:
        made = _post(policy, {"model": "policy", "messages": messages})
        reply = made["choices"][0]["message"].get("content") or ""
        answer = _post(world, {"content": reply})
        if answer["done"]:
            return
        messages += [{"role": "assistant", "content": reply}, *answer["messages"]]


if __name__ == "__main__":
    main()
