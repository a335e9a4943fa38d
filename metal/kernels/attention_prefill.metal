// Causal attention of a chunk over the cache, gated.
//
// attend_chunk, which does the work of a threadgroup, has two texts of one signature: prefill_matrix.metal by simdgroup matrices, and by vectors for
// a few queries, and prefill_tensor.metal by Metal 4's tensor operations.

// attn_prefill_bf16: o [M, H, HD] = softmax(q·k/√HD) v ⊙ sigmoid(gate), token m over the keys 0 to pos+m. q [KV, M, H/KV, HD] is normalised and
// rotated; bfloat goes into the products of matrices as it is. Grid: groups of queries, KV heads, query heads of a KV head by HEADS; by tensor
// operations rows of 64 (query, head), KV heads.
[[kernel, max_total_threads_per_threadgroup(256)]] void attn_prefill_bf16(device const bfloat* q [[buffer(0)]], device const bfloat* keys [[buffer(1)]], device const bfloat* values [[buffer(2)]],
                         device const float* qkv [[buffer(3)]], device const uint* step [[buffer(4)]], device float* o [[buffer(5)]],
                         constant AttentionParams& p [[buffer(6)]], threadgroup float* mem [[threadgroup(0)]], THREAD_3D) {
    threadgroup float run[16];
    threadgroup uint moved[8];
    attend_chunk<bfloat, false>(q, keys, values, qkv, step[0], o, o, p, mem, run, moved, tg, groups.x - 1, tid, lane, sg);
}

// attn_prefill_split_bf16: the same in parts of the keys: acc [M, H, NB, HD] = Σ exp2(s−max)·v over a part, stats [M, H, NB, 2] = max, Σ exp2(s−max), with
// s in units of log2. A part with no key before a query has zeroes. Grid: as before, the third
// dimension for each part.
[[kernel, max_total_threads_per_threadgroup(256)]] void attn_prefill_split_bf16(device const bfloat* q [[buffer(0)]], device const bfloat* keys [[buffer(1)]], device const bfloat* values [[buffer(2)]],
                         device const uint* step [[buffer(3)]], device float* acc [[buffer(4)]], device float* stats [[buffer(5)]],
                         constant AttentionParams& p [[buffer(6)]], threadgroup float* mem [[threadgroup(0)]], THREAD_3D) {
    threadgroup float run[16];
    threadgroup uint moved[8];
    attend_chunk<bfloat, true>(q, keys, values, acc, step[0], acc, stats, p, mem, run, moved, tg, groups.x - 1, tid, lane, sg);
}

// attn_prefill_merge: o [M, H, HD] = Σ w·acc / Σ w·sum ⊙ sigmoid(gate), w = exp2(max − largest max), over the parts in order. One simdgroup a query
// head of a token; a lane finds the parts' maxima 32 at a time.
kernel void attn_prefill_merge(device const float* acc [[buffer(0)]], device const float* stats [[buffer(1)]], device const float* qkv [[buffer(2)]],
                               device float* o [[buffer(3)]], constant AttentionParams& p [[buffer(4)]], THREAD_2D) {
    const uint h = tg.x * 8 + sg, m = tg.y, HD = p.HD, NB = p.Blocks;
    if (h >= uint(p.H)) {
        return;
    }
    device const float* rows = acc + part_slot(p, m, h, 0) * HD;
    device const float* s = stats + part_slot(p, m, h, 0) * 2;
    float top = LOWEST;
    for (uint b = lane; b < NB; b += SIMD) {
        top = max(top, s[2 * b + 1] > 0.0f ? s[2 * b] : LOWEST);
    }
    top = simd_max(top);
    float out[8], total = 0.0f;
    for (uint i = 0; i < 8; ++i) {
        out[i] = 0.0f;
    }
    for (uint b = 0; b < NB; ++b) {
        const float sum = s[2 * b + 1];
        if (sum <= 0.0f) {
            continue; // the same in all lanes
        }
        const float w = exp2(s[2 * b] - top);
        float v[8];
        load_lanes(v, rows + ulong(b) * HD, HEAD_LANES, lane);
        total += w * sum;
        for (uint i = 0; i < uint(HEAD_LANES); ++i) {
            out[i] += w * v[i];
        }
    }
    float gate[8];
    load_lanes(gate, qkv + ulong(m) * qkv_stride(p) + (2 * h + 1) * HD, HEAD_LANES, lane);
    for (uint i = 0; i < uint(HEAD_LANES); ++i) {
        out[i] = out[i] / total * sigmoid(gate[i]);
    }
    store_lanes(o + (ulong(m) * p.H + h) * HD, out, HEAD_LANES, lane);
}
