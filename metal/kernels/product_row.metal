// Products of weight matrices with one row, or one each of a few sequences, for decode: y = W x. They are bound by reading W once.
//
// A *set* of lanes computes ROW_GROUPS times eight rows of W: more where rows are many, fewer where a GPU would stand half
// empty. A lane owns 32 columns, which it holds in registers with their sum, and reads 16 bytes (4-bit codes) or 32 bytes (8-bit)
// of each row in one go. So x is read once for all rows of the set, and
//
//   y[r] = sum over groups of 64 columns of scale[r]*(q[r]·x) + bias[r]*sum(x)
//
// Two neighbours hold a group: they add their q[r]·x first, and each scales half of the rows.
// No code is converted: masked where it lies, it is the fraction of a half with exponent zero, the number q/2^24 (bits 0 to 3 of a half,
// or 0 to 7) or q/2^20 (bits 4 to 7), two codes of a word at once. Apple's multiply-add takes a half as it is, denormal or not. Codes of the second
// kind have a sum of their own, which counts a sixteenth, and rows are multiplied by 2^24 in the end, both exact. A set is as many lanes as K has blocks of 32, rounded up to a power of two: several sets in a
// simdgroup, or several simdgroups a set, whose sums meet in threadgroup memory in order.

// A lane's columns.
struct Columns {
    float x[32];
    float sum; // of the group of weights, that is with those of the lane's neighbour, divided by CODE_SCALE
};

// What the number in a half lacks to be the code: the sums of a row's products are this much too small.
constant constexpr float CODE_SCALE = 16777216.0f; // 2^24

static inline void sum_columns(thread Columns& c) {
    c.sum = 0.0f;
    for (uint j = 0; j < 32; ++j) {
        c.sum += c.x[j];
    }
    c.sum = (c.sum + simd_shuffle_xor(c.sum, ushort(1))) * (1.0f / CODE_SCALE);
}

static inline void load_columns(thread Columns& c, device const float* x) {
    device const float4* p = (device const float4*)x;
    for (uint i = 0; i < 8; ++i) {
        const float4 v = p[i];
        c.x[4 * i] = v.x;
        c.x[4 * i + 1] = v.y;
        c.x[4 * i + 2] = v.z;
        c.x[4 * i + 3] = v.w;
    }
}

static inline void clear_columns(thread Columns& c) {
    for (uint j = 0; j < 32; ++j) {
        c.x[j] = 0.0f;
    }
}

static inline void multiply_columns(thread Columns& c, float f) {
    for (uint j = 0; j < 32; ++j) {
        c.x[j] *= f;
    }
}

// Where a lane's columns come from: what multiply_set takes fills them, all zeros for a lane beyond the last, and returns the sum of their squares where
// that is wanted. A block of columns of x as they are:
struct PlainColumns {
    device const float* x;
    bool exist;

    float fill(thread Columns& c) const {
        if (exist) {
            load_columns(c, x);
        } else {
            clear_columns(c);
        }
        return 0.0f;
    }
};

// x ⊙ norm, and the sum of squares before it.
struct NormedColumns {
    device const float* x;
    device const bfloat* norm;
    bool exist;

    float fill(thread Columns& c) const {
        if (!exist) {
            clear_columns(c);
            return 0.0f;
        }
        load_columns(c, x);
        device const bfloat4* w = (device const bfloat4*)norm;
        float squares = 0.0f;
        for (uint i = 0; i < 8; ++i) {
            const float4 f = float4(w[i]);
            for (uint j = 0; j < 4; ++j) {
                const float v = c.x[4 * i + j];
                squares += v * v;
                c.x[4 * i + j] = v * f[j];
            }
        }
        return squares;
    }
};

// Adds the codes of a word times x.
static inline void dot_word4(thread float& even, thread float& odd, uint w, thread const float* x) {
    const half2 a = as_type<half2>(w & 0x000f000fu), b = as_type<half2>(w & 0x00f000f0u);
    const half2 c = as_type<half2>((w >> 8) & 0x000f000fu), d = as_type<half2>((w >> 8) & 0x00f000f0u);
    even = even + float(a.x) * x[0] + float(c.x) * x[2] + float(a.y) * x[4] + float(c.y) * x[6];
    odd = odd + float(b.x) * x[1] + float(d.x) * x[3] + float(b.y) * x[5] + float(d.y) * x[7];
}

