"""An LLM client that is a rule, for messages of tool environments: whatever is no complaint shows progress.

It stands for the language model that labels messages in ONI. To be asked by `Procedural`, as
`strop.standins.judges.progress_messages:labelled`.
"""

from __future__ import annotations

from strop.text.llm_prompt import parts_of


def labelled(text: str) -> str:
    """Yes or no."""
    return "no" if parts_of(text)["completion"].startswith("error") else "yes"
