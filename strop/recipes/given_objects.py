"""Fields of a recipe given as Python objects: functions, rows of a table, datasets, data frames.

A run is a file that can be executed again, so an object becomes a file of its own, named by its content, in strop's
cache: rows as JSON lines, a function that no importable file defines as source with what it uses.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Literal

from strop.errors import ConfigurationError
from strop.models.loading.smollm2 import cache

_WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}
_PLAIN = (bool, int, float, str, bytes, tuple, list, dict, set, frozenset, type(None))


def as_values(fields: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as a recipe takes them; a value of a wrong type is refused."""
    found = dict(fields)
    if not isinstance(found.get("env", ""), str):
        found["env"] = _table(found["env"])
    if not isinstance(found.get("reward", ""), str):
        found["reward"] = _rewards(found["reward"])
    for name, value in found.items():
        found[name] = _fitting(name, value, types.get(name))
    return found


def _fitting(name: str, value: Any, kind: Any) -> Any:
    """A value of a plain type; lists become tuples, and numbers of numpy plain ones."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(value, list):
        return tuple(value)
    if origin is Literal and value not in inner:
        raise ConfigurationError(f"{name} must be one of {', '.join(map(str, inner))}, got {value!r}")
    kinds: dict[Any, tuple[type, ...]] = {int: (int,), float: (int, float), bool: (bool,), str: (str,)}
    wanted = kinds.get(kind)
    plain = value.item() if type(value).__module__ == "numpy" and kind in (int, float) else value
    if wanted is None or (isinstance(plain, wanted) and (kind is bool or not isinstance(plain, bool))):
        return plain
    if kind is str and isinstance(value, Path):
        return str(value)
    hint = ": leave out the quotes" if isinstance(value, str) and kind in (int, float, bool) else ""
    raise ConfigurationError(f"{name} must be {_WORDS[kind]}, got {type(value).__name__} {value!r:.60}{hint}")


# Rows.


def _table(given: Any) -> str:
    """A file of rows, or a folder with a file for each split."""
    if isinstance(given, Path):
        return str(given)
    if isinstance(given, Mapping):
        texts = {str(split): _lines(rows) for split, rows in given.items()}
        folder = cache() / "rows" / f"rows-{_digest(*texts, *texts.values())}"
        for split, text in texts.items():
            _written(folder / f"{split}.jsonl", text)
        return f"dataset:{folder}"
    text = _lines(given)
    return str(_written(cache() / "rows" / f"rows-{_digest(text)}.jsonl", text))


def _lines(given: Any) -> str:
    rows = _rows(given)
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        got = f"a row of type {type(rows[0]).__name__}" if rows else "no rows"
        raise ConfigurationError(f'env takes rows such as {{"prompt": "2+2=?", "answer": "4"}}, got {got}')
    try:
        return "".join(f"{json.dumps(dict(row), default=_plain)}\n" for row in rows)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"env: a row cannot be written as JSON: {error}") from None


def _rows(given: Any) -> list[Any]:
    pandas, datasets = sys.modules.get("pandas"), sys.modules.get("datasets")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        return [{k: v for k, v in row.items() if v == v} for row in given.to_dict("records")]  # NaN: an empty cell
    if isinstance(given, Sequence) or (datasets is not None and isinstance(given, datasets.Dataset)):
        return list(given)
    raise ConfigurationError(
        "env takes a name, a file, a list of dicts, a dict of such lists by split, a pandas DataFrame or a datasets "
        f"Dataset, got {type(given).__name__}; an environment of your own is env='FILE.py:NAME'"
    )


def _plain(value: Any) -> Any:
    """A number or array of numpy as JSON can hold it."""
    if type(value).__module__ == "numpy":
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r:.60}")


# Functions.


def _rewards(given: Any) -> str:
    """One function, or several, as names."""
    each = list(given) if isinstance(given, list | tuple) else [given]
    if not each:
        raise ConfigurationError("reward is an empty list: give a function, or leave it out")
    return "+".join(one if isinstance(one, str) else _function(one) for one in each)


def _function(given: Any) -> str:
    if not isinstance(given, FunctionType) or given.__name__ == "<lambda>":
        what = "a lambda" if isinstance(given, FunctionType) else f"{type(given).__name__} {given!r:.60}"
        raise ConfigurationError(
            f"reward takes a function made with def, a list of them, or 'FILE.py:NAME', got {what}"
        )
    if given.__closure__ or given.__qualname__ != given.__name__:
        raise ConfigurationError(
            f"reward {given.__name__} is made within another function, and runs in a process of its own: define it at "
            "the top of a file or cell"
        )
    module = sys.modules.get(given.__module__)
    file = inspect.getsourcefile(given)
    if given.__module__ != "__main__" and module is not None and file and Path(file).is_file():
        return f"{file}:{given.__name__}"
    text = "\n\n".join(_sources(given, {}).values()) + "\n"
    return f"{_written(cache() / 'rewards' / f'{given.__name__}_{_digest(text)}.py', text)}:{given.__name__}"


def _sources(function: Callable[..., Any], found: dict[str, str]) -> dict[str, str]:
    """A function and the imports, constants and functions of its script or notebook that it uses, by name."""
    try:
        source = inspect.getsource(function)
    except OSError:
        raise ConfigurationError(
            f"the source of reward {function.__name__} is not known here: put it into a file, reward='FILE.py:NAME'"
        ) from None
    found.setdefault(function.__name__, "")
    for name in sorted(_names(function.__code__) & function.__globals__.keys() - found.keys()):
        value = function.__globals__[name]
        if isinstance(value, ModuleType):
            found[name] = f"import {value.__name__} as {name}"
        elif isinstance(value, FunctionType) and value.__module__ == function.__module__:
            _sources(value, found)
        elif isinstance(value, FunctionType | BuiltinFunctionType | type) and value.__module__ != "__main__":
            found[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
        elif isinstance(value, _PLAIN):
            found[name] = f"{name} = {value!r}"
        else:
            raise ConfigurationError(
                f"reward {function.__name__} uses {name}, a {type(value).__name__} of this script: put both into a "
                "file of their own, reward='FILE.py:NAME'"
            )
    found[function.__name__] = inspect.cleandoc(f"\n{source}") if source[:1].isspace() else source
    return found


def _names(code: Any) -> set[str]:
    """Names that a function and the functions within it look up."""
    within = [each for each in code.co_consts if inspect.iscode(each)]
    return {*code.co_names}.union(*map(_names, within))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def _written(path: Path, text: str) -> Path:
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return path