static inline float dot_word8(float s, uint w, thread const float* x) {
    const half2 a = as_type<half2>(w & 0x00ff00ffu), b = as_type<half2>((w >> 8) & 0x00ff00ffu);
    return s + float(a.x) * x[0] + float(b.x) * x[1] + float(a.y) * x[2] + float(b.y) * x[3];
}

// The lane's part of a row's codes times x, divided by CODE_SCALE.
template <uint BITS>
static inline float multiply_row(thread const uint4* codes, thread const Columns& c) {
    if (BITS == 4) {
        const uint4 a = codes[0];
        float even = 0.0f, odd = 0.0f;
        for (uint i = 0; i < 4; ++i) {
            dot_word4(even, odd, a[i], c.x + 8 * i);
        }
        return even + odd * 0.0625f;
    }
    const uint4 a = codes[0], b = codes[BITS / 8];
    float s = 0.0f;
    for (uint i = 0; i < 4; ++i) {
        s = dot_word8(s, a[i], c.x + 4 * i);
    }
    for (uint i = 0; i < 4; ++i) {
        s = dot_word8(s, b[i], c.x + 16 + 4 * i);
    }
    return s;
}

// Where a lane reads a row. Places are counted in units of what is loaded, so that 32 bits hold them: 2^32 blocks are 64 GiB of codes.
struct RowAt {
    device const uint4* codes;
    device const bfloat* scales;
    device const bfloat* biases;
};

// Block b of a row of k columns.
template <uint BITS>
static inline RowAt row_at(Matrix m, uint k, uint row, uint b) {
    const uint code = row * (k * BITS / 128) + b * (BITS / 4), group = row * (k / GROUP) + b / 2;
    return RowAt{(device const uint4*)m.codes + code, m.scales + group, m.biases + group};
}

// r rows further, at a distance that the compiler knows.
template <uint BITS>
static inline RowAt further(RowAt at, uint k, uint r) {
    return RowAt{at.codes + r * (k * BITS / 128), at.scales + r * (k / GROUP), at.biases + r * (k / GROUP)};
}

// The codes of four rows: what is on its way from memory while other rows are multiplied.
template <uint BITS>
struct FourRows {
    uint4 codes[BITS];
};

template <uint BITS>
static inline void fetch_rows(thread FourRows<BITS>& f, RowAt at, uint k) {
    constexpr uint each = BITS / 4; // of a block's codes
    for (uint r = 0; r < 4; ++r) {
        for (uint i = 0; i < each; ++i) {
            f.codes[r * each + i] = at.codes[r * (k * BITS / 128) + i];
        }
    }
}

template <uint BITS>
static inline void multiply_rows(thread float* acc, thread const FourRows<BITS>& f, thread const Columns& c) {
    for (uint r = 0; r < 4; ++r) {
        acc[r] = multiply_row<BITS>(f.codes + r * (BITS / 4), c);
    }
}

// Scales and biases of four of eight rows: of the first four in even lanes, of the last four in odd ones. Two neighbours hold the two halves of a
// group of weights, so each takes the other's part of its four rows first, and scales them for both.
struct FourScales {
    bfloat scale[4], bias[4];
};

static inline void fetch_scales(thread FourScales& f, RowAt low, RowAt high, uint k, uint lane) {
    const bool odd = (lane & 1) != 0;
    device const bfloat* scales = odd ? high.scales : low.scales;
    device const bfloat* biases = odd ? high.biases : low.biases;
    for (uint r = 0; r < 4; ++r) {
        f.scale[r] = scales[r * (k / GROUP)];
        f.bias[r] = biases[r * (k / GROUP)];
    }
}

// Where a thread stands: its set among all, its lane in the set. A set may lie beyond the last: it has no rows, and its lanes multiply nothing.
struct Place {
    uint lanes; // of a set
    uint set;
    uint lane; // of the set
};

