"""Pictures by their content: read from bytes, files beside a table or data URIs, kept in `pictures/` of a run folder.

Bytes are never trusted: only PNG, JPEG and WebP are decoded, sizes are bounded before that, and no address is fetched.
Arrays of an image processor lie beside them, so that engine and trainer read the same ones, also after a restart.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import os
import tempfile
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from strop.errors import ConfigurationError, DataError
from strop.types import Picture

if TYPE_CHECKING:  # processes that score completions read tables without torch
    from torch import Tensor

FOLDER = "pictures"  # in a run folder
MOST_BYTES, MOST_PIXELS = 20 << 20, 40_000_000
SHOWN, _EXACT = 256, 96 * 96  # pixels of a side of a small copy; of one that is drawn without loss
_KINDS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
_REMEMBERED = 128 << 20  # bytes of arrays in memory
_PROCESSOR = ("preprocessor_config.json", "processor_config.json")  # files of a model folder


def opened(data: bytes) -> Any:
    """A decoded picture of PIL in RGB; DataError where the bytes are none."""
    try:
        from PIL import Image
    except ImportError:
        raise ConfigurationError("pictures need Pillow: pip install 'strop[pictures]'") from None
    if len(data) > MOST_BYTES:
        raise DataError(f"a picture of {len(data):,} bytes: at most {MOST_BYTES:,} are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the bound below is tighter
            found = Image.open(io.BytesIO(data), formats=list(_KINDS))
        if found.width * found.height > MOST_PIXELS:
            raise DataError(f"a picture of {found.width} x {found.height}: at most {MOST_PIXELS:,} pixels are read")
        found.load()
        return found.convert("RGB")
    except Image.DecompressionBombError:
        raise DataError(f"a picture of far too many pixels: at most {MOST_PIXELS:,} pixels are read") from None
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        told = " ".join(str(error).split())[:120].partition(" <_io")[0]
        raise DataError(f"{len(data):,} bytes are no picture that can be decoded (PNG, JPEG, WebP): {told}") from None


def picture_of(source: Any, folder: Path | None = None) -> Picture:
    """A picture from bytes, a data URI, or a path beside the file it stands in (in `folder`)."""
    if isinstance(source, Picture):
        return source
    if isinstance(source, dict) and source.keys() & {"bytes", "path"}:  # as tables of datasets hold them
        source = source.get("bytes") or source.get("path")
    if type(source).__module__.partition(".")[0] == "PIL":  # decoded by the datasets package
        source = _encoded(source)
    if isinstance(source, str):
        data = _from_uri(source) if source.startswith("data:") else _from_file(source, folder)
    elif isinstance(source, bytes):
        data = source
    else:
        raise DataError(f"a picture is a path, a data URI or bytes, got {type(source).__name__}")
    found = opened(data)
    return Picture(hashlib.sha256(data).hexdigest(), found.width, found.height, data)


def _encoded(picture: Any) -> bytes:
    """The bytes of a picture that a library has decoded."""
    held = io.BytesIO()
    picture.save(held, "PNG")
    return held.getvalue()


def _from_uri(text: str) -> bytes:
    head, comma, body = text.partition(",")
    if not comma or not head.endswith(";base64"):
        raise DataError(f"a data URI of a picture is data:image/png;base64,..., got {head[:60]!r}")
    if len(body) > MOST_BYTES * 4 // 3 + 4:
        raise DataError(f"a data URI of {len(body):,} characters: pictures have at most {MOST_BYTES:,} bytes")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"a data URI is no base64: {error}") from None


def _from_file(name: str, folder: Path | None) -> bytes:
    if "://" in name[:16]:
        raise DataError(f"the picture {name[:80]!r} is an address, and addresses are never fetched: save it as a file")
    if folder is None:
        raise DataError(f"the picture {name[:80]!r} is a path, which is read only beside a table: give a data URI")
    path = folder / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise DataError(f"the picture {name[:80]!r} must lie beside or below its table, in {folder}")
    if path.is_symlink():
        raise DataError(f"the picture {path} is a link: put the file itself there")
    if not path.is_file():
        raise DataError(f"the picture {path} does not exist")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"the picture {path} lies behind a linked folder: put the file itself below {folder}")
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"the picture {path} has {path.stat().st_size:,} bytes: at most {MOST_BYTES:,} are read")
    return path.read_bytes()


class PictureStore:
    """Bytes and processed arrays of pictures in a run folder; without one, in memory."""

    def __init__(self, run: Path | None = None) -> None:
        self.folder = None if run is None else run / FOLDER
        self._known: OrderedDict[tuple[str, int], dict[str, Tensor]] = OrderedDict()
        self._bytes = 0

    @property
    def run(self) -> Path:
        """The run folder."""
        if self.folder is None:
            raise ConfigurationError("pictures in memory have no folder")
        return self.folder.parent

    @classmethod
    def temporary(cls) -> PictureStore:
        """In a folder that is gone with the process."""
        folder = tempfile.TemporaryDirectory(prefix="strop-pictures-")
        store = cls(Path(folder.name))
        weakref.finalize(store, folder.cleanup)
        return store

    def __deepcopy__(self, memo: dict[int, Any]) -> PictureStore:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent to another process it reads the same folder."""
        return PictureStore, (None if self.folder is None else self.folder.parent,)

    def path(self, digest: str) -> Path | None:
        """The file of a picture's bytes."""
        places = [] if self.folder is None else [self.folder / f"{digest}.{end}" for end in _KINDS.values()]
        return next((path for path in places if path.is_file()), None)

    def bytes_of(self, picture: Picture) -> bytes:
        """A picture's bytes, its own or those that were kept."""
        if picture.data:
            return picture.data
        if (path := self.path(picture.digest)) is None:
            raise DataError(f"the picture {picture.digest[:12]} is not in {self.folder}: was the folder moved in part?")
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != picture.digest:
            raise DataError(f"{path} is damaged: its bytes are not those of its name")
        return data

    def keep(self, picture: Picture) -> None:
        """Write a picture's bytes, once."""
        if self.folder is not None and self.path(picture.digest) is None:
            kind = opened_kind(picture.data)
            _write(self.folder / f"{picture.digest}.{kind}", lambda path: path.write_bytes(picture.data))

    def reader(self, model: Path) -> StoredPictures:
        """Pictures as the image processor of this model folder made them."""
        from strop.models.loading.check_folder import read_json
        from strop.models.pictures import MUTUAL

        is_mutual = read_json(model / "config.json").get("model_type") in MUTUAL
        return StoredPictures(self, processor_key(model), is_mutual)

    def arrays(self, key: str, code: int) -> dict[str, Tensor]:
        """What the processor of this key made of a picture."""
        from safetensors.torch import load_file

        if (key, code) not in self._known:
            path = self._place(key, code)
            if path is None or not path.is_file():
                raise DataError(
                    f"the picture of number {code} is not in {path or 'memory'}: was the folder moved in part?"
                )
            try:
                self._remember(key, code, load_file(path))
            except (OSError, SafetensorError) as error:
                raise DataError(f"cannot read the picture in {path}: {error}") from error
        self._known.move_to_end((key, code))
        return self._known[key, code]

    def put(self, key: str, code: int, arrays: dict[str, Tensor]) -> None:
        """Keep what a processor made of a picture."""
        from safetensors.torch import save_file

        if (path := self._place(key, code)) is not None and not path.is_file():
            _write(path, lambda place: save_file(arrays, place))
        self._remember(key, code, arrays)

    def has(self, key: str, code: int) -> bool:
        """Whether arrays of this picture are kept."""
        path = self._place(key, code)
        return (key, code) in self._known or (path is not None and path.is_file())

    def _place(self, key: str, code: int) -> Path | None:
        return None if self.folder is None else self.folder / "arrays" / key / f"{code:012x}.safetensors"

    def _remember(self, key: str, code: int, arrays: dict[str, Tensor]) -> None:
        self._bytes += _size(arrays) - _size(self._known.get((key, code), {}))
        self._known[key, code] = arrays
        while self._bytes > _REMEMBERED and len(self._known) > 1:
            self._bytes -= _size(self._known.popitem(last=False)[1])


