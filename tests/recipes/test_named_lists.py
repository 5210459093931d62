"""Named parts of which a recipe has several: experts with prices, and the roles of a team."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from strop.capabilities import inside
from strop.environments.tools.paid_experts import AskedExperts
from strop.environments.tools.toolbox import Toolbox
from strop.errors import ConfigurationError
from strop.generate.llm_clients.named import Named, taken
from strop.launch.checks.preflight import check
from strop.launch.running.asking import ask_parts
from strop.recipes import build, recipe_named
from strop.recipes.agent.router_r1 import Routed
from strop.run import Run
from strop.types import Message, ToolCall
from tests.generate.llm_clients.serving import Server, serving

SIZES = {"steps": 2, "groups_per_step": 2, "group_size": 4, "max_tokens": 6, "heldout_tasks": 1, "heldout_every": 0}


def table(folder: Path) -> str:
    path = folder / "own.jsonl"
    rows = [{"prompt": f"Tom has {n} marbles and buys 7 more. How many?", "answer": str(n + 7)} for n in range(40)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def routed(folder: Path, server: Server) -> Run:
    address = server.url.rstrip("/")
    experts = f"small:1={address}#a, large:16={address}#b"
    return build(recipe_named("router_r1"), {"env": table(folder), "experts": experts, **SIZES})


def test_experts_are_models_with_prices_on_a_users_own_table(tmp_path: Path) -> None:
    with serving() as server:
        server.says = lambda text: "<think>ten and seven</think>It is 17."
        run = routed(tmp_path, server)
        check(run)
        ask_parts(run)
        assert {each["model"] for each in server.asked} == {"a", "b"}, "each is asked once before the run"
        assert all("Tom has" in each["messages"][-1]["content"] for each in server.asked)
        said = asyncio.run(_called(run, "large", "10+7?"))
    assert said == "It is 17." and server.asked[-1]["model"] == "b"
    (tool,) = inside(run.envs, AskedExperts)
    assert "small: price 1; large: price 16" in tool.description
    (reward,) = run.rewards
    assert isinstance(reward, Routed) and reward.prices == {"small": 1.0, "large": 16.0}
    counted = taken(inside(run.envs, Named))
    assert counted["experts/asked"] == 1.0 and counted["experts/failed"] == 0.0


async def _called(run: Run, expert: str, question: str) -> str:
    (env,) = inside(run.envs, Toolbox)
    episode = env.episode()
    await episode.reset(env.task(0))
    call = ToolCall("ask", json.dumps({"expert": expert, "question": question}))
    answer = await episode.step(Message("assistant", "", (call,)))
    return answer.messages[0].content


def test_an_expert_that_does_not_answer_is_refused_by_its_name(tmp_path: Path) -> None:
    with serving() as server:
        server.answers = [401] * 9
        with pytest.raises(ConfigurationError, match=r"experts=large:16=http\S+#b: .*status 401"):
            ask_parts(routed(tmp_path, server))


@pytest.mark.parametrize(
    ("experts", "message"),
    [
        ("http://127.0.0.1:1/v1#m", "need experts=NAME=PART, several of different names"),
        ("a:1=http://127.0.0.1:1/v1#m,a:2=http://127.0.0.1:1/v1#n", None),
        ("a=http://127.0.0.1:1/v1#m", "need experts=NAME:PRICE=PART, as in small:1=PART"),
        ("a:1=http://127.0.0.1:1/v1#m,b:1=http://127.0.0.1:1/v1#n", "their prices are equal, so nothing can be saved"),
    ],
)
def test_experts_need_names_and_prices(experts: str, message: str | None, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message or "experts need different names"):
        build(recipe_named("router_r1"), {"env": table(tmp_path), "experts": experts})


def test_a_table_without_experts_is_refused_with_what_supplies_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no experts with prices: name them, each with its price: experts="):
        check(build(recipe_named("router_r1"), {"env": table(tmp_path)}))
