// Gated attention of one token: attn_decode makes partial results of blocks of keys, attn_combine adds them up.
//
// attn_decode: acc [H, NB, HD] = Σ exp(s−max)·v and stats [H, NB, 2] = max, Σ exp(s−max) of blocks of 256 keys. Queries and the new key are normalised
// and rotated here; the threadgroup of the current block appends key and value to the cache. Blocks beyond the context are not written.
//
// Grid: blocks, KV heads, and the query heads of a KV head by HEADS: all of them share a row's read, except while the blocks are too few
// to fill a GPU. Threadgroup: eight simdgroups. Two forms, by MATRIX: eight heads of 256 dims over a cache of bfloat go by simdgroup matrices, everything
// else by vectors. EVEN_BLOCKS is a form of both, LONE_KEYS of that by vectors, without an optimisation.

// Keys of one block of attn_decode at a position: at fixed places, or an even share.
static inline uint block_keys(uint pos, constant AttentionParams& p) { return EVEN_BLOCKS != 0 ? ceil_div(pos + 1, p.Blocks) : ATTN_BLOCK; }

// Keys first to first+n-1. The last may be the token's own, which lies in the cache only when this threadgroup has put it there.
struct TokenBlock {
    uint first, n, cached;
};

static inline TokenBlock token_block(uint pos, uint b, constant AttentionParams& p) {
    TokenBlock block;
    block.first = b * block_keys(pos, p);
    block.n = block.first > pos ? 0 : min(block_keys(pos, p), pos + 1 - block.first);
    block.cached = min(block.n, pos - block.first);
    return block;
}

// What turns dim d of a head, as rotated does: x[d]·cosine + x[other]·sine.
struct Turn {
    uint other;
    float cosine, sine;
};

static inline Turn turn_of(device const float* rope, uint d, uint R) {
    const uint half_r = R / 2;
    const bool low = d < half_r;
    Turn t;
    t.other = d;
    t.cosine = 1.0f;
    t.sine = 0.0f;
    if (d < R) {
        t.other = low ? d + half_r : d - half_r;
        t.cosine = rope[low ? d : d - half_r];
        t.sine = low ? -rope[half_r + d] : rope[d];
    }
    return t;
}

static inline float turned_dim(threadgroup const float* x, Turn t, uint d) { return x[d] * t.cosine + x[t.other] * t.sine; }

// Scores of n cached keys by a thread a key, weights[key*HEADS + head], from queries [HEADS][HD] in threadgroup memory: neighbouring threads read places
// that lie a row apart.
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

