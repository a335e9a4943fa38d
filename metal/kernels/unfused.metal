// Kernels of plans without an optimisation (inference/ablate). No plan as shipped has one of them.

// residual_add: x [M, D] += y. A thread takes four columns of one row.
kernel void residual_add(device const float* y [[buffer(0)]], device float* x [[buffer(1)]], constant ResidualParams& p [[buffer(2)]], THREAD_2D) {
    const uint i = (tg.x * threads.x + tid) * 4, D = p.D;
    if (i >= D) {
        return;
    }
    const ulong at = ulong(tg.y) * D + i;
    *(device float4*)(x + at) += *(device const float4*)(y + at);
}

// A thread's part of a matrix that is written out: 16 columns of one row, as floats.
template <uint BITS>
static inline void write_out(device float* dense, Matrix m, uint row, uint K, uint k) {
    TileWeights<BITS> w;
    const Matrix own = row_of(m, row, K, BITS);
    fetch_weights<BITS>(w, own.codes, own.scales, own.biases, k);
    for (uint i = 0; i < 4; ++i) {
        ((device float4*)dense)[i] = four_weights<BITS>(w, i);
    }
}

template <uint BITS>
static inline void write_row(device float* dense, Matrix m0, Matrix m1, Matrix m2, Matrix m3, constant LinearParams& p, uint n, uint k) {
    const uint K = p.K;
    if (k >= K) {
        return;
    }
    uint row = n, s = 0;
    while (s < 3 && row >= uint(p.Rows[s])) {
        row -= p.Rows[s++];
    }
    write_out<BITS>(dense + ulong(n) * K + k, s == 0 ? m0 : s == 1 ? m1 : s == 2 ? m2 : m3, row, K, k);
}

// q4_unpack: dense [N, K] = scale*q + bias of up to four matrices, one below the other. Grid: 2,048 columns by rows.
kernel void q4_unpack(device float* dense [[buffer(0)]], WEIGHTS(0, 1, 2, 3), WEIGHTS(1, 4, 5, 6), WEIGHTS(2, 7, 8, 9), WEIGHTS(3, 10, 11, 12),
                      constant LinearParams& p [[buffer(13)]], THREAD_2D) {
    write_row<4>(dense, MATRIX_OF(0, p.Rows[0]), MATRIX_OF(1, p.Rows[1]), MATRIX_OF(2, p.Rows[2]), MATRIX_OF(3, p.Rows[3]), p, tg.y, (tg.x * threads.x + tid) * 16);
}

// q8_unpack: the same for 8-bit codes.
kernel void q8_unpack(device float* dense [[buffer(0)]], WEIGHTS(0, 1, 2, 3), WEIGHTS(1, 4, 5, 6), WEIGHTS(2, 7, 8, 9), WEIGHTS(3, 10, 11, 12),
                      constant LinearParams& p [[buffer(13)]], THREAD_2D) {
    write_row<8>(dense, MATRIX_OF(0, p.Rows[0]), MATRIX_OF(1, p.Rows[1]), MATRIX_OF(2, p.Rows[2]), MATRIX_OF(3, p.Rows[3]), p, tg.y, (tg.x * threads.x + tid) * 16);
}

// A matrix of floats has no scales; its rows lie as those of codes of 32 bits.
static inline Matrix dense_matrix(device const float* w, constant LinearParams& p) {
    return Matrix{(device const uchar*)w, (device const bfloat*)w, (device const bfloat*)w, uint(p.Rows[0])};
}

// f32_gemm: y [M, N] = v Wᵀ for a matrix of floats, tile by tile as q4_gemm.
[[kernel, max_total_threads_per_threadgroup(128)]] void f32_gemm(device const float* v [[buffer(0)]], device const float* dense [[buffer(1)]], device float* y [[buffer(2)]],
                     constant LinearParams& p [[buffer(3)]], threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    gemm<32>(mem, v, y, dense_matrix(dense, p), tile_of(p, tg.y), p, false, 0, tg.x, tid, sg);
}

// f32_gemm_add: x [M, N] += v Wᵀ.
[[kernel, max_total_threads_per_threadgroup(128)]] void f32_gemm_add(device const float* v [[buffer(0)]], device const float* dense [[buffer(1)]], device float* x [[buffer(2)]],
                         constant LinearParams& p [[buffer(3)]], threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    gemm<32>(mem, v, x, dense_matrix(dense, p), tile_of(p, tg.y), p, true, 0, tg.x, tid, sg);
}

// attn_prefill: attn_prefill_bf16 for queries, keys and values of float.
[[kernel, max_total_threads_per_threadgroup(256)]] void attn_prefill(device const float* q [[buffer(0)]], device const float* keys [[buffer(1)]], device const float* values [[buffer(2)]],
                         device const float* qkv [[buffer(3)]], device const uint* step [[buffer(4)]], device float* o [[buffer(5)]],
                         constant AttentionParams& p [[buffer(6)]], threadgroup float* mem [[threadgroup(0)]], THREAD_3D) {
    threadgroup float run[16];
    threadgroup uint moved[8];
    attend_chunk<float, false>(q, keys, values, qkv, step[0], o, o, p, mem, run, moved, tg, groups.x - 1, tid, lane, sg);
}

// attn_prefill_split: attn_prefill_split_bf16 for queries, keys and values of float.
[[kernel, max_total_threads_per_threadgroup(256)]] void attn_prefill_split(device const float* q [[buffer(0)]], device const float* keys [[buffer(1)]], device const float* values [[buffer(2)]],
                         device const uint* step [[buffer(3)]], device float* acc [[buffer(4)]], device float* stats [[buffer(5)]],
                         constant AttentionParams& p [[buffer(6)]], threadgroup float* mem [[threadgroup(0)]], THREAD_3D) {
    threadgroup float run[16];
    threadgroup uint moved[8];
    attend_chunk<float, true>(q, keys, values, acc, step[0], acc, stats, p, mem, run, moved, tg, groups.x - 1, tid, lane, sg);
}
