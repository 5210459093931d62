"""Files and folders in a run's settings (fields of the type `FilePath`), stored so that they stay valid elsewhere."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from strop.capabilities import parts
from strop.errors import ConfigurationError, StropError
from strop.models.loading.model_names import BUNDLED

_MARKER = "FilePath"  # in the annotation of a field
_PACKAGE = Path(__file__).resolve().parent.parent
_INSTALLED = tuple(
    str(Path(sysconfig.get_paths()[name]).resolve()) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def is_path(field: Any) -> bool:
    """Whether a field of a dataclass names a file or folder."""
    return _MARKER in str(field.type)


def absolute(text: str) -> str:
    """The same place from any folder; `file.py:function` keeps its function, and the name of a model is no place."""
    if text in BUNDLED:
        return text
    file, colon, function = text.rpartition(":")
    if colon and Path(file).is_file():
        return f"{Path(file).resolve()}:{function}"
    return str(Path(text).resolve()) if Path(text).exists() else text


def named_places(run: Any) -> Iterator[Path]:
    """Every file and folder in a run's fields."""
    for _, part in parts(run):
        for field in fields(part):
            text = getattr(part, field.name) if field.init and is_path(field) else None
            if text and text not in BUNDLED:
                file, colon, _ = text.rpartition(":")
                yield Path(file if colon and Path(file).is_file() else text)


def own_modules(run: Any) -> list[ModuleType]:
    """Modules of somebody's own whose classes play in a run."""
    names = {type(part).__module__ for _, part in parts(run)}
    found = [sys.modules[name] for name in sorted(names) if name in sys.modules]
    return [module for module in found if is_own(module)]


def load_module(path: Path) -> ModuleType:
    """The module in a file of somebody's own, by the file's name, so that a saved run can refer to its classes."""
    folder = str(path.resolve().parent)
    loaded = sys.modules.get(path.stem)
    if loaded is not None and not is_own(loaded):
        raise ConfigurationError(f"{path}: a module named {path.stem} is already imported; rename the file")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None and spec.loader is not None
    sys.path += [folder] if folder not in sys.path else []  # it may import its neighbours
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except StropError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{path} cannot be executed: {type(error).__name__}: {error}") from error
    return module


def root_of(module: ModuleType) -> Path:
    """The folder from which it is imported by its name."""
    assert module.__file__ is not None
    path = Path(module.__file__).resolve()
    is_package = path.name == "__init__.py"
    return path.parents[module.__name__.count(".") + is_package]


def own_code(run: Any) -> list[Path]:
    """Files of a run's own modules, and of what they imported from beside them."""
    if not (roots := {root_of(module) for module in own_modules(run)}):
        return []
    loaded = [module for module in list(sys.modules.values()) if is_own(module)]
    files = [Path(_resolved(str(module.__file__))) for module in loaded]
    return sorted({file for file in files if any(root in file.parents for root in roots)})


def is_own(module: ModuleType) -> bool:
    """Whether it belongs neither to strop nor to anything installed."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and is_own_file(file)


def is_own_file(file: str) -> bool:
    """Whether a Python file belongs neither to strop nor to anything installed."""
    return file.endswith(".py") and not _is_installed(file) and not _is_installed(_resolved(file))


def _is_installed(path: str) -> bool:
    return path.startswith((str(_PACKAGE), *_INSTALLED)) or "site-packages" in path


def place_of(kind: type) -> str:
    """File and line of a class of somebody's own; empty for any other."""
    file = inspect.getsourcefile(kind) or ""
    return f"{Path(file).name}, line {inspect.getsourcelines(kind)[1]}" if is_own_file(file) else ""


@cache
def _resolved(file: str) -> str:
    """Asked of thousands of modules whenever a run begins."""
    return str(Path(file).resolve())
