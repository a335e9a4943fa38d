#!/usr/bin/env python3
"""Serves a made-up model of the demo model's shape with llama.cpp's own HTTP server and prints "listening on URL".

    server.py FILE TOKENIZER [--port 0] [--parallel 16] [--context 8192]

The server is the one inside the wheel xllamacpp (PyPI, MIT), which starts llama.cpp's from its library; a program llama-server comes in no wheel or npm package. FILE
is a GGUF and made if it is not there, TOKENIZER the demo model's tokenizer.json. It ends with its standard input.
"""
import argparse
import os
import sys

import gguf


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("file")
    p.add_argument("tokenizer")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--parallel", type=int, default=16, help="answers at the same time, llama.cpp's slots")
    p.add_argument("--context", type=int, default=1024, help="tokens of each slot")
    a = p.parse_args()
    if not os.path.exists(a.file):
        gguf.write(a.file + ".part", gguf.Q4_K, gguf.DEMO, tokenizer=a.tokenizer)
        os.rename(a.file + ".part", a.file)
    import xllamacpp
    o = xllamacpp.CommonParams()
    o.model.path = a.file
    o.model_alias = {"demo-size"} if isinstance(o.model_alias, set) else "demo-size"
    o.hostnames = ["127.0.0.1"] if isinstance(o.hostnames, list) else "127.0.0.1"
    o.port = a.port
    o.n_parallel = a.parallel
    o.n_ctx = a.context * a.parallel
    o.n_gpu_layers = 0
    o.cpuparams.n_threads = o.cpuparams_batch.n_threads = a.threads
    o.enable_chat_template = False
    o.warmup = True
    server = xllamacpp.Server(o)
    print("xllamacpp", xllamacpp.__version__, flush=True)
    print("listening on", server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # its own end waits for idle connections


if __name__ == "__main__":
    main()
