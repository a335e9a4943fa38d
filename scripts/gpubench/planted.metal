// Mistakes for compute-sanitizer to find, one a kernel: a tool that sees none of them was not attached. Two threadgroups of 128 threads, x and y of 256 numbers.
#include <metal_stdlib>
using namespace metal;

// Nothing is between what a simdgroup writes and what the next one reads.
kernel void planted_race(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[128];
    s[t] = x[i];
    y[i] = s[(t + 32) & 127];
}

// The last thread writes behind y.
kernel void planted_overrun(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    y[i + 1] = x[i];
}

// One half of a threadgroup waits where the other does not come.
kernel void planted_barrier(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[128];
    s[t] = x[i];
    if (t % 2 == 0) threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = s[t];
}

// The same without a mistake.
kernel void planted_nothing(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[128];
    s[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = s[(t + 32) & 127];
}
