// The choice of a token, see sample.go: integers decide, so that the order in which threads meet changes nothing.

constant constexpr uint DRAW_THREADS = 1024; // each has a block, then a candidate
constant constexpr uint MOST_KEPT = 256;

// Words of a draw, of a mark, of a choice.
constant constexpr uint DRAW_KEEP = 0, DRAW_UNIFORM = 1, DRAW_SCALE = 2, DRAW_TOP_P = 3, DRAW_LEAST_LOW = 4, DRAW_LEAST_HIGH = 5, DRAW_MARKED = 6,
                        DRAW_PRESENCE = 7, DRAW_FREQUENCY = 8, DRAW_LOWER = 9, DRAW_RAISE = 10;
constant constexpr uint MARK_BIAS = 511, MARK_SEEN = 512, MARK_COUNT = 10;
constant constexpr uint NOT_FINITE = 1, ALL_BANNED = 2;
constant constexpr int MOST_PENALTY = 1 << 30;

// Keys order logits as unsigned integers: equal numbers have equal keys, and NaN is above all.
constant constexpr uint KEY_NAN = 0xffffffffu, KEY_INFINITY = 0xff800000u, KEY_BANNED = 0x007fffffu, SIGN = 0x80000000u;

static inline uint order_key(float x) {
    const uint b = as_type<uint>(x);
    if ((b & ~SIGN) > 0x7f800000u) {
        return KEY_NAN;
    }
    return b == SIGN ? SIGN : (b & SIGN) != 0 ? ~b : b | SIGN;
}

static inline float key_logit(uint key) { return as_type<float>((key & SIGN) != 0 ? key ^ SIGN : ~key); }

// What a choice is made from.
struct Drawing {
    device const uint* draw;
    device const uint* marks;
    device const float* biases;
};

// The key of a token's logit after penalties and bias, from that of the logit. Where those apply, arithmetic begins at the number that the key stands
// for: behind the product that made the logit a compiler may put product and sum into one rounding, and choose another token than from the stored logit.
static inline uint token_key(Drawing d, uint id, uint key) {
    const uint m = d.draw[DRAW_MARKED] != 0 ? d.marks[id] : 0;
    if (m == 0) {
        return key;
    }
    float x = key_logit(key);
    if ((m & MARK_SEEN) != 0 && (as_type<uint>(x) & ~SIGN) != 0x7f800000u) {
        const float most = 3.402823466e38f, y = x * as_type<float>(d.draw[x > 0.0f ? DRAW_LOWER : DRAW_RAISE]);
        x = y > most ? most : y < -most ? -most : y; // a NaN stays one
    }
    const long n = m >> MARK_COUNT;
    if (n != 0) {
        const long q = long(as_type<int>(d.draw[DRAW_PRESENCE])) + n * long(as_type<int>(d.draw[DRAW_FREQUENCY]));
        x -= float(int(max(long(-MOST_PENALTY), min(q, long(MOST_PENALTY))))) * (1.0f / 65536.0f); // the product is exact
    }
    if ((m & MARK_BIAS) != 0) {
        x += d.biases[(m & MARK_BIAS) - 1];
    }
    return order_key(x);
}

// Powers of ln 2 over factorials, in parts of 2^32, the eleventh first.
constant constexpr uint POWERS[11] = {2, 30, 437, 5676, 65510, 661577, 5726720, 41309550, 238388332, 1031764991, 2977044472};

// 2^(40 - (largest - x)·scale), rounded; the polynomial is 2^-f for the fraction f, in parts of 2^32.
static inline ulong weight(float x, float largest, float scale) {
    const float s = (largest - x) * scale;
    if (!(s < 42.0f)) {
        return 0;
    }
    const uint q = uint(s * 16777216.0f), e = q >> 24;
    const ulong f = q << 8;
    uint r = 0;
    for (uint i = 0; i < 11; ++i) {
        r = POWERS[i] - uint(f * r >> 32);
    }
    r = 0xffffffffu - uint(f * r >> 32);
    return ((ulong(r) << 8) + ((ulong(1) << e) >> 1)) >> e;
}