def thumbnail(store: PictureStore | None, picture: Picture) -> str:
    """A small copy as a data URI, to be shown; empty where the bytes are not there or cannot be decoded."""
    try:
        if store is None or store.path(picture.digest) is None:
            return ""
        small = opened(store.bytes_of(picture))
    except (ConfigurationError, DataError):
        return ""
    small.thumbnail((SHOWN, SHOWN))
    held = io.BytesIO()
    small.save(held, "PNG" if small.width * small.height <= _EXACT else "JPEG")
    return uri_of(held.getvalue())


def uri_of(data: bytes) -> str:
    """A picture's bytes as a data URI."""
    kind = opened_kind(data).replace("jpg", "jpeg")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


@dataclass(frozen=True)
class StoredPictures:
    """Arrays of a run's pictures, by the number in their words."""

    store: PictureStore
    key: str
    is_mutual: bool

    def __call__(self, code: int) -> dict[str, Tensor]:
        return self.store.arrays(self.key, code)


def processor_key(model: Path) -> str:
    """What tells one image processor from another: the files that describe it."""
    told = [(model / name).read_bytes() for name in _PROCESSOR if (model / name).is_file()]
    return hashlib.sha256(b"\0".join([b"pil", *told])).hexdigest()[:12]


def opened_kind(data: bytes) -> str:
    """The ending of a picture's file."""
    return "png" if data.startswith(b"\x89PNG") else "jpg" if data.startswith(b"\xff\xd8") else "webp"


def _size(arrays: dict[str, Tensor]) -> int:
    return sum(each.numel() * each.element_size() for each in arrays.values())


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """All of a file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    building = path.with_name(f".{os.getpid()}-{path.name}")
    write(building)
    building.replace(path)
