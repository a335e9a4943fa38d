#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;

// out[k * n + i] = what lane i gets from the k-th simdgroup operation on in[i].
kernel void lanes(device const float* in [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_index_in_simdgroup]], uint n [[threads_per_simdgroup]]) {
    const float v = in[i];
    const uint u = uint(i * 3 + 1);
    uint k = 0;
    out[k++ * n + i] = simd_sum(v);
    out[k++ * n + i] = simd_max(v);
    out[k++ * n + i] = simd_min(v);
    out[k++ * n + i] = simd_product(1.0f + v / 64);
    out[k++ * n + i] = float(simd_and(u | 64u));
    out[k++ * n + i] = float(simd_or(u));
    out[k++ * n + i] = float(simd_xor(u));
    out[k++ * n + i] = simd_shuffle(v, ushort((i * 7) % 32));
    out[k++ * n + i] = simd_shuffle_xor(v, 5);
    out[k++ * n + i] = i < 29 ? simd_shuffle_down(v, 3) : simd_shuffle_down(v, 3);
    out[k++ * n + i] = simd_shuffle_and_fill_up(v, 100.0f + v, 4);
    out[k++ * n + i] = simd_broadcast(v, 9);
    out[k++ * n + i] = simd_broadcast_first(v);
    out[k++ * n + i] = simd_prefix_inclusive_sum(v);
    out[k++ * n + i] = simd_prefix_exclusive_sum(v);
    out[k++ * n + i] = float(simd_vote::vote_t(simd_ballot(v > 0)) & 0xffff);
    out[k++ * n + i] = float(simd_all(v > 0)) + 2.0f * float(simd_any(v > 0));
    out[k++ * n + i] = quad_sum(v);
    out[k++ * n + i] = quad_broadcast(v, 2);
    out[k++ * n + i] = simd_sum(float2(v, 2 * v)).y;
}

// Scalars and vectors: each statement is one result.
kernel void values(device float* out [[buffer(0)]], device const float* in [[buffer(1)]]) {
    uint k = 0;
    const float4 a = float4(in[0], in[1], in[2], in[3]); // 1.5 -2 3 0.25
    float4 b = a.wzyx;
    b.xy = a.zw;
    out[k++] = b.x; out[k++] = b.y; out[k++] = b.z; out[k++] = b.w; // 3 0.25 -2 1.5
    out[k++] = dot(a, b);                                           // 4.5 - 0.5 - 6 + 0.375
    out[k++] = float(half(1.0009765625) + half(0.00048828125));     // ties to even: 1.001953125 after the sum
    out[k++] = float(bfloat(1.00390625f));                          // a tie, to even: 1
    out[k++] = float(bfloat(1.01171875f));                          // a tie, to even: 1.015625
    out[k++] = float(bfloat(3.0f) * bfloat(1.0078125f));            // 3.0234375 becomes 3.03125
    out[k++] = 7 / 2;                                               // integers
    out[k++] = 1.0 / 4;                                             // a literal is a float
    out[k++] = float(as_type<uint>(1.0f) >> 23);                    // 127
    out[k++] = float(popcount(0xf0f0u)) + float(clz(1u)) + float(ctz(8u));  // 8 + 31 + 3
    out[k++] = float(extract_bits(0xabcdu, 4, 8));                  // 0xbc
    out[k++] = clamp(5.0f, -1.0f, 2.0f) + max(1.0f, 2.0f) + min(3, 4);      // 2 + 2 + 3
    out[k++] = select(1.0f, 2.0f, true);                            // 2
    out[k++] = float(all(a > -3.0f)) + float(any(a > 2.5f)) + float(any(a > 3.0f)); // 2
    out[k++] = precise::exp(0.0f) + rsqrt(4.0f) + fabs(-2.0f) + floor(-0.5f); // 1 + 0.5 + 2 - 1
    out[k++] = float(short(-3) >> 1) + float(uchar(250) + uchar(10)); // -2 + 260
    out[k++] = float(as_type<ushort>(bfloat(1.0f)));                // 0x3f80
    float4 c = a;
    c *= 2.0f;
    c += float4(int4(1, 2, 3, 4));
    out[k++] = c.x + c.y + c.z + c.w;                               // 3-4+6+0.5+10
    out[k++] = float(ushort4(uint4(70000, 1, 2, 3)).x);             // 70000 - 65536
    out[k++] = fract(1.25f) + sign(-3.0f) + step(1.0f, 2.0f) + mix(0.0f, 8.0f, 0.25f); // 0.25 - 1 + 1 + 2
    out[k++] = float2(a.lo).x + float2(a.hi).y;                                     // 1.5 + 0.25
    out[k++] = isnan(NAN) && isinf(INFINITY) ? 1 : 0;
    out[k++] = float(packed_float3(1, 2, 3)[2]) + float(sizeof(packed_float3)) + float(sizeof(float3)); // 3 + 12 + 16
}

