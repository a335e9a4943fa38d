// Gated attention of one token, and what prefill shares with it (spec 2.5).
//
// Scores are kept in units of log2: q is scaled by log2(e)/√HD once, so that a weight is one exp2. What leaves a kernel
// is in natural units.

// Keys and values lie in the cache as T: float, or bfloat, which halves what a token reads. Every use sees the stored number, also
// that of the token's own key and value, so that a later token finds what this one had.
template <typename T>
static inline float stored(float v) {
    return float(T(v));
}

// Dim i of a lane's share of a head: as many neighbours as 16 bytes of a cached row are, where the head is wide enough.
template <typename T>
static inline uint head_dim(uint lane, uint i) {
    return sizeof(T) == 2 && HEAD_LANES == 8 ? 8 * lane + i : lane_dim(lane, i, HEAD_LANES);
}

static inline void load_head(thread float* out, device const float* row, uint lane) { load_lanes(out, row, HEAD_LANES, lane); }

// Eight bfloat of a word each two, as floats.
static inline void widen(thread float* out, uint4 w) {
    for (uint i = 0; i < 4; ++i) {
        out[2 * i] = as_type<float>(w[i] << 16);
        out[2 * i + 1] = as_type<float>(w[i] & 0xffff0000u);
    }
}

static inline void load_head(thread float* out, device const bfloat* row, uint lane) {
    if (HEAD_LANES == 8) {
        widen(out, ((device const uint4*)row)[lane]);
    } else {
        for (uint i = 0; i < uint(HEAD_LANES); ++i) {
            out[i] = float(row[lane_dim(lane, i, HEAD_LANES)]);
        }
    }
}

static inline void store_head(device float* row, thread const float* v, uint lane) { store_lanes(row, v, HEAD_LANES, lane); }

static inline void store_head(device bfloat* row, thread const float* v, uint lane) {
    for (uint i = 0; i < uint(HEAD_LANES); ++i) {
        row[lane_dim(lane, i, HEAD_LANES)] = bfloat(v[i]);
    }
}

// One simdgroup: out = RMSNorm(row) ⊙ norm over HD.
static inline void norm_head(threadgroup float* out, device const float* row, device const bfloat* norm, float eps, uint lane) {
    float v[8];
    load_lanes(v, row, HEAD_LANES, lane);
    float s = 0.0f;
    for (uint i = 0; i < uint(HEAD_LANES); ++i) {
        s += v[i] * v[i];
    }
    const float inv = precise::rsqrt(simd_sum(s) / (float(HEAD_LANES) * 32.0f) + eps);
    for (uint i = 0; i < uint(HEAD_LANES); ++i) {
        const uint d = lane_dim(lane, i, HEAD_LANES);
        out[d] = v[i] * inv * float(norm[d]);
    }
}

// Dim d of a normalised head after the rotation of pairs (i, i+R/2); rope is R/2 cosines, then R/2 sines.
static inline float rotated(threadgroup const float* x, device const float* rope, uint d, uint R) {
    const uint half_r = R / 2;
    if (d >= R) {
        return x[d];
    }
    if (d < half_r) {
        return x[d] * rope[d] - x[d + half_r] * rope[half_r + d];
    }
    return x[d] * rope[d - half_r] + x[d - half_r] * rope[d];
}

// Rows of bfloat that a simdgroup reads 16 bytes a lane: eight neighbouring dims of 256. It takes every eighth row and has ROWS_AHEAD on their
// way, packed as they lie.
constant constexpr uint ROWS_AHEAD = 4;
template <typename T>
static inline bool whole_rows() {
    return sizeof(T) == 2 && HEAD_LANES == 8;
}

template <typename T>
static inline uint4 packed_row(device const T* rows, uint t, ulong stride, uint lane) {
    return ((device const uint4*)rows)[t * uint(stride / 8) + lane]; // inside a block 32 bits hold the place
}

template <typename T>
static inline void first_rows(thread uint4* ahead, device const T* rows, uint n, ulong stride, uint lane, uint sg) {
    for (uint j = 0; j < ROWS_AHEAD; ++j) {
        ahead[j] = packed_row(rows, min(sg + 8 * j, n - 1), stride, lane);
    }
}

// A lane's part of the scores of a key with eight heads.
static inline void head_scores(thread float* s, thread const float (&q)[8][8], uint4 row) {
    float k[8];
    widen(k, row);
    for (uint h = 0; h < 8; ++h) {
        float d = 0.0f;
        for (uint i = 0; i < 8; ++i) {
            d += q[h][i] * k[i];
        }
        s[h] = d;
    }
}

