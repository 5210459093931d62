"""Programs of other people are trained as they are: each plays a tool task through the endpoint, and a step is taken.

Run by `make clients` where they are installed; a client that is not there is skipped. Clients that send no words of
their own are played by the bundled model; the others by one that writes what it is told (`dictated.py`).
"""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from strop.cli.models import find_model
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.types import Rollout
from tests.generate.serve.dictated import Clerk, Dictated, save_obedient
from tests.tiny_models import load_reference, reference_logprobs

pytestmark = pytest.mark.clients
pytest.importorskip("uvicorn")
PROGRAMS = Path(__file__).parent / "programs"
STEPS, SIZE, CONTEXT = 2, 2, 8192


def call(name: str, **given: str) -> str:
    """As no client would spell it."""
    words = ",  ".join(f'"{key}" :"{value}"' for key, value in given.items())
    return f'<tool_call>\n{{"name": "{name}", "arguments":{{{words}}}}}\n</tool_call>'


GET, SET = call("get", key="{key}"), call("set", key="{key}", value="{value}")
RESULT = r"tool\n(\d+|ok)(?=<)"


@dataclass(frozen=True)
class Client:
    """A package, its program, who plays and how many contexts a rollout has."""

    package: str
    words: str
    clerk: Clerk | None = None
    contexts: int = 1  # 0: one for each turn, since the client rewrites what was said


CLIENTS = {
    "litellm": Client("litellm", "with_litellm.py"),
    "litellm, streamed": Client("litellm", "with_litellm.py stream"),
    "openai-agents, chat": Client("agents", "with_openai_agents.py"),
    "openai-agents, responses": Client("agents", "with_openai_agents.py responses"),
    "openai-agents, a handoff": Client(
        "agents",
        "with_openai_agents.py handoff",
        Clerk(RESULT, GET, SET, "{value}", call("transfer_to_clerk"), "transfer_to_clerk"),
        contexts=2,
    ),
    "langgraph": Client("langchain_openai", "with_langgraph.py"),
    "langgraph, messages": Client("langchain_anthropic", "with_langgraph.py anthropic"),
    "pydantic-ai": Client("pydantic_ai", "with_pydantic_ai.py"),
    "verifiers": Client("verifiers", "with_verifiers.py"),
    "smolagents, calls": Client(
        "smolagents",
        "with_smolagents.py",
        Clerk(
            r"Observation:\n(\d+|ok)",
            GET,
            call("put", key="{key}", value="{value}"),
            call("final_answer", answer="{value}"),
        ),
        contexts=0,
    ),
    "smolagents, code": Client(
        "smolagents",
        "with_smolagents.py code",
        Clerk(
            r"Last output from code snippet:\n(\d+|ok)",
            "Thought: look\n<code>\nget('{key}')\n</code>",
            "<code>\nput('{key}', '{value}')\n</code>",
            "<code>\nfinal_answer('{value}')\n</code>",
        ),
        contexts=0,
    ),
    "mini-swe-agent": Client(
        "minisweagent",
        "with_mini_swe_agent.py",
        Clerk(
            r"<output>\n(\d+|ok)",
            "I look." + call("bash", command="get {key}"),
            call("bash", command="set {key} {value}"),
            call("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo {value}"),
        ),
    ),
    "mini-swe-agent, text": Client(
        "minisweagent",
        "with_mini_swe_agent.py text",
        Clerk(
            r"<output>\n(\d+|ok)",
            "I look.\n```mswea_bash_command\nget {key}\n```",
            "```mswea_bash_command\nset {key} {value}\n```",
            "```mswea_bash_command\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo {value}\n```",
        ),
    ),
    "claude-agent-sdk": Client(
        "claude_agent_sdk",
        "with_claude_agent_sdk.py",
        Clerk(
            RESULT,
            call("mcp__store__get", key="{key}"),
            call("mcp__store__set", key="{key}", value="{value}"),
            "{value}",
        ),
    ),
}


