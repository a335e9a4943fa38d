// A tile of a product by 8x8 simdgroup matrices, in float32. An element of y is summed over K in the same order whatever BM is.
//
//   BM      simdgroups (rows x columns)    a simdgroup's part    matrices of 8x8
//   32, 64  2 x 2                          BM/2 x 32             8 (BM 32), 16
//   8, 16   1 x 4                          BM x 16               2, 4

constant constexpr uint TILE_LD = TILE_DEPTH + 4; // floats between rows in threadgroup memory
constant constexpr uint RESULT_LD = TILE_COLS + 4;

// The tile's sums, left at mem as [BM][RESULT_LD] behind a barrier. rows: see tile_row; w: the thread's row of the weights.
template <uint BM, uint BITS>
static inline void multiply_tile(threadgroup float* mem, TileRows rows, Matrix w, uint K, uint tid, uint sg) {
    constexpr uint quads = BM >= 16 ? BM / 16 : 1;
    constexpr uint down = BM >= 32 ? 2 : 1, across = 4 / down;
    constexpr uint TM = BM / (8 * down), TN = TILE_COLS / (8 * across);
    threadgroup float* xs = mem;
    threadgroup float* ws = mem + BM * TILE_LD;
    const uint m0 = sg / across * (8 * TM), n0 = sg % across * (8 * TN);
    const bool loads = BM >= 16 || tid < 64;
    const uint col = tile_col(tid), k0 = (tid & 1) * 16;

    simdgroup_matrix<float, 8, 8> acc[TM][TN];
    for (uint i = 0; i < TM; ++i) {
        for (uint j = 0; j < TN; ++j) {
            acc[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    float4 xv[quads];
    TileWeights<BITS> wv;
    for (uint j = 0; j < quads; ++j) {
        xv[j] = loads ? *(device const float4*)(rows.x[j] + col) : float4(0.0f);
    }
    fetch_weights<BITS>(wv, w.codes, w.scales, w.biases, k0);
    for (uint k = 0; k < K; k += TILE_DEPTH) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (loads) {
            for (uint j = 0; j < quads; ++j) {
                *(threadgroup float4*)(xs + tile_row(tid, j) * TILE_LD + col) = xv[j];
            }
        }
        unpack_weights<float, BITS>(ws + tile_weight(tid) * TILE_LD + k0, wv);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (k + TILE_DEPTH < K) {
            if (loads) {
                for (uint j = 0; j < quads; ++j) {
                    xv[j] = *(device const float4*)(rows.x[j] + k + TILE_DEPTH + col);
                }
            }
            fetch_weights<BITS>(wv, w.codes, w.scales, w.biases, k + TILE_DEPTH + k0);
        }
        for (uint kk = 0; kk < TILE_DEPTH; kk += 8) {
            simdgroup_matrix<float, 8, 8> a[TM], b[TN];
            for (uint i = 0; i < TM; ++i) {
                simdgroup_load(a[i], xs + (m0 + 8 * i) * TILE_LD + kk, TILE_LD);
            }
            for (uint j = 0; j < TN; ++j) {
                simdgroup_load(b[j], ws + (n0 + 8 * j) * TILE_LD + kk, TILE_LD, ulong2(0, 0), true);
            }
            for (uint i = 0; i < TM; ++i) {
                for (uint j = 0; j < TN; ++j) {
                    simdgroup_multiply_accumulate(acc[i][j], a[i], b[j], acc[i][j]);
                }
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < TM; ++i) {
        for (uint j = 0; j < TN; ++j) {
            simdgroup_store(acc[i][j], mem + (m0 + 8 * i) * RESULT_LD + n0 + 8 * j, RESULT_LD);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
