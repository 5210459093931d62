"""Log levels of libraries: errors only."""

from __future__ import annotations

import logging
import os


def hush() -> None:
    """Keep progress bars and notices of libraries out of our output."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