@pytest.fixture(scope="module")
def obedient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_obedient(tmp_path_factory.mktemp("obedient"), CONTEXT)


def run_of(client: Client, obedient: Path) -> Run:
    program, *words = client.words.split()
    sizes = {"steps": STEPS, "groups_per_step": 1, "group_size": SIZE, "heldout_tasks": 1, "learning_rate": 1e-4}
    more: dict[str, Any] = {"command": shlex.join([sys.executable, str(PROGRAMS / program), *words])}
    more |= {"model": str(obedient), "max_tokens": 512} if client.clerk else {}
    run = build(recipe_named("polar"), {"env": "keyvalue:3", "isolation": "process", "seed": 1} | sizes | more)
    run.checkpoint_every = 1
    run.agent.memory = 1 << 40  # type: ignore[attr-defined] # what some reserve, not what they use
    if client.clerk:
        run.engine, run.context = Dictated(client.clerk), CONTEXT  # type: ignore[arg-type]
    return run


@pytest.mark.parametrize("name", CLIENTS)
def test_a_program_is_trained_as_it_is(name: str, obedient: Path, tmp_path: Path) -> None:
    client = CLIENTS[name]
    if find_spec(client.package) is None:
        pytest.skip(f"{client.package} is not installed")
    run = run_of(client, obedient)
    launch(run, tmp_path, "run")
    rollouts, metrics = made_in(tmp_path / "run")
    assert [each.error for each in rollouts] == [""] * STEPS * SIZE
    assert min(len(each.turns) for each in rollouts) > 1 and sum(row["grad_norm"] > 0 for row in metrics) > 0
    sampled = sum(len(turn.tokens) for each in rollouts for turn in each.turns)
    assert metrics[-1]["tokens_generated"] == metrics[-1]["tokens_trained"] == sampled
    assert moved(find_model(str(run.model)), tmp_path / "run"), "a step changes weights"
    models = [load_reference(find_model(str(run.model)))]
    models += [load_reference(tmp_path / f"run/checkpoints/step-{n}") for n in range(1, STEPS)]
    assert max(furthest(each, models) for each in rollouts) < 1e-5
    served = {
        key: sum(row[f"served/{key}"] for row in metrics) for key in ("turns", "contexts", "branches", "repaired")
    }
    print(f"\n{name}: {served}")
    assert served["turns"] == sum(len(each.turns) for each in rollouts) and served["branches"] == 0
    assert served["contexts"] == (STEPS * SIZE * client.contexts or served["turns"]), served


def made_in(folder: Path) -> tuple[list[Rollout], list[dict[str, float]]]:
    """Rollouts and metrics of a run, of whose tokens none is trained twice."""
    ledger = Ledger(folder / "ledger.db", read_only=True)
    assert ledger.violations() == [] and ledger.trained_more_than_once() == 0
    rollouts = [each for number in range(STEPS) for each in ledger.group(number).rollouts]
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return rollouts, [row for row in rows if "grad_norm" in row]


def moved(model: Path, run: Path) -> bool:
    before, after = (load_file(folder / "model.safetensors") for folder in (model, run / "checkpoints" / "step-1"))
    return any(not torch.equal(before[name], after[name]) for name in before)


def furthest(rollout: Rollout, models: list[Any]) -> float:
    """The largest difference between a token's logprob and that under the version that wrote it, asked again."""
    context, most = list[int](), 0.0
    for turn in rollout.turns:
        context = ([] if turn.fresh else context) + turn.prompt.tolist()
        whole = context + turn.tokens.tolist()
        (version,) = set(turn.versions.tolist())
        logprobs = reference_logprobs(models[version], whole)[len(context) - 1 : -1]
        own = logprobs.gather(1, torch.as_tensor(turn.tokens)[:, None])[:, 0]
        most, context = max(most, float((own - torch.as_tensor(turn.logprobs)).abs().max())), whole
    return most