// A token and its key, which is above 0.
struct Best {
    uint key;
    uint id;
};

static inline Best no_best() { return Best{0, 0xffffffffu}; }

// Of equal ones the lower id.
static inline Best better(Best a, Best b) { return b.key > a.key || (b.key == a.key && b.id < a.id) ? b : a; }

// The best of a simdgroup's.
static inline Best simd_best(Best b) {
    const uint key = simd_max(b.key);
    return Best{key, simd_min(b.key == key ? b.id : 0xffffffffu)};
}

// Stores the best of those that the threads of a threadgroup have, in room for one a simdgroup.
static inline void store_best(device uint* bests, Best own, threadgroup uint* room, uint tg, uint threads, uint tid, uint lane, uint sg) {
    const Best b = simd_best(own);
    if (lane == 0) {
        room[2 * sg] = b.key;
        room[2 * sg + 1] = b.id;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid == 0) {
        Best best = b;
        for (uint s = 1; s < threads / SIMD; ++s) {
            best = better(best, Best{room[2 * s], room[2 * s + 1]});
        }
        bests[2 * tg] = best.key;
        bests[2 * tg + 1] = best.id;
    }
}

// logit_bests: key and id of the best of each p.Block logits. A threadgroup a block.
kernel void logit_bests(device const float* logits [[buffer(0)]], device const uint* draw [[buffer(1)]], device const uint* marks [[buffer(2)]],
                        device const float* biases [[buffer(3)]], device uint* bests [[buffer(4)]], constant SampleParams& p [[buffer(5)]], THREAD_1D) {
    threadgroup uint room[64];
    const Drawing d = {draw, marks, biases};
    Best best = no_best();
    for (uint id = tg * p.Block + tid; id < min((tg + 1) * p.Block, uint(p.N)); id += threads) {
        best = better(best, Best{token_key(d, id, order_key(logits[id])), id});
    }
    store_best(bests, best, room, tg, threads, tid, lane, sg);
}

