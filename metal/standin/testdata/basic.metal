#include <metal_stdlib>
using namespace metal;

constant bool doubled [[function_constant(0)]];
constant bool twice = is_function_constant_defined(doubled) ? doubled : false;
constant constexpr uint WIDTH = 32;
constant float table[4] = {0.5, 1.0, 1.5, 2.0};

struct scale_params { uint n; float by; };

// y[i] = x[i] * by * table[i % 4]; a thread an element.
kernel void scale(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant scale_params& p [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= p.n) return;
    y[i] = x[i] * (twice ? 2.0 * p.by : p.by) * table[i & 3];
}

// y[r] = sum of row r of x, a threadgroup a row.
kernel void row_sum(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint& n [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                    uint t [[thread_position_in_threadgroup]], uint threads [[threads_per_threadgroup]], uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float part[32];
    float sum = 0;
    for (uint i = t; i < n; i += threads) sum += x[ulong(row) * n + i];
    sum = simd_sum(sum);
    if (lane == 0) part[sg] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg == 0) {
        sum = simd_sum(lane < threads / WIDTH ? part[lane] : 0.0f);
        if (lane == 0) y[row] = sum;
    }
}

// y[M,N] = a[M,K] * b[N,K]^T; a simdgroup an 8 x 8 tile, two accumulators of a quarter turn each way.
template <typename T>
[[kernel]] void product(device const T* a [[buffer(0)]], device const T* b [[buffer(1)]], device float* y [[buffer(2)]], constant uint3& mnk [[buffer(3)]],
                        uint2 tile [[threadgroup_position_in_grid]]) {
    simdgroup_matrix<float, 8, 8> sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k = 0; k < mnk.z; k += 8) {
        simdgroup_matrix<T, 8, 8> left, right;
        simdgroup_load(left, a + ulong(tile.y) * 8 * mnk.z + k, mnk.z);
        simdgroup_load(right, b + ulong(tile.x) * 8 * mnk.z + k, mnk.z, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(sum, left, right, sum);
    }
    sum.thread_elements()[0] += 1.0f;
    sum.thread_elements()[1] += 1.0f;
    simdgroup_store(sum, y + ulong(tile.y) * 8 * mnk.y + tile.x * 8, mnk.y);
}
template [[host_name("product_f32")]] [[kernel]] decltype(product<float>) product<float>;
template [[host_name("product_bf16")]] [[kernel]] decltype(product<bfloat>) product<bfloat>;
