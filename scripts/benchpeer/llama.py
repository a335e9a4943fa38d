#!/usr/bin/env python3
"""Measures llama.cpp on a made-up file of the full shape and prints one JSON line: its CPU backend, or with --gpu all layers on a GPU.

    llama.py LIBRARIES FILE [--threads N] [--prefill 512 2048] [--decode 40] [--contexts 256] [--kind q4_k] [--gpu] [--ubatch 512]

The libraries are the prebuilt ones of the npm packages @node-llama-cpp/linux-x64 and linux-x64-cuda 3.21.1 (llama.cpp release v0.4.0), called through ctypes. The
structures below are of that release: the defaults it reports are checked first, so that another one stops with a message. FILE is made if it is not there.
"""
import argparse
import ctypes as c
import glob
import json
import math
import os
import random
import statistics
import sys
import time

import gguf

i32, u32, ptr, flag = c.c_int32, c.c_uint32, c.c_void_p, c.c_bool


class ModelParams(c.Structure):
    _fields_ = [("devices", ptr), ("overrides", ptr), ("gpu_layers", i32), ("split", i32), ("load_mode", i32), ("lazy", i32), ("main_gpu", i32),
                ("tensor_split", ptr), ("progress", ptr), ("progress_data", ptr), ("kv_overrides", ptr), ("vocab_only", flag), ("check", flag),
                ("repack", flag), ("no_host", flag), ("no_alloc", flag), ("load_mtp", flag)]


class ContextParams(c.Structure):
    _fields_ = [("ctx", u32), ("batch", u32), ("ubatch", u32), ("seq_max", u32), ("rs_seq", u32), ("outputs", u32), ("outputs_seq", u32),
                ("threads", i32), ("threads_batch", i32), ("ctx_type", i32), ("rope", i32), ("pooling", i32), ("attention", i32), ("flash", i32),
                ("rope_base", c.c_float), ("rope_scale", c.c_float), ("yarn", c.c_float * 4), ("yarn_ctx", u32), ("defrag", c.c_float),
                ("eval_cb", ptr), ("eval_data", ptr), ("type_k", i32), ("type_v", i32), ("abort_cb", ptr), ("abort_data", ptr),
                ("embeddings", flag), ("offload_kqv", flag), ("no_perf", flag), ("op_offload", flag), ("swa_full", flag), ("kv_unified", flag),
                ("samplers", ptr), ("n_samplers", c.c_size_t), ("other", ptr)]


class Batch(c.Structure):
    _fields_ = [("n", i32), ("tokens", c.POINTER(i32)), ("embd", ptr), ("pos", ptr), ("n_seq", ptr), ("seq", ptr), ("logits", ptr)]


SIGNATURES = {
    "model_default_params": (ModelParams, []), "context_default_params": (ContextParams, []), "backend_init": (None, []),
    "log_set": (None, [ptr, ptr]), "model_load_from_file": (ptr, [c.c_char_p, ModelParams]), "init_from_model": (ptr, [ptr, ContextParams]),
    "decode": (i32, [ptr, Batch]), "synchronize": (None, [ptr]), "get_logits_ith": (c.POINTER(c.c_float), [ptr, i32]),
    "get_memory": (ptr, [ptr]), "memory_clear": (None, [ptr, flag]), "batch_get_one": (Batch, [c.POINTER(i32), i32]),
}


