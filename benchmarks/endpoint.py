"""What the endpoint costs: processor time of a turn, with many rollouts of once, beside an engine that costs nothing.

    python benchmarks/endpoint.py [--rollouts 256] [--turns 30] [--json] [--save NAME]

Clients in a process of their own play rollouts of so many turns, each sending the whole conversation back with other
white space in its calls. The engine answers at once, so what is left is ours: HTTP, finding the turn, tokens of what is
new, the answer. `ratio` is the 2 ms that are wanted over the milliseconds of a turn. The share of a core is that of
rollouts which take a turn every 10 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import circumstances, output_arguments, publish

sys.path.insert(0, str(Path(__file__).parent.parent))

from strop.backends import Completion, Stop, WeightVersion
from strop.generate.policy import Policy
from strop.generate.serve.rollout_access import Rollouts
from strop.generate.serve.server import Door
from strop.generate.templates.chat_template import Template
from strop.models.loading.model_names import model_folder
from strop.roles import Engine
from strop.types import IntArray, Message, Sampling, Start, Task

WANTED = 2.0  # milliseconds
ADMISSION = 10.0  # seconds between two turns of a rollout
_TASK = Task((Message("user", "sum red blue"),), "", "endpoint")
_CLIENTS = """
import asyncio, json, sys
host, port, turns, keys = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.load(sys.stdin)
TOOLS = [{"type": "function", "function": {"name": "get", "parameters": {"properties": {"key": {}}}}}]
async def asked(reader, writer, key, messages):
    body = json.dumps({"model": "policy", "messages": messages, "tools": TOOLS}).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", "host: localhost", f"authorization: Bearer {key}"]
    writer.write("\\r\\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body)
    lines = (await reader.readuntil(b"\\r\\n\\r\\n")).decode().lower()
    size = int(lines.split("content-length: ")[1].split("\\r\\n")[0])
    return json.loads(await reader.readexactly(size))["choices"][0]["message"]
async def rollout(key):
    reader, writer = await asyncio.open_connection(host, port)
    messages = [{"role": "user", "content": "sum red blue"}]
    for turn in range(turns):
        message = await asked(reader, writer, key, messages)
        for call in message["tool_calls"]:
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), indent=1)
        messages += [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": str(turn)}]
    writer.close()
async def main(): await asyncio.gather(*map(rollout, keys))
asyncio.run(main())
"""


@dataclass
class Instant(Engine):
    """Always the same call, at once."""

    tokens: IntArray

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        count = len(self.tokens)
        return Completion(self.tokens, np.zeros(count, np.float32), np.zeros(count, np.int64), Stop.STOP)

    def open(self, model: Path) -> None: ...
    async def load(self, version: WeightVersion) -> str:
        return version.fingerprint

    def forget(self) -> None: ...
    def abort(self, key: int) -> None: ...


async def measure(num_rollouts: int, turns: int) -> dict[str, Any]:
    """Processor and wall milliseconds of a turn, and what became of the conversations."""
    template = Template.load(model_folder("pocket"))
    engine = Instant(np.append(template.encode_completion("<call>get red</call>"), template.end))
    policy = Policy(template, engine, Sampling(max_tokens=64), 1 << 16)
    rollouts = Rollouts()
    door = Door(rollouts)
    host, port = (await door.open()).removeprefix("http://").split(":")
    talks = [policy.dialogue(_TASK, Start(str(number), number)) for number in range(num_rollouts)]
    admitted = dict(rollouts.admit(talk) for talk in talks)
    with tempfile.TemporaryFile("w+") as keys:
        keys.write(json.dumps(list(admitted)))
        keys.seek(0)
        begun, used = time.perf_counter(), time.process_time()
        clients = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _CLIENTS, host, port, str(turns), stdin=keys, stdout=subprocess.DEVNULL
        )
        assert await clients.wait() == 0
        wall, used = time.perf_counter() - begun, time.process_time() - used
    await door.close()
    made = num_rollouts * turns
    each = 1000 * used / made
    breaks = sum(visit.served.contexts - 1 + visit.served.branches for visit in admitted.values())
    repaired = sum(visit.served.repaired for visit in admitted.values())
    assert sum(len(talk.turns) for talk in talks) == made
    return {
        "rollouts": num_rollouts,
        "turns": turns,
        "milliseconds": each,
        "wall_milliseconds": 1000 * wall / made,
        "share_of_a_core": each / 1000 * num_rollouts / ADMISSION,
        "breaks": breaks,
        "repaired": repaired,
        "ratio": WANTED / each,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=256)
    parser.add_argument("--turns", type=int, default=30)
    output_arguments(parser)
    arguments = parser.parse_args()
    measured = asyncio.run(measure(arguments.rollouts, arguments.turns))
    result = {"benchmark": "endpoint", **measured, **circumstances("cpu")}
    rows = [
        f"| {result['rollouts']} | {result['turns']} | {result['milliseconds']:.2f} | {result['share_of_a_core']:.1%} |"
        f" {result['breaks']} | {result['repaired']} |"
    ]
    head = ["| rollouts | turns of each | ms of a turn | of a core, a turn every 10 s | breaks | repaired |"]
    publish(result, "\n".join([*head, "|---|---|---|---|---|---|", *rows]), arguments)


if __name__ == "__main__":
    main()
