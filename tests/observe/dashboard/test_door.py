"""Nobody but whoever was told the token sees a page, and no page obeys what a model wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strop.cli.commands.watch import watch_runs
from strop.errors import ConfigurationError
from tests.observe.dashboard.watching import TOKEN, guest, visitor
from tests.observe.folders import run_folder

PATHS = ("/", "/now", "/curves", "/static/watch.js", "/static/style.css")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    run_folder(root / "first", steps=4)
    return root


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_shown(root: Path, path: str) -> None:
    stranger = visitor(root)
    for asked in ({}, {"token": ""}, {"token": TOKEN[:-1]}, {"token": "é"}):
        answer = stranger.get(path, params=asked)
        assert answer.status_code == 401 and "first" not in answer.text and not answer.cookies
    stranger.cookies.set("strop-000000000000", TOKEN)
    assert stranger.get(path).status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8100", "", "localhost:80:80"])
def test_a_page_of_another_name_is_not_served_even_with_the_token(root: Path, host: str) -> None:
    answer = guest(root).get("/", params={"token": TOKEN}, headers={"host": host})
    assert answer.status_code == 403 and not answer.cookies


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8100"])
def test_a_forwarded_port_is_this_machine(root: Path, host: str) -> None:
    assert guest(root).get("/now", headers={"host": host}).status_code == 200


def test_the_token_leaves_the_address_and_no_script_can_read_it(root: Path) -> None:
    answer = visitor(root).get("/now", params={"token": TOKEN})
    assert answer.status_code == 303 and TOKEN not in answer.headers["location"]
    told = answer.headers["set-cookie"].lower()
    assert "httponly" in told and "samesite=strict" in told


def test_a_deep_link_keeps_its_query_through_the_sign_in(root: Path) -> None:
    answer = visitor(root).get("/rollout", params={"id": "1/0", "token": TOKEN, "beside": "a&b"})
    assert answer.headers["location"] == "/rollout?id=1%2F0&beside=a%26b"


def test_every_answer_says_what_a_browser_may_do_with_it(root: Path) -> None:
    for answer in (visitor(root).get("/"), *(guest(root).get(path) for path in PATHS), guest(root).get("/nothing")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert answer.headers["cache-control"] == "no-store" and answer.headers["x-content-type-options"] == "nosniff"


def test_pages_are_only_read(root: Path) -> None:
    assert {guest(root).request(verb, "/now").status_code for verb in ("POST", "PUT", "DELETE")} == {405}


@pytest.mark.parametrize("name", ["../first", "/etc", "nobody", "first/../first", "%2e%2e"])
def test_a_name_is_looked_up_and_is_no_path(root: Path, name: str) -> None:
    answer = guest(root).get("/now", params={"run": name})
    assert answer.status_code == 404 and "no run" in answer.text


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a folder"):
        watch_runs(tmp_path / "nothing", 0)


def test_watching_loads_no_torch() -> None:
    """It would take seconds and 300 MB, beside a run that needs them."""
    code = "import sys, strop.cli.commands.watch, strop.observe.dashboard.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
