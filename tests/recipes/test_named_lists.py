"""Named parts of which a recipe has several: experts with prices, and the roles of a team."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from strop.capabilities import inside
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.guess import Guess, parse
from strop.environments.data.heldout_split import prompt_of
from strop.environments.tools.paid_experts import AskedExperts
from strop.environments.tools.toolbox import Toolbox
from strop.errors import ConfigurationError
from strop.generate.agents.debate import Debate
from strop.generate.agents.support.episode_loop import TOLD
from strop.generate.llm_clients.named import Named, taken
from strop.generate.rollout import play
from strop.launch.checks.preflight import check
from strop.launch.running.asking import ask_parts
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.agent.mashost.agent_graph import INSTRUCTIONS, OWN_ROLES
from strop.recipes.agent.mashost.recipe import TeamBuilder
from strop.recipes.agent.router_r1 import Routed
from strop.recipes.named_parts import named_list
from strop.recipes.setting import Setting
from strop.roles import Environment
from strop.run import Run
from strop.types import Message, Outcome, Start, ToolCall
from tests.generate.llm_clients.serving import Server, serving
from tests.generate.talking import Recording, policy_of, save_folder

ADDRESS = "http://127.0.0.1:1/v1#m"

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


@pytest.mark.parametrize(
    ("recipe", "roles"), [("optima", "examiner"), ("per_role", "examiner"), ("team", "critic"), ("mashost", "judge")]
)
def test_a_role_is_played_by_a_model_that_is_asked_before_the_run(recipe: str, roles: str, tmp_path: Path) -> None:
    with serving() as server:
        server.says = lambda text: "Count once more."
        part = f"{roles}={server.url.rstrip('/')}#m"
        run = build(recipe_named(recipe), {"env": table(tmp_path), "roles": part, **SIZES})
        check(run)
        ask_parts(run)
        assert len(server.asked) == 1 and "Tom has" in server.asked[0]["messages"][-1]["content"]
        server.answers = [401] * 9
        with pytest.raises(ConfigurationError, match=rf"roles={roles}=http\S+#m: .*status 401"):
            ask_parts(run)
    with pytest.raises(ConfigurationError, match=r"need roles=NAME=PART"):
        build(recipe_named(recipe), {"roles": ADDRESS})


def test_the_last_role_and_the_solver_learn_and_are_no_other_model() -> None:
    for recipe, role in (("team", "actor"), ("optima", "solver")):
        with pytest.raises(ConfigurationError, match=f"there is no {role!r} that another model may play; valid: "):
            build(recipe_named(recipe), {"roles": f"{role}={ADDRESS}"})


def test_a_debate_with_another_model_trains_the_solvers_words_alone(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("def examiner(messages):\n    return 'It is ' + str(10 * len(messages))\n")
    env, models = Arithmetic(1), named_list("roles", f"examiner={own}:examiner", Setting())
    task, engine = env.task(0), Recording(["7|", "8|", "9|"])
    policy = policy_of(save_folder(tmp_path), engine)
    agent = Debate(2, TOLD, models=models)
    rollout = asyncio.run(play(agent, env, policy.dialogue(task, Start("0/0", 1))))
    assert [turn.message.content for turn in rollout.turns] == ["7", "8", "9"] and len(rollout.turn_rewards) == 3
    read = [policy.template.text(turn.prompt) for turn in rollout.turns]
    assert "Other agents of your team said:\nIt is 10" in read[1] and "It is 30" in read[2]
    own.write_text("def examiner(messages):\n    raise OSError('no quota')\n")
    (named,) = named_list("roles", f"examiner={own}:examiner", Setting()).values()
    lost = Debate(2, TOLD, models={"examiner": named})
    policy = policy_of(save_folder(tmp_path), Recording(["7|"]))
    rollout = asyncio.run(play(lost, env, policy.dialogue(task, Start("0/0", 1))))
    assert rollout.outcome is Outcome.FAILED and "the examiner gave no answer" in rollout.error
    assert taken([named])["roles/failed"] == 1.0  # type: ignore[list-item]


def test_a_host_that_was_never_taught_reads_what_it_may_do_and_builds_a_team_with_a_named_model(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("def says(messages):\n    return 'Add the tens first.'\n")
    env, models = Arithmetic(1), named_list("roles", f"coach={own}:says", Setting())
    roles = {**OWN_ROLES, "coach": "You are the coach of a team.\n\n{question}"}
    agent = TeamBuilder(2, roles, INSTRUCTIONS, TOLD, models)
    task, engine = env.task(0), Recording(["<think>so</think>Coach.|", "I add a solver.\n`solve 1`|", "exit|", "7|"])
    policy = policy_of(save_folder(tmp_path), engine)
    rollout = asyncio.run(play(agent, env, policy.dialogue(task, Start("0/0", 1))))
    assert [turn.sampling.policy_name for turn in rollout.turns] == ["host", "host", "host", "solve"]
    read = [policy.template.text(turn.prompt) for turn in rollout.turns]
    assert "The roles are solve, plan, check, coach; at most 2 agents" in read[0] and "Add the tens first." in read[3]
    assert len(rollout.turn_rewards) == 4
    last = Recording(["coach|", "exit|"])
    policy = policy_of(save_folder(tmp_path), last)
    rollout = asyncio.run(play(agent, env, policy.dialogue(task, Start("0/0", 1))))
    assert [turn.sampling.policy_name for turn in rollout.turns] == ["host"] * 2 and len(rollout.turn_rewards) == 2


def test_a_debate_goes_on_where_the_environment_does(tmp_path: Path) -> None:
    env = Guess(1)
    task = next(each for each in map(env.task, range(99)) if int(each.answer) > parse(prompt_of(each))[0])
    low = parse(prompt_of(task))[0]
    policy = policy_of(save_folder(tmp_path), Recording([f"{low}|", f"{low}|", f"{task.answer}|"]))
    rollout = asyncio.run(play(Debate(1), env, policy.dialogue(task, Start("0/0", 1))))
    assert [turn.sampling.policy_name for turn in rollout.turns] == ["examiner", "solver", "solver"]
    assert rollout.turn_rewards == (0.0, 0.0, 1.0)


def test_a_run_keeps_its_roles_and_acts_with_them(tmp_path: Path) -> None:
    with serving() as server:
        server.says = lambda text: "It is 12."
        part = f"examiner={server.url.rstrip('/')}#m"
        fields = {**SIZES, "env": "arithmetic:1", "roles": part, "least": -9.0, "max_tokens": 32}
        launch(build(recipe_named("optima"), fields), tmp_path, "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert sum(row.get("roles/asked", 0.0) for row in rows) >= 8 and part in (tmp_path / "run/recipe.py").read_text()


@pytest.mark.parametrize("recipe", ["autorefine", "zerosearch", "sem"])
def test_a_user_searches_texts_of_their_own_on_tasks_of_their_own(recipe: str, tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "Rome lies in Italy."}\n{"text": "Oslo lies in Norway."}\n')
    rows = tmp_path / "own.jsonl"
    rows.write_text("".join(f'{{"prompt": "{n}: where is Oslo?", "answer": "Norway"}}\n' for n in range(40)))
    fields = {**SIZES, "env": str(rows), "search": str(texts)}
    with serving() as server:
        server.says = lambda text: "Oslo is in Norway, they say."
        if recipe == "zerosearch":
            fields["simulator"] = f"{server.url.rstrip('/')}#m"
        run = build(recipe_named(recipe), fields)
        check(run)
        ask_parts(run)
        said = asyncio.run(_searched(run.envs[0], "Oslo"))
    wanted = "Oslo is in Norway, they say." if recipe == "zerosearch" else "Oslo lies in Norway."
    assert said == (wanted, 1.0)
    (measured, *_) = run.evaluation.envs or run.envs
    assert asyncio.run(_searched(measured, "Oslo"))[0] == "Oslo lies in Norway.", "measured with the real search"
    with pytest.raises(ConfigurationError, match="search=rules are stand-ins"):
        build(recipe_named(recipe), {**fields, "search": "rules"})


async def _searched(env: Environment, query: str) -> tuple[str, float | None]:
    episode = env.episode()
    await episode.reset(env.task(0))
    answer = await episode.step(Message("assistant", "", (ToolCall("search", json.dumps({"query": query})),)))
    return answer.messages[0].content, (await episode.step(Message("assistant", "Norway"))).reward
