#include <metal_stdlib>
using namespace metal;
// One planted fault a kernel. The test looks for the word FAULT in the source to know the line that a report must name.

kernel void missing_barrier(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    threadgroup float s[256];
    s[t] = x[t];
    y[t] = s[(t + 1) % n]; // FAULT
}

kernel void missing_second_barrier(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    threadgroup float s[256];
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) {
        s[t] = x[t] * k; // FAULT
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sum += s[(t + 37) % n];
    }
    y[t] = sum;
}

kernel void near_overrun(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    y[i] = x[i + 1]; // FAULT
}

kernel void far_overrun(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    y[i] = x[i + 2048]; // FAULT
}

kernel void overrun_by_store(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    y[i + 1] = x[i]; // FAULT
}

kernel void threadgroup_overrun(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[200];
    threadgroup float other[64];
    if (t >= 192) other[t & 63] = 0.0f;
    s[t] = x[t]; // FAULT
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[t] = s[t < 200 ? t : 0];
}

kernel void unwritten_threadgroup(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[256];
    if (t < 255) s[t] = x[t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[t] = s[t]; // FAULT
}

kernel void unwritten_device(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    y[t] = x[t]; // FAULT
}

kernel void divergent_barrier(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[256];
    s[t] = x[t];
    if (t < 128) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // FAULT
    } else {
        s[t] += 1.0f;
        threadgroup_barrier(mem_flags::mem_threadgroup); // OR HERE
    }
    y[t] = s[255 - t];
}

kernel void early_return(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[256];
    if (t >= 250) return;
    s[t] = x[t];
    threadgroup_barrier(mem_flags::mem_threadgroup); // FAULT
    y[t] = s[249 - t];
}

kernel void race_between_threadgroups(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_position_in_grid]], uint g [[threadgroup_position_in_grid]]) {
    y[t] = x[t];
    if (g > 0) y[t] += y[t - 128]; // FAULT
}

kernel void race_between_threads(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_position_in_grid]]) {
    y[t / 2] = x[t]; // FAULT
}

kernel void divergent_simd(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    float v = x[t];
    if ((t & 31) < 20) v = simd_sum(v); // FAULT
    y[t] = v;
}

kernel void too_deep(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    float a[32768]; // 128 KiB on a stack of 64
    for (uint i = 0; i < 32768; i++) a[i] = x[(t + i) & 255];
    simd_sum(a[t]);
    y[t] = a[(t * 131) & 32767];
}

kernel void part_of_a_simdgroup(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    simdgroup_matrix<float, 8, 8> m;
    if (t < 16) {
        simdgroup_load(m, x, 8); // FAULT
        simdgroup_store(m, y, 8);
    }
}

kernel void private_overrun(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    float a[4];
    for (uint i = 0; i < 4; ++i) a[i] = x[i];
    y[t] = a[t & 7]; // FAULT
}

kernel void unaligned_vector(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    device const float4* v = (device const float4*)(x + 1);
    y[t] = v[t & 7].x; // FAULT
}

// Threadgroup 4 of 64 leaves y last, though it is the first one to.
kernel void slow_overrun(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint g [[threadgroup_position_in_grid]]) {
    float v = x[0];
    for (uint i = 0; g == 4 && i < 20000000; i++) v = v * 0.5f + 1.0f;
    y[g < 4 ? g : g + 252] = v; // FAULT
}

// No fault: two dispatches of copy without a barrier between them are one.
kernel void copy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    y[i] = x[i];
}

kernel void simd_barrier_suffices(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[256];
    s[t] = x[t];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    y[t] = s[t ^ 1];
}
