#!/usr/bin/env bash
# Measures the Metal kernels on an NVIDIA GPU and prints a report in Markdown: run.sh FOLDER, which pack.sh made. Steps, by name in STEPS:
#
#   tests      every kernel over its shapes against its reference, and small models against theirs, on the GPU
#   sanitizer  memcheck and racecheck over the kernel tests
#   bench      decode and prefill of the real shape, each kernel by itself
#   counts     executed instructions a weight of each product of decode
#   peer       llama.cpp's CUDA backend on the same shape, in the same run; needs python3, and 20 GB of disk in WORK
#
# Logs go to OUT. About eight minutes on one H200 with 16 cores.
set -u
here=$(cd "${1:?run.sh FOLDER}" && pwd)
work=${WORK:-/tmp/gpubench} logs=${OUT:-$work}
steps=${STEPS:-tests sanitizer bench counts peer}
mkdir -p "$work" "$logs"
export PATH=$PATH:/usr/local/cuda/bin POND_STANDIN_BACKEND=cuda
export POND_STANDIN_CACHE=${POND_STANDIN_CACHE:-$work/cache}
want() { case " $steps " in *" $1 "*) ;; *) return 1 ;; esac; }
# take SECONDS NAME COMMAND...: the end of the log where it fails
take() {
  local limit=$1 name=$2
  shift 2
  timeout "$limit" "$@" >"$logs/$name.log" 2>&1
  local rc=$?
  if [ $rc = 0 ]; then echo "- $name: ok, $((SECONDS - begun)) s"; else echo "- $name: FAILED with $rc:" && tail -n 15 "$logs/$name.log" | cut -c1-300 | sed 's/^/      /'; fi
  begun=$SECONDS
}
begun=$SECONDS
echo "# Kernels on $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1), $(date -u +%F), commit $(cat "$here/commit")"
echo
echo "Driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1), $(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/nvcc \1/p'), $(nproc) processors. \`scripts/gpubench\`, see docs/development.md."
echo
# The peer's file is written while kernels are compiled.
if want peer && [ -f "$here/peer.tar.xz" ]; then
  mkdir -p "$work/peer" && tar xJf "$here/peer.tar.xz" -C "$work/peer"
  (cd "$work/peer" && PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1 python3 -c 'import gguf; gguf.write("model.gguf", gguf.Q4_0)' >"$logs/gguf.log" 2>&1) &
  writer=$!
fi
echo "## Steps"
echo
POND_METAL_CHECK=1 take 200 compile-tests "$here/kernels.test" -test.run TestEveryCaseCompilesForCUDA -test.v
take 200 compile "$here/gpubench" -prepare
if want tests; then
  take 150 kernels "$here/kernels.test" -test.v -test.run 'TestMetalAgrees|TestManyKeys|TestRowsDo|TestHeads|TestChunks'
  [ ! -f "$here/qwen36.test" ] || take 200 models "$here/qwen36.test" -test.v -test.run 'TestGPUGreedy|TestGPUKernelsEqual'
fi
if want bench; then
  take 240 bench "$here/gpubench" -kernels
fi
if want counts; then
  take 100 ncu ncu --target-processes all --clock-control none --cache-control none --csv --page raw --kernel-name msl_kernel \
    --metrics smsp__thread_inst_executed.sum,gpu__time_duration.sum,dram__bytes_read.sum "$here/gpubench" -layers 4 -contexts 256 -prefill 0 -once
fi
if want sanitizer; then
  take 150 racecheck compute-sanitizer --tool racecheck --error-exitcode 9 "$here/kernels.test" -test.run 'TestMetalAgrees'
  take 150 memcheck compute-sanitizer --tool memcheck --error-exitcode 9 "$here/kernels.test" -test.run 'TestMetalAgrees'
fi
if want peer && [ -f "$here/peer.tar.xz" ]; then
  libs=$work/peer/libs
  cuda=$(python3 -c 'import glob, site, sys; print(":".join(d for s in site.getsitepackages() + sys.path for d in glob.glob(s + "/nvidia/cu13/lib") + glob.glob(s + "/nvidia/*/lib")))')
  export LD_LIBRARY_PATH=$libs:$cuda:/usr/local/cuda/lib64:/usr/local/nvidia/lib64:${LD_LIBRARY_PATH:-} PYTHONDONTWRITEBYTECODE=1
  take 150 peer-compile python3 "$here/fatbin.py" compile "$libs/libggml-cuda.so" "$work/peer/compiled.so"
  [ ! -f "$work/peer/compiled.so" ] || cp "$work/peer/compiled.so" "$libs/libggml-cuda.so"
  wait "$writer"
  take 200 peer python3 "$here/llama.py" "$libs" "$work/peer/model.gguf" --kind q4_0 --gpu --threads 8 --ubatch 2048 --rounds 4 --prefill 512 2048 8192 --contexts 256 4096 32768 --decode 64
  GGML_CUDA_DISABLE_GRAPHS=1 take 120 peer-kernels ncu --target-processes all --clock-control none --cache-control none --csv --page raw --kernel-name regex:mul_mat_vec \
    --launch-skip 300 --launch-count 330 --metrics gpu__time_duration.sum,dram__bytes_read.sum,launch__grid_size \
    python3 "$here/llama.py" "$libs" "$work/peer/model.gguf" --kind q4_0 --gpu --threads 8 --prefill --contexts 16 --decode 1
fi
echo
[ ! -s "$logs/bench.log" ] || { echo "## Real shape"; echo; cat "$logs/bench.log"; }
[ ! -s "$logs/ncu.log" ] || { echo "## Executed instructions"; echo; python3 "$here/counts.py" "$logs/ncu.log"; echo; }
[ ! -s "$logs/peer-kernels.log" ] || { echo "## llama.cpp's products of one row, alone"; echo; python3 "$here/counts.py" --peer "$logs/peer-kernels.log"; echo; }
[ ! -s "$logs/peer.log" ] || { echo "## llama.cpp's CUDA backend, the same card and run"; echo; tail -n 1 "$logs/peer.log"; }
