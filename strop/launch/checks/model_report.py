"""Report on a model before it is trained: what runs, on which path, in which memory, how fast, and what is refused.

Every row is an answer with its numbers. Nothing is guessed that can be measured: legs and speed come from computations,
memory from the plan that a run itself is refused by.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from strop.errors import StropError
from strop.generate.engines.cpu.block_step import block_step
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.paged.paged_llama import why_not
from strop.generate.templates.chat_template import Template
from strop.generate.templates.tool_call_format import CallFormat
from strop.launch.checks.gpu_memory_plan import Sharing
from strop.launch.checks.model_legs import LENGTHS, LIMIT, ROWS, Leg, keeps_routes, legs, packed_difference, speed
from strop.models.layers.decoder_part import has_tower
from strop.models.layers.eight_bit_linear import outline
from strop.models.layers.mixers import mixers
from strop.models.loading.check_folder import check_model_folder, longest_sequence, read_config
from strop.models.loading.load_weights import read_model
from strop.models.loading.tiny_twin import has_experts, save_twin, tiny_twin
from strop.models.model import load_model
from strop.models.pictures import FAMILIES as PICTURE_FAMILIES
from strop.models.tokens.mask_token import fills_masks
from strop.training.machine.memory import largest_size
from strop.training.trainers.torch import TorchTrainer

GPUS = {"RTX 4090": 23.5, "A100 40 GB": 39.4, "H100 80 GB": 79.2, "H200": 139.8, "B200": 178.0}  # GiB that are free
OK, NOTE, REFUSED = "ok", "note", "refused"
_GIB = 2**30
_CONTEXT = 4096  # tokens for which memory is planned, or the model's positions
_ON_A_CPU = 20  # bytes of a weight: the trainer's with gradient and moments, the engine's


@dataclass(frozen=True)
class ModelFact:
    """An answer about a model."""

    about: str
    state: str
    answer: str
    remedy: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


def rows_of(folder: Path) -> Iterator[ModelFact]:
    """Every answer in turn, cheap ones first; a folder that describes no model is refused as a whole."""
    config = read_config(folder)
    yield from _of_folder(folder, config)
    if fills_masks(folder):
        engine = "DiffusionEngine and a trainer with a view: see docs/fill-masks.md"
        yield ModelFact("twin", NOTE, "it fills masks, and writes nothing from left to right", f"take {engine}")
        return
    yield from _of_twin(folder, config)
    yield from _of_weights(folder)
    yield from _of_memory(folder)


def _asked(about: str, question: Callable[[], ModelFact], remedy: str = "") -> ModelFact:
    """A row, or the refusal in its place."""
    try:
        return question()
    except StropError as error:
        told, _, others = str(error).partition(" Families that run: ")
        helps = remedy or ("take a model of a family that docs/models.md lists as one that runs" if others else "")
        return ModelFact(about, REFUSED, told, helps)


# ---- the folder


def _of_folder(folder: Path, config: Any) -> Iterator[ModelFact]:
    def whole() -> ModelFact:
        check_model_folder(folder)
        return ModelFact("folder", OK, "config.json, tokenizer, chat template and weights are there")

    text = config.get_text_config()
    told = text.to_dict()
    kinds = Counter(told.get("layer_types") or told.get("layers_block_type") or ())
    layers = (
        ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        or f"{largest_size(text, 'num_hidden_layers')} layers"
    )
    model = outline(folder)
    count = sum(each.numel() for each in model.parameters())
    said = f"{config.model_type}, {_counted(count)} weights, {layers}, {longest_sequence(config) or 'any'} positions"
    yield ModelFact("model", OK, said, numbers={"weights": count})
    if number := len(mixers(model)):
        told = f"{number} layers keep a state: prompts are reused up to where one was kept, forks compute it again"
        yield ModelFact("states", OK, told, numbers={"layers": number})
    if has_tower(config):
        yield _of_tower(config)
    first = _asked("folder", whole)
    yield first
    if first.state == OK:
        yield from _of_template(folder)


def _of_tower(config: Any) -> ModelFact:
    if config.model_type in PICTURE_FAMILIES:
        return ModelFact("pictures", OK, "it reads pictures; its tower learns nothing unless a trainer says so")
    helps = f"families whose pictures are read: {', '.join(PICTURE_FAMILIES)}"
    return ModelFact("pictures", NOTE, "text alone: its tower is kept as it is, and pictures are refused", helps)


def _counted(count: float) -> str:
    unit, letter = (1e9, "B") if count >= 1e9 else (1e6, "M") if count >= 1e6 else (1e3, "k")
    return f"{count / unit:.3g}{letter}"


def _of_template(folder: Path) -> Iterator[ModelFact]:
    try:
        template = Template.load(folder)
    except StropError as error:
        yield ModelFact("template", REFUSED, str(error))
        return
    tokenizer = template.tokenizer
    names = {number: text for text, number in template.control.ids.items()}
    ends = ", ".join(names.get(each, str(each)) for each in sorted(template.ends))
    special = {name: getattr(tokenizer, f"{name}_token") for name in ("bos", "eos", "pad")}
    said = ", ".join(f"{name} {token}" for name, token in special.items() if token)
    yield ModelFact(
        "special tokens", OK, f"{said or 'none named'}; completions end at {ends}; {len(names)} control tokens"
    )
    rows = outline(folder).get_input_embeddings().weight.shape[0]
    if (size := max(tokenizer.get_vocab().values()) + 1) > rows:
        helps = "take the tokenizer that belongs to these weights, or resize the embedding"
        yield ModelFact("vocabulary", REFUSED, f"the tokenizer has {size} tokens, the embedding {rows} rows", helps)
    yield _asked("tools", partial(_of_tools, template))


def _of_tools(template: Template) -> ModelFact:
    if (found := CallFormat.of(template)) is None:
        helps = "environments with tools need a template that shows calls; all others run"
        return ModelFact("tools", NOTE, "the chat template shows no tool calls", helps)
    opens = f"between {found.opens} and {found.closes or 'the end'}" if found.opens else "as a whole completion"
    return ModelFact("tools", OK, f"calls are {'JSON' if found.is_json else 'words'} {opens}")


# ---- the tiny twin


def _of_twin(folder: Path, config: Any) -> Iterator[ModelFact]:
    with tempfile.TemporaryDirectory(prefix="strop-check-") as place:
        try:
            twin = save_twin(tiny_twin(config), Path(place))
        except Exception as error:  # a family checks its sizes in its own way
            told = " ".join(str(error).split())[:200]
            yield ModelFact("twin", NOTE, f"no tiny twin can be built ({type(error).__name__}: {told})")
            return
        try:
            for leg in legs(twin):
                yield _of_leg(leg)
            if has_experts(config):
                yield _of_routes(keeps_routes(twin))
        except StropError as error:
            yield replace(_asked("twin", partial(_raised, error)), about="twin")
        except Exception as error:  # whatever a family's own code does
            told = " ".join(str(error).split())[:200]
            yield ModelFact(
                "twin", REFUSED, f"fails on the way ({type(error).__name__}: {told})", "report it with config.json"
            )


def _raised(error: StropError) -> ModelFact:
    raise error


def _of_leg(leg: Leg) -> ModelFact:
    told = f"{leg.difference:.1e} from transformers"
    if leg.is_right:
        return ModelFact(f"twin: {leg.name}", OK, told, numbers={"difference": leg.difference})
    helps = "do not train it here: completions or gradients would be of another model"
    return ModelFact(
        f"twin: {leg.name}", REFUSED, f"{told}, more than {LIMIT:g}", helps, {"difference": leg.difference}
    )


def _of_routes(is_kept: bool) -> ModelFact:
    if is_kept:
        return ModelFact("experts", OK, "the experts that a token took are kept, and taken again in training")
    return ModelFact("experts", NOTE, "experts are chosen anew in training: of two near ones it may take the other")


# ---- the weights


def _of_weights(folder: Path) -> Iterator[ModelFact]:
    count = sum(each.numel() for each in outline(folder).parameters())
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    if 10 * count > free:
        told = f"not loaded: {10 * count / _GIB:.1f} GiB are needed to compare them, {free / _GIB:.1f} are free here"
        yield ModelFact("weights", NOTE, told, "run it where there is more memory")
        return
    held = list[Any]()  # the model, once it is proven
    first = _asked("weights", partial(_proven, folder, held))
    yield first
    if first.state != REFUSED:
        yield _asked("bfloat16", partial(_in_half, folder, held[0]))
        yield _path(held[0])
        yield _speed(folder, held[0])


def _proven(folder: Path, held: list[Any]) -> ModelFact:
    held.append(load_model(folder))
    difference = packed_difference(held[0], read_model(folder, torch.float32, "eager").eval(), LENGTHS)
    told, numbers = f"all tensors fit; {difference:.1e} nats from transformers in float32", {"difference": difference}
    if difference <= LIMIT * 10:  # large models sum longer rows
        return ModelFact("weights", OK, told, numbers=numbers)
    return ModelFact("weights", REFUSED, told, "take float32 weights as they were published", numbers)


def _in_half(folder: Path, model: Any) -> ModelFact:
    """What a GPU would compute in, beside what transformers itself loses by it."""
    theirs = read_model(folder, torch.bfloat16, "eager").eval()
    ours = packed_difference(load_model(folder, torch.bfloat16), theirs, LENGTHS)
    rounding = packed_difference(model, theirs, LENGTHS)
    told = f"{ours:.2g} nats from transformers in bfloat16, which is itself {rounding:.2g} from float32"
    state = OK if ours <= 2 * rounding + LIMIT else NOTE
    return ModelFact("bfloat16", state, told, numbers={"ours": ours, "rounding": rounding})


def _path(model: Any) -> ModelFact:
    slow = why_not(model)
    engine = "fused kernels" if not slow else "transformers' own modules"
    if slow:
        helps = "it runs, more slowly; engine=vllm samples faster on a GPU"
        return ModelFact("path", NOTE, f"{engine} in engine and trainer: {slow}", helps)
    return ModelFact("path", OK, f"{engine} in engine and trainer{'' if block_step(model) else ' of a GPU'}")


def _speed(folder: Path, model: Any) -> ModelFact:
    (sampled, trained), threads = speed(folder, model), torch.get_num_threads()
    told = f"{sampled:,.0f} tokens a second sampled by {ROWS} rows, {trained:,.0f} trained"
    numbers = {"sampled_per_second": sampled, "trained_per_second": trained}
    where = f"on {threads} CPU thread{'s' * (threads > 1)}"
    return ModelFact("speed here", OK, f"{told}, {where}", numbers=numbers)


# ---- memory


def _of_memory(folder: Path) -> Iterator[ModelFact]:
    model = outline(folder)
    count = sum(each.numel() for each in model.parameters())
    need, there = _ON_A_CPU * count, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    told = f"{need / _GIB:.2g} GiB of {there / _GIB:.1f} for weights, gradient, moments and engine"
    yield ModelFact("memory here", OK if need <= there else NOTE, told, numbers={"needed": need, "total": there})
    context = min(longest_sequence(read_config(folder)) or _CONTEXT, _CONTEXT)
    trainer, engine = TorchTrainer(device="cuda"), PagedEngine(context=context)
    sharing = {name: Sharing(trainer, engine, model, int(gib * _GIB), context) for name, gib in GPUS.items()}
    yield from (_on_gpu(name, each) for name, each in sharing.items())


def _on_gpu(name: str, sharing: Sharing) -> ModelFact:
    """The first way that fits, from all weights in float32 to adapters beside four bits."""
    fitting = [way for way in (*sharing.whole(), *sharing.adapters()) if way.fits(sharing.total)]
    if fitting:
        way = fitting[0]
        told = f"trains with {way.words}: {way.total / _GIB:.1f} of {sharing.total / _GIB:.1f} GiB"
        return ModelFact(name, OK, told, way.setting, {"needed": way.total, "total": sharing.total})
    least = min((*sharing.whole(), *sharing.adapters()), key=lambda way: way.total)
    told = f"does not fit: {least.words} take {least.total / _GIB:.1f} of {sharing.total / _GIB:.1f} GiB"
    return ModelFact(name, NOTE, told, "a larger GPU, or several", {"needed": least.total, "total": sharing.total})
