// The kernels of plain products with many rows. Up to four matrices lie side by side in the output.

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

// part: which of p.Parts parts of K; the result is then that part's, behind those before it in y.
template <uint BM, uint BITS>
static inline void gemm_tile(threadgroup float* mem, device const float* x, device float* y, Matrix w, SetRows at, constant LinearParams& p, bool add,
                             uint part, uint tile, uint tid, uint sg) {
    const uint M = p.M, K = p.K, N = p.Rows[0] + p.Rows[1] + p.Rows[2] + p.Rows[3], m0 = tile * BM;
    const uint width = K / max(p.Parts, 1), k0 = part * width;
    TileRows rows;
    for (uint j = 0; j < 4; ++j) {
        rows.x[j] = x + ulong(min(m0 + tile_row(tid, j), M - 1)) * K + k0;
    }
    Matrix own = row_of(w, at.row0 + tile_weight(tid), K, BITS);
    own.codes += k0 * BITS / 8;
    own.scales += k0 / GROUP;
    own.biases += k0 / GROUP;
    multiply_tile<BM, BITS>(mem, rows, own, width, tid, sg);
    y += ulong(part) * M * N;
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
                        uint part, uint tile, uint tid, uint sg) {
    if (TILE_ROWS == 8) {
        gemm_tile<8, BITS>(mem, x, y, w, at, p, add, part, tile, tid, sg);
    } else if (TILE_ROWS == 16) {
        gemm_tile<16, BITS>(mem, x, y, w, at, p, add, part, tile, tid, sg);
    } else if (TILE_ROWS == 32) {
        gemm_tile<32, BITS>(mem, x, y, w, at, p, add, part, tile, tid, sg);
    } else {
        gemm_tile<64, BITS>(mem, x, y, w, at, p, add, part, tile, tid, sg);
    }
}

// q4_gemm: y [M, N] = x Wᵀ for up to four matrices side by side in y. Grid: tiles of rows, by tiles of columns matrix by matrix.
[[kernel, max_total_threads_per_threadgroup(128)]] void q4_gemm(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], WEIGHTS(0, 2, 3, 4), WEIGHTS(1, 5, 6, 7),
                    WEIGHTS(2, 8, 9, 10), WEIGHTS(3, 11, 12, 13), constant LinearParams& p [[buffer(14)]],
                    threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    const SetRows at = tile_of(p, tg.y);
    gemm<4>(mem, x, y, PICK_MATRIX(at.segment), at, p, false, 0, tg.x, tid, sg);
}

// q8_gemm: the same for 8-bit codes.
[[kernel, max_total_threads_per_threadgroup(128)]] void q8_gemm(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], WEIGHTS(0, 2, 3, 4), WEIGHTS(1, 5, 6, 7),
                    WEIGHTS(2, 8, 9, 10), WEIGHTS(3, 11, 12, 13), constant LinearParams& p [[buffer(14)]],
                    threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    const SetRows at = tile_of(p, tg.y);
    gemm<8>(mem, x, y, PICK_MATRIX(at.segment), at, p, false, 0, tg.x, tid, sg);
}

// q4_gemm_add: x [M, N] += v Wᵀ.
[[kernel, max_total_threads_per_threadgroup(128)]] void q4_gemm_add(device const float* v [[buffer(0)]], device float* x [[buffer(1)]], WEIGHTS(0, 2, 3, 4),
                        constant LinearParams& p [[buffer(5)]], threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    const SetRows at = tile_of(p, tg.y);
    gemm<4>(mem, v, x, MATRIX_OF(0, p.Rows[0]), at, p, true, 0, tg.x, tid, sg);
}

// q4_gemm_split: y [Parts, M, N], part i the product over columns [i, i+1)·K/Parts: more threadgroups for few rows. What reads y adds the parts. Grid:
// tiles of rows, by tiles of columns, by parts.
[[kernel, max_total_threads_per_threadgroup(128)]] void q4_gemm_split(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], WEIGHTS(0, 2, 3, 4),
                          constant LinearParams& p [[buffer(5)]], threadgroup float* mem [[threadgroup(0)]], THREAD_3D) {
    const SetRows at = tile_of(p, tg.y);
    gemm<4>(mem, x, y, MATRIX_OF(0, p.Rows[0]), at, p, false, tg.z, tg.x, tid, sg);
}
