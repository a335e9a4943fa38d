// The experts of a chunk: pairs of token and expert listed by expert, products over each expert's rows, combination.

// Four neighbouring choices from i on; NONE beyond the last.
constant constexpr uint NONE = 0xffffffffu;

static inline uint4 choices(device const uint* ids, uint i, uint pairs) {
    if (i + 4 <= pairs) {
        return *(device const uint4*)(ids + i);
    }
    uint4 v = uint4(NONE, NONE, NONE, NONE);
    for (uint j = 0; i + j < pairs; ++j) {
        v[j] = ids[i + j];
    }
    return v;
}

// moe_group: the pairs of a chunk (token*T + rank) by expert, in order of token: pairs [offsets[e], offsets[e+1]) of order chose e.
// One simdgroup an expert: it counts the choices below its own, and then writes its pairs behind those, each at its place among the 128
// that the lanes look at. So nothing is shared between experts and the order is always the same. Memory is asked for the next choices
// before these are looked at: there is nothing else that hides its latency.
kernel void moe_group(device const uint* ids [[buffer(0)]], device uint* order [[buffer(1)]], device uint* offsets [[buffer(2)]],
                      constant MoEParams& p [[buffer(3)]], THREAD_1D) {
    const uint e = tg * 8 + sg, pairs = p.M * p.T;
    if (e >= uint(p.E)) {
        return;
    }
    uint below = 0;
    for (uint i = 4 * lane; i < pairs; i += 4 * SIMD) {
        const uint4 v = choices(ids, i, pairs);
        for (uint j = 0; j < 4; ++j) {
            below += v[j] < e ? 1u : 0u;
        }
    }
    uint next = simd_sum(below);
    if (lane == 0) {
        offsets[e] = next;
        if (e + 1 == uint(p.E)) {
            offsets[e + 1] = pairs;
        }
    }
    uint4 v = choices(ids, 4 * lane, pairs);
    for (uint i0 = 0; i0 < pairs; i0 += 4 * SIMD) {
        const uint i = i0 + 4 * lane;
        const uint4 following = choices(ids, i + 4 * SIMD, pairs);
        uint own = 0;
        for (uint j = 0; j < 4; ++j) {
            own += v[j] == e ? 1u : 0u;
        }
        uint at = next + simd_prefix_exclusive_sum(own);
        for (uint j = 0; j < 4; ++j) {
            if (v[j] == e) {
                order[at] = i + j;
                ++at;
            }
        }
        next += simd_sum(own);
        v = following;
    }
}

// A tile of one expert's rows: rows [first, first+count) of "order", in a tile of height rows.
struct ExpertTile {
    uint e;
    uint first;
    uint count; // 0: beyond the last tile
    uint height;
};

// The height of the tiles for n rows: the next power of two, LEAST_ROWS to 64.
static inline uint tile_height(uint n) { return max(uint(LEAST_ROWS), n <= 8 ? 8u : n <= 16 ? 16u : n <= 32 ? 32u : 64u); }

