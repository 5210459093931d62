"""An environment with tools: calls are answered, wrong ones are told, and a tool that fails is nobody's mistake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.heldout_split import prompt_of
from strop.environments.tools.calculator import Calculator
from strop.environments.tools.files import Files
from strop.environments.tools.search_tool import Retrieval
from strop.environments.tools.toolbox import Toolbox
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.generate.rollout import play
from strop.roles import Agent, Environment, Instrument
from strop.types import Outcome, Rollout, Sampling, Start, ToolCall
from tests.clock import run_virtually
from tests.generate.serve.test_call_format import BARE, CALLS
from tests.generate.talking import save_folder

SCHEMA = json.dumps({"properties": {"seconds": {"type": "string"}}, "required": ["seconds"]})


@dataclass(frozen=True)
class Sleep(Instrument):
    """Answers after so many seconds, or crashes at once."""

    name: ClassVar[str] = "sleep"
    description: ClassVar[str] = ""
    parameters: ClassVar[str] = SCHEMA
    ended: list[str] = field(default_factory=list, compare=False)

    async def call(self, arguments: dict[str, Any]) -> str:
        await asyncio.sleep(float(arguments["seconds"]))
        return "awake"

    async def release(self) -> None:
        self.ended.append("released")


def plays(
    model: Path, env: Environment, script: Callable[[str, int], str], count: int, agent: Agent | None = None
) -> tuple[list[Rollout], float]:
    """So many rollouts side by side on a clock that only waiting moves; the script is told all that stands there."""
    engine = Scripted(script)
    engine.open(model)

    async def rollouts() -> list[Rollout]:
        policy = Policy.load(model, engine, Sampling(max_tokens=200), 512)
        talks = [policy.dialogue(env.task(0), Start(f"0/{key}", key)) for key in range(count)]
        return list(await asyncio.gather(*(play(agent or Chat(), env, talk) for talk in talks)))

    return run_virtually(rollouts())


def saying(*completions: str) -> Callable[[str, int], str]:
    """Completion after completion, by how many the conversation holds."""
    return lambda prompt, key: completions[min(prompt.count("<|assistant|>"), len(completions)) - 1]


def answers(rollout: Rollout) -> list[str]:
    return [message.content for turn in rollout.turns for message in turn.told]


def test_calls_are_answered_until_the_env_is(model: Path) -> None:
    env = Toolbox(Arithmetic(4), (Calculator(), Retrieval(texts=("red fox",))))
    task = env.task(0)
    assert task.id == Arithmetic(4).task(0).id and [tool.name for tool in task.tools] == ["calc", "search"]
    script = saying("<call>calc 2 * 3</call><call>search Red</call>", "<call>calc (1</call>", task.answer)
    ((rollout,), _) = plays(model, env, script, 1)
    assert rollout.outcome is Outcome.FINISHED and rollout.turn_rewards == (0.0, 0.0, 1.0)
    assert rollout.turns[0].message.tool_calls == (
        ToolCall("calc", '{"expression": "2 * 3"}'),
        ToolCall("search", '{"query": "Red"}'),
    )
    assert answers(rollout) == ["6", "red fox", "error: a parenthesis is not closed"]
    assert [message.role for turn in rollout.turns for message in turn.told] == ["tool"] * 3


def test_tokens_are_only_appended_and_no_answer_is_written_by_the_policy(model: Path) -> None:
    """What is sent at a turn is what was sent before, then what was sampled, then the answer alone."""
    env, sent = Toolbox(Arithmetic(1), (Calculator(),)), list[str]()
    completions = ["<call>calc 10+11</call>", "<call>calc 3*4</call>", "5"]

    def script(prompt: str, key: int) -> str:
        sent.append(prompt)
        return completions[len(sent) - 1]

    ((rollout,), _) = plays(model, env, script, 1)
    for before, after, completion, answer in zip(sent, sent[1:], completions, ["21", "12"], strict=False):
        assert after.replace(" ", "") == f"{before}{completion}<|end|><|tool|>{answer}<|end|><|assistant|>".replace(
            " ", ""
        )
    assert rollout.num_tokens == sum(len(turn.tokens) for turn in rollout.turns)
    written = np.concatenate([turn.tokens for turn in rollout.turns])
    assert len(written) == sum(
        len(completion.replace("<call>", "c").replace("</call>", "c")) + 1 for completion in completions
    )


@pytest.mark.parametrize(
    ("completion", "told"),
    [
        ("<call>calk 1</call>", "error: no call of calc(expression), sleep(seconds)"),
        ("<call>calc</call>", "error: no call of calc(expression), sleep(seconds)"),
        ("<call>calc 1 2</call>", "error: not expected: 2"),
    ],
)
def test_a_wrong_call_is_told_and_the_rollout_goes_on(model: Path, completion: str, told: str) -> None:
    env = Toolbox(Arithmetic(1), (Calculator(), Sleep()))
    ((rollout,), _) = plays(model, env, saying(completion, env.task(0).answer), 1)
    assert answers(rollout) == [told] and rollout.outcome is Outcome.FINISHED and rollout.turn_rewards == (0.0, 1.0)


def test_a_tool_that_hangs_or_crashes_fails_its_rollout_alone(model: Path) -> None:
    tool = Sleep()
    env = Toolbox(Arithmetic(1), (tool,), seconds=5.0)
    calls = ["<call>sleep 3600</call>", "<call>sleep never</call>", "<call>sleep 4</call>"]
    right = env.task(0).answer
    script = lambda prompt, key: calls[key] if "<call>" not in prompt else right  # noqa: E731
    rollouts, seconds = plays(model, env, script, 3)
    assert [each.outcome for each in rollouts] == [Outcome.FAILED, Outcome.FAILED, Outcome.FINISHED]
    assert rollouts[0].error == "environment arithmetic: ToolFailed: tool sleep: no answer within 5 s"
    assert rollouts[1].error.startswith("environment arithmetic: ToolFailed: tool sleep: ValueError: could not convert")
    assert rollouts[0].turn_rewards == () and seconds == 5.0 and tool.ended == ["released"] * 3


def test_a_slow_call_delays_no_other_rollout(model: Path) -> None:
    """16 rollouts of 3 calls of 1 s, one of which takes 9 s: all end after 9 s, not after 16 x 3."""
    env, right = Toolbox(Arithmetic(1), (Sleep(),), seconds=60.0), Arithmetic(1).task(0).answer

    def script(prompt: str, key: int) -> str:
        if prompt.count("<|assistant|>") > (1 if key == 7 else 3):
            return right
        return f"<call>sleep {9 if key == 7 else 1}</call>"

    rollouts, seconds = plays(model, env, script, 16)
    assert seconds == 9.0 and all(each.outcome is Outcome.FINISHED for each in rollouts)


def test_siblings_share_no_files(model: Path) -> None:
    env = Toolbox(Arithmetic(1), (Files(),))

    def script(prompt: str, key: int) -> str:
        return {1: f"<call>file write a {key}</call>", 2: "<call>file read a </call>"}.get(
            prompt.count("<|assistant|>"), "0"
        )

    rollouts, _ = plays(model, env, script, 3)
    assert [answers(each) for each in rollouts] == [["ok", str(key)] for key in range(3)]


def test_the_middle_of_a_long_answer_is_left_out(model: Path) -> None:
    env = Toolbox(Arithmetic(1), (Retrieval(texts=("red " + "x" * 50 + " blue",)),), longest=20)
    ((rollout,), _) = plays(model, env, saying("<call>search red</call>", "0"), 1)
    assert answers(rollout) == ["red xxxx ... xx blue"] and len(answers(rollout)[0]) == 20


def test_turns_that_never_end_are_cut(model: Path) -> None:
    ((rollout,), _) = plays(model, Toolbox(Arithmetic(1), (Calculator(),)), saying("<call>calc 1</call>"), 1, Chat(3))
    assert rollout.outcome is Outcome.TRUNCATED and rollout.turn_rewards == () and len(rollout.turns) == 3


def test_a_demonstration_calls_and_then_says_what_came(model: Path) -> None:
    env = Toolbox(Arithmetic(4), (Calculator(),))
    ((rollout,), _) = plays(model, env, saying(""), 1, Demonstrate(least=1.0))
    first, last = (turn.message.content for turn in rollout.turns)
    terms = env.task(0).messages[0].content.removesuffix("=?")
    assert first == f"<call>calc {terms}</call>" and last == env.task(0).answer == answers(rollout)[0]


@pytest.mark.parametrize("template", [CALLS, BARE])
def test_other_models_write_the_same_call_as_json(tmp_path: Path, template: str) -> None:
    folder = save_folder(tmp_path, template)
    env = Toolbox(Arithmetic(4), (Calculator(),))
    ((rollout,), _) = plays(folder, env, lambda prompt, key: "", 1, Demonstrate(least=1.0))
    shown = rollout.turns[0].message.content
    assert '"expression": "' in shown and answers(rollout) == [env.task(0).answer]
    count = iter((shown, env.task(0).answer))
    ((again,), _) = plays(folder, env, lambda prompt, key: next(count), 1)  # what was said is read as the same call
    assert again.turns[0].message == rollout.turns[0].message and again.turn_rewards == (0.0, 1.0)


def test_a_template_without_calls_cannot_be_shown_any(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no tool calls"):
        plays(save_folder(tmp_path), Toolbox(Arithmetic(4), (Calculator(),)), saying(""), 1, Demonstrate())


def test_a_env_that_reads_calls_itself_goes_on_doing_so(model: Path) -> None:
    """Look-ups of a store and sums of a calculator in one rollout; calls of nobody are told by the store."""
    env = Toolbox(KeyValue(2), (Calculator(),))
    task = next(each for index in range(99) if " to " not in prompt_of(each := env.task(index)))
    one, other = prompt_of(task).split()[1:]
    secret = json.loads(task.answer)
    values = [str(secret["store"][key]) for key in (one, other)]
    said = [f"<call>get {one}</call>", f"<call>get {other}</call>", f"<call>calc {'+'.join(values)}</call>"]
    engine = Scripted(saying(*said, "<call>sing</call>", str(secret["total"])))
    engine.open(model)
    policy = Policy.load(model, engine, Sampling(max_tokens=200), 512)
    rollout = asyncio.run(play(Chat(), env, policy.dialogue(task, Start("0/0", 1))))
    assert answers(rollout) == [*values, str(secret["total"]), "error: get KEY or set KEY NUMBER"]
    assert sum(rollout.turn_rewards) == 1.0 and rollout.outcome is Outcome.FINISHED


def test_tools_beside_tools_are_all_answered(model: Path) -> None:
    env = Toolbox(Toolbox(Arithmetic(1), (Retrieval(texts=("red fox",)),)), (Calculator(),))
    script = saying("<call>calc 1+1</call>", "<call>search red</call>", "<call>sing 3</call>", "x")
    ((rollout,), _) = plays(model, env, script, 1)
    first, second, third = answers(rollout)
    assert first == "2" and "red fox" in second and third.startswith("error: no call of search(")


def test_what_cannot_work_is_refused() -> None:
    one = (Calculator(),)
    for tools, changes in (((), {}), ((*one, *one), {}), (one, {"seconds": 0.0}), (one, {"longest": 7})):
        with pytest.raises(ConfigurationError, match="tools of different names"):
            Toolbox(Arithmetic(1), tools, **changes)
    assert Toolbox(Arithmetic(1), one, longest=8).episode().longest == 8


def test_a_env_that_is_begun_again_has_heard_nothing() -> None:
    env = Toolbox(Arithmetic(4), (Calculator(),))
    episode = env.episode()

    async def shown(index: int) -> tuple[ToolCall, ...]:
        await episode.reset(env.task(index))
        call = episode.demonstrate()
        await episode.step(call)
        return call.tool_calls

    assert all(len(asyncio.run(shown(index))) == 1 for index in range(2))
