"""Pictures in prompts: processed once by the model's own image processor, and written as its family writes them.

A chat template shows a marker for each picture; the family's text takes its place before anything is tokenized, and its
placeholders become words that name the picture (`models/tokens/picture_words.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.errors import ModelError
from strop.models.layers.decoder_part import has_tower
from strop.models.loading.check_folder import read_config
from strop.models.pictures import FAMILIES, TILES, placeholder_of
from strop.models.tokens.picture_words import MARKER, code_of, places_in, words_of
from strop.storage.picture_store import PictureStore, opened, processor_key
from strop.types import IntArray, Message, Picture

_EDGES = ("boi_token_index", "eoi_token_index")  # of Gemma 3
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")


def has_places(message: Message) -> bool:
    """Whether content says where its pictures belong: by as many markers."""
    return bool(message.images) and message.content.count(MARKER) == len(message.images)


def parts_of(message: Message) -> list[dict[str, str]]:
    """Content as templates of models that see take it: texts and pictures in order."""
    texts = message.content.split(MARKER) if has_places(message) else [*[""] * len(message.images), message.content]
    parts = list[dict[str, str]]()
    for place, text in enumerate(texts):
        parts += [{"type": "image"}] if place else []
        parts += [{"type": "text", "text": text}] if text else []
    return parts or [{"type": "text", "text": ""}]


@dataclass
class PictureReader:
    """Image processor of a model folder, and the text that stands for a picture in its prompts."""

    folder: Path
    config: Any
    tokenizer: Any
    processor: Any
    store: PictureStore

    @classmethod
    def of(cls, folder: Path, tokenizer: Any, store: PictureStore) -> PictureReader:
        """Refuses a model that has no tower, of a family that strop does not show pictures, or without a processor."""
        config = read_config(folder)
        if not has_tower(config):
            raise ModelError(
                f"{folder} is a text model ({config.model_type}), and a message holds a picture: take a model that sees"
            )
        if config.model_type not in FAMILIES:
            raise ModelError(
                f"strop shows pictures to {', '.join(FAMILIES)}; {folder} is {config.model_type}, for text only"
            )
        return cls(folder, config, tokenizer, _processor(folder, config), store)

    @property
    def placeholder(self) -> str:
        return str(self.tokenizer.convert_ids_to_tokens(placeholder_of(self.config)))

    @property
    def shown_by(self) -> str:
        """What the chat template writes for a whole picture."""
        first = self.config.boi_token_index if self.config.model_type == "gemma3" else placeholder_of(self.config)
        return str(self.tokenizer.convert_ids_to_tokens(first))

    def expanded(self, rendered: str, pictures: Sequence[Picture]) -> str:
        """A rendered template with each marker replaced by what its picture takes."""
        parts = rendered.split(self.shown_by)
        if len(parts) != len(pictures) + 1:
            raise ModelError(
                f"the chat template of {self.folder} shows {len(parts) - 1} of {len(pictures)} pictures: take the "
                "template that belongs to the model"
            )
        texts = [self._text(self.arrays(picture)) for picture in pictures]
        if self.config.model_type == "gemma3":  # what its processor puts around the placeholders
            edges = [str(self.tokenizer.convert_ids_to_tokens(i)) for i in (vars(self.config)[n] for n in _EDGES)]
            texts = [f"\n\n{edges[0]}{text}{edges[1]}\n\n" for text in texts]
        return parts[0] + "".join(text + part for text, part in zip(texts, parts[1:], strict=True))

    def with_words(self, ids: IntArray, pictures: Sequence[Picture]) -> IntArray:
        """Tokens in which placeholders are words of the pictures, in order."""
        if not pictures:
            return ids
        is_place = ids == placeholder_of(self.config)
        words = [words_of(code_of(each.digest), self._count(self.arrays(each))) for each in pictures]
        found = ids.copy()
        if is_place.sum() != sum(map(len, words)):
            raise ModelError(
                f"{self.folder}: pictures take {sum(map(len, words))} tokens and the prompt holds {is_place.sum()}"
            )
        found[is_place] = np.concatenate(words)
        return found

    def shown_as(self, tokens: IntArray) -> IntArray:
        """Tokens in which one placeholder stands for each picture, to be shown as text."""
        first = tokens[(tokens >= 0) | (places_in(tokens) == 0)]
        return np.where(first < 0, placeholder_of(self.config), first)

    def arrays(self, picture: Picture) -> dict[str, Tensor]:
        """What the processor makes of a picture, made once for a run folder."""
        key, code = processor_key(self.folder), code_of(picture.digest)
        if not self.store.has(key, code):
            self.store.put(key, code, self._processed(opened(self.store.bytes_of(picture))))
        if picture.data:
            self.store.keep(picture)
        return self.store.arrays(key, code)

    def _processed(self, picture: Any) -> dict[str, Tensor]:
        vision, settings = self.config.vision_config, dict[str, Any]()
        if self.config.model_type == "mistral3":  # whose own processor counts patches of patches
            side = vision.patch_size * self.config.spatial_merge_size
            settings = {"patch_size": {"height": side, "width": side}}
        elif self.config.model_type in ("idefics3", "smolvlm"):
            settings = {"return_row_col_info": True}
        elif self.config.model_type == "gemma3":
            settings = {"do_pan_and_scan": False}
        made = self.processor(images=[picture], return_tensors="pt", **settings)
        cut = [int(np.asarray(made.pop(name)).ravel()[0]) for name in ("rows", "cols") if name in made]
        found = {name: torch.as_tensor(each).contiguous() for name, each in made.items() if name != "num_crops"}
        return found | {TILES: torch.tensor(cut)} if cut else found

    def _count(self, arrays: dict[str, Tensor]) -> int:
        """Tokens that stand for a picture."""
        return self._text(arrays).count(self.placeholder)

    def _text(self, arrays: dict[str, Tensor]) -> str:
        return _EXPANSIONS[self.config.model_type](self.placeholder, self.config, arrays)


def _qwen(token: str, config: Any, arrays: dict[str, Tensor]) -> str:
    side = int(config.vision_config.spatial_merge_size)
    return token * (int(arrays["image_grid_thw"].prod()) // side**2)


def _idefics(token: str, config: Any, arrays: dict[str, Tensor]) -> str:
    """Tiles by row and column, then the whole picture."""
    vision, edge = config.vision_config, "<fake_token_around_image>"
    whole = token * (arrays["pixel_values"].shape[-1] // vision.patch_size // config.scale_factor) ** 2
    rows, cols = arrays[TILES].tolist()
    if not rows or not cols:
        return f"{edge}<global-img>{whole}{edge}"
    tiles = ["".join(f"{edge}<row_{r + 1}_col_{c + 1}>{whole}" for c in range(cols)) + "\n" for r in range(rows)]
    return "".join(tiles) + f"\n{edge}<global-img>{whole}{edge}"


def _mistral(token: str, config: Any, arrays: dict[str, Tensor]) -> str:
    side = config.vision_config.patch_size * config.spatial_merge_size
    height, width = (int(each) // side for each in arrays["image_sizes"][0])
    lines = [token * width] * height
    return "[IMG_BREAK]".join(lines) + "[IMG_END]"


def _gemma(token: str, config: Any, arrays: dict[str, Tensor]) -> str:
    return token * int(config.mm_tokens_per_image)


_EXPANSIONS: dict[str, Callable[[str, Any, dict[str, Tensor]], str]] = {
    "idefics3": _idefics,
    "smolvlm": _idefics,
    "qwen2_vl": _qwen,
    "qwen2_5_vl": _qwen,
    "qwen3_vl": _qwen,
    "qwen3_vl_moe": _qwen,
    "qwen3_5": _qwen,
    "qwen3_5_moe": _qwen,
    "mistral3": _mistral,
    "gemma3": _gemma,
}


def _processor(folder: Path, config: Any) -> Any:
    """The image processor in PIL's arithmetic, whatever else is installed: others give other pixels."""
    if not any((folder / name).is_file() for name in _PROCESSORS):
        raise ModelError(f"{folder} has no image processor: preprocessor_config.json of the model belongs there")
    try:
        from transformers import AutoImageProcessor

        found = AutoImageProcessor.from_pretrained(
            str(folder), backend="pil", local_files_only=True, trust_remote_code=False
        )
    except ImportError as error:
        raise ModelError(f"pictures need Pillow: pip install 'strop[pictures]' ({error})") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"the image processor in {folder} cannot be loaded: {' '.join(str(error).split())[:200]}"
        ) from error
    _refuse_unfit(folder, found, config)
    return found


def _refuse_unfit(folder: Path, processor: Any, config: Any) -> None:
    """A processor whose patches are not those of the tower."""
    vision, told = vars(config.vision_config), vars(processor)
    pairs = [("merge_size", "spatial_merge_size"), ("temporal_patch_size",) * 2]
    pairs += [("size", "image_size")] if config.model_type == "gemma3" else []
    pairs += [("max_image_size", "image_size")] if config.model_type in ("idefics3", "smolvlm") else []
    pairs += [("patch_size", "patch_size")] if config.model_type not in ("mistral3", "gemma3") else []
    for name, due in pairs:
        ours, theirs = _side(told.get(name)), _side(vision.get(due))
        if ours and theirs and ours != theirs:
            raise ModelError(
                f"the image processor in {folder} has {name}={ours} and the tower {due}={theirs}: take the "
                "preprocessor_config.json that belongs to the model"
            )


def _side(value: Any) -> int:
    if isinstance(value, Mapping):
        value = value.get("height") or value.get("longest_edge")
    return value if isinstance(value, int) else 0