// Sums 16 values over the lanes as set_sum sums eight, with the same bits: 16 exchanges. Each lane ends with the sum of value half_row(lane).
static inline uint half_row(uint lane) { return (lane & 1) * 8 + ((lane >> 1) & 1) * 4 + ((lane >> 2) & 1) * 2 + ((lane >> 3) & 1); }

static inline float half_sums(thread const float* v, uint lane) {
    float a[8], b[4], c[2];
    const bool k0 = (lane & 1) != 0, k1 = (lane & 2) != 0, k2 = (lane & 4) != 0, k3 = (lane & 8) != 0;
    for (uint i = 0; i < 8; ++i) {
        const float first = v[i], second = v[8 + i];
        a[i] = (k0 ? second : first) + simd_shuffle_xor(k0 ? first : second, ushort(1));
    }
    for (uint i = 0; i < 4; ++i) {
        const float first = a[i], second = a[4 + i];
        b[i] = (k1 ? second : first) + simd_shuffle_xor(k1 ? first : second, ushort(2));
    }
    for (uint i = 0; i < 2; ++i) {
        const float first = b[i], second = b[2 + i];
        c[i] = (k2 ? second : first) + simd_shuffle_xor(k2 ? first : second, ushort(4));
    }
    const float s = (k3 ? c[1] : c[0]) + simd_shuffle_xor(k3 ? c[0] : c[1], ushort(8));
    return s + simd_shuffle_xor(s, ushort(16));
}

// Scores of n cached keys, for HEADS query heads: weights[key*HEADS + head] = q·k. The eight simdgroups take turns; a turn is eight scores,
// of 8/HEADS keys, so that set_sum reduces them together, and a row is read once for all heads. The next turn's rows are on their
// way while this turn's sums are exchanged. stride: floats between rows.
template <typename T>
static inline void block_scores(threadgroup float* weights, thread const float (&q)[8][8], device const T* keys, uint n, ulong stride, uint lane,
                                uint sg) {
    const uint turn = 8 / HEADS, first = sg * turn;
    if (first >= n) {
        return;
    }
    if (whole_rows<T>() && turn == 1) {
        uint4 ahead[ROWS_AHEAD];
        first_rows(ahead, keys, n, stride, lane, sg);
        uint t0 = sg;
        threadgroup float* mine = weights + half_row(lane) / 8 * 64 + half_row(lane) % 8; // the lane's key of two, and head
        for (; t0 + 8 * ROWS_AHEAD <= n + 7; t0 += 8 * ROWS_AHEAD) {
            for (uint j = 0; j < ROWS_AHEAD; j += 2) { // two keys of eight heads
                float s[16];
                for (uint i = 0; i < 2; ++i) {
                    head_scores(s + 8 * i, q, ahead[j + i]);
                    ahead[j + i] = packed_row(keys, min(t0 + 8 * (j + i + ROWS_AHEAD), n - 1), stride, lane);
                }
                const float total = half_sums(s, lane);
                if (lane < 16) {
                    mine[(t0 + 8 * j) * 8] = total;
                }
            }
        }
        for (uint j = 0; j < ROWS_AHEAD; ++j) {
            if (t0 + 8 * j < n) {
                float s[8];
                head_scores(s, q, ahead[j]);
                const float total = set_sum(s, lane, SIMD);
                if (lane < 8) {
                    weights[(t0 + 8 * j) * 8 + set_row(lane)] = total;
                }
            }
        }
        return;
    }
    float k[8][8];
    for (uint j = 0; j < turn; ++j) {
        load_head(k[j], keys + min(first + j, n - 1) * stride, lane);
    }
    for (uint t = first; t < n; t += 8 * turn) {
        float s[8];
        for (uint j = 0; j < turn; ++j) {
            for (uint h = 0; h < uint(HEADS); ++h) {
                float d = 0.0f;
                for (uint i = 0; i < uint(HEAD_LANES); ++i) {
                    d += q[h][i] * k[j][i];
                }
                s[j * HEADS + h] = d;
            }
        }
        if (t + 8 * turn < n) {
            for (uint j = 0; j < turn; ++j) {
                load_head(k[j], keys + min(t + 8 * turn + j, n - 1) * stride, lane);
            }
        }
        const float total = set_sum(s, lane, SIMD);
        const uint at = t * HEADS + set_row(lane);
        if (lane < 8 && at < n * HEADS) {
            weights[at] = total;
        }
    }
}

