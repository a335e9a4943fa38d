// Attention of a chunk by Metal 4's tensor operations. It takes the place of prefill_matrix.metal in a library of its own (source.go).
//
// The heads of a KV head are the rows of one matrix, M*H/KV rows of q in a row, so a threadgroup takes any 64 of them: eight queries with eight
// heads each, and each key and value serves 64 rows. A step is 64 keys, worked on by all eight simdgroups:
//
//   1. S = Q Kᵀ    64 x 64 x HD; q and keys from memory as they lie, sums in float32
//   2. softmax     four threads a row: running maximum, exp2, weights rounded to bfloat as the units want them; the sum of weights is that of the
//                  rounded ones, so that a row's weights add up to one. Masks only where a row's own key is in the step
//   3. O += P V    64 x HD x 64; P from threadgroup memory, values as they lie; O in registers, rescaled only where a maximum moved
//
// Two barriers a step: who writes scores has left the weights of the step before, and who reads weights does not touch scores. Rows and keys that do not
// exist are outside the tensors' extents, so they are not looked at; the depth of both products is left to the extents for the same reason. A row's
// result depends on its own query and keys alone. Loops over a cooperative tensor are unrolled, else its elements lie in memory.
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>

constant constexpr uint TILE_QUERIES = 64; // rows of (query, head)
constant constexpr uint KEY_STEP = 64;
constant constexpr uint SCORE_LD = KEY_STEP + 8; // between rows in threadgroup memory, so that eight rows lie in different banks

