# strop with its bundled model, for CPU and for CUDA. torch as the usual index of packages has it brings CUDA on Linux:
#   docker build -t strop . && docker run --rm --gpus all -v "$PWD:/strop" strop train grpo device=cuda
# A smaller image for CPUs takes torch from an index that has CPU builds:
#   docker build -t strop:cpu --build-arg TORCH_INDEX=ADDRESS . && docker run --rm strop:cpu train pocket
# Sandboxes of programs need --security-opt seccomp=unconfined, or isolation=process where you trust the programs.
# `make image-steps` executes these steps in a plain folder.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS wheel
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir --constraint constraints/packages.txt build && python -m build --wheel --outdir /wheels .

FROM ${BASE}
ARG TORCH_INDEX=""
ARG EXTRAS=serve,datasets,gguf
ENV HF_HUB_DISABLE_TELEMETRY=1
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev bubblewrap && rm -rf /var/lib/apt/lists/*
COPY constraints/packages.txt /build/packages.txt
RUN PIP_EXTRA_INDEX_URL="$TORCH_INDEX" pip install --no-cache-dir --constraint /build/packages.txt torch==2.13.0
COPY --from=wheel /wheels /build/wheels
RUN pip install --no-cache-dir --constraint /build/packages.txt "$(ls /build/wheels/*.whl)[$EXTRAS]"
RUN useradd --create-home --home-dir /strop strop
WORKDIR /strop
USER strop
RUN strop --version
ENTRYPOINT ["strop"]
CMD ["--help"]