// The power of two whose many lanes are a set: as many as K has blocks of 32, at least 8.
static inline uint set_power(uint k) { return max(3u, 32u - clz(ceil_div(k, 32) - 1)); }

static inline Place place_of(uint k, uint tg, uint threads, uint tid) {
    const uint power = set_power(k);
    return Place{1u << power, tg * (threads >> power) + (tid >> power), tid & ((1u << power) - 1)};
}

// Rows of as many sequences take one launch: row m of them is threadgroups m, M+m, 2M+m, ..., each of which does what it would do for a lone row.
// Those that read the same weights stand side by side, so the weights come from memory once, and from the caches for the other rows. Returns
// the row, and makes tg the threadgroup's number in it.
static inline ulong row_of_batch(thread uint& tg, int rows) {
    if (SEVERAL == 0) {
        return 0;
    }
    const uint m = tg % uint(rows);
    tg /= uint(rows);
    return m;
}

// Width of the output of a product.
static inline uint all_rows(constant LinearParams& p) { return p.Rows[0] + p.Rows[1] + p.Rows[2] + p.Rows[3]; }

// Rows of a set.
static inline uint set_rows() { return 8 * ROW_GROUPS; }

// Threadgroup memory for the sums of wide sets: [ROW_GROUPS][32 simdgroups][8].
constant constexpr uint PART_GROUP = 32 * 8;
constant constexpr uint PARTS = 4 * PART_GROUP;

// The total of a value that each simdgroup of a wide set put at part[simdgroup*stride + at]; narrow sets have it already.
static inline float wide_total(threadgroup const float* part, uint stride, uint at, uint sg, uint lanes) {
    const uint first = sg & ~(lanes / SIMD - 1);
    float s = 0.0f;
    for (uint i = 0; i < lanes / SIMD; ++i) {
        s += part[(first + i) * stride + at];
    }
    return s;
}

// The sums of row group g, s as set_sum leaves them: a wide set's go where its first simdgroup finds them, behind the caller's barrier, a narrow
// one's stay with their lanes. (g is not known to the compiler: as an index it would put the four into memory.)
static inline void keep_sum(threadgroup float* part, thread float* sums, uint g, float s, Place at, uint lane, uint sg) {
    if (at.lanes > SIMD) {
        if (lane < 8) {
            part[g * PART_GROUP + sg * 8 + lane] = s;
        }
        return;
    }
    for (uint i = 0; i < uint(ROW_GROUPS); ++i) {
        sums[i] = i == g ? s : sums[i];
    }
}

// A set is finished in turns. A narrow one has as many as row groups, each eight lanes'; a wide one has one turn, in which eight lanes of its first
// simdgroup finish a group each: lane 8g+i what lane i has of group g.
static inline uint finish_turns(Place at) { return at.lanes > SIMD ? 1 : uint(ROW_GROUPS); }
static inline bool finishes(Place at) { return at.lane < (at.lanes > SIMD ? 8 * uint(ROW_GROUPS) : 8u); }
static inline uint finish_group(uint turn, Place at) { return at.lanes > SIMD ? min(at.lane / 8, uint(ROW_GROUPS) - 1) : turn; }
static inline float finish_sum(threadgroup const float* part, thread const float* sums, uint turn, Place at, uint lane, uint sg) {
    return at.lanes > SIMD ? wide_total(part + finish_group(turn, at) * PART_GROUP, 8, lane & 7, sg, at.lanes) : sums[turn];
}

// The sum of eight rows over the lanes of a set, as set_sum leaves it: rows are scaled when their two halves of a group have met.
static inline float scaled_sum(thread const float* acc, FourScales f, float sum, uint lane, uint lanes) {
    float a[4];
    keep_four(a, acc, lane);
    for (uint i = 0; i < 4; ++i) {
        a[i] = float(f.scale[i]) * a[i] + float(f.bias[i]) * sum;
    }
    return four_sum(a, lane, lanes);
}

// Which rows a set multiplies: of row group g, rows first0 + g*step of one matrix and rows first1 + g*step of another, four each, as far as there are
// such. A set whose rows all exist is whole: no place of its rows is then looked at, and they lie at distances that the compiler knows. All sets of
// a simdgroup are taken for what the least of them is, since they exchange sums.
struct RowPlan {
    Matrix m0, m1; // of as many rows
    uint first0, first1, step;
    bool whole;
};

