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

// The same by a thread a key, from queries [HEADS][HD] in threadgroup memory: neighbouring threads read places that lie a row apart.
template <typename T>
static inline void lone_scores(threadgroup float* weights, threadgroup const float* q, device const T* keys, uint n, ulong stride, uint HD, uint tid) {
    if (tid >= n) {
        return;
    }
    float s[8];
    for (uint h = 0; h < uint(HEADS); ++h) {
        s[h] = 0.0f;
    }
    device const T* row = keys + tid * stride;
    for (uint d = 0; d < HD; ++d) {
        const float k = float(row[d]);
        for (uint h = 0; h < uint(HEADS); ++h) {
            s[h] += q[h * HD + d] * k;
        }
    }
    for (uint h = 0; h < uint(HEADS); ++h) {
        weights[tid * HEADS + h] = s[h];
    }
}

// Keys of one block of attn_decode at a position: at fixed places, or an even share.
static inline uint block_keys(uint pos, constant AttentionParams& p) { return EVEN_BLOCKS != 0 ? ceil_div(pos + 1, p.Blocks) : ATTN_BLOCK; }

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

static inline void add_row(thread float (&o)[8][8], threadgroup const float* weights, uint4 row) {
    float v[8];
    widen(v, row);
    for (uint h = 0; h < uint(HEADS); ++h) {
        const float w = weights[h];
        for (uint i = 0; i < 8; ++i) {
            o[h][i] += w * v[i];
        }
    }
}

// A simdgroup's part of Σ weights[key*HEADS + head]·value[key] over n keys: of every eighth key, a lane eight dims of all heads.
template <typename T>
static inline void row_values(thread float (&o)[8][8], threadgroup const float* weights, device const T* rows, uint n, ulong stride, uint lane, uint sg) {
    for (uint h = 0; h < uint(HEADS); ++h) {
        for (uint i = 0; i < 8; ++i) {
            o[h][i] = 0.0f;
        }
    }
    if (n == 0) {
        return;
    }
    uint4 ahead[ROWS_AHEAD];
    first_rows(ahead, rows, n, stride, lane, sg);
    uint t0 = sg;
    for (; t0 + 8 * ROWS_AHEAD <= n + 7; t0 += 8 * ROWS_AHEAD) {
        for (uint j = 0; j < ROWS_AHEAD; ++j) {
            add_row(o, weights + (t0 + 8 * j) * HEADS, ahead[j]);
            ahead[j] = packed_row(rows, min(t0 + 8 * (j + ROWS_AHEAD), n - 1), stride, lane);
        }
    }
    for (uint j = 0; j < ROWS_AHEAD; ++j) {
        if (t0 + 8 * j < n) {
            add_row(o, weights + (t0 + 8 * j) * HEADS, ahead[j]);
        }
    }
}

// Heads whose parts lie in threadgroup memory at a time: [heads][8 simdgroups][HD].
static inline uint part_heads() { return HEADS < 2 ? 1u : 2u; }

