#!/usr/bin/env bash
# Everything that needs a GPU, in parts that take at most LIMIT seconds (540) each: builds the CUDA kernels, tests them,
# also under compute-sanitizer, measures, and trains a study. The machine is taken as it is, without a network: needed are
# nvcc, a C++ compiler, GNU's tools, and a `python3` with pip and a CUDA build of torch. Modules that this python3 lacks
# come along as wheels. For Python 3.12 that has numpy, pandas, scipy, xarray, pyarrow, sentencepiece, sacrebleu, pytest,
# hypothesis, scikit-build-core, pybind11, cmake and ninja, where there is a network:
#
#   python3 -m pip download --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
#       --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --constraint constraints.txt \
#       --dest .gpu/wheels hatchling tomlkit trove-classifiers cyclopts docstring-parser rich-rst docutils cattrs \
#       langcodes polib py3langid python-debian backports.zstd transformers tokenizers huggingface-hub ctranslate2
#
#   bash benchmarks/on_gpu.sh               # all parts
#   bash benchmarks/on_gpu.sh build tests   # some: build tests sanitizer moe exchange training decoding study
#
# Run `build` by itself first; another part would build in its own time. The end lists what succeeded, failed, was stopped
# at the limit, or was skipped and why; the exit status is 1 if something failed, was stopped, or lacked a module. Figures
# go to benchmarks/results and logs to .gpu/logs; with OUT set, both go to that folder, the logs as one archive. The part
# `study` does not train runs again that are in its table there.
# shellcheck disable=SC2329 # the parts, which are called by name
set -uo pipefail
exec </dev/null
cd "$(dirname "$0")/.." || exit 1
PARTS=(build tests sanitizer moe exchange training decoding study)
WORK=$(realpath -m "${WORK:-.gpu}")
WHEELS=${WHEELS:-$WORK/wheels}
RESULTS=${OUT:-benchmarks/results}
LIMIT=${LIMIT:-540}
STUDY=${STUDY:-studies/splitting.toml}
EXTENSION=packages/mnmt-moe-ext
export PIP_CONSTRAINT="" PIP_BUILD_CONSTRAINT="" PATH=$PATH:/usr/local/cuda/bin
export PYTHONPATH=$WORK/site/extension:$WORK/site/packages:$WORK/site/wheels
NO_GPU="torch sees no GPU"
outcomes=()
status=0
attempted=""

# note OUTCOME NAME DETAILS
note() { outcomes+=("$(printf '%-8s %s: %s' "$@")"); }

# run NAME COMMAND...: runs it in the seconds left to the part, less RESERVE, with its output in a log as well.
run() {
    local name=$1 log=$WORK/logs/$1.log left=$((ends - SECONDS - ${RESERVE:-0})) began=$SECONDS code missing
    shift
    if ((left <= 0)); then
        note skipped "$name" "no time was left"
        return 1
    fi
    echo "== $name: $*"
    timeout --kill-after=20 "$left" "$@" 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
    if ((code == 0)); then
        note ok "$name" "$((SECONDS - began)) s"
        return
    elif ((code == 124 || code == 137)); then
        note stopped "$name" "after $((SECONDS - began)) s ($log)"
    elif missing=$(grep -Eom 1 "No module named .*|Cannot import '.*'" "$log"); then
        note skipped "$name" "$missing (wheels come along in $WHEELS)"
        status=1
        return 1
    else
        note FAILED "$name" "exit status $code ($log)"
    fi
    status=1
    return 1
}

# install FOLDER WHAT...: anew into that folder of $WORK/site.
install() {
    local site=$WORK/site/$1
    shift
    rm -rf "$site"
    run "install-${site##*/}" python3 -m pip install --quiet --no-index --no-deps --no-build-isolation --target "$site" "$@"
}