// Whether the sets of a simdgroup are all whole.
static inline bool all_whole(bool whole, Place at) { return at.lanes >= SIMD ? whole : simd_all(whole); }

static inline RowPlan plan_rows(Matrix m, uint row0, Place at) {
    return RowPlan{m, m, row0, row0 + 4, 8, all_whole(row0 + set_rows() <= m.rows, at)};
}

// Where rows 4 to 7 of each group begin, low being where rows 0 to 3 do.
template <uint BITS>
static inline RowAt high_rows(RowPlan plan, RowAt low, uint k, uint b) {
    return plan.step == 8 ? further<BITS>(low, k, 4) : row_at<BITS>(plan.m1, k, plan.first1, b);
}

// The block of columns that a lane reads; one that holds none reads the last, and its columns are zeros.
static inline uint block_of(uint lane, uint k) { return min(lane, k / 32 - 1); }

// Eight rows on their way from memory.
template <uint BITS>
struct EightRows {
    FourRows<BITS> low, high;
    FourScales scales;
};

// The sums of all row groups of a set; returns what filling the columns does. A whole set asks for its first eight rows before it does for its columns,
// and for four more once four are multiplied. A set that is not whole, the last of a matrix, takes one row after another. (Two texts from the beginning:
// loads in a branch of their own are moved behind the columns, to the branch that uses them.)
template <uint BITS, class FROM>
static inline float multiply_set(threadgroup float* part, thread float* sums, FROM from, RowPlan plan, uint k, Place at, uint lane, uint sg) {
    const uint b = block_of(at.lane, k);
    Columns c;
    if (plan.whole) {
        const RowAt low = row_at<BITS>(plan.m0, k, plan.first0, b), high = high_rows<BITS>(plan, low, k, b);
        EightRows<BITS> f;
        fetch_rows<BITS>(f.low, low, k);
        fetch_scales(f.scales, low, high, k, lane);
        fetch_rows<BITS>(f.high, high, k);
        const float filled = from.fill(c);
        sum_columns(c);
        for (uint g = 0; g < uint(ROW_GROUPS); ++g) {
            float acc[8];
            const uint r = (g + 1) * plan.step;
            const bool more = g + 1 < uint(ROW_GROUPS);
            const FourScales scales = f.scales;
            multiply_rows<BITS>(acc, f.low, c);
            if (more) {
                fetch_rows<BITS>(f.low, further<BITS>(low, k, r), k);
                fetch_scales(f.scales, further<BITS>(low, k, r), further<BITS>(high, k, r), k, lane);
            }
            multiply_rows<BITS>(acc + 4, f.high, c);
            if (more) {
                fetch_rows<BITS>(f.high, further<BITS>(high, k, r), k);
            }
            keep_sum(part, sums, g, scaled_sum(acc, scales, c.sum, lane, at.lanes), at, lane, sg);
        }
        return filled;
    }
    const float filled = from.fill(c);
    sum_columns(c);
    for (uint g = 0; g < uint(ROW_GROUPS); ++g) {
        float acc[8];
        FourScales scales;
        for (uint r = 0; r < 4; ++r) {
            scales.scale[r] = bfloat(0.0f);
            scales.bias[r] = bfloat(0.0f);
        }
        for (uint r = 0; r < 8; ++r) {
            const uint row = (r < 4 ? plan.first0 : plan.first1) + g * plan.step + r % 4;
            const bool mine = (lane & 1) == r / 4; // to scale
            acc[r] = 0.0f;
            if (row < plan.m0.rows) {
                const RowAt place = row_at<BITS>(r < 4 ? plan.m0 : plan.m1, k, row, b);
                uint4 codes[BITS / 4];
                for (uint i = 0; i < BITS / 4; ++i) {
                    codes[i] = place.codes[i];
                }
                acc[r] = multiply_row<BITS>(codes, c);
                scales.scale[r % 4] = mine ? place.scales[0] : scales.scale[r % 4];
                scales.bias[r % 4] = mine ? place.biases[0] : scales.bias[r % 4];
            }
        }
        keep_sum(part, sums, g, scaled_sum(acc, scales, c.sum, lane, at.lanes), at, lane, sg);
    }
    return filled;
}

