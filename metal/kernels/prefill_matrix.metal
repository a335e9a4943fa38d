// Attention of a chunk by simdgroup matrices, and by vectors where a chunk has a few queries only.

// Fewer than eight queries: one query a threadgroup, its heads share each row; blocks of 256 keys with a running maximum.
template <typename T, bool SPLIT>
static inline void attend_vectors(device const T* q, device const T* keys, device const T* values, device const float* qkv, uint pos,
                                  device float* o, device float* stats, constant AttentionParams& p, threadgroup float* mem, threadgroup float* run,
                                  uint3 tg, uint tid, uint lane, uint sg) {
    const uint HD = p.HD, group = p.H / p.KV, sets = ceil_div(group, HEADS), m = tg.x, kv = tg.y, h0 = tg.z % sets * HEADS;
    const KeyPart part = key_part(p, pos, SPLIT ? tg.z / sets : 0);
    const uint n = SPLIT ? min(pos + m + 1, part.end) : pos + m + 1;
    threadgroup float* weights = mem; // [256 keys][HEADS]
    threadgroup float *sums = run, *alphas = run + 8;
    float highest = LOWEST, weight = 0.0f; // of head sg, for the simdgroups that have one
    const float scale = LOG2E * precise::rsqrt(float(HD));
    float qr[8][8], out[8];
    for (uint h = 0; h < uint(HEADS); ++h) {
        load_head(qr[h], q + query_row(p, m, kv * group + min(h0 + h, group - 1)) * HD, lane);
        for (uint i = 0; i < uint(HEAD_LANES); ++i) {
            qr[h][i] *= scale;
        }
        out[h] = 0.0f;
    }
    const ulong stride = p.KV * HD;
    for (uint k0 = part.first; k0 < n; k0 += ATTN_BLOCK) {
        const uint count = min(ATTN_BLOCK, n - k0);
        block_scores<T>(weights, qr, keys + k0 * stride + kv * HD, count, stride, lane, sg);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (sg < uint(HEADS)) {
            float s[8], top = highest, sum = 0.0f;
            for (uint i = 0; i < 8; ++i) {
                const uint t = lane + SIMD * i;
                s[i] = t < count ? weights[t * HEADS + sg] : LOWEST;
                top = max(top, s[i]);
            }
            top = simd_max(top);
            for (uint i = 0; i < 8; ++i) {
                const uint t = lane + SIMD * i;
                if (t < count) {
                    const float e = exp2(s[i] - top);
                    weights[t * HEADS + sg] = e;
                    sum += e;
                }
            }
            sum = simd_sum(sum);
            const float alpha = exp2(highest - top);
            highest = top;
            weight = weight * alpha + sum;
            if (lane == 0) {
                alphas[sg] = alpha;
                sums[sg] = weight;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (tid < HD) {
            for (uint h = 0; h < uint(HEADS); ++h) {
                out[h] *= alphas[h];
            }
            block_values<T>(out, weights, values + k0 * stride + kv * HD + tid, count, stride);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (SPLIT) {
        if (sg < uint(HEADS) && lane == 0 && h0 + sg < group) {
            const ulong slot = part_slot(p, m, kv * group + h0 + sg, part.b);
            stats[2 * slot] = highest;
            stats[2 * slot + 1] = weight;
        }
        for (uint i = 0; tid < HD && i < uint(HEADS); ++i) {
            if (h0 + i < group) {
                o[part_slot(p, m, kv * group + h0 + i, part.b) * HD + tid] = out[i];
            }
        }
    } else if (tid < HD) {
        for (uint i = 0; i < uint(HEADS); ++i) {
            if (h0 + i < group) {
                const uint h = kv * group + h0 + i;
                const float gate = qkv[ulong(m) * qkv_stride(p) + (2 * h + 1) * HD + tid];
                o[(ulong(m) * p.H + h) * HD + tid] = out[i] / sums[i] * sigmoid(gate);
            }
        }
    }
}

// Eight queries or more, by simdgroup matrices. A row group is eight neighbouring queries of one head; a threadgroup takes up to eight row
// groups of one KV head (rows: HEADS heads by 8/HEADS groups of queries), so that 64 rows share each key and value. A step is 64 keys:
//
//   1. S = Q Kᵀ    simdgroup: two row groups by 32 keys; Q and K straight from memory
//   2. softmax     simdgroup: one row group, four lanes a row; running maximum, exp2; rows whose maximum moved leave a diagonal
//                  matrix of factors
//   3. O += P V    simdgroup: all row groups by every eighth group of eight dims, O in registers; rescaled only where a maximum moved
//
// Only whole groups of eight keys are read from the cache; the last, ragged one goes through threadgroup memory with zeros
// behind it, so that nothing beyond the context is looked at. Where M is no multiple of eight the last row group begins
// earlier and its repeated rows are not stored. A row's result depends on its own query and keys alone.
constant constexpr uint KEY_STEP = 64;
constant constexpr uint SCORE_LD = KEY_STEP + 4;

struct RowGroup {
    uint first; // wanted query
    uint base;  // first query of the eight that are read
    uint head;
    bool real;
};

static inline RowGroup row_group(uint rg, uint m0, uint kv, uint h0, constant AttentionParams& p) {
    const uint group = p.H / p.KV;
    RowGroup r;
    r.first = m0 + rg / HEADS * 8;
    r.base = min(r.first, uint(p.M) - 8);
    r.head = kv * group + min(h0 + rg % HEADS, group - 1);
    r.real = r.first < uint(p.M) && h0 + rg % HEADS < group;
    return r;
}

// Rows [g, g+8) of a cache, those from n on as zeros.
template <typename T>
static inline void stage_rows(threadgroup T* stage, device const T* rows, uint g, uint n, ulong stride, uint HD, uint tid) {
    for (uint i = tid; i < 8 * HD; i += 256) {
        const uint r = i / HD, d = i % HD;
        stage[r * (HD + 4) + d] = g + r < n ? rows[(g + r) * stride + d] : T(0.0f);
    }
}

// Whether dims 8*(sg + 8*f) to 8 further exist: a simdgroup holds every eighth group of eight dims, all four at HD 256.
static inline bool holds(uint sg, uint f) { return HEAD_LANES == 8 || sg + 8 * f < 4 * uint(HEAD_LANES); }

template <typename T, bool SPLIT>
static inline void attend_matrices(device const T* q, device const T* all_keys, device const T* all_values, device const float* qkv, uint pos,
                                   device float* o, device float* stats, constant AttentionParams& p, threadgroup float* mem, threadgroup uint* moved,
                                   uint3 tg, uint last_tg, uint tid, uint lane, uint sg) {
    const uint HD = p.HD, sets = ceil_div(p.H / p.KV, HEADS), kv = tg.y, h0 = tg.z % sets * HEADS, M = p.M;
    const uint tiles = 8 / HEADS, groups = tiles * HEADS, rows = groups * 8;
    const uint m0 = (last_tg - tg.x) * tiles * 8; // the longest first
    const KeyPart part = key_part(p, pos, SPLIT ? tg.z / sets : 0);
    const uint all = pos + min(m0 + tiles * 8, M); // keys that any of the rows may see
    const uint n = SPLIT ? min(all, part.end) : all;
    const ulong stride = p.KV * HD, q_stride = p.H / p.KV * HD;
    device const T* keys = all_keys + kv * HD;
    device const T* values = all_values + kv * HD;
    threadgroup float* scores = mem;                    // [rows][SCORE_LD]
    threadgroup float* sums = scores + rows * SCORE_LD; // [rows]
    threadgroup float* diagonal = sums + rows;          // [groups][8][8]
    threadgroup T* stage = (threadgroup T*)(diagonal + rows * 8); // [8][HD+4]
    const uint stage_ld = HD + 4;

    const uint pair = sg / 2 * 2; // the two row groups whose scores this simdgroup makes
    const RowGroup ra = row_group(min(pair, groups - 1), m0, kv, h0, p), rb = row_group(min(pair + 1, groups - 1), m0, kv, h0, p);
    device const T* qa = q + query_row(p, ra.base, ra.head) * HD;
    device const T* qb = q + query_row(p, rb.base, rb.head) * HD;
    const RowGroup own = row_group(min(sg, groups - 1), m0, kv, h0, p); // whose softmax it does
    const uint row = sg * 8 + lane / 4, query = own.base + lane / 4;
    const float scale = LOG2E * precise::rsqrt(float(HD));

    simdgroup_matrix<float, 8, 8> out[8][4];
    for (uint g = 0; g < groups; ++g) {
        for (uint f = 0; f < 4; ++f) {
            out[g][f] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    float highest = LOWEST, weight = 0.0f; // of the row, the same in its four lanes
    for (uint t0 = part.first; t0 < n; t0 += KEY_STEP) {
        const uint ragged = n - t0 < KEY_STEP ? (n - t0) / 8 * 8 : KEY_STEP; // where the group that is not whole would begin
        if (ragged < KEY_STEP) {
            stage_rows<T>(stage, keys, t0 + ragged, n, stride, HD, tid);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (pair < groups) {
            simdgroup_matrix<float, 8, 8> sa[4], sb[4];
            for (uint j = 0; j < 4; ++j) {
                sa[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
                sb[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
            }
            const uint c0 = sg % 2 * 32;
            for (uint d = 0; d < HD; d += 8) {
                simdgroup_matrix<T, 8, 8> a, b, k;
                simdgroup_load(a, qa + d, q_stride);
                simdgroup_load(b, qb + d, q_stride);
                for (uint j = 0; j < 4; ++j) {
                    const uint c = c0 + 8 * j;
                    if (c > ragged || t0 + c >= n) {
                        continue;
                    }
                    if (c == ragged) {
                        simdgroup_load(k, stage + d, stage_ld, ulong2(0, 0), true);
                    } else {
                        simdgroup_load(k, keys + (t0 + c) * stride + d, stride, ulong2(0, 0), true);
                    }
                    simdgroup_multiply_accumulate(sa[j], a, k, sa[j]);
                    simdgroup_multiply_accumulate(sb[j], b, k, sb[j]);
                }
            }
            for (uint j = 0; j < 4; ++j) {
                simdgroup_store(sa[j], scores + pair * 8 * SCORE_LD + c0 + 8 * j, SCORE_LD);
                if (pair + 1 < groups) {
                    simdgroup_store(sb[j], scores + (pair + 1) * 8 * SCORE_LD + c0 + 8 * j, SCORE_LD);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        if (sg < groups) {
            threadgroup float* line = scores + row * SCORE_LD + lane % 4;
            float s[16], top = highest, sum = 0.0f;
            const bool masked = t0 + KEY_STEP > pos + own.base + 1; // only on the diagonal does a row of the group miss a key
            for (uint i = 0; i < 16; ++i) {
                s[i] = line[4 * i] * scale;
                if (masked && t0 + lane % 4 + 4 * i > pos + query) {
                    s[i] = LOWEST;
                }
                top = max(top, s[i]);
            }
            top = max(top, simd_shuffle_xor(top, ushort(1)));
            top = max(top, simd_shuffle_xor(top, ushort(2)));
            for (uint i = 0; i < 16; ++i) {
                const float e = masked && t0 + lane % 4 + 4 * i > pos + query ? 0.0f : exp2(s[i] - top);
                line[4 * i] = e;
                sum += e;
            }
            sum += simd_shuffle_xor(sum, ushort(1));
            sum += simd_shuffle_xor(sum, ushort(2));
            const float factor = exp2(highest - top);
            for (uint i = 0; i < 2; ++i) {
                const uint c = lane % 4 * 2 + i;
                diagonal[row * 8 + c] = c == row % 8 ? factor : 0.0f;
            }
            const bool any = simd_any(top > highest);
            if (lane == 0) {
                moved[sg] = any ? 1 : 0;
            }
            highest = top;
            weight = weight * factor + sum;
        }
        if (ragged < KEY_STEP) {
            stage_rows<T>(stage, values, t0 + ragged, n, stride, HD, tid);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        for (uint g = 0; g < groups; ++g) {
            if (moved[g] != 0) {
                simdgroup_matrix<float, 8, 8> d;
                simdgroup_load(d, diagonal + g * 64, 8);
                for (uint f = 0; f < 4; ++f) {
                    if (holds(sg, f)) {
                        simdgroup_multiply(out[g][f], d, out[g][f]);
                    }
                }
            }
        }
        for (uint c = 0; c < KEY_STEP; c += 8) {
            if (c > ragged || t0 + c >= n) {
                break;
            }
            simdgroup_matrix<T, 8, 8> v[4];
            for (uint f = 0; f < 4; ++f) {
                if (!holds(sg, f)) {
                    continue;
                }
                const uint d = (sg + 8 * f) * 8;
                if (c == ragged) {
                    simdgroup_load(v[f], stage + d, stage_ld);
                } else {
                    simdgroup_load(v[f], values + (t0 + c) * stride + d, stride);
                }
            }
            for (uint g = 0; g < groups; ++g) {
                simdgroup_matrix<float, 8, 8> w;
                simdgroup_load(w, scores + g * 8 * SCORE_LD + c, SCORE_LD);
                for (uint f = 0; f < 4; ++f) {
                    if (holds(sg, f)) {
                        simdgroup_multiply_accumulate(out[g][f], w, v[f], out[g][f]);
                    }
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    if (sg < groups && lane % 4 == 0) {
        sums[row] = weight;
        if (SPLIT && own.real && query >= own.first) {
            const ulong slot = part_slot(p, query, own.head, part.b);
            stats[2 * slot] = highest;
            stats[2 * slot + 1] = weight;
        }
    }
    // 64 dims of all rows at a time through threadgroup memory, divided and gated on the way out.
    for (uint f = 0; f < 4 && f * 64 < HD; ++f) {
        if (holds(sg, f)) {
            for (uint g = 0; g < groups; ++g) {
                simdgroup_store(out[g][f], scores + g * 8 * SCORE_LD + sg * 8, SCORE_LD);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = tid; i < rows * 64; i += 256) {
            const uint r = i / 64, d = f * 64 + i % 64;
            const RowGroup g = row_group(r / 8, m0, kv, h0, p);
            const uint m = g.base + r % 8;
            if (d < HD && g.real && m >= g.first) {
                const float v = scores[r * SCORE_LD + i % 64];
                if (SPLIT) {
                    o[part_slot(p, m, g.head, part.b) * HD + d] = v;
                } else {
                    const float gate = qkv[ulong(m) * qkv_stride(p) + (2 * g.head + 1) * HD + d];
                    o[(ulong(m) * p.H + g.head) * HD + d] = v / sums[r] * sigmoid(gate);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

template <typename T, bool SPLIT>
static inline void attend_chunk(device const T* q, device const T* keys, device const T* values, device const float* qkv, uint pos, device float* o,
                                device float* stats, constant AttentionParams& p, threadgroup float* mem, threadgroup float* run,
                                threadgroup uint* moved, uint3 tg, uint last_tg, uint tid, uint lane, uint sg) {
    if (MATRIX != 0) {
        attend_matrices<T, SPLIT>(q, keys, values, qkv, pos, o, stats, p, mem, moved, tg, last_tg, tid, lane, sg);
    } else {
        attend_vectors<T, SPLIT>(q, keys, values, qkv, pos, o, stats, p, mem, run, tg, tid, lane, sg);
    }
}
