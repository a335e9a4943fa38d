// Products of weight matrices with one row, for decode: y = W x. They are bound by reading W once.
//
// A *set* of lanes computes ROW_GROUPS times eight rows of W: more where rows are many, fewer where a GPU would stand half
// empty. A lane owns 32 columns, which it holds in registers with their sum, and reads 16 bytes (4-bit codes) or 32 bytes (8-bit)
// of each row in one go. So x is read once for all rows of the set, and
//
//   y[r] = sum over lanes of scale[r]*(q[r]·x) + bias[r]*sum(x)
//
// The codes of a word are masked where they lie and converted; x is scaled by the inverse power of two beforehand, which is
// exact and saves the shifts. A set is as many lanes as K has blocks of 32, rounded up to a power of two: several sets in a
// simdgroup, or several simdgroups a set, whose sums meet in threadgroup memory in order.

// A lane's columns. x[j] is scaled down by the place of its code in the word.
struct Columns {
    float x[32];
    float sum;
};

template <uint BITS>
static inline void place(thread Columns& c) {
    c.sum = 0.0f;
    for (uint j = 0; j < 32; ++j) {
        c.sum += c.x[j];
    }
    constexpr uint per = 32 / BITS;
    for (uint j = 0; j < 32; ++j) {
        c.x[j] *= 1.0f / float(1u << (BITS * (j % per)));
    }
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

// x ⊙ norm; returns the sum of squares before it.
static inline float scale_columns(thread Columns& c, device const bfloat* norm) {
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

static inline float dot_word4(uint w, thread const float* x) {
    return float(w & 0xfu) * x[0] + float(w & 0xf0u) * x[1] + float(w & 0xf00u) * x[2] + float(w & 0xf000u) * x[3] +
           float(w & 0xf0000u) * x[4] + float(w & 0xf00000u) * x[5] + float(w & 0xf000000u) * x[6] + float(w & 0xf0000000u) * x[7];
}

static inline float dot_word8(uint w, thread const float* x) {
    return float(w & 0xffu) * x[0] + float(w & 0xff00u) * x[1] + float(w & 0xff0000u) * x[2] + float(w & 0xff000000u) * x[3];
}

template <uint BITS>
static inline float dot_block(device const uchar* codes, thread const float* x) {
    device const uint4* p = (device const uint4*)codes;
    const uint4 a = p[0];
    if (BITS == 4) {
        return (dot_word4(a.x, x) + dot_word4(a.y, x + 8)) + (dot_word4(a.z, x + 16) + dot_word4(a.w, x + 24));
    }
    const uint4 b = p[1];
    return ((dot_word8(a.x, x) + dot_word8(a.y, x + 4)) + (dot_word8(a.z, x + 8) + dot_word8(a.w, x + 12))) +
           ((dot_word8(b.x, x + 16) + dot_word8(b.y, x + 20)) + (dot_word8(b.z, x + 24) + dot_word8(b.w, x + 28)));
}

// The lane's part of four rows from row0 on, of block b of K columns. Rows beyond the last repeat it.
template <uint BITS>
static inline void four_rows(thread float* acc, Matrix m, uint k, uint row0, uint b, thread const Columns& c) {
    const uint row_bytes = k * BITS / 8, groups = k / GROUP;
    for (uint r = 0; r < 4; ++r) {
        const ulong row = min(row0 + r, m.rows - 1);
        const float d = dot_block<BITS>(m.codes + row * row_bytes + b * (4 * BITS), c.x);
        const ulong g = row * groups + b / 2;
        acc[r] = float(m.scales[g]) * d + float(m.biases[g]) * c.sum;
    }
}

// Where a thread stands: its set among all, its lane in the set.
struct Place {
    uint lanes; // of a set
    uint set;
    uint lane;  // of the set
    bool real;  // false: beyond the last set; it computes along and stores nothing
};

static inline uint set_lanes(uint k) {
    uint lanes = 8;
    while (lanes * 32 < k) {
        lanes *= 2;
    }
    return lanes;
}

static inline Place place_of(uint k, uint sets, uint tg, uint threads, uint tid) {
    Place p;
    p.lanes = set_lanes(k);
    p.set = tg * (threads / p.lanes) + tid / p.lanes;
    p.lane = tid & (p.lanes - 1);
    p.real = p.set < sets;
    p.set = min(p.set, sets - 1);
    return p;
}

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

// Rows row0 to row0+8 of W x, as set_sum leaves them. A set beyond the last row multiplies nothing.
template <uint BITS>
static inline float eight_rows(Matrix m, uint k, uint row0, Place at, bool holds_columns, thread const Columns& c, uint lane) {
    float acc[8];
    if (holds_columns && row0 < m.rows) {
        four_rows<BITS>(acc, m, k, row0, at.lane, c);
        four_rows<BITS>(acc + 4, m, k, row0 + 4, at.lane, c);
    } else {
        for (uint i = 0; i < 8; ++i) {
            acc[i] = 0.0f;
        }
    }
    return set_sum(acc, lane, at.lanes);
}

// Puts a simdgroup's sums where the others find them, behind the caller's barrier.
static inline void share_sums(threadgroup float* part, thread const float* sums, uint lane, uint sg) {
    if (lane < 8) {
        for (uint g = 0; g < uint(ROW_GROUPS); ++g) {
            part[g * PART_GROUP + sg * 8 + lane] = sums[g];
        }
    }
}

// Group g's total over the whole set.
static inline float set_total(threadgroup const float* part, thread const float* sums, uint g, Place at, uint lane, uint sg) {
    return at.lanes > SIMD ? wide_total(part + g * PART_GROUP, 8, lane & 7, sg, at.lanes) : sums[g];
}

// Sets of all matrices of a product, and the matrix, first row and first output of one set.
static inline uint all_sets(constant LinearParams& p) {
    uint n = 0;
    for (uint i = 0; i < 4; ++i) {
        n += ceil_div(p.Rows[i], set_rows());
    }
    return n;
}

static inline SetRows rows_of(constant LinearParams& p, uint set) {
    SetRows r = {0, 0, 0};
    for (uint i = 0; i < 4; ++i) {
        const uint n = ceil_div(p.Rows[i], set_rows());
        if (set < n) {
            r.segment = i;
            break;
        }
        set -= n;
        r.y0 += p.Rows[i];
    }
    r.row0 = set * set_rows();
    r.y0 += r.row0;
    return r;
}

// y = inv_rms · W (x ⊙ norm): the norm's factor is a number and is applied last, so one pass over x serves both.
template <uint BITS>
static inline void gemv_norm(device const float* x, device const bfloat* norm, device float* y, Matrix m, SetRows rows, Place at,
                             constant LinearParams& p, threadgroup float* part, threadgroup float* squares, uint lane, uint sg) {
    const uint k = p.K;
    const bool holds_columns = at.lane * 32 < k;
    float sums[4], sq = 0.0f;
    Columns c;
    if (holds_columns) {
        load_columns(c, x + at.lane * 32);
        sq = scale_columns(c, norm + at.lane * 32);
        place<BITS>(c);
    }
    for (uint g = 0; g < uint(ROW_GROUPS); ++g) {
        sums[g] = eight_rows<BITS>(m, k, rows.row0 + 8 * g, at, holds_columns, c, lane);
    }
    sq = lane_sum(sq, at.lanes);
    if (at.lanes > SIMD) {
        share_sums(part, sums, lane, sg);
        if (lane == 0) {
            squares[sg] = sq;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sq = wide_total(squares, 1, 0, sg, at.lanes);
    }
    const float inv = precise::rsqrt(sq / float(k) + p.Eps);
    for (uint g = 0; g < uint(ROW_GROUPS); ++g) {
        const float s = set_total(part, sums, g, at, lane, sg);
        const uint r = 8 * g + set_row(lane);
        if (at.lane < 8 && at.real && rows.row0 + r < m.rows) {
            y[rows.y0 + r] = s * inv;
        }
    }
}

// q4_gemv_norm: y [N] = W (x̂ ⊙ norm), x̂ = x / sqrt(mean(x²) + eps), for up to four matrices side by side in y.
// Grid: sets of rows, matrix by matrix; a threadgroup holds one set or as many as fit in 128 threads.
kernel void q4_gemv_norm(device const float* x [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device float* y [[buffer(2)]],
                         WEIGHTS(0, 3, 4, 5), WEIGHTS(1, 6, 7, 8), WEIGHTS(2, 9, 10, 11), WEIGHTS(3, 12, 13, 14),
                         constant LinearParams& p [[buffer(15)]], THREAD_1D) {
    threadgroup float part[PARTS];
    threadgroup float squares[32];
    const Place at = place_of(p.K, all_sets(p), tg, threads, tid);
    const SetRows rows = rows_of(p, at.set);
    gemv_norm<4>(x, norm, y, PICK_MATRIX(rows.segment), rows, at, p, part, squares, lane, sg);
}

// q8_gemv_norm: the same for 8-bit codes: router and shared expert's gate.
kernel void q8_gemv_norm(device const float* x [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device float* y [[buffer(2)]],
                         WEIGHTS(0, 3, 4, 5), WEIGHTS(1, 6, 7, 8), WEIGHTS(2, 9, 10, 11), WEIGHTS(3, 12, 13, 14),
                         constant LinearParams& p [[buffer(15)]], THREAD_1D) {
    threadgroup float part[PARTS];
    threadgroup float squares[32];
    const Place at = place_of(p.K, all_sets(p), tg, threads, tid);
    const SetRows rows = rows_of(p, at.set);
    gemv_norm<8>(x, norm, y, PICK_MATRIX(rows.segment), rows, at, p, part, squares, lane, sg);
}

// The residual in the epilogue: x[row] += W c for the rows of a set, c in the lanes. Every thread of the threadgroup calls it.
static inline void add_rows(device float* x, Matrix m, uint k, Place at, thread Columns& c, threadgroup float* part, uint lane, uint sg) {
    const uint row0 = at.set * set_rows();
    const bool holds_columns = at.lane * 32 < k;
    float sums[4];
    if (holds_columns) {
        place<4>(c);
    }
    for (uint g = 0; g < uint(ROW_GROUPS); ++g) {
        sums[g] = eight_rows<4>(m, k, row0 + 8 * g, at, holds_columns, c, lane);
    }
    if (at.lanes > SIMD) {
        share_sums(part, sums, lane, sg);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint g = 0; g < uint(ROW_GROUPS); ++g) {
        const float s = set_total(part, sums, g, at, lane, sg);
        const uint row = row0 + 8 * g + set_row(lane);
        if (at.lane < 8 && at.real && row < m.rows) {
            x[row] += s;
        }
    }
}

// q4_gemv_add: x [N] += W v, v [K]. Grid as q4_gemv_norm.
kernel void q4_gemv_add(device const float* v [[buffer(0)]], device float* x [[buffer(1)]], WEIGHTS(0, 2, 3, 4),
                        constant LinearParams& p [[buffer(5)]], THREAD_1D) {
    threadgroup float part[PARTS];
    const uint k = p.K;
    const Place at = place_of(k, ceil_div(p.Rows[0], set_rows()), tg, threads, tid);
    Columns c;
    if (at.lane * 32 < k) {
        load_columns(c, v + at.lane * 32);
    }
    add_rows(x, MATRIX_OF(0, p.Rows[0]), k, at, c, part, lane, sg);
}

// q4_gemv_gdn_out: x [N] += W (RMSNorm(y; norm) ⊙ silu(z)), the norm over each value head of DV, y [HV, DV], z inside "in".
// A lane's 32 columns lie in one head; the sums of squares of a head's lanes meet in threadgroup memory. Grid as q4_gemv_norm.
kernel void q4_gemv_gdn_out(device const float* y [[buffer(0)]], device const float* in [[buffer(1)]], device const bfloat* norm [[buffer(2)]],
                            device float* x [[buffer(3)]], WEIGHTS(0, 4, 5, 6), constant GDNOutParams& p [[buffer(7)]], THREAD_1D) {
    threadgroup float part[PARTS];
    threadgroup float squares[1024];
    const uint dv = p.GDN.DV, k = p.GDN.HV * dv;
    const uint z0 = 2 * p.GDN.HK * p.GDN.DK + k; // behind q, k, v
    const Place at = place_of(k, ceil_div(p.N, set_rows()), tg, threads, tid);
    const uint col = at.lane * 32;
    Columns c;
    float sq = 0.0f;
    if (col < k) {
        load_columns(c, y + col);
        for (uint j = 0; j < 32; ++j) {
            sq += c.x[j] * c.x[j];
        }
    }
    squares[tid] = sq;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (col < k) {
        const uint per_head = dv / 32, first = tid - at.lane % per_head;
        float total = 0.0f;
        for (uint i = 0; i < per_head; ++i) {
            total += squares[first + i];
        }
        const float inv = precise::rsqrt(total / float(dv) + p.GDN.Eps);
        device const float4* z = (device const float4*)(in + z0 + col);
        device const bfloat4* w = (device const bfloat4*)(norm + col % dv);
        for (uint i = 0; i < 8; ++i) {
            const float4 zi = z[i], wi = float4(w[i]);
            for (uint j = 0; j < 4; ++j) {
                c.x[4 * i + j] = c.x[4 * i + j] * inv * wi[j] * silu(zi[j]);
            }
        }
    }
    add_rows(x, MATRIX_OF(0, p.N), k, at, c, part, lane, sg);
}