// The matrix, first row and first output of a set among those of all matrices of a product.
static inline SetRows rows_of(constant LinearParams& p, uint set) {
    SetRows r = {0, 0x80000000u, 0};
    for (uint i = 0; i < 4; ++i) {
        const uint n = ceil_div(p.Rows[i], set_rows());
        if (set < n) {
            r.segment = i;
            r.row0 = set * set_rows();
            break;
        }
        set -= n;
        r.y0 += p.Rows[i];
    }
    r.y0 += r.row0;
    return r;
}

// The sums of W (x ⊙ norm) for the rows of a set, as finish_sum finds them. Returns 1/rms(x), which they lack: the norm's factor is a number and is
// applied last, so one pass over x serves both.
template <uint BITS>
static inline float norm_sums(thread float* sums, device const float* x, device const bfloat* norm, Matrix m, uint row0, Place at, float eps,
                              threadgroup float* part, threadgroup float* squares, uint lane, uint sg) {
    const uint k = WIDTH, col = at.lane * 32;
    const NormedColumns from = {x + col, norm + col, col < k};
    float sq = multiply_set<BITS>(part, sums, from, plan_rows(m, row0, at), k, at, lane, sg);
    sq = lane_sum(sq, at.lanes);
    if (at.lanes > SIMD) {
        if (lane == 0) {
            squares[sg] = sq;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sq = wide_total(squares, 1, 0, sg, at.lanes);
    }
    return CODE_SCALE * precise::rsqrt(sq / float(k) + eps);
}

// y = W (x̂ ⊙ norm) for the rows of a set.
template <uint BITS>
static inline void gemv_norm(device const float* x, device const bfloat* norm, device float* y, Matrix m, SetRows rows, Place at,
                             constant LinearParams& p, threadgroup float* part, threadgroup float* squares, uint lane, uint sg) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    const float inv = norm_sums<BITS>(sums, x, norm, m, rows.row0, at, p.Eps, part, squares, lane, sg);
    for (uint i = 0; i < finish_turns(at); ++i) {
        const float s = finish_sum(part, sums, i, at, lane, sg);
        const uint r = 8 * finish_group(i, at) + set_row(lane);
        if (finishes(at) && rows.row0 + r < m.rows) {
            y[rows.y0 + r] = s * inv;
        }
    }
}

// q4_gemv_norm: y [M, N] = W (x̂ ⊙ norm), x̂ = x / sqrt(mean(x²) + eps), for up to four matrices side by side in y.
// Grid: for each row of x sets of rows of W, matrix by matrix; a threadgroup holds one set or as many as fit in 128 threads.
kernel void q4_gemv_norm(device const float* x [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device float* y [[buffer(2)]],
                         WEIGHTS(0, 3, 4, 5), WEIGHTS(1, 6, 7, 8), WEIGHTS(2, 9, 10, 11), WEIGHTS(3, 12, 13, 14),
                         constant LinearParams& p [[buffer(15)]], THREAD_1D) {
    threadgroup float part[PARTS];
    threadgroup float squares[32];
    const ulong token = row_of_batch(tg, p.M);
    const Place at = place_of(WIDTH, tg, threads, tid);
    const SetRows rows = rows_of(p, at.set);
    gemv_norm<4>(x + token * WIDTH, norm, y + token * all_rows(p), PICK_MATRIX(rows.segment), rows, at, p, part, squares, lane, sg);
}

// q8_gemv_norm: the same for 8-bit codes: router and shared expert's gate.
kernel void q8_gemv_norm(device const float* x [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device float* y [[buffer(2)]],
                         WEIGHTS(0, 3, 4, 5), WEIGHTS(1, 6, 7, 8), WEIGHTS(2, 9, 10, 11), WEIGHTS(3, 12, 13, 14),
                         constant LinearParams& p [[buffer(15)]], THREAD_1D) {
    threadgroup float part[PARTS];
    threadgroup float squares[32];
    const ulong token = row_of_batch(tg, p.M);
    const Place at = place_of(WIDTH, tg, threads, tid);
    const SetRows rows = rows_of(p, at.set);
    gemv_norm<8>(x + token * WIDTH, norm, y + token * all_rows(p), PICK_MATRIX(rows.segment), rows, at, p, part, squares, lane, sg);
}

// The residual in the epilogue: x[row] += W c for the rows of a set, c the columns of its lanes. What is there is on its way while rows are multiplied.
// Every thread of the threadgroup calls it.
template <class FROM>
static inline void add_rows(device float* x, FROM from, RowPlan plan, Place at, threadgroup float* part, uint lane, uint sg) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f}, before[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (uint i = 0; i < finish_turns(at); ++i) {
        const uint row = plan.first0 + 8 * finish_group(i, at) + set_row(lane);
        if (finishes(at) && row < plan.m0.rows) {
            before[i] = x[row];
        }
    }
    multiply_set<4>(part, sums, from, plan, WIDTH, at, lane, sg);
    if (at.lanes > SIMD) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < finish_turns(at); ++i) {
        const float s = finish_sum(part, sums, i, at, lane, sg);
        const uint row = plan.first0 + 8 * finish_group(i, at) + set_row(lane);
        if (finishes(at) && row < plan.m0.rows) {
            x[row] = before[i] + s * CODE_SCALE;
        }
    }
}

