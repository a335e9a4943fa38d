// Kernels of the stand-in's own tests: as small as can be, one for each thing that can be bound wrongly.
#include <metal_stdlib>
using namespace metal;

struct Params {
  int n;
  float value;
};

// y[i] += x[i] for i < n. One thread an element.
kernel void add(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant Params& p [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (int(i) < p.n) y[i] += x[i];
}

// y[i] = value for i < n. One thread an element.
kernel void fill(device float* y [[buffer(0)]], constant Params& p [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (int(i) < p.n) y[i] = p.value;
}

// y[group] = sum over the threadgroup of the thread's index, by way of 1,024 bytes of static and some of dynamic threadgroup memory.
kernel void shared(device float* y [[buffer(0)]], threadgroup float* t [[threadgroup(0)]], uint i [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]],
                   uint n [[threads_per_threadgroup]]) {
  threadgroup float s[256];
  s[i] = float(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) {
    t[0] = 0;
    for (uint k = 0; k < n; k++) t[0] += s[k];
    y[g] = t[0];
  }
}

constant float scale [[function_constant(0)]];

// y[i] *= scale. One thread an element.
kernel void scaled(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  y[i] *= scale;
}
