"""Example of a live client: it uses the policy without reporting rewards; its messages are the only learning signal.

It asks, plays in the task's environment, and says at the end whether it is satisfied: it can add numbers, and believes
everything else.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from typing import Any


def _post(url: str, key: str, body: dict[str, Any]) -> Any:
    head = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head)) as answer:
        return json.load(answer)


def _is_wrong(question: dict[str, str], completion: str) -> bool:
    """A sum whose answer is another number."""
    found = re.search(r"([0-9]{1,9}(?:\+[0-9]{1,9})+)=", question["content"])
    return found is not None and completion.rpartition(">")[2].strip() != str(sum(map(int, found.group(1).split("+"))))


def main() -> None:
    told = json.load(sys.stdin)
    messages = told["messages"]
    policy = os.environ["OPENAI_BASE_URL"] + "/chat/completions", os.environ["OPENAI_API_KEY"]
    env = os.environ["STROP_URL"] + "/rollout/step", told["episode_key"]
    is_done = False
    while True:
        asked = {"model": "policy", "messages": messages} | ({"max_tokens": 1} if is_done else {})
        completion = _post(*policy, asked)["choices"][0]["message"].get("content") or ""
        if is_done:
            return
        answer = _post(*env, {"content": completion})
        is_done = answer["done"]
        said = answer["messages"]
        if is_done:
            said = [{"role": "user", "content": "that is wrong" if _is_wrong(messages[0], completion) else "thanks"}]
        messages += [{"role": "assistant", "content": completion}, *said]


if __name__ == "__main__":
    main()
