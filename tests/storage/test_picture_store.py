"""Bytes of pictures are never trusted, and no address is fetched; what cannot be read is said before a run."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from strop.environments.isolation.client import observation
from strop.environments.isolation.worker import _plain
from strop.errors import DataError, ModelError, StropError
from strop.generate.agents.external_program import _plain as shown_to_program
from strop.generate.serve.ask_requests import Refusal
from strop.generate.serve.dialects.chat_completions import ChatCompletions
from strop.generate.serve.dialects.messages import Messages
from strop.generate.serve.dialects.responses import Responses
from strop.generate.templates.chat_template import Template
from strop.launch.running.launch import launch
from strop.models.tokens.picture_words import runs_in, with_runs, words_of
from strop.observe.report.rollout_page import _spoken
from strop.observe.report.transcripts import Reader, Utterance
from strop.recipes import build, recipe_named
from strop.stats.task_lineage import plain, unplain
from strop.storage.picture_store import MOST_BYTES, PictureStore, picture_of, thumbnail
from strop.types import Message, Observation, Picture, Task
from strop.workers.untrusted_answers import NoAnswer
from tests.models.tower_models import save_tower_model
from tests.tiny_models import save_pocket_like


def png(width: int = 12, height: int = 8) -> bytes:
    held = io.BytesIO()
    Image.fromarray(np.arange(width * height * 3, dtype=np.uint8).reshape(height, width, 3)).save(held, "PNG")
    return held.getvalue()


def uri(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def huge() -> bytes:
    """A PNG of 30,000 x 30,000 pixels in a few bytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


_BAD: dict[str, tuple[Any, str]] = {
    "text": (b"<svg onload=alert(1)>", "no picture that can be decoded"),
    "cut": (png(60, 60)[:200], "no picture that can be decoded"),
    "huge": (huge(), "far too many pixels: at most 40,000,000"),
    "many bytes": (b"\x89PNG" + bytes(MOST_BYTES), "bytes: at most"),
    "missing": ("no.png", "no.png does not exist"),
    "link": ("link.png", "is a link"),
    "above": ("../one.png", "beside or below its table"),
    "absolute": ("/etc/hostname", "beside or below its table"),
    "address": ("https://example.org/a.png", "addresses are never fetched"),
    "file address": ("file:///etc/hostname", "addresses are never fetched"),
    "no base64": ("data:image/png,abc", "data:image/png;base64"),
    "bad base64": ("data:image/png;base64,!!", "no base64"),
    "number": (7, "a path, a data URI or bytes, got int"),
}


@pytest.mark.parametrize("name", list(_BAD))
def test_what_is_no_picture_is_a_sentence(tmp_path: Path, name: str) -> None:
    source, said = _BAD[name]
    (tmp_path / "one.png").write_bytes(png())
    (tmp_path / "link.png").symlink_to(tmp_path / "one.png")
    with pytest.raises(DataError, match=said):
        picture_of(source, tmp_path)


def test_a_linked_folder_below_a_table_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.png").write_bytes(png())
    (tmp_path / "table" / "own").mkdir(parents=True)
    (tmp_path / "table" / "own" / "one.png").write_bytes(png())
    (tmp_path / "table" / "linked").symlink_to(tmp_path / "elsewhere")
    assert picture_of("own/one.png", tmp_path / "table").width == 12
    with pytest.raises(DataError, match="lies behind a linked folder"):
        picture_of("linked/secret.png", tmp_path / "table")


def test_one_content_has_one_name_wherever_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(png())
    found = [picture_of(each, tmp_path) for each in ("one.png", png(), uri(png()), {"bytes": png(), "path": None})]
    assert len(set(found)) == 1 and (found[0].width, found[0].height) == (12, 8)
    store = PictureStore(tmp_path)
    store.keep(found[0])
    (path,) = (tmp_path / "pictures").iterdir()
    assert path.name == f"{found[0].digest}.png" and path.read_bytes() == png()
    path.write_bytes(png(4, 4))
    with pytest.raises(DataError, match="is damaged"):
        PictureStore(tmp_path).bytes_of(type(found[0])(found[0].digest, 12, 8))


def test_words_come_back_from_runs_and_foreign_runs_are_refused() -> None:
    prompt = np.concatenate([[5, 6], words_of(77, 3), words_of(78, 2), [9], words_of(77, 3)])
    runs = runs_in(prompt)
    assert [run[0] for run in runs] == [2, 5, 8] and (with_runs(np.maximum(prompt, -1), runs) == prompt).all()
    for bad in ([[2, 77, 0, 99]], [[0, 77, 0, 2]], [[2, -1, 0, 3]], [[2, 1 << 47, 0, 3]], [[2, 77, 0, 3.5]]):
        with pytest.raises(ValueError, match=r"no run|ends at"):
            with_runs(np.maximum(prompt, -1), bad)


def run_on(model: Path, tmp_path: Path, **columns: Any) -> None:
    (tmp_path / "one.png").write_bytes(png())
    row = {"prompt": "ab", "answer": "a", "images": ["one.png"]} | columns
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {"prompt": "b"}))
    sizes = {"steps": 1, "groups_per_step": 1, "group_size": 2, "max_tokens": 4, "heldout_tasks": 1}
    launch(
        build(recipe_named("grpo"), {"model": str(model), "env": str(tmp_path / "t.jsonl"), **sizes}), tmp_path, "run"
    )


