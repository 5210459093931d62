"""Pictures in a model's input: its tower's features in the place of their words, and positions in three directions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from strop.errors import ModelError
from strop.models.layers.decoder_part import has_tower
from strop.models.tokens.picture_words import codes_in, places_in
from strop.types import IntArray

Arrays: TypeAlias = Mapping[str, Tensor]  # what an image processor made of one picture, by the names of the model


class ReadArrays(Protocol):
    """Processed pictures of a run."""

    @property
    def is_mutual(self) -> bool:
        """Whether the tokens of a picture see each other, also those that come later."""
        ...

    def __call__(self, code: int) -> Arrays:
        """By the number in a picture's words."""
        ...


FAMILIES = (
    "idefics3",
    "smolvlm",
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen3_vl",
    "qwen3_vl_moe",
    "qwen3_5",
    "qwen3_5_moe",
    "mistral3",
    "gemma3",
)
MUTUAL = ("gemma3",)  # families in which the tokens of a picture see each other
_PLACEHOLDERS = ("image_token_id", "image_token_index", "video_token_id", "video_token_index", "audio_token_id")
TILES = "tiles"  # rows and columns into which a processor cut a picture: for its text, not for the tower
_REMEMBERED = 512  # prompts
_NEVER = -1e4  # a logit that no draw reaches; -inf would make entropies NaN


def placeholder_of(config: Any) -> int:
    """The token that a family's templates and processors write for each part of a picture."""
    values = vars(config)
    return int(values["image_token_id"] if "image_token_id" in values else values["image_token_index"])


def placeholders_of(config: Any) -> tuple[int, ...]:
    """Tokens that stand for something other than text."""
    if not has_tower(config):
        return ()
    named = [vars(config).get(name) for name in _PLACEHOLDERS]
    return tuple(each for each in named if isinstance(each, int))


def without_placeholders(scores: Tensor, config: Any) -> Tensor:
    """Logits [C, V] with which no placeholder is ever sampled."""
    never = [each for each in placeholders_of(config) if each < scores.shape[-1]]
    if not never:
        return scores
    return scores.index_fill(-1, torch.tensor(never, device=scores.device), _NEVER)


def decoder_inputs(model: Any, tokens: Tensor, read: ReadArrays | None) -> dict[str, Tensor | list[Tensor]]:
    """What a decoder reads of packed tokens [T]: these, or where there are pictures embeddings [1, T, hidden]."""
    is_picture = tokens < 0 if has_tower(model.config) else None
    if is_picture is None or not bool(is_picture.any()):
        return {"input_ids": tokens.unsqueeze(0)}
    if read is None:
        raise ModelError(
            "these tokens hold pictures, which this part cannot read: only engine=torch and the trainer do"
        )
    found = tokens[is_picture].cpu().numpy()
    unique, which = np.unique(codes_in(found), return_inverse=True)
    seen = [_features(model, read(int(code)), tokens.device) for code in unique]
    sizes = np.array([len(main) for main, _ in seen])
    places = places_in(found)
    if (places >= sizes[which]).any():
        raise ModelError(
            f"a picture has {int(places.max()) + 1} tokens and the tower gave {int(sizes[which].min())} features: "
            "preprocessor_config.json does not fit the model"
        )
    index = torch.from_numpy((np.cumsum(sizes) - sizes)[which] + places).to(tokens.device)
    plain = tokens.masked_fill(is_picture, placeholder_of(model.config))
    own = model.get_input_embeddings()(plain)
    main = torch.cat([each for each, _ in seen]).index_select(0, index)
    inputs: dict[str, Tensor | list[Tensor]] = {
        "inputs_embeds": own.masked_scatter(is_picture.unsqueeze(1), main.to(own.dtype)).unsqueeze(0)
    }
    if seen[0][1]:  # Qwen3-VL adds features of earlier tower layers after its first layers
        inputs["visual_pos_masks"] = is_picture.unsqueeze(0)
        layers = zip(*(deep for _, deep in seen), strict=True)
        inputs["deepstack_visual_embeds"] = [torch.cat(layer).index_select(0, index) for layer in layers]
    return inputs


