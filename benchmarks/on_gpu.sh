#!/usr/bin/env bash
# Everything that needs a GPU, in one call: builds the CUDA kernels, runs the tests marked `cuda`, measures.
# Needs Python 3.11 or later, a CUDA build of torch, nvcc, a C++ compiler; figures go to benchmarks/results.
#
#   bash benchmarks/on_gpu.sh
set -uo pipefail
cd "$(dirname "$0")/.."
export PIP_CONSTRAINT=""
python3 -m venv --system-site-packages .gpu
. .gpu/bin/activate
python -m pip install --quiet scikit-build-core pybind11 cmake ninja pytest hypothesis hatchling "transformers>=4.57,<5"
python -m pip install --quiet --no-build-isolation packages/mnmt-data packages/mnmt-model
python -m pip install --quiet --no-build-isolation --config-settings=cmake.define.MNMT_MOE_CUDA=ON packages/mnmt-moe-ext
status=0
(cd packages/mnmt-model && python -m pytest -m cuda -q) || status=1
(cd packages/mnmt-moe-ext && python -m pytest -m cuda -q) || status=1
python benchmarks/training_speed_gpu.py --out benchmarks/results/training_speed_gpu.json || status=1
exit $status
