// The choice of a token, see sample.go: integers decide, so that the order in which threads meet changes nothing.

constant constexpr uint BEST_BLOCK = 256; // logits of a threadgroup of logit_bests
constant constexpr uint MOST_BESTS = 1024;
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
    device const float* logits;
    device const uint* draw;
    device const uint* marks;
    device const float* biases;
};

// The key of a token's logit after penalties and bias.
static inline uint token_key(Drawing d, uint id) {
    float x = d.logits[id];
    const uint m = d.draw[DRAW_MARKED] != 0 ? d.marks[id] : 0;
    if (m == 0) {
        return order_key(x);
    }
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

// logit_bests: key and id of the best of each 256 logits, the lower id of equal ones. A threadgroup of 64 a block.
kernel void logit_bests(device const float* logits [[buffer(0)]], device const uint* draw [[buffer(1)]], device const uint* marks [[buffer(2)]],
                        device const float* biases [[buffer(3)]], device uint* bests [[buffer(4)]], constant SampleParams& p [[buffer(5)]], THREAD_1D) {
    threadgroup uint keys[32];
    threadgroup uint ids[32];
    const Drawing d = {logits, draw, marks, biases};
    uint key = 0, at = 0xffffffffu;
    for (uint id = tg * BEST_BLOCK + tid; id < min((tg + 1) * BEST_BLOCK, uint(p.N)); id += threads) {
        const uint k = token_key(d, id);
        if (k > key) {
            key = k;
            at = id;
        }
    }
    const uint top = simd_max(key), first = simd_min(key == top ? at : 0xffffffffu);
    if (lane == 0) {
        keys[sg] = top;
        ids[sg] = first;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid == 0) {
        key = keys[0];
        at = ids[0];
        for (uint s = 1; s < threads / SIMD; ++s) {
            if (keys[s] > key || (keys[s] == key && ids[s] < at)) {
                key = keys[s];
                at = ids[s];
            }
        }
        bests[2 * tg] = key;
        bests[2 * tg + 1] = at;
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
    threadgroup const uint* blocks;
    uint count; // of their places
    uint tid;
    uint N;
};

// How many of the thread's tokens have a key above from, or just that and an id up to last.
static inline uint count_tokens(Drawing d, Listed l, uint from, uint last) {
    uint n = 0;
    for (uint i = l.tid; i < l.count; i += MOST_BESTS) {
        const uint id = l.blocks[i / BEST_BLOCK] * BEST_BLOCK + i % BEST_BLOCK;
        if (id < l.N) {
            const uint k = token_key(d, id);
            n += k > from || (k == from && id <= last);
        }
    }
    return n;
}

// draw_token: see DrawToken. One threadgroup of 1,024, a thread for each best. The cuts are found by halving, and counting what is left.
kernel void draw_token(device const float* logits [[buffer(0)]], device const uint* draw [[buffer(1)]], device const uint* marks [[buffer(2)]],
                       device const float* biases [[buffer(3)]], device const uint* bests [[buffer(4)]], device uint* choice [[buffer(5)]],
                       constant SampleParams& p [[buffer(6)]], THREAD_1D) {
    threadgroup uint part[64];
    threadgroup uint blocks[MOST_BESTS];
    threadgroup atomic_uint listed;
    threadgroup uint keys[MOST_KEPT];
    threadgroup uint ids[MOST_KEPT];
    threadgroup ulong weights[MOST_KEPT];
    threadgroup ulong left[MOST_KEPT];
    const Drawing d = {logits, draw, marks, biases};
    const uint N = p.N, count = ceil_div(N, BEST_BLOCK);
    const uint key = tid < count ? bests[2 * tid] : 0, id = tid < count ? bests[2 * tid + 1] : 0xffffffffu;
    Tally t = {part, 0, lane, sg};
    const uint own = simd_max(key);
    if (lane == 0) {
        part[sg] = own;
    }
    if (tid == 0) {
        atomic_store_explicit(&listed, 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint top = simd_max(part[lane]);
    t.turn = 1; // the other half of part
    const uint winners = simd_min(key == top ? id : 0xffffffffu);
    if (lane == 0) {
        part[32 + sg] = winners;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint best = simd_min(part[32 + lane]);
    t.turn = 2;
    const uint keep = min(draw[DRAW_KEEP], min(N, MOST_KEPT));
    if (top >= KEY_INFINITY || top == KEY_BANNED || keep <= 1) {
        if (tid == 0) {
            choice[0] = best;
            choice[1] = top >= KEY_INFINITY ? NOT_FINITE : top == KEY_BANNED ? ALL_BANNED : 0;
            choice[2] = as_type<uint>(logits[best]);
        }
        return;
    }
    // blocks whose best is one of the largest: all kept tokens lie there
    uint lo = 0, hi = top;
    while (count > keep && lo < hi) {
        const uint mid = lo + (hi - lo + 1) / 2, n = tally(t, key >= mid);
        if (n >= keep) {
            lo = mid;
        }
        if (n <= keep) {
            hi = n == keep ? lo : mid - 1;
        }
    }
    if (tid < count && key >= lo) {
        blocks[atomic_fetch_add_explicit(&listed, 1u, memory_order_relaxed)] = tid;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const Listed l = {blocks, atomic_load_explicit(&listed, memory_order_relaxed) * BEST_BLOCK, tid, N};
    // the key of the last that is kept, or any between it and the next
    hi = top;
    bool exact = false;
    while (lo < hi && !exact) {
        const uint mid = lo + (hi - lo + 1) / 2, n = tally(t, count_tokens(d, l, mid, N));
        exact = n == keep;
        if (n >= keep) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    // of those with that key the lower ids
    uint first = 0, last = N - 1;
    while (!exact && first < last) {
        const uint mid = first + (last - first) / 2;
        if (tally(t, count_tokens(d, l, lo, mid)) >= keep) {
            last = mid;
        } else {
            first = mid + 1;
        }
    }
    if (tid == 0) {
        atomic_store_explicit(&listed, 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = tid; i < l.count; i += MOST_BESTS) {
        const uint token = blocks[i / BEST_BLOCK] * BEST_BLOCK + i % BEST_BLOCK;
        const uint k = token < N ? token_key(d, token) : 0;
        if (k > lo || (k == lo && token <= last)) {
            const uint at = atomic_fetch_add_explicit(&listed, 1u, memory_order_relaxed);
            keys[at] = k;
            ids[at] = token;
            weights[at] = weight(key_logit(k), key_logit(top), as_type<float>(draw[DRAW_SCALE]));
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < keep) {
        ulong total = 0, before = 0;
        for (uint i = 0; i < keep; ++i) {
            total += weights[i];
            before += keys[i] > keys[tid] || (keys[i] == keys[tid] && ids[i] < ids[tid]) ? weights[i] : 0;
        }
        const ulong part_p = draw[DRAW_TOP_P], least = ulong(draw[DRAW_LEAST_HIGH]) << 32 | draw[DRAW_LEAST_LOW];
        const ulong enough = (total >> 32) * part_p + (((total & 0xffffffffu) * part_p + 0xffffffffu) >> 32);
        left[tid] = (part_p == 0 || before < enough) && weights[tid] >= least ? weights[tid] : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < keep) {
        ulong total = 0, upto = 0;
        for (uint i = 0; i < keep; ++i) {
            total += left[i];
            upto += ids[i] <= ids[tid] ? left[i] : 0;
        }
        const ulong u = draw[DRAW_UNIFORM], target = (total >> 24) * u + (((total & 0xffffffu) * u) >> 24);
        if (upto > target && upto - left[tid] <= target) {
            choice[0] = ids[tid];
            choice[1] = 0;
            choice[2] = as_type<uint>(logits[ids[tid]]);
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
