"""`strop serve` lets nobody in by mistake."""

from __future__ import annotations

import pytest

from strop.cli.commands.serve import Serving, serve
from strop.errors import ConfigurationError, ModelError


def test_other_machines_are_let_in_only_when_said_aloud() -> None:
    with pytest.raises(ConfigurationError, match="--open"):
        serve(Serving(host="0.0.0.0"))


def test_a_model_that_is_not_there_is_refused() -> None:
    with pytest.raises(ModelError, match=r"no model|does not exist"):
        serve(Serving("runs/nothing"))
