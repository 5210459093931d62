"""Estimate of the GPU memory of engine and trainer, from the model's shape, before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from strop.capabilities import outermost
from strop.errors import ModelError
from strop.generate.engines.cpu.torch_engine import TorchEngine, named_dtype
from strop.generate.engines.paged.kv_memory import bytes_of_keys, context_of
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.paged.paged_llama import why_not
from strop.models.layers.eight_bit_linear import bytes_in_eight_bits, eight_bit_weights, outline
from strop.models.layers.four_bit_linear import bytes_in_four_bits, has_experts
from strop.models.loading.model_names import model_folder
from strop.models.optimizers.low_memory_adamw import FLOAT32, HOLDINGS
from strop.models.torch_setup import device_problem, gpu_memory
from strop.run import Run
from strop.training.machine.full_weights import holdings_of
from strop.training.machine.llama import has_fast_path
from strop.training.machine.lora import count_of
from strop.training.machine.memory import SPARE, Room, bytes_needed, peak, ways
from strop.training.objective import Objective
from strop.training.requirements import Logits, Logprobs
from strop.training.trainers.torch import TorchTrainer

_RANK = 32  # of adapters that are proposed to whoever has none
_GIB = 2**30


@dataclass(frozen=True)
class Way:
    """One way to train: its GPU memory by purpose, and the settings it needs."""

    setting: str
    words: str
    weights: int  # bytes of the trainer's own, and of models that it asks
    engine: dict[str, int]
    needed: dict[str, int]
    max_tokens: int
    is_checkpointed: bool
    is_in_turns: bool  # keys are given back while a step is trained

    @property
    def beside(self) -> int:
        """Bytes that are there all the time."""
        return self.weights + (self.engine["weights"] if self.is_in_turns else sum(self.engine.values()))

    @property
    def passing(self) -> int:
        """Those on top of them at their most."""
        return peak(self.needed, self.engine["keys"] if self.is_in_turns else 0)

    @property
    def total(self) -> int:
        return self.beside + self.passing

    def fits(self, total: int) -> bool:
        """As the trainer will ask once the others have taken their part."""
        return self.passing <= SPARE * (total - self.beside)


@dataclass(frozen=True)
class Sharing:
    """Memory of trainer and engine that share one otherwise empty GPU."""

    trainer: TorchTrainer
    engine: PagedEngine | TorchEngine
    model: Any  # its shape
    total: int  # bytes
    context: int
    others: int = 0  # models beside it that do not learn, without adapters
    is_in_turns: bool = False  # keys are given back while a step is trained

    @property
    def count(self) -> int:
        return sum(each.numel() for each in self.model.parameters())

    def engine_bytes(self, lends: bool) -> dict[str, int]:
        """Without weights where those of the trainer are read."""
        size = torch.empty(0, dtype=named_dtype(self.engine.dtype)).element_size()
        keys = bytes_of_keys(self.engine, self.model, self.total) if isinstance(self.engine, PagedEngine) else 0
        eights = eight_bit_weights(self.model)
        weights = size * (self.count - sum(each.numel() for each in eights)) + bytes_in_eight_bits(eights)
        return {"weights": 0 if lends else weights, "keys": keys}

    @property
    def engine_context(self) -> int:
        """Tokens of the longest context that the engine can hold."""
        if not isinstance(self.engine, PagedEngine) or why_not(self.model):
            return self.context
        return context_of(self.engine, self.model)

    @property
    def room(self) -> Room:
        """What the trainer is told."""
        engine = self.engine_bytes(lends=False)
        others, turning = 0 if self.trainer.lora else self.others, engine["keys"] if self.is_in_turns else 0
        return Room(sum(engine.values()) - turning, self.context, others, turning)

    def whole(self) -> list[Way]:
        """Training all weights, the most bytes first."""
        asked = self.trainer.bytes_per_weight
        held = [HOLDINGS[asked]] if asked else holdings_of(self.trainer, self.model)
        is_fast = len(holdings_of(self.trainer, self.model)) > 1
        return [
            self._quickest(
                f"trainer.bytes_per_weight={holding.total}",
                f"{holding.total} bytes a weight ({holding.words})",
                self.count * (holding.weights + self.others * holding.frozen_bytes),
                partial(bytes_needed, self.model, holding, self.trainer.chunk, is_fast),
                lends=False,
            )
            for holding in held
        ]

    def adapters(self) -> list[Way]:
        """Training adapters beside weights in bfloat16, then beside those in four bits; the engine reads them too."""
        rank, is_fast = self.trainer.lora or _RANK, has_fast_path(self.model, torch.bfloat16)
        learned, each, frozen = count_of(self.model, rank), HOLDINGS[FLOAT32], _Frozen(self.model)
        beside = {"adapters": learned * (each.total + 2 * is_fast)}

        def needed(*way: Any) -> dict[str, int]:
            return bytes_needed(frozen, each, self.trainer.chunk, is_fast, *way) | beside

        held = 2 if is_fast else 4
        setting, words = f"trainer.lora={rank}", f"adapters of rank {rank} beside weights"
        plain = self._quickest(setting, f"{words} of {held} bytes", held * self.count, needed, lends=is_fast)
        if not is_fast or has_experts(self.model):
            return [plain]
        setting, words = f"{setting} trainer.base=nf4", f"{words} in 4 bits"
        return [plain, self._quickest(setting, words, bytes_in_four_bits(self.model), needed, lends=True)]

    def _quickest(self, setting: str, words: str, weights: int, needed: Any, lends: bool) -> Way:
        """The quickest way that fits, or the one that takes least."""
        made = partial(Way, setting, words, weights, self.engine_bytes(lends))
        found = [
            made(needed(is_checkpointed, tokens), tokens, is_checkpointed, self.is_in_turns)
            for is_checkpointed, tokens in ways(self.trainer.checkpointing, self.trainer.max_tokens, self.context)
        ]
        return next((way for way in found if way.fits(self.total)), min(found, key=lambda way: way.total))

    @property
    def chosen(self) -> Way:
        """What will be done; where nothing fits, what takes least."""
        asked = self.whole()
        if self.trainer.lora:
            asked = self.adapters()[-1:] if self.trainer.base == "nf4" else self.adapters()[:1]
        return next((way for way in asked if way.fits(self.total)), min(asked, key=lambda way: way.total))


class _Frozen:
    """A model of which nothing learns, in bfloat16, as `bytes_needed` looks at it."""

    def __init__(self, model: Any) -> None:
        self.config, self._head = model.config, torch.nn.Linear(1, 1, bias=False).requires_grad_(False)

    def parameters(self) -> list[Any]:
        return []

    modules = parameters

    def get_output_embeddings(self) -> Any:
        return self._head


def sharing_of(run: Run, total: int = 0) -> Sharing | None:
    """Who shares a GPU of `total` bytes, or of as many as it has; None where nobody does, or it is not known here."""
    trainers = [each for _, each in outermost(run.trainer, TorchTrainer)]
    engines: list[PagedEngine | TorchEngine] = [each for _, each in outermost(run.engine, PagedEngine)]
    engines += [each for _, each in outermost(run.engine, TorchEngine)]
    if len(trainers) != 1 or len(engines) != 1:
        return None
    trainer, engine = trainers[0], engines[0]
    if not trainer.device.startswith("cuda") or engine.device != trainer.device:
        return None
    if not total and device_problem(trainer.device):  # told by whoever looks for devices
        return None
    try:
        model = outline(model_folder(run.model), trainer.matmul_precision)
    except (ModelError, ValueError):  # told by whoever reads the folder
        return None
    found = Sharing(trainer, engine, model, total or gpu_memory(trainer.device)[1], run.context, _others(run))
    is_alone = run.admission.is_ordered and not run.streams  # while a step is trained nothing is decoded
    return _in_turns(found) or found if is_alone else found


def _in_turns(sharing: Sharing) -> Sharing | None:
    """The same with keys that are given back while a step is trained, where it fits with that alone."""
    turning = replace(sharing, is_in_turns=True)
    is_needed = not sharing.chosen.fits(sharing.total) and turning.chosen.fits(sharing.total)
    return turning if is_needed else None


def _others(run: Run) -> int:
    """Models that are asked for logprobs, as far as they are no copies of the one that learns."""
    needs = Objective(run.losses, run.correction).needs
    asked = {need.policy for need in needs if isinstance(need, Logprobs | Logits)}
    return len(asked - {"proximal", "old", "averaged"}) + (run.trainer.snapshots > 0 or run.trainer.average_window > 0)


def problems(run: Run) -> list[str]:
    """What cannot fit, with the numbers and with what would."""
    return [] if (sharing := sharing_of(run)) is None else refusals(sharing)


def refusals(sharing: Sharing) -> list[str]:
    trainer, found = sharing.trainer, []
    if sharing.context > trainer.max_tokens:
        found.append(
            f"contexts of up to {sharing.context} tokens do not fit into micro-batches of {trainer.max_tokens}, for "
            f"which memory is planned: set trainer.max_tokens={sharing.context}, or a smaller context"
        )
    if (longest := sharing.engine_context) < sharing.context:
        found.append(
            f"contexts of up to {sharing.context} tokens are longer than the {longest} that the engine has room for: "
            f"set engine.context={sharing.context}, or a smaller context"
        )
    if not (way := sharing.chosen).fits(sharing.total):
        found.append(f"{_numbers(sharing, way)}. {_remedy(sharing)}")
    return found


def said(run: Run) -> list[str]:
    """How weights are held where it is not as ever."""
    sharing = sharing_of(run)
    if sharing is None:
        return []
    if (way := sharing.chosen).is_in_turns:
        return [f"{_numbers(sharing, way)}: keys are given back while a step is trained, or it would not fit"]
    if sharing.trainer.lora or f"={FLOAT32}" in way.setting:
        return []
    least = sharing.whole()[0]
    more = f"; {least.words} would be {_gib(least.total)}" if least.setting != way.setting else ""
    return [f"{_numbers(sharing, way)}{more}"]


def expect(run: Run) -> None:
    """Tell trainer and engine what they will have beside them, before a model is loaded."""
    if (sharing := sharing_of(run)) is not None:
        sharing.trainer.expect(sharing.room)
        if isinstance(sharing.engine, PagedEngine) and sharing.is_in_turns:
            sharing.engine.takes_turns = True


def _numbers(sharing: Sharing, way: Way) -> str:
    parts = {"weights": way.weights, **way.needed}
    listed = ", ".join(f"{name} {count / _GIB:.1f}" for name, count in parts.items() if count >= 0.05 * _GIB)
    engine = ", ".join(f"{name} {count / _GIB:.1f}" for name, count in way.engine.items() if count)
    return (
        f"a model of {sharing.count / 1e9:.2f} billion weights on a GPU of {_gib(sharing.total)}: training takes "
        f"{_gib(way.weights + sum(way.needed.values()))} ({listed}) with {way.words} and micro-batches of "
        f"{way.max_tokens} tokens, the engine {_gib(sum(way.engine.values()))} ({engine})"
    )


def _remedy(sharing: Sharing) -> str:
    """What would fit, or how small a model has to be."""
    others = [*sharing.adapters(), *sharing.whole()]
    fitting = [f"{way.setting} ({_gib(way.total)})" for way in others if way.fits(sharing.total)]
    if turning := _in_turns(sharing):
        fitting.append(f"lag=0 ({_gib(turning.chosen.total)}: keys are given back while a step is trained)")
    if fitting:
        return f"It fits with {' or '.join(fitting)}"
    alone = sum(sharing.engine_bytes(lends=False).values())
    weights = alone - sharing.engine_bytes(lends=False)["keys"]
    least = min(others, key=lambda way: way.total)
    share = SPARE * sharing.total / least.total
    only = f"It fits as an engine alone ({_gib(alone)})" if alone <= SPARE * sharing.total else "Nothing of it fits"
    if alone > SPARE * sharing.total >= weights:
        only = f"It fits as an engine alone with fewer keys (weights {_gib(weights)})"
    return (
        f"{only}: the least that training takes is {_gib(least.total)} with {least.setting}, so take a model of at "
        f"most {share * sharing.count / 1e9:.1f} billion weights, an engine with less memory for keys, or a larger GPU"
    )


def _gib(count: int | float) -> str:
    return f"{count / _GIB:.1f} GiB"