build() {
    local wheels=("$WHEELS"/*.whl) cuda=OFF device=cpu
    attempted=yes
    rm -f "$WORK/built"
    if [[ -e ${wheels[0]} ]]; then
        install wheels "${wheels[@]}"
    else
        note skipped install-wheels "none are in $WHEELS"
    fi
    if ((gpus)); then
        cuda=ON device=cuda
    else
        note skipped cuda-kernels "$NO_GPU"
    fi
    install extension --config-settings="build-dir=$WORK/build" --config-settings="cmake.define.MNMT_MOE_CUDA=$cuda" \
        "./$EXTENSION"
    install packages ./packages/mnmt-{data,model,eval,laws}
    # Without kernels the tests would skip themselves.
    run kernels python3 -c "import torch, mnmt_moe_ext as ext; print(ext.build_info())
raise SystemExit(not ext.is_available(torch.device('$device')))" && touch "$WORK/built"
}

tests() {
    local package
    run tests-cpu env -C "$EXTENSION" python3 -m pytest -q tests/test_native.py tests/test_route.py tests/test_rows.py
    for package in mnmt-moe-ext mnmt-model mnmt-eval; do
        if ((gpus)); then
            run "tests-$package" env -C "packages/$package" python3 -m pytest -m cuda -q
        else
            note skipped "tests-$package" "$NO_GPU"
        fi
    done
}

# Our kernels under one tool after another, torch's own left out, but for initcheck, which must see what they write. Without
# torch's cache of memory, every tensor is an allocation whose bounds the tool knows; a graph cannot be captured then.
sanitizer() {
    local tool kernels others=$LIMIT
    for tool in memcheck racecheck synccheck initcheck; do
        others=$((others - LIMIT / 4)) # seconds for the tools after this one
        kernels=(--kernel-name kns=mnmt_moe)
        [[ $tool != initcheck ]] || kernels=()
        if command -v compute-sanitizer >/dev/null; then
            RESERVE=$others PYTORCH_NO_CUDA_MEMORY_CACHING=1 run "$tool" env -C "$EXTENSION" \
                compute-sanitizer --tool "$tool" "${kernels[@]}" --error-exitcode 1 \
                python3 -m pytest -m cuda -q -k "not captured and not many and not long and not compile"
        else
            note skipped "$tool" "compute-sanitizer is not on PATH"
        fi
    done
}

moe() {
    run moe_operators python3 -m benchmarks.moe.operators --device cuda --seconds 0.5 \
        --out "$RESULTS/moe/operators_cuda.json"
    run moe_layer python3 -m benchmarks.moe.layer --device cuda --seconds 0.5 --out "$RESULTS/moe/layer_cuda.json"
}

exchange() {
    if ((gpus >= 2)); then
        run moe_all_to_all python3 -m torch.distributed.run --standalone --nproc-per-node "$gpus" \
            -m benchmarks.moe.all_to_all --out "$RESULTS/moe/all_to_all.json"
    else
        note skipped moe_all_to_all "NCCL needs two GPUs, here is $gpus"
    fi
}

training() {
    run training_speed python3 -m benchmarks.model.training_speed_gpu --out "$RESULTS/model/training_speed_gpu.json"
}

decoding() {
    run decoding_speed python3 -m benchmarks.eval.decoding_speed --device cuda --sizes d256 d512 \
        --sentences 512 --batch 128 --out "$RESULTS/eval/decoding_speed_cuda.json"
}

study() {
    local name=${STUDY##*/} have=()
    local folder=$WORK/studies/${name%.toml} table=$RESULTS/${name%.toml}_cuda.csv
    [[ ! -e $table ]] || have=(--have "$table")
    run study-data python3 -m mnmt_data prepare "$STUDY" --out "$folder" || return
    RESERVE=60 run study-runs python3 -m mnmt_model sweep "$STUDY" --out "$folder" --jobs "$(nproc)" "${have[@]}"
    run study-table python3 -m mnmt_laws collect "$folder/runs" --into "$table"
}

finish() {
    printf '\n'
    printf '%s\n' "${outcomes[@]}" | tee "$WORK/logs/outcomes.txt"
    [[ -z ${OUT:-} ]] || tar -czf "$OUT/logs.tar.gz" -C "$WORK" logs
}

for part in "$@"; do
    if [[ " ${PARTS[*]} " != *" $part "* ]]; then
        echo "There is no part $part; the parts are: ${PARTS[*]}" >&2
        exit 2
    fi
done
mkdir -p "$WORK/logs" "$RESULTS"
gpus=$(python3 -c "import torch; print(torch.cuda.device_count())") || exit
trap finish EXIT
for part in "${@:-${PARTS[@]}}"; do
    ends=$((SECONDS + LIMIT))
    if ! ((gpus)) && [[ $part != @(build|tests) ]]; then
        note skipped "$part" "$NO_GPU"
        continue
    fi
    [[ $part == build || -e $WORK/built || $attempted ]] || build
    "$part"
done
exit "$status"