def _features(model: Any, arrays: Arrays, device: torch.device) -> tuple[Tensor, list[Tensor]]:
    """Features of one picture [n, hidden], and those that go to deeper layers."""
    dtype = model.get_input_embeddings().weight.dtype
    given = {
        name: each.to(device=device, dtype=dtype if each.is_floating_point() else None)
        for name, each in arrays.items()
        if name != TILES
    }
    found = model.get_image_features(**given)
    return _joined(found.pooler_output), [_joined(each) for each in found.get("deepstack_features") or ()]


def _joined(features: Any) -> Tensor:
    """[n, hidden], of a tensor or of one for each tile."""
    pieces = [features] if isinstance(features, Tensor) else features
    return torch.cat([each.reshape(-1, each.shape[-1]) for each in pieces])


def merge_of(config: Any) -> int:
    """How many patches a side make one token, where heads turn by a token's place in its picture; 0: they do not."""
    rope = vars(config.get_text_config()).get("rope_parameters") or {}
    is_turned = has_tower(config) and "mrope_section" in rope
    return int(config.vision_config.spatial_merge_size) if is_turned else 0


def rope_positions(tokens: IntArray, merge: int, read: ReadArrays) -> IntArray:
    """Time, height and width of each token of a sequence: [3, T]. Text goes on behind a picture's longer side."""
    found, at, place = np.empty((3, len(tokens)), np.int64), 0, 0
    starts = np.append(np.flatnonzero(tokens < 0), len(tokens))
    while place < len(tokens):
        if tokens[place] >= 0:
            count = int(starts[np.searchsorted(starts, place)]) - place
            found[:, place : place + count] = at + np.arange(count)
            at, place = at + count, place + count
            continue
        size = _grid(read, int(codes_in(tokens[place : place + 1])[0]), merge)
        count = min(int(np.prod(size)), len(tokens) - place)
        found[:, place : place + count] = at + np.indices(size).reshape(3, -1)[:, :count]
        at, place = at + max(size[1:]), place + count
    return found


def _grid(read: ReadArrays, code: int, merge: int) -> tuple[int, int, int]:
    t, h, w = read(code)["image_grid_thw"][0].tolist()
    return t, h // merge, w // merge


class TokenRows(Protocol):
    """Rows of an engine: tokens [rows, capacity], and how many of each are its prompt."""

    tokens: IntArray
    prompt: IntArray


class Turns:
    """Positions of an engine's tokens as heads turn by them, worked out once for each prompt."""

    def __init__(self, merge: int, read: ReadArrays) -> None:
        self._merge, self._read = merge, read
        self._known: OrderedDict[bytes, IntArray] = OrderedDict()

    def __call__(self, table: TokenRows, rows: IntArray, positions: IntArray) -> IntArray:
        """Positions [T] of packed tokens of these rows [T]; [3, T] where one of the rows holds a picture."""
        if not self._merge:
            return positions
        turned = None
        for row in np.unique(rows).tolist():
            prompt = table.tokens[row, : table.prompt[row]]
            if (prompt >= 0).all():
                continue
            turned = np.tile(positions, (3, 1)) if turned is None else turned
            mine, known = rows == row, self._of(prompt)
            at, last = positions[mine], len(prompt)
            turned[:, mine] = np.where(at < last, known[:, np.minimum(at, last)], known[:, last:] + at - last)
        return positions if turned is None else turned

    def _of(self, prompt: IntArray) -> IntArray:
        """Positions of a prompt and of the token behind it: [3, P + 1]."""
        key = prompt.tobytes()
        if key not in self._known:
            self._known[key] = rope_positions(np.append(prompt, 0), self._merge, self._read)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key]
