"""Connection to a Ray cluster, or a small local one, started with the first engine and stopped with the last."""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from strop.errors import ConfigurationError

_MIN_STORE = 1 << 28  # bytes of the object store of a Ray of our own
_OWN_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing leaves the machine
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # what makes Ray listen on the loopback alone; read at its import
}
_users: set[int] = set()  # open engines on a Ray of our own: there is one per process, and the last of them ends it


def require_ray() -> None:
    if find_spec("ray") is None:
        raise ConfigurationError("placing engines on Ray needs the ray package: pip install 'strop[ray]'")


def ray_package() -> Any:
    require_ray()
    import ray

    return ray


def join(engine: object, address: str, model: Path) -> bool:
    """Reach a cluster, or start a Ray of our own; answers whether it is ours, and then `leave` ends it."""
    is_ours = _connect(address, sum(path.stat().st_size for path in model.glob("*.safetensors")))
    if is_ours:
        _users.add(id(engine))
    return is_ours


def leave(engine: object) -> None:
    """The last one to leave a Ray of our own ends it."""
    if id(engine) in _users:
        _users.discard(id(engine))
        if not _users:
            ray_package().shutdown()


def _connect(address: str, model_bytes: int) -> bool:
    address = address or os.environ.get("RAY_ADDRESS", "")
    for name, value in {} if address else _OWN_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray = ray_package()
    if ray.is_initialized():
        return bool(_users)
    quiet = {"log_to_driver": False, "configure_logging": False}
    if address:
        ray.init(address=address, **quiet)
        return False
    room = max(_MIN_STORE, 4 * model_bytes)  # the newest version, the one before, and one that is being written
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=room, **quiet)
    return True