// ACROSS: the power of two that holds HD.
template <uint ACROSS, typename T, bool SPLIT>
static inline void attend_rows(device const T* q, device const T* all_keys, device const T* all_values, device const float* qkv, uint pos, device float* o,
                               device float* stats, constant AttentionParams& p, threadgroup float* mem, threadgroup uint* moved, uint3 tg, uint last_tg,
                               uint tid, uint lane, uint sg) {
    using namespace mpp::tensor_ops;
    const uint HD = p.HD, kv = tg.y, group = p.H / p.KV, r0 = (last_tg - tg.x) * TILE_QUERIES; // the longest first
    const uint rows = min(TILE_QUERIES, p.M * group - r0);
    const KeyPart part = key_part(p, pos, SPLIT ? tg.z : 0);
    const uint all = pos + (r0 + rows - 1) / group + 1; // keys that any of the rows may see
    const uint n = SPLIT ? min(all, part.end) : all;
    const ulong stride = p.KV * HD;
    // An operand's type is not const, though it is only read: cooperative tensors refuse const ones.
    device T* queries = (device T*)q + query_row(p, 0, kv * group) * HD + ulong(r0) * HD;
    device T* keys = (device T*)all_keys + kv * HD;
    device T* values = (device T*)all_values + kv * HD;
    threadgroup float* scores = mem;                                      // [64][SCORE_LD]
    threadgroup T* weights = (threadgroup T*)(scores + TILE_QUERIES * SCORE_LD); // [64][SCORE_LD]
    threadgroup float* factors = (threadgroup float*)(weights + TILE_QUERIES * SCORE_LD); // [64]

    typedef dextents<int32_t, 2> Size;
    typedef tensor<device T, Size, tensor_inline> Rows;
    typedef tensor<threadgroup T, Size, tensor_inline> Weights;
    constexpr int any_depth = int(dynamic_extent);
    constexpr auto scoring = matmul2d_descriptor(int(TILE_QUERIES), int(KEY_STEP), any_depth, false, true, false, matmul2d_descriptor::mode::multiply);
    constexpr auto adding = matmul2d_descriptor(int(TILE_QUERIES), int(ACROSS), any_depth, false, false, false, matmul2d_descriptor::mode::multiply_accumulate);
    matmul2d<scoring, execution_simdgroups<8>> score;
    matmul2d<adding, execution_simdgroups<8>> add;
    const array<int, 2> across = {1, int(stride)}, padded = {1, int(SCORE_LD)};
    Rows a(queries, Size(int(HD), int(rows)));
    tensor<threadgroup float, Size, tensor_inline> score_rows(scores, Size(int(KEY_STEP), int(TILE_QUERIES)), padded);
    auto sums = add.template get_destination_cooperative_tensor<Weights, Rows, float>();
#pragma unroll
    for (uint i = 0; i < sums.get_capacity(); ++i) {
        sums[i] = 0.0f;
    }

    const uint row = tid / 4, part_col = tid % 4 * 2, own = r0 + min(row, rows - 1), m = own / group;
    threadgroup float* score_line = scores + row * SCORE_LD + part_col;
    threadgroup T* weight_line = weights + row * SCORE_LD + part_col;
    const float scale = LOG2E * precise::rsqrt(float(HD));
    float highest = LOWEST, weight = 0.0f; // of the row, the same in its four threads
    for (uint t0 = part.first; t0 < n; t0 += KEY_STEP) {
        const int count = int(min(KEY_STEP, n - t0));
        {
            Rows b(keys + t0 * stride, Size(int(HD), count), across);
            auto s = score.template get_destination_cooperative_tensor<Rows, Rows, float>();
            score.run(a, b, s);
            s.store(score_rows);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float s[16], top = highest, sum = 0.0f;
        const bool masked = t0 + KEY_STEP > pos + m + 1;
        for (uint i = 0; i < 16; ++i) {
            s[i] = score_line[i / 2 * 8 + i % 2] * scale;
            if (masked && t0 + part_col + i / 2 * 8 + i % 2 > pos + m) {
                s[i] = LOWEST;
            }
            top = max(top, s[i]);
        }
        top = max(top, simd_shuffle_xor(top, ushort(1)));
        top = max(top, simd_shuffle_xor(top, ushort(2)));
        for (uint i = 0; i < 16; ++i) {
            const T e = T(masked && t0 + part_col + i / 2 * 8 + i % 2 > pos + m ? 0.0f : exp2(s[i] - top));
            weight_line[i / 2 * 8 + i % 2] = e;
            sum += float(e);
        }
        sum += simd_shuffle_xor(sum, ushort(1));
        sum += simd_shuffle_xor(sum, ushort(2));
        const float factor = exp2(highest - top);
        if (tid % 4 == 0) {
            factors[row] = factor;
        }
        const bool any = simd_any(top > highest);
        if (lane == 0) {
            moved[sg] = any ? 1 : 0;
        }
        highest = top;
        weight = weight * factor + sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);

        uint rescale = 0;
        for (uint i = 0; i < 8; ++i) {
            rescale |= moved[i];
        }
        if (rescale != 0) {
#pragma unroll
            for (uint i = 0; i < sums.get_capacity(); ++i) {
                if (sums.is_valid_element(i)) {
                    sums[i] *= factors[sums.get_multidimensional_index(i)[1]];
                }
            }
        }
        Weights w(weights, Size(count, int(TILE_QUERIES)), padded);
        Rows v(values + t0 * stride, Size(int(HD), count), across);
        add.run(w, v, sums);
    }

    threadgroup_barrier(mem_flags::mem_threadgroup); // the last factors were read
    if (tid % 4 == 0) {
        factors[row] = weight;
        if (SPLIT && row < rows) {
            const ulong slot = part_slot(p, m, kv * group + own % group, part.b);
            stats[2 * slot] = highest;
            stats[2 * slot + 1] = weight;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint i = 0; i < sums.get_capacity(); ++i) {
        if (!sums.is_valid_element(i)) {
            continue;
        }
        const auto at = sums.get_multidimensional_index(i);
        const uint d = at[0], r = at[1], token = (r0 + r) / group, h = kv * group + (r0 + r) % group;
        if (d < HD && r < rows) {
            if (SPLIT) {
                o[part_slot(p, token, h, part.b) * HD + d] = sums[i];
            } else {
                const float gate = qkv[ulong(token) * qkv_stride(p) + (2 * h + 1) * HD + d];
                o[(ulong(token) * p.H + h) * HD + d] = sums[i] / factors[r] * sigmoid(gate);
            }
        }
    }
}

template <typename T, bool SPLIT>
static inline void attend_chunk(device const T* q, device const T* keys, device const T* values, device const float* qkv, uint pos, device float* o,
                                device float* stats, constant AttentionParams& p, threadgroup float* mem, threadgroup float*,
                                threadgroup uint* moved, uint3 tg, uint last_tg, uint tid, uint lane, uint sg) {
    if (HEAD_LANES > 4) {
        attend_rows<256, T, SPLIT>(q, keys, values, qkv, pos, o, stats, p, mem, moved, tg, last_tg, tid, lane, sg);
    } else if (HEAD_LANES > 2) {
        attend_rows<128, T, SPLIT>(q, keys, values, qkv, pos, o, stats, p, mem, moved, tg, last_tg, tid, lane, sg);
    } else {
        attend_rows<64, T, SPLIT>(q, keys, values, qkv, pos, o, stats, p, mem, moved, tg, last_tg, tid, lane, sg);
    }
}
