#!/usr/bin/env bash
# Check the collection on a GPU, store what only a GPU can show, and pack what was found.
#
#     tools/run/gpu.sh [--no-bench] [LESSON ...]
#
# For a machine with a GPU, with the packages of the lessons in the Python that `python` starts: no
# tox, no network. Each lesson has to pass strictly with the outputs that were stored on a CPU,
# before the cells that need a GPU are executed and stored; `execute` then checks it once more, and
# records that it passed. Then the pipelines are timed. Where time is short, name a few lessons: only these are
# checked and timed. Unpack gpu.tar.gz in a clone, and review the difference.
set -uo pipefail
cd "$(dirname "$0")/../.."

bench=yes
if [ "${1-}" = --no-bench ]; then bench=no; shift; fi
for name in "$@"; do
    if [ ! -f "notebooks/$name.ipynb" ]; then
        echo "gpu: there is no lesson $name: choose from $(basename -s .ipynb notebooks/*.ipynb | xargs)." >&2
        exit 2
    fi
done
if ! said=$(python -c "import jax; jax.devices('gpu')" 2>&1); then
    echo "gpu: JAX sees no GPU here (${said##*$'\n'}): install requirements-gpu.txt, and look whether nvidia-smi sees one." >&2
    exit 1
fi
if [ $# = 0 ]; then set -- $(basename -s .ipynb notebooks/*.ipynb); fi

failures=()
trap 'echo "gpu: interrupted; gpu.tar.gz holds the lessons that were finished." >&2; exit 130' INT
: > gpu_report.txt
tell() { "$@" 2>&1 | tee -a gpu_report.txt; } # with pipefail the status is the command's
pack() {
    tar -czf gpu.tar.gz.new --exclude='*.lock' notebooks/*.ipynb benchmarks/results gpu_report.txt &&
        mv gpu.tar.gz.new gpu.tar.gz
}

loaders=()
for name in "$@"; do
    notebook=notebooks/$name.ipynb
    if ! tell python -m pytest --nbval --require-gpu -v --color=no "$notebook"; then
        failures+=("$name does not pass here, and nothing of it was stored.")
    elif ! tell python -m tools.run.execute "$name"; then
        failures+=("$name does not run or pass with what is stored here.")
    fi
    # The benchmark knows a loader by its lesson; the cell that it times may stand in the depth.
    lesson=${name%_in_depth}
    # So does the page whose loops it runs as they are.
    timed=$(grep -ls '"tuned-pipeline"' "notebooks/$lesson.ipynb" "notebooks/${lesson}_in_depth.ipynb")
    if [[ -n $timed || $lesson = four_loaders ]] &&
        [[ " ${loaders[*]} " != *" $lesson "* ]]; then
        loaders+=("$lesson")
    fi
    pack # after each lesson: an interruption loses one at most
done
if [ $bench = yes ] && [ ${#loaders[@]} != 0 ]; then
    tell python benchmarks/bench.py "${loaders[@]}" || failures+=("the benchmark ended early.")
fi
if [ ${#failures[@]} != 0 ]; then tell printf 'gpu: %s\n' "${failures[@]}"; fi
pack || failures+=("gpu.tar.gz could not be written.")
echo "gpu.tar.gz holds the notebooks, the results and gpu_report.txt."
[ ${#failures[@]} = 0 ]
