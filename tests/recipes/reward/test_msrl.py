"""MSRL: pairs as texts and as captions, what a completion says of them between its tags, and what that is worth."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from strop.control.samplers.fixed_mixture import Mixture
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.data.heldout_split import prompt_of
from strop.environments.judging.preferences import Preferences
from strop.errors import ConfigurationError
from strop.recipes.reward.msrl.environment import CAPTIONS, TEXT, BetterOfTwo, told
from strop.recipes.reward.msrl.recipe import TaggedVerdict, msrl
from strop.recipes.setting import Setting
from strop.types import Group, Message, Outcome, Rollout
from tests.building import turn

PAIRS = Preferences(Arithmetic(3))


def saying(kind: str, *completions: str, label: str = "A") -> Group:
    """Rollouts of the first task of a kind whose better completion stands at A."""
    env = BetterOfTwo(PAIRS, kind)
    task = next(each for each in map(env.task, range(99)) if json.loads(each.answer)["label"] == label)
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    return Group(0, task, [Rollout(str(n), task, each, Outcome.FINISHED) for n, each in enumerate(turns)])


def test_what_completions_are_worth_by_hand() -> None:
    """A is right: 1 for it, 0.2 for tags in order, 0.2 for the type where captions stand for something."""
    thought, typed = "<think>why</think>", "<type>image generation</type>"
    right, wrong = "<answer>A</answer>", "<answer>B</answer>"
    completions = [thought + right, thought + wrong, right, "A", typed + thought + right, typed + thought + wrong, ""]
    assert TaggedVerdict()(saying(TEXT, *completions)) == pytest.approx([1.2, 0.2, 1.0, 0.0, 1.2, 0.2, 0.0])
    group = saying("image generation", *completions)
    assert TaggedVerdict(kind=0.2)(group) == pytest.approx([1.2, 0.2, 1.0, 0.0, 1.4, 0.4, 0.0])
    assert [rollout.facts["typed"] for rollout in group.rollouts] == [0, 0, 0, 0, 1, 1, 0]
    assert [rollout.facts["laid_out"] for rollout in group.rollouts] == [1, 1, 0, 0, 1, 1, 0]
    assert TaggedVerdict(0.1, 0.3)(saying("video generation", *completions)) == pytest.approx(
        [1.1, 0.1, 1, 0, 1.1, 0.1, 0]
    )
    assert TaggedVerdict()(saying(TEXT, *completions[:2], label="B")) == pytest.approx([0.2, 1.2])
    assert all("typed" not in rollout.facts for rollout in saying(TEXT, *completions).rollouts)


@pytest.mark.parametrize(
    ("completion", "kind", "label", "is_laid_out"),
    [
        ("<think>x</think><answer> a\n</answer>", "", "A", True),
        ("<type>Video_Under-standing</type>\n<think></think>\n<answer>B</answer>\n", "video under standing", "B", True),
        ("<think>x</think><answer>A</answer><answer>B</answer>", "", "", False),  # both: none
        ("<answer>A</answer><think>x</think>", "", "", False),  # the label stands before the working
        ("<think><answer>A</answer></think><answer>B</answer>", "", "B", True),  # a thought is no verdict
        ("<think><answer>A</answer>", "", "", False),  # a working that never ends
        ("<think>x</think></answer><answer>A", "", "", False),
        ("<think>x</think><answer></answer>", "", "", False),
        ("<think>x</think>so <answer>A</answer>", "", "A", False),
        ("<think>x</think><answer>A</answer>.", "", "A", False),
        ("well<think>x</think><answer>A</answer>", "", "A", False),
        ("<think>x</think><think>y</think><answer>A</answer>", "", "A", False),
        ("<think>x</think><type>q</type><answer>A</answer>", "", "A", False),  # a type behind the working
        ("<type>p</type><type>q</type><think>x</think><answer>A</answer>", "", "A", False),
        ("so <type>p</type><think>x</think><answer>A</answer>", "p", "A", False),
        ("<type>p</type><answer>A</answer>", "p", "A", False),
    ],
)
def test_what_a_completion_says(completion: str, kind: str, label: str, is_laid_out: bool) -> None:
    assert told(completion) == (kind, label, is_laid_out)


def test_what_is_shown_of_a_pair() -> None:
    """A film is told with its working and a picture without it; whatever was asked for bears the name of its medium."""
    lines = {
        TEXT: ("26+63=?", "B: 26+63=89 89"),
        "image understanding": ("image: 26+63=?", "B: 89"),
        "image generation": ("26+63=?", "image A: 89"),
        "video understanding": ("video: 26+63=?", "A: 26+63=89 89"),
        "video generation": ("26+63=?", "video B: 26+63=89 89"),
    }
    for kind, (first, better) in lines.items():
        shown = prompt_of(BetterOfTwo(PAIRS, kind).task(0)).splitlines()
        assert shown[0] == first and better in shown[1:3] and shown[3:] == ["better?"]
        assert shown[1] != shown[2].replace("B:", "A:"), "two different completions"


@pytest.mark.parametrize("kind", [TEXT, *CAPTIONS])
def test_the_better_completion_stands_in_either_place_and_its_label_is_right(kind: str) -> None:
    env, labels = BetterOfTwo(Preferences(Countdown(3)), kind), Counter[str]()
    for index in range(60):
        task = env.task(index, heldout=index % 2 == 0)
        solution = env.solution(task)
        label = env.answer(solution)
        other = solution.replace(f"<answer>{label}", f"<answer>{'AB'.replace(label, '')}")
        labels[label] += 1
        shown = dict(line.split(": ", 1) for line in prompt_of(task).splitlines()[1:3])
        (text,) = [said for score, said in shown.items() if score.endswith(label)]
        inner = env.env.env.task(index, heldout=index % 2 == 0)
        assert env.env.env.check(inner, text.split()[-1]) == 1, "the environment itself calls it right"
        assert told(solution) == (kind, label, True) and (env.check(task, solution), env.check(task, other)) == (
            1,
            0,
        )
    assert min(labels["A"], labels["B"]) > 15
    assert env.answer("<answer>AB</answer>") == env.answer("A") == ""


def test_stages() -> None:
    """Demonstrations of all kinds, then texts alone, then captions with a quarter of texts."""
    run = msrl(Setting(env="arithmetic:1+arithmetic:3"), warmup_steps=3, textual=5, replayed=0.25)
    first = run.warmup
    assert first is not None and first.warmup is not None and first.warmup.warmup is None
    kinds = [[(env.kind, env.level) for env in each.envs] for each in (first.warmup, first, run)]  # type: ignore[attr-defined]
    every = [(kind, level) for level in (1, 3) for kind in (TEXT, *CAPTIONS)]
    assert kinds == [every, [(TEXT, 1), (TEXT, 3)], every] and (first.warmup.steps, first.steps) == (3, 5)
    assert (first.rewards[0], run.rewards[0]) == (TaggedVerdict(0.2, 0.0), TaggedVerdict(0.2, 0.2))
    assert isinstance(run.sampler, Mixture) and sum(run.sampler.weights) == pytest.approx(2)
    assert run.sampler.weights[:5] == run.sampler.weights[5:] == (0.25, *[0.75 / 4] * 4)
    assert msrl(warmup_steps=0, textual=0).warmup is None


def test_what_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"got 0\.5 and 0\.5"):
        TaggedVerdict(0.5, 0.5)
    with pytest.raises(ConfigurationError, match=r"got 0\.2 and -0\.1"):
        TaggedVerdict(kind=-0.1)
    with pytest.raises(ConfigurationError, match="got 3 and ''"):
        BetterOfTwo(Preferences(Arithmetic(3), completions=3))
    with pytest.raises(ConfigurationError, match="got 2 and 'sound'"):
        BetterOfTwo(PAIRS, "sound")
    with pytest.raises(ConfigurationError, match=r"got 1\.0"):
        msrl(replayed=1.0)
