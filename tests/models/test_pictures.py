"""Pictures: engine, trainer and transformers compute the same of them, in first and later turns, packed and alone."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from strop.control.samplers.uniform import Uniform
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.evaluation import Evaluation
from strop.filter.rewards.controls import Coin
from strop.filter.rewards.from_environment import Earned
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.policy import Policy
from strop.generate.templates.chat_template import Template
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.models.model import load_model, logits
from strop.models.pictures import FAMILIES, TILES, placeholders_of
from strop.models.tokens.picture_words import code_of, uncut, words_of
from strop.recipes import build, recipe_named
from strop.roles import Environment, Episode
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.storage.picture_store import PictureStore, opened, picture_of
from strop.storage.run_folder import RunFolder
from strop.training.machine.packed_sequences import Sequences
from strop.training.trainers.torch import TorchTrainer
from strop.types import IntArray, Message, Observation, Picture, Sampling, Task
from tests.generate.engines.asking import ask
from tests.models.tower_models import PARTS, PLACEHOLDER, load_tower_reference, save_tower_model

SEEN = [each for each in PARTS if each in FAMILIES]


def drawn(seed: int, width: int, height: int) -> Picture:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return picture_of(data.getvalue())


class Case:
    """A model folder, what it read of pictures, and transformers beside it."""

    def __init__(self, path: Path, family: str) -> None:
        self.folder = save_tower_model(path / "model", family)
        self.store = PictureStore(path / "run")
        self.template = Template.load(self.folder, self.store)
        self.reference = load_tower_reference(self.folder)
        self.read = self.store.reader(self.folder)
        self.run = path / "run"

    def engine(self, rows: int = 8) -> TorchEngine:
        engine = TorchEngine(rows=rows)
        engine.keep_in(self.run)
        engine.open(self.folder)
        return engine

    def logprobs(self, tokens: IntArray, pictures: list[Picture]) -> torch.Tensor:
        """By transformers alone, of a whole sequence: [T, V], no placeholder among what can be sampled."""
        ids = torch.from_numpy(np.where(tokens < 0, PLACEHOLDER, tokens))[None]
        given: dict[str, Any] = {}
        for each in pictures:
            for name, array in self.read(code_of(each.digest)).items():
                if name != TILES:
                    given.setdefault(name, []).append(array)
        if "pixel_attention_mask" in given:  # tiles side by side: as many pictures of one tile
            given = {name: [torch.cat([each[0] for each in arrays])[None]] for name, arrays in given.items()}
        if "image_sizes" in given:  # beside others, pictures are padded on the right and below
            high, wide = (max(each.shape[side] for each in given["pixel_values"]) for side in (-2, -1))
            given["pixel_values"] = [
                torch.nn.functional.pad(each, (0, wide - each.shape[-1], 0, high - each.shape[-2]))
                for each in given["pixel_values"]
            ]
        given = {name: torch.cat(arrays) for name, arrays in given.items()}
        if self.folder and "image_grid_thw" in given:
            given["mm_token_type_ids"] = (ids == PLACEHOLDER).long()
        if self.read.is_mutual:
            given["token_type_ids"] = (ids == PLACEHOLDER).long()
        scores = self.reference(input_ids=ids, use_cache=False, **given).logits[0]
        return torch.log_softmax(scores.float(), -1)


@pytest.fixture(params=SEEN)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(tmp_path, request.param)


def worst(case: Case, context: IntArray, said: Any, pictures: list[Picture]) -> float:
    found = case.logprobs(np.concatenate([context, said.tokens]), pictures).detach().numpy()
    want = found[len(context) - 1 : -1][np.arange(len(said.tokens)), said.tokens]
    return float(np.abs(want - said.logprobs).max())


def asked(case: Case) -> list[tuple[IntArray, list[Picture]]]:
    """Prompts: two pictures, siblings, the same text with another picture, and text alone."""
    one, two, other = drawn(1, 40, 24), drawn(2, 24, 24), drawn(3, 40, 24)
    talks = [("ab<image>cd<image>ef", [one, two]), ("hij", [one]), ("hij", [other]), ("hij", [])]
    return [(case.template.opening([Message("user", text, images=tuple(seen))]), seen) for text, seen in talks]


@torch.no_grad()
def test_engine_trainer_and_transformers_agree(case: Case) -> None:
    engine, prompts = case.engine(), asked(case)
    prompts += prompts[:2]  # siblings
    first = asyncio.run(ask(engine, [each for each, _ in prompts], Sampling(max_tokens=9)))
    contexts, later = [], drawn(5, 16, 32)
    for (prompt, pictures), said in zip(prompts, first, strict=True):
        assert worst(case, prompt, said, pictures) < 1e-5
        after = case.template.between(int(said.tokens[-1]), [Message("tool", "k", images=(later,))])
        contexts.append((np.concatenate([prompt, said.tokens, after]), [*pictures, later]))
    again = asyncio.run(ask(engine, [each for each, _ in contexts], Sampling(max_tokens=9)))
    assert engine.num_reused > 0
    sequences = []
    for (context, pictures), said in zip(contexts, again, strict=True):
        assert worst(case, context, said, pictures) < 1e-5
        sequences.append(np.concatenate([context, said.tokens]))
    model = load_model(case.folder)
    packed = trained(case, model, sequences)
    for (context, _), said, found in zip(contexts, again, packed, strict=True):
        own = found[len(context) - 1 : -1].numpy()[np.arange(len(said.tokens)), said.tokens]
        np.testing.assert_allclose(own, said.logprobs, atol=1e-5)
    (alone,) = trained(case, model, sequences[:1])
    torch.testing.assert_close(alone[:-1], packed[0][:-1], atol=1e-5, rtol=0)


def trained(case: Case, model: Any, sequences: list[IntArray]) -> list[torch.Tensor]:
    """Log-probabilities [T, V] of each sequence in one packed pass with shared prefixes."""
    lengths = [len(each) for each in sequences]
    tokens = torch.from_numpy(np.concatenate(sequences))
    positions = torch.cat([torch.arange(each) for each in lengths])
    found = Sequences(tokens, positions, lengths, "cpu", pictures=case.read)
    assert len(sequences) == 1 or found.num_computed < sum(lengths) - len(lengths)
    states = found.hidden_states(model)
    return list(torch.log_softmax(logits(model, states), -1).split(lengths))


def test_gradients_reach_tower_and_decoder_as_transformers_has_them(case: Case) -> None:
    model = load_model(case.folder).requires_grad_(True)
    prompts = [*asked(case)[:3], asked(case)[0]]
    sequences = [np.concatenate([each, [5, 6, 7, 8]]) for each, _ in prompts]
    ours = trained(case, model, sequences)
    sum(each[-5:-1, 5:9].diagonal().sum() for each in ours).backward()  # type: ignore[union-attr]
    for sequence, (_, pictures) in zip(sequences, prompts, strict=True):
        case.logprobs(sequence, pictures)[-5:-1, 5:9].diagonal().sum().backward()
    own = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    due = {name: each.grad for name, each in case.reference.named_parameters() if each.grad is not None}
    largest = max(float(each.abs().max()) for each in due.values())
    assert own.keys() == due.keys() and any("vis" in name for name in own)
    for name, gradient in due.items():
        assert float((own[name] - gradient).abs().max()) < 1e-4 * largest, name


def test_a_placeholder_is_never_sampled(tmp_path: Path) -> None:
    """Of a model that would draw nothing else."""
    case = Case(tmp_path, "idefics3")
    engine = case.engine(rows=250)
    never = placeholders_of(engine._model.config)
    with torch.no_grad():
        weight = engine._model.get_output_embeddings().weight
        weight[list(never)] = weight.mean(0) + 1.0
    prompt = np.array([4, 5], dtype=np.int64)
    written = asyncio.run(ask(engine, [prompt] * 500, Sampling(max_tokens=4)))
    drawn_tokens = np.concatenate([each.tokens for each in written])
    assert len(drawn_tokens) > 1000 and not np.isin(drawn_tokens, never).any()


def save_table(folder: Path, count: int = 12) -> Path:
    """Rows of one question about as many pictures, which lie beside the table."""
    rows = []
    for number in range(count):
        (folder / f"{number}.png").write_bytes(drawn(number, 40, 24).data)
        rows.append({"prompt": "ab", "images": [f"{number}.png"], "answer": chr(ord("a") + number)})
    path = folder / "seen.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def grpo_on(model: Path, table: Path, steps: int = 3, **fields: Any) -> Run:
    sizes = {"groups_per_step": 2, "group_size": 3, "max_tokens": 5, "heldout_tasks": 1}
    given = {"model": str(model), "env": str(table), "steps": steps, **sizes, **fields}
    run = build(recipe_named("grpo"), given)  # rewards by chance: some rollouts of a group are paid, so weights move
    return replace(run, context=200, keep_checkpoints=9, checkpoint_every=1, rewards=(Coin(),))


def test_a_run_trains_resumes_and_is_replayed_to_the_same_bits(tmp_path: Path) -> None:
    model, table = save_tower_model(tmp_path / "model", "qwen2_5_vl"), save_table(tmp_path)
    launch(grpo_on(model, table), tmp_path, "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / "step-3")
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / "step-2")
    relaunch(tmp_path / "cut")
    for step in (2, 3):
        whole, cut = (
            load_file(tmp_path / name / f"checkpoints/step-{step}/model.safetensors") for name in ("whole", "cut")
        )
        assert whole.keys() == cut.keys() and all(torch.equal(whole[name], cut[name]) for name in whole)
    before = load_file(tmp_path / "whole/checkpoints/step-2/model.safetensors")
    moved = {name for name in before if not torch.equal(before[name], whole[name])}
    assert moved and not any("visual" in name for name in moved)
    assert all(step.is_equal for step in retrain(tmp_path / "whole"))
    folder = RunFolder(tmp_path / "whole")
    ledger = Ledger(folder.ledger)
    (rollout, *_) = ledger.trained_groups(3)[0].rollouts
    ledger.close()
    (picture,) = rollout.task.messages[0].images
    assert 0 < (rollout.turns[0].prompt < 0).sum() <= 32 * 32 // 64
    assert (
        hashlib.sha256((folder.path / "pictures" / f"{picture.digest}.png").read_bytes()).hexdigest() == picture.digest
    )


def test_a_tower_learns_where_it_is_said(tmp_path: Path) -> None:
    model, table = save_tower_model(tmp_path / "model", "idefics3"), save_table(tmp_path)
    run = grpo_on(model, table, 1)
    launch(replace(run, trainer=replace(run.trainer, tower="trained")), tmp_path, "run")  # type: ignore[type-var]
    before, after = (
        load_file(folder / "model.safetensors") for folder in (model, tmp_path / "run" / "checkpoints" / "step-1")
    )
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert any("vision" in name for name in moved) and any("text" in name for name in moved)
    with pytest.raises(ConfigurationError, match="adapters stand beside decoder layers alone"):
        TorchTrainer(tower="trained", lora=4)


def test_tasks_that_differ_in_the_picture_alone_have_two_names(tmp_path: Path) -> None:
    table = Table(str(save_table(tmp_path, 3)))
    tasks = [table.task(index) for index in range(table.num_tasks())]
    assert len({task.id for task in tasks}) == len(tasks) == 3 - table.num_tasks(heldout=True)
    asked_same = [Task((Message("user", "ab", images=each.messages[0].images),), "x", "seen") for each in tasks]
    assert len({task.id for task in asked_same}) == len(tasks)


def test_long_prompts_are_never_cut_within_a_picture(tmp_path: Path) -> None:
    """Whose tokens see each other: the first ones need the keys of the last."""
    words = words_of(7, 4)
    prompt = np.concatenate([[5, 6], words, words[:3], [9]])
    assert [uncut(prompt, count) for count in range(1, 11)] == [1, 2, 2, 2, 2, 6, 6, 6, 9, 10]
    assert uncut(prompt[3:], 1) == 3 and uncut(words, 2) == 4
    case = Case(tmp_path, "gemma3")
    engine = case.engine()
    engine._decoder._step_tokens = 7
    prompts = [*asked(case), asked(case)[0]]
    with torch.no_grad():
        written = asyncio.run(ask(engine, [each for each, _ in prompts], Sampling(max_tokens=9)))
        for (context, pictures), said in zip(prompts, written, strict=True):
            assert worst(case, context, said, pictures) < 1e-5


@dataclass
class LookTwice(Episode):
    """One rollout: its first completion is answered by a part of the picture."""

    task: Task = field(init=False)
    turns: int = 0

    async def reset(self, task: Task) -> None:
        self.task, self.turns = task, 0

    async def step(self, completion: Message) -> Observation:
        self.turns += 1
        if self.turns > 1:
            return Observation(done=True, reward=float(len(completion.content) % 2))
        whole, part = opened(self.task.messages[0].images[0].data), io.BytesIO()
        whole.crop((0, 0, 16, 16)).save(part, "PNG")
        return Observation((Message("tool", "k", images=(picture_of(part.getvalue()),)),), done=False, reward=0.0)


@dataclass(frozen=True)
class Drawings(Environment):
    """One question about many pictures; those of even numbers are held out."""

    level: ClassVar[int] = 1
    name: ClassVar[str] = "drawings"

    def task(self, index: int, heldout: bool = False) -> Task:
        return Task((Message("user", "ab", images=(drawn(2 * index + heldout, 40, 24),)),), "a", self.name, self.level)

    def episode(self) -> LookTwice:
        return LookTwice()

    def check(self, task: Task, completion: str) -> float:
        return float(completion == task.answer)


@pytest.mark.parametrize("family", ["idefics3", "qwen3_vl"])
def test_pictures_that_a_tool_shows_are_read_like_the_first(tmp_path: Path, family: str) -> None:
    case, envs = Case(tmp_path, family), (Drawings(),)
    run = grpo_on(case.folder, save_table(tmp_path), 2, max_tokens=40)
    run = replace(run, envs=envs, sampler=Uniform(envs), evaluation=Evaluation(tasks=1))
    launch(replace(run, agent=replace(run.agent, max_turns=2)), tmp_path, "run")  # type: ignore[type-var]
    assert all(step.is_equal for step in retrain(tmp_path / "run"))
    case.read = PictureStore(tmp_path / "run").reader(case.folder)  # as a restart reads them
    ledger = Ledger(RunFolder(tmp_path / "run").ledger)
    rollouts = [rollout for group in ledger.trained_groups(1) for rollout in group.rollouts]  # of the first weights
    ledger.close()
    rollouts = [rollout for rollout in rollouts if len(rollout.turns) == 2]  # the first turn of others was cut
    assert rollouts
    for rollout in rollouts:
        one, two = rollout.turns
        pictures = [*rollout.task.messages[0].images, *two.told[0].images]
        context = np.concatenate([one.prompt, one.tokens, two.prompt])
        assert (two.prompt < 0).any() and worst(case, context, two, pictures) < 1e-5
        assert worst(case, one.prompt, one, pictures[:1]) < 1e-5


def test_a_prompt_that_loses_its_pictures_is_refused(tmp_path: Path) -> None:
    case, task = Case(tmp_path, "idefics3"), Drawings().task(0)
    policy = Policy(case.template, case.engine(), Sampling(max_tokens=4), 200)
    assert (policy.opening(task.messages, task) < 0).any()
    with pytest.raises(ConfigurationError, match="written anew without 1 of its pictures"):
        policy.opening([Message("user", "hint: ab")], task)


@dataclass
class FirstLetter(LookTwice):
    """One rollout that is right if its completion begins with the answer."""

    async def step(self, completion: Message) -> Observation:
        return Observation(done=True, reward=float(completion.content[:1] == self.task.answer))


@dataclass(frozen=True)
class Bright(Drawings):
    """Pictures in shades of dark or bright grey; with `is_shuffled` the answer has nothing to do with them."""

    is_shuffled: bool = False

    def task(self, index: int, heldout: bool = False) -> Task:
        rng = np.random.default_rng(2 * index + heldout)
        shades, (is_bright, other) = rng.integers(0, 90, (24, 24, 3), dtype=np.uint8), rng.random(2) < 0.5
        data = io.BytesIO()
        Image.fromarray(shades + np.uint8(160 * (other if self.is_shuffled else is_bright))).save(data, "PNG")
        asked = Message("user", "q", images=(picture_of(data.getvalue()),))
        return Task((asked,), "a" if is_bright else "b", self.name, self.level)

    def episode(self) -> FirstLetter:
        return FirstLetter()


@pytest.mark.slow
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_tower_learns_what_pictures_show_and_nothing_from_shuffled_ones(tmp_path: Path, is_shuffled: bool) -> None:
    model, envs = save_tower_model(tmp_path / "model", "idefics3"), (Bright(is_shuffled),)
    sizes = {"groups_per_step": 8, "group_size": 16, "max_tokens": 1}
    run = grpo_on(model, save_table(tmp_path), 60, **sizes)
    run = replace(run, envs=envs, sampler=Uniform(envs), evaluation=Evaluation(tasks=64), checkpoint_every=60)
    trainer = replace(run.trainer, tower="trained", learning_rate=3e-3)  # type: ignore[type-var]
    launch(replace(run, trainer=trainer, rewards=(Earned(),)), tmp_path, "run")
    steps = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    heldout = [step["heldout"] for step in steps if "heldout" in step]
    assert heldout[0] < 0.2
    assert heldout[-1] < 0.7 if is_shuffled else heldout[-1] > 0.8