// q4_gemv_norm_bests: q4_gemv_norm of one row and one matrix, the model's head, and in its epilogue what logit_bests does: the logits of a threadgroup are
// a block. A threadgroup of padding rows alone has no best.
kernel void q4_gemv_norm_bests(device const float* x [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device float* logits [[buffer(2)]],
                               device const uint* draw [[buffer(3)]], device const uint* marks [[buffer(4)]], device const float* biases [[buffer(5)]],
                               device uint* bests [[buffer(6)]], WEIGHTS(0, 7, 8, 9), constant HeadParams& p [[buffer(10)]], THREAD_1D) {
    threadgroup float part[PARTS];
    threadgroup float squares[32];
    threadgroup uint room[64];
    const Drawing d = {draw, marks, biases};
    const Place at = place_of(WIDTH, tg, threads, tid);
    const uint row0 = at.set * set_rows(), N = p.Choice.N;
    const Matrix m = MATRIX_OF(0, p.Product.Rows[0]);
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    const float inv = norm_sums<4>(sums, x, norm, m, row0, at, p.Product.Eps, part, squares, lane, sg);
    Best best = no_best();
    for (uint i = 0; i < finish_turns(at); ++i) {
        const float s = finish_sum(part, sums, i, at, lane, sg);
        const uint id = row0 + 8 * finish_group(i, at) + set_row(lane);
        if (finishes(at) && id < m.rows) {
            const float y = s * inv;
            logits[id] = y;
            if (id < N) {
                best = better(best, Best{token_key(d, id, order_key(y)), id});
            }
        }
    }
    if (tg * p.Choice.Block < N) {
        store_best(bests, best, room, tg, threads, tid, lane, sg);
    }
}

// Counts over the threadgroup. Two turns' sums lie apart, so that one barrier a turn is enough.
struct Tally {
    threadgroup uint* part; // [2][32]
    uint turn;
    uint lane;
    uint sg;
};

static inline uint tally(thread Tally& t, uint mine) {
    threadgroup uint* at = t.part + 32 * (t.turn & 1);
    t.turn += 1;
    const uint s = simd_sum(mine);
    if (t.lane == 0) {
        at[t.sg] = s;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return simd_sum(at[t.lane]);
}

// The tokens of the listed blocks, a thread's every 1,024th.
struct Listed {
    device const float* logits;
    threadgroup const uint* blocks;
    uint shift; // a block's size is 1 << shift
    uint count; // of their places
    uint N;
};

static inline uint listed_token(Listed l, uint i) { return (l.blocks[i >> l.shift] << l.shift) + (i & ((1u << l.shift) - 1)); }

// How many of the thread's tokens have a key above from, or just that and an id up to last.
static inline uint count_tokens(Drawing d, Listed l, uint tid, uint from, uint last) {
    uint n = 0;
    for (uint i = tid; i < l.count; i += DRAW_THREADS) {
        const uint id = listed_token(l, i);
        if (id < l.N) {
            const uint k = token_key(d, id, order_key(l.logits[id]));
            n += k > from || (k == from && id <= last);
        }
    }
    return n;
}

// draw_token: see DrawToken. One threadgroup of 1,024, a thread for each block: those of bests, or where they are too many 2, 4, 8 ... of them in one.
// Halving finds a key that the bests of keep blocks reach, or of up to twice as many: every round has a barrier, and a few logits more cost less. What
// reaches that key there, a few more tokens than are kept, is ranked by comparing all with all.
kernel void draw_token(device const float* logits [[buffer(0)]], device const uint* draw [[buffer(1)]], device const uint* marks [[buffer(2)]],
                       device const float* biases [[buffer(3)]], device const uint* bests [[buffer(4)]], device uint* choice [[buffer(5)]],
                       constant SampleParams& p [[buffer(6)]], THREAD_1D) {
    threadgroup uint part[64], least[32];
    threadgroup uint blocks[DRAW_THREADS];
    threadgroup atomic_uint listed;
    threadgroup uint keys[DRAW_THREADS]; // of candidates
    threadgroup uint ids[DRAW_THREADS];
    threadgroup uint kept[MOST_KEPT]; // the likeliest first
    threadgroup ulong weights[MOST_KEPT];
    threadgroup ulong left[MOST_KEPT];
    const Drawing d = {draw, marks, biases};
    const uint N = p.N, pairs = ceil_div(N, p.Block);
    const uint fold = pairs > DRAW_THREADS ? 32 - clz((pairs - 1) / DRAW_THREADS) : 0, shift = 31 - clz(uint(p.Block)) + fold;
    const uint count = ceil_div(N, 1u << shift);
    Best own = no_best();
    for (uint i = tid << fold; i < min((tid + 1) << fold, pairs); ++i) {
        own = better(own, Best{bests[2 * i], bests[2 * i + 1]});
    }
    Tally t = {part, 0, lane, sg};
    const Best best_lane = simd_best(own);
    const uint least_lane = simd_min(tid < count ? own.key : 0xffffffffu);
    if (lane == 0) {
        part[sg] = best_lane.key;
        part[32 + sg] = best_lane.id;
        least[sg] = least_lane;
    }
    if (tid == 0) {
        atomic_store_explicit(&listed, 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const Best best = simd_best(Best{part[lane], part[32 + lane]});
    const uint top = best.key, keep = min(draw[DRAW_KEEP], min(N, MOST_KEPT));
    if (top >= KEY_INFINITY || top == KEY_BANNED || keep <= 1) {
        if (tid == 0) {
            choice[0] = best.id;
            choice[1] = top >= KEY_INFINITY ? NOT_FINITE : top == KEY_BANNED ? ALL_BANNED : 0;
            choice[2] = as_type<uint>(logits[best.id]);
        }
        return;
    }
    uint lo = count < keep ? 0 : simd_min(least[lane]), hi = top, n = count;
    threadgroup_barrier(mem_flags::mem_threadgroup); // part is read
    while (n > 2 * keep && lo < hi) {
        const uint mid = lo + (hi - lo + 1) / 2, some = tally(t, own.key >= mid);
        if (some >= keep) {
            lo = mid;
            n = some;
        } else {
            hi = mid - 1;
        }
    }
    if (tid < count && own.key >= lo) {
        blocks[atomic_fetch_add_explicit(&listed, 1u, memory_order_relaxed)] = tid;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const Listed l = {logits, blocks, shift, atomic_load_explicit(&listed, memory_order_relaxed) << shift, N};
    // where too many reach the key, a higher one, and where too many have the highest, the lower ids of them
    uint first = 0, last = N - 1;
    n = tally(t, count_tokens(d, l, tid, lo, last));
    hi = top;
    while (n > DRAW_THREADS && lo < hi) {
        const uint mid = lo + (hi - lo + 1) / 2, some = tally(t, count_tokens(d, l, tid, mid, last));
        if (some >= keep) {
            lo = mid;
            n = some;
        } else {
            hi = mid - 1;
        }
    }
    while (n > DRAW_THREADS) {
        const uint mid = first + (last - first) / 2, some = tally(t, count_tokens(d, l, tid, lo, mid));
        if (some >= keep) {
            last = mid;
            n = some;
        } else {
            first = mid + 1;
        }
    }
    if (tid == 0) {
        atomic_store_explicit(&listed, 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = tid; i < l.count; i += DRAW_THREADS) {
        const uint id = listed_token(l, i), key = id < N ? token_key(d, id, order_key(logits[id])) : 0;
        if (id < N && (key > lo || (key == lo && id <= last))) {
            const uint at = atomic_fetch_add_explicit(&listed, 1u, memory_order_relaxed);
            keys[at] = key;
            ids[at] = id;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < n) {
        const Best mine = {keys[tid], ids[tid]};
        uint rank = 0;
        for (uint i = 0; i < n && rank < keep; ++i) {
            rank += keys[i] > mine.key || (keys[i] == mine.key && ids[i] < mine.id);
        }
        if (rank < keep) {
            kept[rank] = mine.id;
            weights[rank] = weight(key_logit(mine.key), key_logit(top), as_type<float>(draw[DRAW_SCALE]));
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < keep) {
        ulong total = 0, before = 0;
        for (uint i = 0; i < keep; ++i) {
            total += weights[i];
            before += i < tid ? weights[i] : 0;
        }
        const ulong part_p = draw[DRAW_TOP_P], least_weight = ulong(draw[DRAW_LEAST_HIGH]) << 32 | draw[DRAW_LEAST_LOW];
        const ulong enough = (total >> 32) * part_p + (((total & 0xffffffffu) * part_p + 0xffffffffu) >> 32);
        left[tid] = (part_p == 0 || before < enough) && weights[tid] >= least_weight ? weights[tid] : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < keep) {
        const uint id = kept[tid];
        ulong total = 0, upto = 0;
        for (uint i = 0; i < keep; ++i) {
            total += left[i];
            upto += kept[i] <= id ? left[i] : 0;
        }
        const ulong u = draw[DRAW_UNIFORM], target = (total >> 24) * u + (((total & 0xffffffu) * u) >> 24);
        if (upto > target && upto - left[tid] <= target) {
            choice[0] = id;
            choice[1] = 0;
            choice[2] = as_type<uint>(logits[id]);
        }
    }
}

// count_token: the token of a step is counted where marks apply. One threadgroup, one thread of it.
kernel void count_token(device const uint* tokens [[buffer(0)]], device const uint* draw [[buffer(1)]], device uint* marks [[buffer(2)]],
                        constant SampleParams& p [[buffer(3)]], THREAD_1D) {
    if (tg == 0 && tid == 0 && draw[DRAW_MARKED] != 0) {
        const uint id = min(tokens[0], uint(p.N) - 1);
        marks[id] = (marks[id] + (1u << MARK_COUNT)) | MARK_SEEN;
    }
}