// counts[value % 4] += 1; largest = max. Threadgroup and device atomics.
kernel void atomics(device const uint* in [[buffer(0)]], device atomic_uint* counts [[buffer(1)]], uint t [[thread_position_in_grid]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint local[4];
    if (i < 4) atomic_store_explicit(&local[i], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&local[in[t] % 4], 1u, memory_order_relaxed);
    atomic_fetch_max_explicit(&counts[4], in[t], memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < 4) atomic_fetch_add_explicit(&counts[i], atomic_load_explicit(&local[i], memory_order_relaxed), memory_order_relaxed);
}

// out[i] says who thread i is.
kernel void positions(device uint* out [[buffer(0)]], threadgroup uint* s [[threadgroup(0)]], uint2 g [[thread_position_in_grid]], uint2 size [[threads_per_grid]], uint2 t [[thread_position_in_threadgroup]],
                      ushort2 group [[threadgroup_position_in_grid]], uint2 groups [[threadgroups_per_grid]], uint2 threads [[threads_per_threadgroup]], uint i [[thread_index_in_threadgroup]],
                      uint sg [[simdgroup_index_in_threadgroup]], ushort lane [[thread_index_in_simdgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
    s[i] = g.y * size.x + g.x;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    bool ok = g.x == group.x * 6 + t.x && g.y == group.y * threads.y + t.y && i == t.y * threads.x + t.x && sg * 32 + lane == i && sgs == (threads.x * threads.y + 31) / 32 && groups.x == 2;
    out[g.y * size.x + g.x] = ok ? s[i] + 1 : 0;
}

// Metal 4: c[M,N] = a[M,K] * b[N,K]^T, doubled in registers; one threadgroup of four simdgroups a tile of 32 x 16.
kernel void tensors(device half* a [[buffer(0)]], device half* b [[buffer(1)]], device float* c [[buffer(2)]], constant uint3& mnk [[buffer(3)]], uint2 tile [[threadgroup_position_in_grid]]) {
    using namespace mpp::tensor_ops;
    constexpr auto shape = matmul2d_descriptor(32, 16, static_cast<int>(dynamic_extent), false, true, false, matmul2d_descriptor::mode::multiply);
    matmul2d<shape, execution_simdgroups<4>> op;
    auto left = tensor(a, dextents<int32_t, 2>(mnk.z, mnk.x)).slice(0, int(tile.y) * 32);
    auto right = tensor(b, dextents<int32_t, 2>(mnk.z, mnk.y)).slice(0, int(tile.x) * 16);
    auto to = tensor(c, dextents<int32_t, 2>(mnk.y, mnk.x)).slice(int(tile.x) * 16, int(tile.y) * 32);
    auto sum = op.get_destination_cooperative_tensor<decltype(left), decltype(right), float>();
    op.run(left, right, sum);
    for (ushort i = 0; i < sum.get_capacity(); ++i)
        if (sum.is_valid_element(i)) sum[i] *= 2.0f;
    sum.store(to);
}

// c[16,32] = 1 + a[16,16] * b[32,16]^T with operands in the registers of one simdgroup.
kernel void fragments(device const bfloat* a [[buffer(0)]], device const bfloat* b [[buffer(1)]], device float* c [[buffer(2)]]) {
    constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(16, 32, 16, false, true, true, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
    mpp::tensor_ops::matmul2d<shape, metal::execution_simdgroup> op;
    auto left = op.template get_left_input_cooperative_tensor<bfloat, bfloat, float>();
    auto right = op.template get_right_input_cooperative_tensor<bfloat, bfloat, float>();
    auto sum = op.template get_destination_cooperative_tensor<decltype(left), decltype(right), float>();
    for (short i = 0; i < left.get_capacity(); ++i) { auto at = left.get_multidimensional_index(i); left[i] = a[at[1] * 16 + at[0]]; }
    for (short i = 0; i < right.get_capacity(); ++i) { auto at = right.get_multidimensional_index(i); right[i] = b[at[1] * 16 + at[0]]; }
    for (short i = 0; i < sum.get_capacity(); ++i) sum[i] = 1.0f;
    op.run(left, right, sum);
    for (short i = 0; i < sum.get_capacity(); ++i) { auto at = sum.get_multidimensional_index(i); c[at[1] * 32 + at[0]] = sum[i]; }
}
