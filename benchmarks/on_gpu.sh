#!/usr/bin/env bash
# Everything that needs a GPU, in one call: builds the CUDA kernels, runs the tests marked `cuda`, plain and under
# compute-sanitizer, measures. Needs Python 3.11 or later, a CUDA build of torch, nvcc, a C++ compiler.
# A part that fails does not stop the others; the end lists each, and the exit status is 1 if one failed.
# Figures go to benchmarks/results, logs to .gpu/logs.
#
#   bash benchmarks/on_gpu.sh             # all parts
#   bash benchmarks/on_gpu.sh tests moe   # some: build tests sanitizer moe exchange training decoding
# shellcheck disable=SC1091,SC2329 # the environment's script; functions that `run` calls
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export PIP_CONSTRAINT=""
PARTS=" ${*:-build tests sanitizer moe exchange training decoding} "
LOGS=.gpu/logs
RESULTS=benchmarks/results
PATH=$PATH:/usr/local/cuda/bin
outcomes=()
status=0

# run NAME COMMAND...: runs it with its output in a log as well, notes how it ended.
run() {
    local name=$1
    shift
    echo "== $name: $*"
    if "$@" 2>&1 | tee "$LOGS/$name.log"; then
        outcomes+=("ok       $name")
    else
        outcomes+=("FAILED   $name ($LOGS/$name.log)")
        status=1
    fi
}

# skip NAME REASON
skip() { outcomes+=("skipped  $1: $2"); }

wanted() { [[ $PARTS == *" $1 "* ]]; }

# The tests skip themselves without kernels, so that this must be known beforehand.
kernels() {
    python -c "import torch, mnmt_moe_ext as ext; print(torch.cuda.get_device_name(), ext.build_info())
raise SystemExit(not ext.is_available(torch.device('cuda')))"
}

# cuda_tests PACKAGE [COMMAND...]: its tests marked `cuda`, run by the command.
cuda_tests() {
    local package=$1
    shift
    (cd "packages/$package" && timeout 1800 "$@" python -m pytest -m cuda -q)
}

# Our kernels under one tool, torch's own left out, but for initcheck, which must see what they write. Without torch's
# cache of memory, every tensor is an allocation whose bounds the tool knows; a CUDA graph cannot be captured then.
sanitized() {
    local kernels=(--kernel-name kns=mnmt_moe)
    if [[ $1 == initcheck ]]; then
        kernels=()
    fi
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 PYTEST_ADDOPTS='-k "not captured"' cuda_tests mnmt-moe-ext \
        compute-sanitizer --tool "$1" "${kernels[@]}" --error-exitcode 1
}

build() {
    python -m pip install --quiet scikit-build-core pybind11 cmake ninja pytest hypothesis hatchling cyclopts \
        "transformers>=4.57,<5" ctranslate2 "protobuf>=5" &&
        python -m pip install --quiet --no-build-isolation packages/mnmt-data packages/mnmt-model packages/mnmt-eval &&
        python -m pip install --quiet --no-build-isolation --force-reinstall --no-deps \
            --config-settings=cmake.define.MNMT_MOE_CUDA=ON packages/mnmt-moe-ext
}

count_gpus() { python -c "import torch; print(torch.cuda.device_count())" 2>/dev/null || echo 0; }

[[ -d .gpu ]] || python3 -m venv --system-site-packages .gpu || exit 1
mkdir -p "$LOGS" "$RESULTS"
. .gpu/bin/activate
gpus=$(count_gpus)

if wanted build; then
    run build build
fi
if wanted tests; then
    run kernels kernels
    for package in mnmt-model mnmt-moe-ext mnmt-eval; do
        run "tests-$package" cuda_tests "$package"
    done
fi
if wanted sanitizer; then
    for tool in memcheck racecheck synccheck initcheck; do
        if command -v compute-sanitizer >/dev/null; then
            run "$tool" sanitized "$tool"
        else
            skip "$tool" "compute-sanitizer is not on PATH"
        fi
    done
fi
if wanted moe; then
    run moe_operators python -m benchmarks.moe.operators --device cuda --seconds 0.5 \
        --out "$RESULTS/moe/operators_cuda.json"
fi
if wanted exchange; then
    if ((gpus >= 2)); then
        run moe_all_to_all torchrun --standalone --nproc-per-node "$gpus" -m benchmarks.moe.all_to_all \
            --out "$RESULTS/moe/all_to_all.json"
    else
        skip moe_all_to_all "NCCL needs two GPUs, here are $gpus"
    fi
fi
if wanted training; then
    run training_speed python -m benchmarks.model.training_speed_gpu --out "$RESULTS/model/training_speed_gpu.json"
fi
if wanted decoding; then
    run decoding_speed python -m benchmarks.eval.decoding_speed --device cuda --sizes d256 d512 \
        --sentences 512 --batch 128 --out "$RESULTS/eval/decoding_speed_cuda.json"
fi

printf '\n'
printf '%s\n' "${outcomes[@]}"
exit $status