def load(folder):
    def library(pattern):
        found = sorted(glob.glob(os.path.join(folder, pattern)))
        if not found:
            sys.exit(f"{folder}: got no {pattern}, want the package's libraries")
        return c.CDLL(found[0], mode=c.RTLD_GLOBAL)
    library("libggml-base.so*")
    ggml, lib = library("libggml.*v*.so"), library("libllama.*v*.so")
    calls = {}
    for name, (result, arguments) in SIGNATURES.items():
        call = getattr(lib, "llama_" + name)
        call.restype, call.argtypes = result, arguments
        calls[name] = call
    ggml.ggml_backend_load_all_from_path.argtypes = [c.c_char_p]
    ggml.ggml_backend_load_all_from_path(folder.encode())
    calls["backend_init"]()
    m, x = calls["model_default_params"](), calls["context_default_params"]()
    got = (m.gpu_layers, m.split, m.load_mode, m.repack, x.ctx, x.batch, x.ubatch, x.seq_max, x.threads, x.flash, x.type_k, x.type_v, x.yarn_ctx)
    want = (-1, 1, -1, True, 512, 2048, 512, 1, 4, -1, 1, 1, 0)
    if got != want:
        sys.exit(f"llama.cpp: got defaults {got}, want {want}: another release than this script was written for")
    return calls


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("libraries")
    p.add_argument("file")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--prefill", type=int, nargs="*", default=[512, 2048])
    p.add_argument("--decode", type=int, default=40)
    p.add_argument("--contexts", type=int, nargs="*", default=[256])
    p.add_argument("--gpu", action="store_true")
    p.add_argument("--ubatch", type=int, default=512)
    p.add_argument("--rounds", type=int, default=1, help="of each prompt; the median counts, and with more than one the first does not")
    p.add_argument("--kind", choices=("q4_0", "q4_k"), default="q4_k")
    a = p.parse_args()
    if not os.path.exists(a.file):
        gguf.write(a.file + ".part", {"q4_0": gguf.Q4_0, "q4_k": gguf.Q4_K}[a.kind])
        os.rename(a.file + ".part", a.file)
    llama = load(a.libraries)
    quiet = c.CFUNCTYPE(None, c.c_int, c.c_char_p, ptr)(lambda level, line, _: sys.stderr.write(line.decode("utf-8", "replace")) if level == 4 else None)
    llama["log_set"](c.cast(quiet, ptr), None)
    params = llama["model_default_params"]()
    params.gpu_layers, params.load_mode = (999, 0) if a.gpu else (0, 1)
    begun = time.perf_counter()
    model = llama["model_load_from_file"](a.file.encode(), params)
    if not model:
        sys.exit("llama.cpp did not load the file")
    report = {"kind": a.kind, "load_s": time.perf_counter() - begun}
    context = llama["context_default_params"]()
    context.ctx = -(-max(a.prefill + [n + a.decode + 8 for n in a.contexts] + [64]) // 256) * 256
    context.threads = context.threads_batch = a.threads
    context.flash, context.ubatch = 1, a.ubatch
    ctx = llama["init_from_model"](model, context)
    if not ctx:
        sys.exit("llama.cpp made no context")
    rng, memory = random.Random(7), llama["get_memory"](ctx)

    def feed(tokens):
        for i in range(0, len(tokens), 2048):
            part = (i32 * len(tokens[i:i + 2048]))(*tokens[i:i + 2048])  # the batch points to it
            if e := llama["decode"](ctx, llama["batch_get_one"](part, len(part))):
                sys.exit(f"llama_decode returned {e}")
        llama["synchronize"](ctx)

    def timed(tokens):
        begun = time.perf_counter()
        feed(tokens)
        return time.perf_counter() - begun

    def some(n):
        return [rng.randrange(248000) for _ in range(n)]
    feed(some(32))  # threads and buffers are there
    report["prefill"] = {}
    for n in a.prefill:
        times = []
        for _ in range(a.rounds):
            llama["memory_clear"](memory, True)
            times.append(timed(some(n)))
        report["prefill"][n] = n / statistics.median(times[1:] or times)
    report["decode_at"] = {}
    for n in a.contexts:
        llama["memory_clear"](memory, True)
        feed(some(n))
        times = [timed(some(1)) for _ in range(a.decode + 8)][8:]
        report["decode_at"][n] = 1 / statistics.median(times)
    report["decode"] = next(iter(report["decode_at"].values()), 0)
    if not all(map(math.isfinite, llama["get_logits_ith"](ctx, -1)[:248320])):
        sys.exit("llama.cpp: got logits that are no numbers")
    with open("/proc/self/status") as f:
        memory_kb = {line.split(":")[0]: int(line.split()[1]) for line in f if line.startswith(("RssAnon", "VmHWM"))}
    report["anonymous_gib"], report["peak_gib"] = memory_kb["RssAnon"] / 2**20, memory_kb["VmHWM"] / 2**20
    print(json.dumps(report), flush=True)
    os._exit(0)  # its own end would take the file apart first


if __name__ == "__main__":
    main()