// Finds tile number t among all experts' tiles: each thread counts the tiles of some experts, prefix sums tell which thread's range
// holds t. found and totals are threadgroup memory of 4 words each.
static inline ExpertTile find_tile(device const uint* offsets, uint E, uint t, threadgroup uint* found, threadgroup uint* totals, uint tid, uint lane, uint sg) {
    const uint per = ceil_div(E, 128), e0 = tid * per, e1 = min(e0 + per, E);
    uint tiles = 0;
    for (uint e = e0; e < e1; ++e) {
        const uint n = offsets[e + 1] - offsets[e];
        tiles += ceil_div(n, tile_height(n));
    }
    uint before = simd_prefix_exclusive_sum(tiles);
    if (lane == SIMD - 1) {
        totals[sg] = before + tiles;
    }
    if (tid < 4) {
        found[tid] = 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < sg; ++i) {
        before += totals[i];
    }
    if (t >= before && t < before + tiles) {
        for (uint e = e0; e < e1; ++e) {
            const uint n = offsets[e + 1] - offsets[e], h = tile_height(n), own = ceil_div(n, h);
            if (t >= before && t < before + own) {
                const uint skip = (t - before) * h;
                found[0] = e;
                found[1] = offsets[e] + skip;
                found[2] = min(h, n - skip);
                found[3] = h;
            }
            before += own;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return ExpertTile{found[0], found[1], found[2], found[3]};
}

template <uint BM>
static inline void gate_up_tile(threadgroup float* mem, device const float* h, device const uint* order, device float* act, Matrix gate, Matrix up,
                                ExpertTile t, uint n0, constant MoEParams& p, uint tid, uint sg) {
    const uint K = p.D, I = p.I, r = tile_weight(tid);
    TileRows rows;
    for (uint j = 0; j < 4; ++j) {
        rows.x[j] = h + ulong(order[t.first + min(tile_row(tid, j), t.count - 1)] / p.T) * K;
    }
    const Matrix w = stacked(r < 32 ? gate : up, t.e, I, K);
    multiply_tile<BM, 4>(mem, rows, row_of(w, n0 + r % 32, K, 4), K, tid, sg);
    for (uint i = tid; i < t.count * 32; i += 128) {
        const uint m = i / 32, c = i % 32;
        if (n0 + c < I) {
            act[ulong(t.first + m) * I + n0 + c] = silu(mem[m * RESULT_LD + c]) * mem[m * RESULT_LD + 32 + c];
        }
    }
}

// moe_gate_up_grouped: act[i] [I] = silu(G_e h) ⊙ (U_e h) for pair order[i] of expert e; rows of h are gathered through the index. A tile is
// 32 columns of gate beside the same of up. Grid: tiles of columns, by tiles of rows: as many as the chunk can have; those
// beyond the last end at once.
[[kernel, max_total_threads_per_threadgroup(128)]] void moe_gate_up_grouped(device const float* h [[buffer(0)]], device const uint* order [[buffer(1)]], device const uint* offsets [[buffer(2)]],
                                device float* act [[buffer(3)]], WEIGHTS(0, 4, 5, 6), WEIGHTS(1, 7, 8, 9), constant MoEParams& p [[buffer(10)]],
                                threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    threadgroup uint found[4];
    threadgroup uint totals[4];
    const ExpertTile t = find_tile(offsets, p.E, tg.y, found, totals, tid, lane, sg);
    if (t.count == 0) {
        return;
    }
    const Matrix gate = MATRIX_OF(0, p.I), up = MATRIX_OF(1, p.I);
    if (t.height == 8) {
        gate_up_tile<8>(mem, h, order, act, gate, up, t, tg.x * 32, p, tid, sg);
    } else if (t.height == 16) {
        gate_up_tile<16>(mem, h, order, act, gate, up, t, tg.x * 32, p, tid, sg);
    } else if (t.height == 32) {
        gate_up_tile<32>(mem, h, order, act, gate, up, t, tg.x * 32, p, tid, sg);
    } else {
        gate_up_tile<64>(mem, h, order, act, gate, up, t, tg.x * 32, p, tid, sg);
    }
}

template <uint BM, typename T>
static inline void down_tile(threadgroup float* mem, device const float* act, device const uint* order, device T* y, Matrix down, ExpertTile t,
                             uint n0, constant MoEParams& p, uint tid, uint sg) {
    const uint K = p.I, D = p.D;
    TileRows rows;
    for (uint j = 0; j < 4; ++j) {
        rows.x[j] = act + ulong(t.first + min(tile_row(tid, j), t.count - 1)) * K;
    }
    multiply_tile<BM, 4>(mem, rows, row_of(stacked(down, t.e, D, K), n0 + tile_weight(tid), K, 4), K, tid, sg);
    for (uint i = tid; i < t.count * TILE_COLS; i += 128) {
        const uint m = i / TILE_COLS, c = i % TILE_COLS;
        if (n0 + c < D) {
            y[ulong(order[t.first + m]) * D + n0 + c] = T(mem[m * RESULT_LD + c]);
        }
    }
}

template <typename T>
static inline void down_tiles(threadgroup float* mem, device const float* act, device const uint* order, device T* y, Matrix down, ExpertTile t, uint n0,
                              constant MoEParams& p, uint tid, uint sg) {
    if (t.count == 0) {
        return;
    }
    if (t.height == 8) {
        down_tile<8, T>(mem, act, order, y, down, t, n0, p, tid, sg);
    } else if (t.height == 16) {
        down_tile<16, T>(mem, act, order, y, down, t, n0, p, tid, sg);
    } else if (t.height == 32) {
        down_tile<32, T>(mem, act, order, y, down, t, n0, p, tid, sg);
    } else {
        down_tile<64, T>(mem, act, order, y, down, t, n0, p, tid, sg);
    }
}

// moe_down_grouped: y[pair] [D] = W_e act[i] for pair order[i]: stored by pair, so that moe_combine adds in order of rank. Grid as
// moe_gate_up_grouped, 64 columns a tile.
[[kernel, max_total_threads_per_threadgroup(128)]] void moe_down_grouped(device const float* act [[buffer(0)]], device const uint* order [[buffer(1)]], device const uint* offsets [[buffer(2)]],
                             device float* y [[buffer(3)]], WEIGHTS(0, 4, 5, 6), constant MoEParams& p [[buffer(7)]],
                             threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    threadgroup uint found[4];
    threadgroup uint totals[4];
    const ExpertTile t = find_tile(offsets, p.E, tg.y, found, totals, tid, lane, sg);
    down_tiles<float>(mem, act, order, y, MATRIX_OF(0, p.D), t, tg.x * TILE_COLS, p, tid, sg);
}

// moe_down_grouped_bf16: y as bfloat. It is written once and read once, and is most of what a chunk's experts move beside their weights.
[[kernel, max_total_threads_per_threadgroup(128)]] void moe_down_grouped_bf16(device const float* act [[buffer(0)]], device const uint* order [[buffer(1)]], device const uint* offsets [[buffer(2)]],
                             device bfloat* y [[buffer(3)]], WEIGHTS(0, 4, 5, 6), constant MoEParams& p [[buffer(7)]],
                             threadgroup float* mem [[threadgroup(0)]], THREAD_2D) {
    threadgroup uint found[4];
    threadgroup uint totals[4];
    const ExpertTile t = find_tile(offsets, p.E, tg.y, found, totals, tid, lane, sg);
    down_tiles<bfloat>(mem, act, order, y, MATRIX_OF(0, p.D), t, tg.x * TILE_COLS, p, tid, sg);
}

// Four columns from i on of the sum over a token's ranks.
template <typename T>
static inline void combine(device const T* y, device const float* shared, device const float* weights, device float* x, constant MoEParams& p, uint i,
                           uint m) {
    const uint D = p.D, ranks = p.T;
    if (i >= D) {
        return;
    }
    device const float* w = weights + m * (ranks + 1);
    float4 sum = float4(0.0f);
    for (uint r = 0; r < ranks; ++r) {
        sum += w[r] * float4(*(device const vec<T, 4>*)(y + (ulong(m) * ranks + r) * D + i));
    }
    sum += w[ranks] * *(device const float4*)(shared + ulong(m) * D + i);
    device float4* out = (device float4*)(x + ulong(m) * D + i);
    *out += sum;
}

// moe_combine: x[m] [D] += sum over ranks of weights[m, r]·y[m, r] + weights[m, T]·shared[m]. A thread takes four columns of one token.
kernel void moe_combine(device const float* y [[buffer(0)]], device const float* shared [[buffer(1)]], device const float* weights [[buffer(2)]],
                        device float* x [[buffer(3)]], constant MoEParams& p [[buffer(4)]], THREAD_2D) {
    combine<float>(y, shared, weights, x, p, (tg.x * threads.x + tid) * 4, tg.y);
}

// moe_combine_bf16: y as bfloat.
kernel void moe_combine_bf16(device const bfloat* y [[buffer(0)]], device const float* shared [[buffer(1)]], device const float* weights [[buffer(2)]],
                             device float* x [[buffer(3)]], constant MoEParams& p [[buffer(4)]], THREAD_2D) {
    combine<bfloat>(y, shared, weights, x, p, (tg.x * threads.x + tid) * 4, tg.y);
}
