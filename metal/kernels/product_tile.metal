// Products of weight matrices with many rows, for prefill: y = x Wᵀ by 8x8 simdgroup matrices.
//
// A threadgroup of four simdgroups makes a tile of BM rows (8, 16, 32 or 64) by 64 columns. Each step brings 32 columns of x and of W
// into threadgroup memory, the weights rebuilt on the way as scale*q + bias in float32: no matrix is ever stored unpacked.
// The next step's loads are issued into registers before this step's multiplications, so that they overlap. An element of y is
// summed over K in the same order whatever BM is. Rows beyond the last are loaded as copies of it and not stored.
//
//   BM      simdgroups (rows x columns)    a simdgroup's part    matrices of 8x8
//   32, 64  2 x 2                          BM/2 x 32             8 (BM 32), 16
//   8, 16   1 x 4                          BM x 16               2, 4

constant constexpr uint TILE_COLS = 64;
constant constexpr uint TILE_DEPTH = 32;
constant constexpr uint TILE_LD = TILE_DEPTH + 4;   // floats between rows in threadgroup memory
constant constexpr uint RESULT_LD = TILE_COLS + 4;

// The rows of x that a thread loads: four columns of each.
struct TileRows {
    device const float* x[4];
};

// Where a thread's part of x lies: row and first column of quad j.
static inline uint tile_row(uint tid, uint j) { return (tid + 128 * j) / 8; }
static inline uint tile_col(uint tid) { return tid % 8 * 4; }
// Which row of the weights' tile it unpacks, 16 columns of it.
static inline uint tile_weight(uint tid) { return tid / 2; }

template <uint BITS>
struct TileWeights {
    uint q[BITS / 2];
    float scale, bias;
};

template <uint BITS>
static inline void fetch_weights(thread TileWeights<BITS>& w, device const uchar* codes, device const bfloat* scales, device const bfloat* biases, uint k) {
    device const uint2* p = (device const uint2*)(codes + k * BITS / 8);
    for (uint i = 0; i < BITS / 4; ++i) {
        const uint2 v = p[i];
        w.q[2 * i] = v.x;
        w.q[2 * i + 1] = v.y;
    }
    w.scale = float(scales[k / GROUP]);
    w.bias = float(biases[k / GROUP]);
}

template <uint BITS>
static inline void unpack_weights(threadgroup float* out, thread const TileWeights<BITS>& w) {
    constexpr uint per = 32 / BITS, mask = BITS == 4 ? 15u : 255u;
    for (uint i = 0; i < 4; ++i) {
        const uint q = w.q[4 * i / per] >> (BITS * (4 * i % per));
        const float4 v = float4(float(q & mask), float((q >> BITS) & mask), float((q >> (2 * BITS)) & mask), float((q >> (3 * BITS)) & mask));
        ((threadgroup float4*)out)[i] = w.scale * v + w.bias;
    }
}

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
        unpack_weights<BITS>(ws + tile_weight(tid) * TILE_LD + k0, wv);
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

// Row r of a matrix as a thread's own.
static inline Matrix row_of(Matrix m, uint r, uint k, uint bits) {
    const ulong row = min(r, m.rows - 1);
    m.codes += row * (k * bits / 8);
    m.scales += row * (k / GROUP);
    m.biases += row * (k / GROUP);
    return m;
}

// The tile of columns tg.y among all matrices, which lie side by side in the output.
static inline SetRows tile_of(constant LinearParams& p, uint tile) {
    SetRows r = {0, 0, 0};
    for (uint i = 0; i < 4; ++i) {
        const uint n = ceil_div(p.Rows[i], TILE_COLS);
        if (tile < n) {
            r.segment = i;
            break;
        }
        tile -= n;
        r.y0 += p.Rows[i];
    }
    r.row0 = tile * TILE_COLS;
    r.y0 += r.row0;
    return r;
}

template <uint BM, uint BITS>
static inline void gemm_tile(threadgroup float* mem, device const float* x, device float* y, Matrix w, SetRows at, constant LinearParams& p, bool add,
                             uint tile, uint tid, uint sg) {
    const uint M = p.M, K = p.K, N = p.Rows[0] + p.Rows[1] + p.Rows[2] + p.Rows[3], m0 = tile * BM;
    TileRows rows;
    for (uint j = 0; j < 4; ++j) {
        rows.x[j] = x + ulong(min(m0 + tile_row(tid, j), M - 1)) * K;
    }
    multiply_tile<BM, BITS>(mem, rows, row_of(w, at.row0 + tile_weight(tid), K, BITS), K, tid, sg);
    for (uint i = tid; i < BM * TILE_COLS; i += 128) {
        const uint r = i / TILE_COLS, c = i % TILE_COLS;
        if (m0 + r < M && at.row0 + c < w.rows) {
            device float* out = y + ulong(m0 + r) * N + at.y0 + c;
            *out = mem[r * RESULT_LD + c] + (add ? *out : 0.0f);
        }
    }
}

template <uint BITS>
static inline void gemm(threadgroup float* mem, device const float* x, device float* y, Matrix w, SetRows at, constant LinearParams& p, bool add,
                        uint tile, uint tid, uint sg) {
    if (TILE_ROWS == 8) {
        gemm_tile<8, BITS>(mem, x, y, w, at, p, add, tile, tid, sg);
    } else if (TILE_ROWS == 16) {
        gemm_tile<16, BITS>(mem, x, y, w, at, p, add, tile, tid, sg);
    } else if (TILE_ROWS == 32) {
        gemm_tile<32, BITS>(mem, x, y, w, at, p, add, tile, tid, sg);
    } else {
        gemm_tile<64, BITS>(mem, x, y, w, at, p, add, tile, tid, sg);
    }
}

// q4_gemm: y [M, N] = x Wᵀ for up to four matrices side by side in y. Grid: tiles of rows, by tiles of columns matrix by matrix.
[[kernel, max_total_threads_per_threadgroup(128)]] void q4_gemm(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], WEIGHTS(0, 2, 3, 4), WEIGHTS(1, 5, 6, 7),
                    WEIGHTS(2, 8, 9, 10), WEIGHTS(3, 11, 12, 13), constant LinearParams& p [[buffer(14)]],
                    threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    const SetRows at = tile_of(p, tg.y);
    gemm<4>(mem, x, y, PICK_MATRIX(at.segment), at, p, false, tg.x, tid, sg);
}

// q8_gemm: the same for 8-bit codes.
[[kernel, max_total_threads_per_threadgroup(128)]] void q8_gemm(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], WEIGHTS(0, 2, 3, 4), WEIGHTS(1, 5, 6, 7),
                    WEIGHTS(2, 8, 9, 10), WEIGHTS(3, 11, 12, 13), constant LinearParams& p [[buffer(14)]],
                    threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    const SetRows at = tile_of(p, tg.y);
    gemm<8>(mem, x, y, PICK_MATRIX(at.segment), at, p, false, tg.x, tid, sg);
}

// q4_gemm_add: x [M, N] += v Wᵀ.
[[kernel, max_total_threads_per_threadgroup(128)]] void q4_gemm_add(device const float* v [[buffer(0)]], device float* x [[buffer(1)]], WEIGHTS(0, 2, 3, 4),
                        constant LinearParams& p [[buffer(5)]], threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    const SetRows at = tile_of(p, tg.y);
    gemm<4>(mem, v, x, MATRIX_OF(0, p.Rows[0]), at, p, true, tg.x, tid, sg);
}