def test_what_cannot_be_shown_is_refused_before_the_run(tmp_path: Path) -> None:
    sees, text = save_tower_model(tmp_path / "sees", "qwen2_5_vl"), save_pocket_like(tmp_path / "text")
    other = save_tower_model(tmp_path / "other", "glm4v")
    cases: list[tuple[Path, dict[str, Any], type[StropError], str]] = [
        (text, {}, ModelError, r"is a text model \(llama\), and a message holds a picture"),
        (other, {}, ModelError, "is glm4v, for text only"),
        (sees, {"images": ["two.png"]}, DataError, r"t.jsonl:1: the picture .*two.png does not exist"),
        (sees, {"prompt": "a<image><image>"}, DataError, "holds 1 pictures, and the messages have 2 places"),
    ]
    for model, columns, kind, said in cases:
        with pytest.raises(kind, match=said):
            run_on(model, tmp_path, **columns)
        assert not (tmp_path / "run").exists()
    config = sees / "preprocessor_config.json"
    told = json.loads(config.read_text())
    config.write_text(json.dumps(told | {"patch_size": 8}))
    with pytest.raises(ModelError, match="has patch_size=8 and the tower patch_size=4"):
        run_on(sees, tmp_path)
    config.unlink()
    with pytest.raises(ModelError, match="has no image processor"):
        run_on(sees, tmp_path)


def test_text_that_spells_a_placeholder_is_no_picture(tmp_path: Path) -> None:
    template = Template.load(save_tower_model(tmp_path, "idefics3"))
    picture = picture_of(png())
    asked = template.opening([Message("user", "a<image><image>b", images=(picture,))])
    shown = template.opening([Message("user", "ab", images=(picture,))])
    assert (asked < 0).sum() == (shown < 0).sum() > 0
    assert template.spelled([Message("user", "a<image><image>b", images=(picture,))]) == ["<image>"] * 2
    assert template.spelled([Message("user", "a<image>b", images=(picture,))]) == []
    assert "<image>" in template.decode(shown)


def blocks(source: str) -> dict[str, tuple[Any, dict[str, Any]]]:
    kind, _, data = source.partition(";base64,")
    base = {"type": "base64", "media_type": kind.removeprefix("data:"), "data": data}
    held = base if data else {"type": "url", "url": source}
    text = {"type": "text", "text": "a"}

    def asked(block: dict[str, Any], key: str = "messages") -> dict[str, Any]:
        return {key: [{"role": "user", "content": [block, text]}], "max_tokens": 4, "model": "x"}

    return {
        "chat": (ChatCompletions(), asked({"type": "image_url", "image_url": {"url": source}})),
        "responses": (Responses(), asked({"type": "input_image", "image_url": source}, "input")),
        "messages": (Messages(), asked({"type": "image", "source": held})),
    }


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_servers_take_data_and_fetch_nothing(dialect: str) -> None:
    parser, body = blocks(uri(png()))[dialect]
    (said,) = parser.parse(body).said
    message = said.message
    assert message.content == "<image>a" and message.images == (picture_of(png()),)
    for source, why in (("https://example.org/a.png", "fetched"), (uri(huge()), "pixels"), (uri(b"x"), "decoded")):
        parser, body = blocks(source)[dialect]
        with pytest.raises(Refusal, match=why) as refused:
            parser.parse(body)
        assert refused.value.status == 400


def test_pages_show_small_copies_and_nothing_else(tmp_path: Path) -> None:
    store, picture = PictureStore(tmp_path), picture_of(png(1200, 40))
    store.keep(picture)
    shown = thumbnail(store, picture)
    small = Image.open(io.BytesIO(base64.b64decode(shown.partition(",")[2])))
    assert shown.startswith("data:image/") and max(small.size) == 256 and len(shown) < 40_000
    said = Reader(None, store).pictures(Message("user", "<b>", images=(picture,) * 20))
    page = str(_spoken(Utterance("user", "<b>", pictures=said), 0.0))
    assert page.count("<img ") == 16 and "4 more pictures" in page and "<b>" not in page
    assert "<img" not in str(_spoken(Utterance("user", "x", pictures=(("<script>", ""),)), 0.0))
    (tmp_path / "pictures" / f"{picture.digest}.png").write_bytes(b"no picture")
    assert thumbnail(store, Picture(picture.digest, 1200, 40)) == ""


def test_environments_and_programs_elsewhere_pass_the_bytes_on() -> None:
    picture = picture_of(png())
    told = _plain(Observation((Message("tool", "seen", images=(picture,)), Message("tool", "plain"))))
    answered = observation({"observation": json.loads(json.dumps(told))})
    assert answered.messages[0].images == (picture,) and answered.messages[0].images[0].data == png()
    assert answered.messages[1] == Message("tool", "plain")
    told["messages"][0]["images"] = [7]
    with pytest.raises(NoAnswer, match="answered a picture that cannot be read"):
        observation({"observation": told})
    task = Task((Message("user", "a", images=(picture,)),), "b", "seen")
    assert unplain(json.loads(json.dumps(plain(task)))) == task
    assert shown_to_program(task.messages[0])["content"][0]["image_url"]["url"] == uri(png())
