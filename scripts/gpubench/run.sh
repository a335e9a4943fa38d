#!/usr/bin/env bash
# Measures the Metal kernels on an NVIDIA GPU and prints a report in Markdown: run.sh FOLDER, which pack.sh made. Steps, by name in STEPS:
#
#   tests      every kernel over its shapes against its reference, by both texts; small models against theirs, several sequences, switches, the choice;
#              perplexity of the demo model against the record
#   sees       compute-sanitizer over a kernel without a mistake and over planted ones, which it must report: else its silence proves nothing
#   sanitizer  memcheck, racecheck and synccheck over all of these and over the real shape. Not initcheck: memory is zero when it is made, as Metal has it
#   bench      decode, of several sequences too, and prefill of the real shape, each kernel by itself
#   counts     executed instructions a weight of each product of decode
#   peer       llama.cpp's CUDA backend on the same shape, in the same run, and its products of one row, with what turns their input into bytes; needs python3, and 20 GB of disk in WORK
#
# Logs go to OUT. The exit status is 0 when no step failed. About eight minutes on one H200 with 16 cores.
set -u
here=$(cd "${1:?run.sh FOLDER}" && pwd)
work=${WORK:-/tmp/gpubench} logs=${OUT:-${WORK:-/tmp/gpubench}}
steps=${STEPS:-tests sees sanitizer bench counts peer}
mkdir -p "$work" "$logs"
work=$(cd "$work" && pwd) logs=$(cd "$logs" && pwd)
tar xJf "$here/programs.tar.xz" -C "$work"
programs=$work/programs
export PATH=$PATH:/usr/local/cuda/bin POND_STANDIN_BACKEND=cuda
export POND_STANDIN_CACHE=${POND_STANDIN_CACHE:-$work/cache}
[ ! -d inference/qwen36 ] || cd inference/qwen36 || exit # where its tests find the demo model
failed=0
want() { case " $steps " in *" $1 "*) ;; *) return 1 ;; esac; }
# start SECONDS NAME COMMAND...: in the background
start() {
  local limit=$1 name=$2
  shift 2
  (
    begun=$SECONDS
    timeout "$limit" "$@" >"$logs/$name.log" 2>&1
    echo "$? $((SECONDS - begun))" >"$logs/$name.rc"
  ) &
}
# finish NAME: waits for it and says how it went, by its exit status and by what it says; the end of the log where it failed
finish() {
  while [ ! -s "$logs/$1.rc" ]; do sleep 0.1; done
  local log=$logs/$1.log rc took said passed tests=
  read -r rc took <"$logs/$1.rc"
  rm "$logs/$1.rc"
  said=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY' "$log" | head -n 1 | sed 's/^=* //')
  if grep -q '^=== RUN' "$log"; then
    passed=$(grep -cE '^ *--- PASS' "$log")
    tests=". $passed passed, $(grep -cE '^ *--- SKIP' "$log") skipped"
    [ "$passed" != 0 ] || rc="$rc and nothing ran"
  fi
  case $1 in
    sees-nothing | memcheck-* | synccheck-*) [ "$said" = "ERROR SUMMARY: 0 errors" ] || rc="$rc and no clean summary" ;;
    racecheck-*) [ "$said" = "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ] || rc="$rc and no clean summary" ;;
    sees-race) [[ $said =~ ^RACECHECK\ SUMMARY:\ [1-9] ]] && rc=0 || rc="$rc and saw no race" ;;
    sees-*) [[ $said =~ ^ERROR\ SUMMARY:\ [1-9] ]] && rc=0 || rc="$rc and saw no error" ;;
  esac
  ! grep -q '^=.*before first instrumented' "$log" || rc="$rc and the tool was not attached"
  if [ "$rc" = 0 ]; then
    echo "- $1: ok, $took s${said:+. $said}$tests"
  else
    failed=1
    echo "- $1: FAILED with $rc, $took s${said:+. $said}$tests:"
    grep -vE '^(=== (RUN|NAME)|=+ +Host Frame|=+ *$)' "$log" | tail -n 15 | cut -c1-300 | sed 's/^/      /'
  fi
}
# take SECONDS NAME COMMAND...: alone
take() {
  start "$@"
  finish "$2"
}
# skips NAME...: which tests did not run, and why
skips() {
  for name in "$@"; do
    awk '/^=== RUN/ { name = $3 } /^ +[a-z0-9_]+_test\.go:[0-9]+: / { why[name] = substr($0, index($0, ": ") + 2) } /^ *--- SKIP/ { print "  - not run: " $3 ": " why[$3] }' "$logs/$name.log"
  done
}
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
kernels='TestMetal|TestMany|TestRowsDo|TestHead|TestChunks|TestTensor|TestTuning|TestLone|TestEven'
models='TestGPUGreedy|TestGPUDraws|TestGPUKernels|TestGPUTogether|TestGPUKeysInParts|TestGPUDemo'
real="-layers 4 -contexts 256 -together 2,4 -warm 1 -tokens 2 -rounds 2"
# What the host computes there takes it a minute, beside all that follows.
if want tests; then POND_METAL_CHECK=1 start 300 rows "$programs/qwen36.test" -test.v -test.run TestGPUManyRows; fi
if want tests || want sanitizer; then
  POND_METAL_CHECK=1 take 200 compile-tests "$programs/kernels.test" -test.run TestEveryCaseCompilesForCUDA -test.v
fi
if want bench || want counts || want sanitizer; then
  take 200 compile "$programs/gpubench" -prepare