// o[head] += Σ weights[key*HEADS + head]·value[key] over n keys, in order, for one dim: column is its place in the first row. Eight rows
// are loaded before the first is used.
template <typename T>
static inline void block_values(thread float* o, threadgroup const float* weights, device const T* column, uint n, ulong stride) {
    uint t = 0;
    for (; t + 8 <= n; t += 8) {
        float v[8];
        for (uint j = 0; j < 8; ++j) {
            v[j] = float(column[(t + j) * stride]);
        }
        for (uint j = 0; j < 8; ++j) {
            for (uint h = 0; h < uint(HEADS); ++h) {
                o[h] += weights[(t + j) * HEADS + h] * v[j];
            }
        }
    }
    for (; t < n; ++t) {
        const float v = float(column[t * stride]);
        for (uint h = 0; h < uint(HEADS); ++h) {
            o[h] += weights[t * HEADS + h] * v;
        }
    }
}

// attn_prep: queries q [KV, M, H/KV, HD] and keys of a chunk normalised and rotated, keys and values appended to the cache. Queries are kept as
// keys are: they meet in products of matrices. One simdgroup a head of a token: first the H queries, then the keys, then the values. Grid: eight
// heads by tokens.
template <typename T>
static inline void prepare_heads(device const float* qkv, device const bfloat* q_norm, device const bfloat* k_norm, device const float* rope, uint pos,
                                 device T* q, device T* keys, device T* values, constant AttentionParams& p, threadgroup float* normed, uint2 tg,
                                 uint lane, uint sg) {
    const uint HD = p.HD, H = p.H, KV = p.KV, v = tg.x * 8 + sg, m = tg.y;
    if (v >= H + 2 * KV) {
        return;
    }
    device const float* row = qkv + ulong(m) * qkv_stride(p);
    device const float* cs = rope + ulong(m) * p.R;
    const ulong cache = (ulong(pos) + m) * (KV * HD);
    if (v >= H + KV) {
        const uint kv = v - H - KV;
        float x[8];
        load_lanes(x, row + (2 * H + KV + kv) * HD, HEAD_LANES, lane);
        store_head(values + cache + kv * HD, x, lane);
        return;
    }
    const bool query = v < H;
    threadgroup float* own = normed + sg * HD;
    norm_head(own, row + (query ? 2 * v * HD : (H + v) * HD), query ? q_norm : k_norm, p.Eps, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    float x[8];
    for (uint i = 0; i < uint(HEAD_LANES); ++i) {
        x[i] = rotated(own, cs, lane_dim(lane, i, HEAD_LANES), p.R);
    }
    if (query) {
        store_head(q + query_row(p, m, v) * HD, x, lane);
    } else {
        store_head(keys + cache + (v - H) * HD, x, lane);
    }
}

[[kernel, max_total_threads_per_threadgroup(256)]] void attn_prep(device const float* qkv [[buffer(0)]], device const bfloat* q_norm [[buffer(1)]], device const bfloat* k_norm [[buffer(2)]],
                      device const float* rope [[buffer(3)]], device const uint* step [[buffer(4)]], device float* q [[buffer(5)]],
                      device float* keys [[buffer(6)]], device float* values [[buffer(7)]], constant AttentionParams& p [[buffer(8)]], THREAD_2D) {
    threadgroup float normed[8 * 256];
    prepare_heads<float>(qkv, q_norm, k_norm, rope, step[0], q, keys, values, p, normed, tg, lane, sg);
}

// attn_prep_bf16: the same into a cache of bfloat.
[[kernel, max_total_threads_per_threadgroup(256)]] void attn_prep_bf16(device const float* qkv [[buffer(0)]], device const bfloat* q_norm [[buffer(1)]], device const bfloat* k_norm [[buffer(2)]],
                      device const float* rope [[buffer(3)]], device const uint* step [[buffer(4)]], device bfloat* q [[buffer(5)]],
                      device bfloat* keys [[buffer(6)]], device bfloat* values [[buffer(7)]], constant AttentionParams& p [[buffer(8)]], THREAD_2D) {
    threadgroup float normed[8 * 256];
    prepare_heads<bfloat>(qkv, q_norm, k_norm, rope, step[0], q, keys, values, p, normed, tg, lane, sg);
}