// q4_gemv_add: x [M, N] += W v, v [M, K]. Grid as q4_gemv_norm.
kernel void q4_gemv_add(device const float* v [[buffer(0)]], device float* x [[buffer(1)]], WEIGHTS(0, 2, 3, 4),
                        constant LinearParams& p [[buffer(5)]], THREAD_1D) {
    threadgroup float part[PARTS];
    const uint k = WIDTH;
    const ulong token = row_of_batch(tg, p.M);
    const Place at = place_of(k, tg, threads, tid);
    const RowPlan plan = plan_rows(MATRIX_OF(0, p.Rows[0]), at.set * set_rows(), at);
    const uint col = at.lane * 32;
    add_rows(x + token * plan.m0.rows, PlainColumns{v + token * k + col, col < k}, plan, at, part, lane, sg);
}

// y, which a gdn_step of the same token has gated, over the root of the mean square that it had: its head's squares come in sums of eight rows.
struct GatedColumns {
    device const float* y;
    device const float* squares; // of the head
    uint dv;
    float eps;
    bool exist;

    float fill(thread Columns& c) const {
        if (!exist) {
            clear_columns(c);
            return 0.0f;
        }
        load_columns(c, y);
        float4 s = float4(0.0f);
        for (uint i = 0; i < dv / 32; ++i) {
            s += ((device const float4*)squares)[i];
        }
        multiply_columns(c, precise::rsqrt((s.x + s.y + s.z + s.w) / float(dv) + eps));
        return 0.0f;
    }
};

// q4_gemv_gdn_out: x [M, N] += W (y / rms), the norm over each value head of DV. y [M, HV, DV] and squares [M, HV, DV/8] are gdn_step's: a lane's 32
// columns lie in one head. Grid as q4_gemv_norm.
kernel void q4_gemv_gdn_out(device const float* y [[buffer(0)]], device const float* squares [[buffer(1)]], device float* x [[buffer(2)]],
                            WEIGHTS(0, 3, 4, 5), constant GDNOutParams& p [[buffer(6)]], THREAD_1D) {
    threadgroup float part[PARTS];
    const uint dv = VALUE_WIDTH, k = WIDTH;
    const ulong token = row_of_batch(tg, p.GDN.M);
    const Place at = place_of(k, tg, threads, tid);
    const uint col = at.lane * 32;
    const RowPlan plan = plan_rows(MATRIX_OF(0, p.N), at.set * set_rows(), at);
    const GatedColumns from = {y + token * k + col, squares + (token * k + col / dv * dv) / 8, dv, p.GDN.Eps, col < k};
    add_rows(x + token * plan.m0.rows, from, plan, at, part, lane, sg);
}
