"""`strop export --push` against a hub of this test's own: every file arrives as it is, and refusals are said."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants, hf_api

from strop.errors import ConfigurationError, StropError
from strop.storage.hub import push


class Hub(BaseHTTPRequestHandler):
    """The few answers of the hub that an upload asks for; `server.files` holds what came."""

    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append((self.path, self.headers.get("authorization", "")))
        if self.headers.get("authorization") != "Bearer secret":
            return self._say({"error": "Invalid username or password."}, 401)
        if self.path == "/api/repos/create":
            self.server.created.append(json.loads(body))
            return self._say({"url": f"{self.server.address}/me/tiny"})
        if self.path.endswith("/preupload/main"):
            files = [
                {"path": each["path"], "uploadMode": _mode(each["path"]), "shouldIgnore": False}
                for each in json.loads(body)["files"]
            ]
            return self._say({"files": files})
        if self.path.endswith("/objects/batch"):
            wanted = [(each["oid"], each["size"]) for each in json.loads(body)["objects"]]
            return self._say({"transfer": "basic", "objects": [self._upload(*each) for each in wanted]})
        if "/commit/main" in self.path:
            return self._commit(body)
        return self._say({})

    def do_PUT(self) -> None:
        self.server.objects[self.path.rpartition("/")[2]] = self.rfile.read(int(self.headers["content-length"]))
        self._say({})

    def do_GET(self) -> None:
        self._say({"id": "me/tiny", "sha": "a" * 40, "siblings": [], "private": True})

    def _upload(self, oid: str, size: int) -> dict[str, Any]:
        href = {"href": f"{self.server.address}/objects/{oid}"}
        return {"oid": oid, "size": size, "actions": {"upload": href}}

    def _commit(self, body: bytes) -> None:
        for line in map(json.loads, body.splitlines()):
            told = line["value"]
            if line["key"] == "file":
                self.server.files[told["path"]] = base64.b64decode(told["content"])
            elif line["key"] == "lfsFile":
                self.server.files[told["path"]] = self.server.objects[told["oid"]]
        self._say({"commitUrl": f"{self.server.address}/me/tiny/commit/1", "commitOid": "a" * 40})

    def _say(self, answer: dict[str, Any], status: int = 200) -> None:
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *told: Any) -> None:
        pass


def _mode(path: str) -> str:
    return "lfs" if path.endswith(".safetensors") else "regular"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.address = f"http://127.0.0.1:{server.server_port}"
    server.files, server.objects, server.created, server.asked = {}, {}, [], []
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", "secret")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 4)
    return folder


def test_every_file_arrives_as_it_is_in_a_private_repository(hub: Any, model: Path) -> None:
    assert push(model, "me/tiny").endswith("/me/tiny")
    sent = {name: content for name, content in hub.files.items() if name != ".gitattributes"}
    assert sent == {each.name: each.read_bytes() for each in model.iterdir()}
    assert hub.created == [{"name": "tiny", "organization": "me", "visibility": "private"}]
    assert {key for _, key in hub.asked} == {"Bearer secret"}


def test_a_refusal_says_who_one_must_be(hub: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "wrong")
    with pytest.raises(StropError, match=r"me/tiny was not pushed .*hf auth login"):
        push(model, "me/tiny")
    assert not hub.files


def test_what_cannot_be_pushed_asks_nobody(hub: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="OWNER/NAME"):
        push(model, "tiny")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigurationError, match="HF_HUB_OFFLINE is set"):
        push(model, "me/tiny")
    assert not hub.asked and hf_api.HfApi().endpoint == hub.address