// attn_decode: one token's attention up to the partial results of blocks of 256 keys: acc [H, NB, HD] = Σ exp(s−max)·v and
// stats [H, NB, 2] = max, Σ exp(s−max). Queries and the new key are normalised and rotated here; the threadgroup of the current block
// appends key and value to the cache. Blocks beyond the context are not written.
//
// Grid: blocks, KV heads, and the query heads of a KV head by HEADS: all of them share a row's read, except while the blocks are too few
// to fill a GPU. Threadgroup: eight simdgroups. First each takes keys in turn, a lane HD/32 dims; then a simdgroup a head
// does the softmax over 256 scores. The values' rows are taken as the keys' were, and the simdgroups' parts added in order; where a row is no
// 16 bytes a lane, a thread owns one dim of all heads and walks the values in order of key. LONE_KEYS and EVEN_BLOCKS are forms without an optimisation.
template <typename T>
static inline void attend_token(device const float* qkv, device const bfloat* q_norm, device const bfloat* k_norm, device const float* rope, uint pos,
                                device T* keys, device T* values, device float* acc, device float* stats, constant AttentionParams& p,
                                threadgroup float* mem, uint3 tg, uint tid, uint lane, uint sg) {
    const uint HD = p.HD, group = p.H / p.KV, b = tg.x, kv = tg.y, h0 = tg.z * HEADS;
    const uint k0 = b * block_keys(pos, p);
    if (k0 > pos) {
        return;
    }
    const uint n = min(block_keys(pos, p), pos + 1 - k0);
    const bool newest = k0 + n == pos + 1; // this block holds the token's own key, which other threadgroups must not read from the cache
    const uint cached = newest ? n - 1 : n;
    threadgroup float* normed = mem;                     // [HEADS queries and the key][HD]
    threadgroup float* weights = mem + (HEADS + 1) * HD; // [256 keys][HEADS]
    device const float* new_key = qkv + 2 * p.H * HD + kv * HD;
    device const float* new_value = new_key + p.KV * HD;
    for (uint v = sg; v < uint(HEADS) + (newest ? 1 : 0); v += 8) {
        const bool query = v < uint(HEADS);
        const uint h = kv * group + min(h0 + v, group - 1);
        norm_head(normed + v * HD, query ? qkv + 2 * h * HD : new_key, query ? q_norm : k_norm, p.Eps, lane);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Each is turned once, by a thread a dim, for all simdgroups.
    const float scale = LOG2E * precise::rsqrt(float(HD));
    float turned[9];
    for (uint h = 0; h <= uint(HEADS); ++h) {
        turned[h] = tid < HD && (newest || h < uint(HEADS)) ? rotated(normed + h * HD, rope, tid, p.R) : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < HD) {
        for (uint h = 0; h <= uint(HEADS); ++h) {
            normed[h * HD + tid] = h < uint(HEADS) ? scale * turned[h] : turned[h];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float q[8][8];
    for (uint h = 0; h < uint(HEADS); ++h) {
        for (uint i = 0; i < uint(HEAD_LANES); ++i) {
            q[h][i] = normed[h * HD + head_dim<T>(lane, i)];
        }
    }
    const ulong stride = p.KV * HD;
    device T* block_key_rows = keys + k0 * stride + kv * HD;
    device T* block_value_rows = values + k0 * stride + kv * HD;
    if (LONE_KEYS != 0) {
        lone_scores<T>(weights, normed, block_key_rows, cached, stride, HD, tid);
    } else {
        block_scores<T>(weights, q, block_key_rows, cached, stride, lane, sg);
    }
    if (newest && sg == 7) {
        float s[8];
        for (uint h = 0; h < 8; ++h) {
            s[h] = 0.0f;
        }
        for (uint i = 0; i < uint(HEAD_LANES); ++i) {
            const float k = stored<T>(normed[HEADS * HD + head_dim<T>(lane, i)]);
            for (uint h = 0; h < uint(HEADS); ++h) {
                s[h] += q[h][i] * k;
            }
        }
        const float total = set_sum(s, lane, SIMD);
        if (lane < 8 && set_row(lane) < uint(HEADS)) {
            weights[cached * HEADS + set_row(lane)] = total;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (sg < uint(HEADS)) {
        float s[8], top = LOWEST, sum = 0.0f;
        for (uint i = 0; i < 8; ++i) {
            const uint t = lane + SIMD * i;
            s[i] = t < n ? weights[t * HEADS + sg] : LOWEST;
            top = max(top, s[i]);
        }
        top = simd_max(top);
        for (uint i = 0; i < 8; ++i) {
            const uint t = lane + SIMD * i;
            if (t < n) {
                const float e = exp2(s[i] - top);
                weights[t * HEADS + sg] = e;
                sum += e;
            }
        }
        sum = simd_sum(sum);
        if (lane == 0 && h0 + sg < group) {
            device float* out = stats + 2 * ((kv * group + h0 + sg) * p.Blocks + b);
            out[0] = top * LN2;
            out[1] = sum;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (whole_rows<T>()) {
        float part[8][8], latest[8];
        row_values<T>(part, weights, block_value_rows, cached, stride, lane, sg);
        const float v = newest ? stored<T>(new_value[tid]) : 0.0f;
        for (uint h = 0; h < uint(HEADS); ++h) {
            latest[h] = newest ? weights[cached * HEADS + h] * v : 0.0f;
        }
        if (newest && tg.z == 0) {
            block_key_rows[cached * stride + tid] = T(normed[HEADS * HD + tid]);
            block_value_rows[cached * stride + tid] = T(v);
        }
        for (uint h1 = 0; h1 < uint(HEADS); h1 += part_heads()) {
            threadgroup_barrier(mem_flags::mem_threadgroup); // what lies in mem has been read
            for (uint h = 0; h < uint(HEADS); ++h) { // h1 is not known to the compiler: as an index it would put the parts into memory
                if (h >= h1 && h < h1 + part_heads()) {
                    threadgroup float4* to = (threadgroup float4*)(mem + ((h - h1) * 8 + sg) * 256) + 2 * lane;
                    to[0] = float4(part[h][0], part[h][1], part[h][2], part[h][3]);
                    to[1] = float4(part[h][4], part[h][5], part[h][6], part[h][7]);
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint g = 0; g < part_heads(); ++g) {
                float sum = 0.0f;
                for (uint s = 0; s < 8; ++s) {
                    sum += mem[(g * 8 + s) * 256 + tid];
                }
                for (uint h = 0; h < uint(HEADS); ++h) {
                    sum += h == h1 + g ? latest[h] : 0.0f;
                }
                if (h0 + h1 + g < group) {
                    acc[(ulong(kv * group + h0 + h1 + g) * p.Blocks + b) * HD + tid] = sum;
                }
            }
        }
    } else if (tid < HD) {
        float o[8];
        for (uint h = 0; h < uint(HEADS); ++h) {
            o[h] = 0.0f;
        }
        block_values<T>(o, weights, block_value_rows + tid, cached, stride);
        if (newest) {
            const float v = stored<T>(new_value[tid]);
            for (uint h = 0; h < uint(HEADS); ++h) {
                o[h] += weights[cached * HEADS + h] * v;
            }
            if (tg.z == 0) {
                block_key_rows[cached * stride + tid] = T(normed[HEADS * HD + tid]);
                block_value_rows[cached * stride + tid] = T(v);
            }
        }
        for (uint h = 0; h < uint(HEADS); ++h) {
            if (h0 + h < group) {
                acc[(ulong(kv * group + h0 + h) * p.Blocks + b) * HD + tid] = o[h];
            }
        }
    }
}

[[kernel, max_total_threads_per_threadgroup(256)]] void attn_decode(device const float* qkv [[buffer(0)]], device const bfloat* q_norm [[buffer(1)]], device const bfloat* k_norm [[buffer(2)]],
                        device const float* rope [[buffer(3)]], device const uint* step [[buffer(4)]], device float* keys [[buffer(5)]],
                        device float* values [[buffer(6)]], device float* acc [[buffer(7)]], device float* stats [[buffer(8)]],
                        constant AttentionParams& p [[buffer(9)]], threadgroup float* mem [[threadgroup(0)]], THREAD_3D) {
    attend_token<float>(qkv, q_norm, k_norm, rope, step[0], keys, values, acc, stats, p, mem, tg, tid, lane, sg);
}

// attn_decode_bf16: the same over a cache of bfloat.
[[kernel, max_total_threads_per_threadgroup(256)]] void attn_decode_bf16(device const float* qkv [[buffer(0)]], device const bfloat* q_norm [[buffer(1)]], device const bfloat* k_norm [[buffer(2)]],
                        device const float* rope [[buffer(3)]], device const uint* step [[buffer(4)]], device bfloat* keys [[buffer(5)]],
                        device bfloat* values [[buffer(6)]], device float* acc [[buffer(7)]], device float* stats [[buffer(8)]],
                        constant AttentionParams& p [[buffer(9)]], threadgroup float* mem [[threadgroup(0)]], THREAD_3D) {
    attend_token<bfloat>(qkv, q_norm, k_norm, rope, step[0], keys, values, acc, stats, p, mem, tg, tid, lane, sg);
}

// attn_combine: o [H, HD] = (Σ w·acc / Σ w·sum) ⊙ sigmoid(gate), w = exp(max − largest max) of each block. One threadgroup for 32 dims of a
// head: simdgroup j of n adds the blocks j, j+n, ... in order, then their parts are added in order. Each simdgroup makes the weights' sum for itself.
[[kernel, max_total_threads_per_threadgroup(1024)]] void attn_combine(device const float* acc [[buffer(0)]], device const float* stats [[buffer(1)]], device const float* qkv [[buffer(2)]],
                         device const uint* step [[buffer(3)]], device float* o [[buffer(4)]], constant AttentionParams& p [[buffer(5)]], THREAD_1D) {
    threadgroup float parts[1024];
    const uint HD = p.HD, across = HD / SIMD, h = tg / across, d = tg % across * SIMD + lane, n = ceil_div(step[0] + 1, block_keys(step[0], p));
    device const float* st = stats + ulong(h) * p.Blocks * 2;
    device const float* a = acc + ulong(h) * p.Blocks * HD + d;
    float top = LOWEST;
    for (uint b = lane; b < n; b += SIMD) {
        top = max(top, st[2 * b]);
    }
    top = simd_max(top);
    float total = 0.0f;
    for (uint b = lane; b < n; b += SIMD) {
        total += exp2((st[2 * b] - top) * LOG2E) * st[2 * b + 1];
    }
    total = simd_sum(total);
    float s = 0.0f;
    for (uint b = sg; b < n; b += threads / SIMD) {
        s += exp2((st[2 * b] - top) * LOG2E) * a[ulong(b) * HD];
    }
    parts[tid] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg == 0) {
        float sum = 0.0f;
        for (uint j = lane; j < threads; j += SIMD) {
            sum += parts[j];
        }
        o[h * HD + d] = sum / total * sigmoid(qkv[(2 * h + 1) * HD + d]);
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