fi
if want tests; then
  POND_METAL_CHECK=1 start 200 kernels "$programs/kernels.test" -test.v -test.run "$kernels"
  POND_METAL_CHECK=1 start 200 models "$programs/qwen36.test" -test.v -test.run "$models"
  start 200 switches "$programs/qwen36.test" -test.v -test.run TestGPUSwitches
  POND_METAL_CHECK=1 start 280 eval "$programs/eval.test" -test.v -test.run TestDemoAgainstTransformers
  for name in kernels models switches rows; do finish $name; skips $name; done
fi
if want sees || want sanitizer; then
  for mistake in nothing:memcheck race:racecheck overrun:memcheck barrier:synccheck; do
    start 60 "sees-${mistake%:*}" compute-sanitizer --tool "${mistake#*:}" --error-exitcode 9 "$programs/gpubench" -planted "${mistake%:*}"
  done
  for name in nothing race overrun barrier; do finish "sees-$name"; done
fi
if want sanitizer; then
  # All at once: a tool spends its time on the processor, on the code of each kernel. The long forms of the tests, POND_METAL_CHECK, run without one, but for
  # many rows, under memcheck; racecheck, which is ten times slower than the others, gets fewer keys and tokens: what of it is short says so in its log.
  for tool in racecheck memcheck synccheck; do
    sanitizer="compute-sanitizer --tool $tool --error-exitcode 9" prompt=300 short='' long=''
    [ $tool != racecheck ] || prompt=130 short=1
    [ $tool = racecheck ] || sanitizer="nice -n 10 $sanitizer" # who takes longest goes first
    [ $tool != memcheck ] || long=1
    # shellcheck disable=SC2086
    {
      POND_METAL_SHORT=$short start 200 $tool-kernels $sanitizer "$programs/kernels.test" -test.v -test.run TestMetal
      POND_METAL_SHORT=$short POND_METAL_CHECK=$long start 200 $tool-shapes $sanitizer "$programs/kernels.test" -test.v -test.run "${kernels#TestMetal|}"
      start 200 $tool-models $sanitizer "$programs/qwen36.test" -test.v -test.run "$models"
      start 200 $tool-switches $sanitizer "$programs/qwen36.test" -test.v -test.run TestGPUSwitches
      start 200 $tool-real $sanitizer "$programs/gpubench" $real -prefill $prompt
    }
  done
  for tool in memcheck synccheck racecheck; do # as they end
    for name in kernels shapes models switches real; do
      finish $tool-$name
      grep -o 'POND_METAL_SHORT: .*' "$logs/$tool-$name.log" | sed 's/^/  - /'
      [ $tool != racecheck ] || skips $tool-$name
    done
  done
fi
if want tests; then # its kernels are compiled one after the other
  finish eval
  sed -nE 's/^=== RUN +TestDemoAgainstTransformers\/(.*)/  - \1:/p; s/^ *eval_test.go:[0-9]*: (perplexity.*)/    \1/p' "$logs/eval.log"
fi
if want bench; then
  take 240 bench "$programs/gpubench" -kernels
fi
if want counts; then
  take 100 ncu ncu --target-processes all --clock-control none --cache-control none --csv --page raw --kernel-name msl_kernel \
    --metrics smsp__thread_inst_executed.sum,gpu__time_duration.sum,dram__bytes_read.sum "$programs/gpubench" -layers 4 -contexts 256 -together 0 -prefill 0 -once
fi
if want peer && [ -f "$here/peer.tar.xz" ]; then
  libs=$work/peer/libs
  cuda=$(python3 -c 'import glob, site, sys; print(":".join(d for s in site.getsitepackages() + sys.path for d in glob.glob(s + "/nvidia/cu13/lib") + glob.glob(s + "/nvidia/*/lib")))')
  export LD_LIBRARY_PATH=$libs:$cuda:/usr/local/cuda/lib64:/usr/local/nvidia/lib64:${LD_LIBRARY_PATH:-} PYTHONDONTWRITEBYTECODE=1
  take 150 peer-compile python3 "$here/fatbin.py" compile "$libs/libggml-cuda.so" "$work/peer/compiled.so"
  [ ! -f "$work/peer/compiled.so" ] || cp "$work/peer/compiled.so" "$libs/libggml-cuda.so"
  wait "$writer"
  take 200 peer python3 "$here/llama.py" "$libs" "$work/peer/model.gguf" --kind q4_0 --gpu --threads 8 --ubatch 2048 --rounds 4 --prefill 512 2048 8192 --contexts 256 4096 32768 --decode 64
  GGML_CUDA_DISABLE_GRAPHS=1 take 120 peer-kernels ncu --target-processes all --clock-control none --cache-control none --csv --page raw --kernel-name 'regex:mul_mat_vec|quantize_q8' \
    --launch-skip 560 --launch-count 620 --metrics gpu__time_duration.sum,dram__bytes_read.sum,launch__grid_size \
    python3 "$here/llama.py" "$libs" "$work/peer/model.gguf" --kind q4_0 --gpu --threads 8 --prefill --contexts 16 --decode 1
fi
echo
[ ! -s "$logs/bench.log" ] || { echo "## Real shape"; echo; cat "$logs/bench.log"; }
[ ! -s "$logs/ncu.log" ] || { echo "## Executed instructions"; echo; python3 "$here/counts.py" "$logs/ncu.log"; echo; }
[ ! -s "$logs/peer-kernels.log" ] || { echo "## llama.cpp's products of one row, alone"; echo; python3 "$here/counts.py" --peer "$logs/peer-kernels.log"; echo; }
[ ! -s "$logs/peer.log" ] || { echo "## llama.cpp's CUDA backend, the same card and run"; echo; tail -n 1 "$logs/peer.log"; }
exit $failed