// attend_token is the form by vectors: each simdgroup takes keys in turn, a lane HD/32 dims; then a simdgroup a head does the softmax over 256 scores. The values' rows are taken
// as the keys' were, and the simdgroups' parts added in order; where a row is no 16 bytes a lane, a thread owns one dim of all heads and walks the values
// in order of key.
template <typename T>
static inline void attend_token(device const float* qkv, device const bfloat* q_norm, device const bfloat* k_norm, device const float* rope, uint pos,
                                device T* keys, device T* values, device float* acc, device float* stats, constant AttentionParams& p,
                                threadgroup float* mem, uint3 tg, uint tid, uint lane, uint sg) {
    const uint HD = p.HD, group = p.H / p.KV, b = tg.x, kv = tg.y, h0 = tg.z * HEADS;
    const TokenBlock block = token_block(pos, b, p);
    if (block.n == 0) {
        return;
    }
    const uint n = block.n, cached = block.cached;
    const bool newest = cached < n;
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
    const Turn turn = turn_of(rope, tid, p.R);
    float turned[9];
    for (uint h = 0; h <= uint(HEADS); ++h) {
        turned[h] = tid < HD && (newest || h < uint(HEADS)) ? turned_dim(normed + h * HD, turn, tid) : 0.0f;
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
    device T* block_key_rows = keys + block.first * stride + kv * HD;
    device T* block_value_rows = values + block.first * stride + kv * HD;
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

// Eight heads of a KV head by simdgroup matrices, over a cache of bfloat and heads of 256 dims: the heads are the rows that a matrix has, and no sum goes
// from lane to lane. A simdgroup reads the cache 16 bytes a lane and whole lines of it, far ahead of their use, and brings them to its matrices through
// threadgroup memory: a matrix straight from the cache would take 16 bytes of each of eight rows. Rows lie WIDTH apart.
constant constexpr uint WEIGHTS_LD = ATTN_BLOCK + 4; // floats between two heads' weights
constant constexpr uint KEY_LD = 64 + 8;             // bfloats between two staged keys: eight of 64 dims
constant constexpr uint VALUE_LD = 32 + 8;           // and values: 16 of 32 dims
constant constexpr uint STAGE = 16 * VALUE_LD;       // of a simdgroup, the larger of both

// The rows of a block of keys or values: the first cached lie in the cache, the one behind them is the token's own where n says that there is one.
struct CachedRows {
    device const bfloat* rows;
    threadgroup const bfloat* own;
    uint cached, n;
};

// Eight dims of row t; of one that does not lie in the cache, of another that does.
static inline uint4 asked_piece(CachedRows r, uint t, uint d) {
    return r.cached == 0 ? uint4(0) : ((device const uint4*)r.rows)[(min(t, r.cached - 1) * uint(WIDTH) + d) / 8];
}

// What was asked for, or what it stands for: the own row, or zeros behind it.
static inline uint4 right_piece(CachedRows r, uint4 asked, uint t, uint d) {
    return t < r.cached ? asked : t < r.n ? ((threadgroup const uint4*)r.own)[d / 8] : uint4(0);
}

// 64 dims of the 32 keys of a simdgroup, every eighth group of eight.
struct KeysAhead {
    uint4 piece[4][2];
};

static inline void ask_keys(thread uint4* piece, CachedRows keys, uint t, uint d, uint lane) {
    for (uint i = 0; i < 2; ++i) {
        piece[i] = asked_piece(keys, t + 4 * i + lane / 8, d + 8 * (lane % 8));
    }
}

// weights[head][key] = q·k of the block's keys, the first 64 dims of which are on their way; queries [256][8].
static inline void matrix_scores(threadgroup float* weights, threadgroup const float* queries, CachedRows keys, thread KeysAhead& ahead, threadgroup bfloat* stage,
                                 uint lane, uint sg) {
    simdgroup_matrix<float, 8, 8> s[4];
    for (uint j = 0; j < 4; ++j) {
        s[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    const uint row = lane / 8, column = 8 * (lane % 8);
#pragma unroll 1
    for (uint d = 0; d < 256; d += 64) {
        simdgroup_matrix<float, 8, 8> q[8];
        for (uint i = 0; i < 8; ++i) {
            simdgroup_load(q[i], queries + 8 * (d + 8 * i), 8, ulong2(0, 0), true);
        }
        for (uint j = 0; j < 4; ++j) {
            const uint t = 8 * (sg + 8 * j);
            simdgroup_barrier(mem_flags::mem_threadgroup); // what was staged has been read
            if (t + 8 > keys.cached) {
                for (uint i = 0; i < 2; ++i) {
                    ahead.piece[j][i] = right_piece(keys, ahead.piece[j][i], t + 4 * i + row, d + column);
                }
            }
            for (uint i = 0; i < 2; ++i) {
                *(threadgroup uint4*)(stage + (4 * i + row) * KEY_LD + column) = ahead.piece[j][i];
            }
            if (d + 64 < 256) {
                ask_keys(ahead.piece[j], keys, t, d + 64, lane);
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
            for (uint i = 0; i < 8; ++i) {
                simdgroup_matrix<bfloat, 8, 8> k;
                simdgroup_load(k, stage + 8 * i, KEY_LD, ulong2(0, 0), true);
                simdgroup_multiply_accumulate(s[j], q[i], k, s[j]);
            }
        }
    }
    for (uint j = 0; j < 4; ++j) {
        simdgroup_store(s[j], weights + 8 * (sg + 8 * j), WEIGHTS_LD);
    }
}

// 32 dims of the next 64 values.
struct ValuesAhead {
    uint4 piece[8];
};

static inline uint4 ask_values(CachedRows values, uint t, uint d, uint lane) { return asked_piece(values, t + lane / 4, d + 8 * (lane % 4)); }

// o = Σ weights·value of dims d to d+31, of all heads; the first 64 values are on their way. Weights behind the last key are zeros.
static inline void matrix_values(thread simdgroup_matrix<float, 8, 8> (&o)[4], threadgroup const float* weights, CachedRows values, thread ValuesAhead& ahead,
                                 threadgroup bfloat* stage, uint d, uint lane) {
    for (uint f = 0; f < 4; ++f) {
        o[f] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    const uint row = lane / 4, column = 8 * (lane % 4);
#pragma unroll 1
    for (uint t0 = 0; t0 < values.n; t0 += 64) {
        for (uint i = 0; i < 8; i += 2) {
            const uint t = t0 + 8 * i;
            simdgroup_barrier(mem_flags::mem_threadgroup); // what was staged has been read
            for (uint e = 0; e < 2; ++e) {
                if (t + 8 * e + 8 > values.cached) {
                    ahead.piece[i + e] = right_piece(values, ahead.piece[i + e], t + 8 * e + row, d + column);
                }
                *(threadgroup uint4*)(stage + (8 * e + row) * VALUE_LD + column) = ahead.piece[i + e];
                if (t0 + 64 < values.n) {
                    ahead.piece[i + e] = ask_values(values, t + 64 + 8 * e, d, lane);
                }
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
            for (uint e = 0; e < 2; ++e) {
                simdgroup_matrix<float, 8, 8> w;
                simdgroup_load(w, weights + t + 8 * e, WEIGHTS_LD);
                for (uint f = 0; f < 4; ++f) {
                    simdgroup_matrix<bfloat, 8, 8> v;
                    simdgroup_load(v, stage + 8 * e * VALUE_LD + 8 * f, VALUE_LD);
                    simdgroup_multiply_accumulate(o[f], w, v, o[f]);
                }
            }
        }
    }
}

// One simdgroup: the n scores of a head become exp2(s - max), what is behind them zeros; stats = max, Σ.
static inline void head_softmax(threadgroup float* weights, device float* stats, uint n, uint lane) {
    threadgroup float4* mine = (threadgroup float4*)weights + lane;
    float s[8], top = LOWEST, sum = 0.0f;
    for (uint i = 0; i < 2; ++i) {
        const float4 v = mine[SIMD * i];
        s[4 * i] = v.x;
        s[4 * i + 1] = v.y;
        s[4 * i + 2] = v.z;
        s[4 * i + 3] = v.w;
    }
    for (uint i = 0; i < 8; ++i) {
        s[i] = lane_dim(lane, i, 8) < n ? s[i] : LOWEST;
        top = max(top, s[i]);
    }
    top = simd_max(top);
    for (uint i = 0; i < 8; ++i) {
        s[i] = lane_dim(lane, i, 8) < n ? exp2(s[i] - top) : 0.0f;
        sum += s[i];
    }
    sum = simd_sum(sum);
    for (uint i = 0; i < 2; ++i) {
        mine[SIMD * i] = float4(s[4 * i], s[4 * i + 1], s[4 * i + 2], s[4 * i + 3]);
    }
    if (lane == 0) {
        stats[0] = top * LN2;
        stats[1] = sum;
    }
}

// Memory: the normalised heads and key [9][256], whose place what the simdgroups stage takes; queries [256][8]; weights [8][WEIGHTS_LD]; the own key and value.
static inline void attend_matrices_token(device const float* qkv, device const bfloat* q_norm, device const bfloat* k_norm, device const float* rope, uint pos,
                                         device bfloat* all_keys, device bfloat* all_values, device float* acc, device float* stats, constant AttentionParams& p,
                                         threadgroup float* mem, uint3 tg, uint tid, uint lane, uint sg) {
    const uint b = tg.x, kv = tg.y, h0 = kv * (p.H / p.KV) + tg.z * 8;
    const TokenBlock block = token_block(pos, b, p);
    if (block.n == 0) {
        return;
    }
    const uint n = block.n, cached = block.cached;
    const bool newest = cached < n;
    threadgroup float* normed = mem;
    threadgroup bfloat* stage = (threadgroup bfloat*)mem + sg * STAGE;
    threadgroup float* queries = mem + 8 * STAGE / 2;
    threadgroup float* weights = queries + 256 * 8;
    threadgroup bfloat* own = (threadgroup bfloat*)(weights + 8 * WEIGHTS_LD); // [key, value][256]
    device bfloat* key_rows = all_keys + ulong(block.first) * uint(WIDTH) + kv * 256;
    device bfloat* value_rows = all_values + ulong(block.first) * uint(WIDTH) + kv * 256;
    const CachedRows keys = {key_rows, own, cached, n}, values = {value_rows, own + 256, cached, n};
    KeysAhead key_pieces;
    for (uint j = 0; j < 4; ++j) {
        ask_keys(key_pieces.piece[j], keys, 8 * (sg + 8 * j), 0, lane);
    }
    device const float* new_key = qkv + 2 * p.H * 256 + kv * 256;
    norm_head(normed + sg * 256, qkv + 2 * (h0 + sg) * 256, q_norm, p.Eps, lane);
    if (newest && sg == 7) {
        norm_head(normed + 8 * 256, new_key, k_norm, p.Eps, lane);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const Turn turn = turn_of(rope, tid, p.R);
    const float scale = LOG2E * precise::rsqrt(256.0f);
    float q[8];
    for (uint h = 0; h < 8; ++h) {
        q[h] = scale * turned_dim(normed + h * 256, turn, tid);
    }
    threadgroup float4* to = (threadgroup float4*)queries + 2 * tid;
    to[0] = float4(q[0], q[1], q[2], q[3]);
    to[1] = float4(q[4], q[5], q[6], q[7]);
    if (newest) {
        own[tid] = bfloat(turned_dim(normed + 8 * 256, turn, tid));
        own[256 + tid] = bfloat(new_key[p.KV * 256 + tid]); // its value
        if (tg.z == 0) {
            key_rows[cached * uint(WIDTH) + tid] = own[tid];
            value_rows[cached * uint(WIDTH) + tid] = own[256 + tid];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    matrix_scores(weights, queries, keys, key_pieces, stage, lane, sg);
    ValuesAhead value_pieces;
    for (uint i = 0; i < 8; ++i) {
        value_pieces.piece[i] = ask_values(values, 8 * i, 32 * sg, lane);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    head_softmax(weights + sg * WEIGHTS_LD, stats + 2 * ((h0 + sg) * p.Blocks + b), n, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    simdgroup_matrix<float, 8, 8> o[4];
    matrix_values(o, weights, values, value_pieces, stage, 32 * sg, lane);
    for (uint f = 0; f < 4; ++f) {
        simdgroup_store(o[f], acc + (ulong(h0) * p.Blocks + b) * 256 + sg * 32 + 8 * f, ulong(p.Blocks) * 256);
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
    if (MATRIX != 0) {
        attend_matrices_token(qkv, q_norm, k_norm, rope, step[0], keys, values, acc, stats, p, mem, tg, tid, lane, sg);
    } else {
        attend_token<bfloat>(qkv, q_norm, k_norm, rope, step[0], keys, values, acc, stats, p, mem, tg, tid, lane, sg);
    }
}

// A dim of the partial results of the blocks b, b+step, ..., of which there are n.
static inline void ask_parts(thread float (&v)[8], device const float* dim, uint b, uint step, uint n, uint HD) {
    for (uint j = 0; j < 8; ++j) {
        v[j] = b + step * j < n ? dim[ulong(b + step * j) * HD] : 0.0f;
    }
}

// attn_combine: o [H, HD] = (Σ w·acc / Σ w·sum) ⊙ sigmoid(gate), w = exp(max − largest max) of each block. One threadgroup for 32 dims of a
// head: simdgroup j of n adds the blocks j, j+n, ... in order, then their parts are added in order. A lane makes the weight of one of them; eight
// partial results, and the gate, are on their way before the largest max is known.
[[kernel, max_total_threads_per_threadgroup(1024)]] void attn_combine(device const float* acc [[buffer(0)]], device const float* stats [[buffer(1)]], device const float* qkv [[buffer(2)]],
                         device const uint* step [[buffer(3)]], device float* o [[buffer(4)]], constant AttentionParams& p [[buffer(5)]], THREAD_1D) {
    threadgroup float parts[1024], tops[32], totals[32];
    const uint HD = p.HD, across = HD / SIMD, h = tg / across, d = tg % across * SIMD + lane, n = ceil_div(step[0] + 1, block_keys(step[0], p)), sgs = threads / SIMD;
    device const float* st = stats + ulong(h) * p.Blocks * 2;
    device const float* dim = acc + ulong(h) * p.Blocks * HD + d;
    float v[8], top = LOWEST;
    ask_parts(v, dim, sg, sgs, n, HD);
    const float gate = sg == 0 ? qkv[(2 * h + 1) * HD + d] : 0.0f;
    if (n <= SIMD) { // each simdgroup sees all of them
        top = simd_max(lane < n ? st[2 * lane] : LOWEST);
    } else {
        for (uint b = sg + sgs * lane; b < n; b += sgs * SIMD) {
            top = max(top, st[2 * b]);
        }
        top = simd_max(top);
        if (lane == 0) {
            tops[sg] = top;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        top = simd_max(lane < sgs ? tops[lane] : LOWEST);
    }
    float s = 0.0f, total = 0.0f;
    for (uint first = sg; first < n; first += sgs * SIMD) {
        const uint own = first + sgs * lane;
        const float w = own < n ? exp2((st[2 * own] - top) * LOG2E) : 0.0f;
        total += own < n ? w * st[2 * own + 1] : 0.0f;
        for (uint i = 0; i < SIMD && first + sgs * i < n; i += 8) {
            for (uint j = 0; j < 8; ++j) {
                const uint from = i + j;
                s += simd_shuffle(w, ushort(from)) * v[j];
            }
            ask_parts(v, dim, first + sgs * (i + 8), sgs, n, HD);
        }
    }
    total = simd_sum(total);
    if (lane == 0) {
        totals[sg] = total;
    }
    parts[tid] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg == 0) {
        total = simd_sum(lane < sgs ? totals[lane] : 0.0f);
        float sum = 0.0f;
        for (uint j = lane; j < threads; j += SIMD) {
            sum += parts[j];
        }
        o[h * HD + d] = sum / total * sigmoid(gate);
    }
}
