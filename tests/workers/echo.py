"""What processes do in these tests."""

from __future__ import annotations

import os
import time

import numpy as np

from strop.workers.frames import Frames


def serve(frames: Frames) -> None:
    """Answer with what was said, or do what a word says."""
    while True:
        question = frames.take()
        match question.head.get("word"):
            case "twice":
                frames.answer(question, {"said": 1})
            case "die":
                print("these are my last words", flush=True)
                os._exit(5)
            case "sleep":
                time.sleep(60)
            case "environment":
                frames.answer(question, dict(os.environ))
                continue
            case "large":
                frames.answer(question, {}, {"large": np.zeros(1 << 24, np.uint8)})
                continue
        frames.answer(question, {"said": question.head.get("word")}, question.arrays)
