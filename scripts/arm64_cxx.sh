#!/bin/sh
# The C++ compiler for the stand-in on arm64 under qemu: Debian's g++ 12 for arm64 has no half-width floats, clang has.
exec clang++-19 --target=aarch64-linux-gnu "$@"
