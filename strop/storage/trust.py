"""Trust in run folders: recipe.py is code, and is executed only where this user wrote or approved it.

Next to it stands recipe.mac: message authentication codes of its text under a key that only this user can read, one per
line. A folder from elsewhere, or a recipe edited by hand, has no valid code. A superfluous code does no harm, so a new
one is written before the text that it belongs to: a killed run never leaves its own recipe untrusted.
"""

from __future__ import annotations

import ast
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from strop.errors import ConfigurationError

_KEY_BYTES = 32
_CODE_FILE = re.compile(r"\S*\.py(:\w+)?")
_COMMANDS = ("command", "program")  # fields that name what is started


def key_path() -> Path:
    """The file of the key: one per user, and per machine unless the home folder is shared."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state") / "strop" / "key"


def sign(recipe: Path, text: str) -> str:
    """Write down that this user wrote this text; answers why that cannot be done, or nothing."""
    try:
        code = _code(_key(may_make=True), text.encode())
        with recipe.with_suffix(".mac").open("a") as file:
            file.write(f"{code}\n")
    except (OSError, RuntimeError, ConfigurationError) as error:  # RuntimeError: a user without a home
        return str(error)
    return ""


def is_own(recipe: Path) -> bool:
    """Whether this user wrote a recipe as it stands there, or was asked about it before."""
    try:
        code = _code(_key(may_make=False), recipe.read_bytes())
        known = recipe.with_suffix(".mac").read_bytes().split()
    except (OSError, RuntimeError, ConfigurationError):
        return False
    return any(hmac.compare_digest(code.encode(), each) for each in known)


def require_trust(recipe: Path, trust: bool) -> None:
    """Refuse a recipe of somebody else; one that is trusted now is known from here on."""
    if is_own(recipe):
        return
    if not trust:
        raise ConfigurationError(refusal(recipe))
    with suppress(OSError):
        sign(recipe, recipe.read_text())


def refusal(recipe: Path) -> str:
    """Why a recipe is not executed, and what executing it would run."""
    was_known = recipe.with_suffix(".mac").is_file()
    why = "was changed by hand, or comes from" if was_known else "was not written by you on this machine: it comes from"
    runs = "".join(f"\n  {each}" for each in named_code(recipe))
    return (
        f"{recipe} {why} another user or machine (the key of this one is {_place()}). It is code, and would be "
        f"executed with your rights:{runs}\nRead it, then trust it, which is remembered: --trust with train, eval, "
        "replay or attack; strop.resume(RUN, trust=True) in Python"
    )


def named_code(recipe: Path) -> list[str]:
    """What would be executed, read and not run: the file, what it imports, and files and commands that it names."""
    found = [f"{recipe}"]
    try:
        tree = ast.parse(recipe.read_text())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return [f"{recipe} (which is no Python that can be read)"]
    for node in ast.walk(tree):
        found += _code_of(node)
    return list(dict.fromkeys(found))


def _code_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (f"module {each.name}" for each in names if not _is_harmless(each.name))
        case ast.ImportFrom(module=str(module)) if not _is_harmless(module):
            yield f"module {module}"
        case ast.Call(func=ast.Attribute(attr="append"), args=[ast.Constant(value=str(folder))]):
            yield f"modules in {folder}"
        case ast.keyword(arg=str(name), value=ast.Constant(value=str(words))) if name in _COMMANDS:
            yield f"command {words}"
        case ast.Constant(value=str(text)) if _CODE_FILE.fullmatch(text):
            yield f"file {text}"


def _is_harmless(module: str) -> bool:
    """Whether a file that strop writes imports it by itself."""
    return module == "sys" or module.split(".")[0] == "strop"


def _code(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _key(may_make: bool) -> bytes:
    path = key_path()
    if not path.exists() and may_make:
        _make(path)
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise ConfigurationError(f"{path} is not yours alone: chmod 600, or remove it and trust your runs anew")
    if len(key := path.read_bytes()) != _KEY_BYTES:
        raise ConfigurationError(f"{path} is no key: remove it and trust your runs anew")
    return key


def _make(path: Path) -> None:
    """Whole or not at all, and the same for all who begin at once."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    building = path.with_name(f".key-{secrets.token_hex(8)}")
    descriptor = os.open(building, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, secrets.token_bytes(_KEY_BYTES))
        os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(building, path)
    finally:
        os.close(descriptor)
        building.unlink()


def _place() -> str:
    try:
        return str(key_path())
    except RuntimeError:
        return "missing: there is no home folder; set XDG_STATE_HOME"
