// Products of weight matrices with one row, or one each of a few sequences, for decode: y = W x. They are bound by reading W once.
//
// A *set* of lanes computes ROW_GROUPS times eight rows of W: more where rows are many, fewer where a GPU would stand half
// empty. A lane owns 32 columns, which it holds in registers with their sum, and reads 16 bytes (4-bit codes) or 32 bytes (8-bit)
// of each row in one go. So x is read once for all rows of the set, and
//
//   y[r] = sum over lanes of scale[r]*(q[r]·x) + bias[r]*sum(x)
//
// No code is converted: masked where it lies, it is the fraction of a half with exponent zero, the number q/2^24 (bits 0 to 3 of a half,
// or 0 to 7) or q/2^20 (bits 4 to 7), two codes of a word at once. Apple's multiply-add takes a half as it is, denormal or not. Codes of the second
// kind have a sum of their own, which counts a sixteenth, and rows are multiplied by 2^24 in the end, both exact. A set is as many lanes as K has blocks of 32, rounded up to a power of two: several sets in a
// simdgroup, or several simdgroups a set, whose sums meet in threadgroup memory in order.

// A lane's columns.
struct Columns {
    float x[32];
    float sum; // divided by CODE_SCALE
};

// What the number in a half lacks to be the code: the sums of a row's products are this much too small.
constant constexpr float CODE_SCALE = 16777216.0f; // 2^24

static inline void sum_columns(thread Columns& c) {
    c.sum = 0.0f;
    for (uint j = 0; j < 32; ++j) {
        c.sum += c.x[j];
    }
    c.sum *= 1.0f / CODE_SCALE;
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

// A lane's part of four rows of W: what is on its way from memory while other rows are multiplied.
template <uint BITS>
struct FourRows {
    uint4 codes[BITS];
    bfloat scale[4], bias[4];
};

// Rows row0 to row0+4, block b of K columns. Rows beyond the last repeat it; where all exist they lie at distances that the compiler knows.
// Places are counted in units of what is loaded, so that 32 bits hold them: 2^32 blocks are 64 GiB of codes.
template <uint BITS>
static inline void fetch_rows(thread FourRows<BITS>& f, Matrix m, uint k, uint row0, uint b) {
    constexpr uint each = BITS / 4; // of a block's codes
    const uint units = k * BITS / 128, groups = k / GROUP, last = m.rows - 1, first = min(row0, last);
    device const uint4* codes = (device const uint4*)m.codes + (first * units + b * each);
    device const bfloat* scales = m.scales + (first * groups + b / 2);
    device const bfloat* biases = m.biases + (first * groups + b / 2);
    if (row0 + 4 <= m.rows) {
        for (uint r = 0; r < 4; ++r) {
            for (uint i = 0; i < each; ++i) {
                f.codes[r * each + i] = codes[r * units + i];
            }
        }
        for (uint r = 0; r < 4; ++r) {
            f.scale[r] = scales[r * groups];
            f.bias[r] = biases[r * groups];
        }
    } else {
        for (uint r = 0; r < 4; ++r) {
            const uint row = min(row0 + r, last) - first;
            for (uint i = 0; i < each; ++i) {
                f.codes[r * each + i] = codes[row * units + i];
            }
            f.scale[r] = scales[row * groups];
            f.bias[r] = biases[row * groups];
        }
    }
}

// The lane's part of their products, divided by CODE_SCALE; codes in two sums.
template <uint BITS>
static inline void multiply_rows(thread float* acc, thread const FourRows<BITS>& f, thread const Columns& c) {
    for (uint r = 0; r < 4; ++r) {
        float d;
        if (BITS == 4) {
            const uint4 a = f.codes[r];
            float even = 0.0f, odd = 0.0f;
            for (uint i = 0; i < 4; ++i) {
                dot_word4(even, odd, a[i], c.x + 8 * i);
            }
            d = even + odd * 0.0625f;
        } else {
            const uint4 a = f.codes[r * 2 % BITS], b = f.codes[(r * 2 + 1) % BITS];
            float low = 0.0f, high = 0.0f;
            for (uint i = 0; i < 4; ++i) {
                low = dot_word8(low, a[i], c.x + 4 * i);
                high = dot_word8(high, b[i], c.x + 16 + 4 * i);
            }
            d = low + high;
        }
        acc[r] = float(f.scale[r]) * d + float(f.bias[r]) * c.sum;
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

// Which rows a set multiplies: of row group g, rows first0 + g*step of one matrix and rows first1 + g*step of another, four each.
struct RowPlan {
    Matrix m0, m1;
    uint first0, first1, step;
};

static inline RowPlan plan_rows(Matrix m, uint row0) { return RowPlan{m, m, row0, row0 + 4, 8}; }

// The block of columns that a lane reads; one that holds none reads the last, and its columns are zeros.
static inline uint block_of(uint lane, uint k) { return min(lane, k / 32 - 1); }

// The sums of all row groups of a set. next holds the first four rows already; from then on four rows are on their way while four are multiplied.
template <uint BITS>
static inline void multiply_set(threadgroup float* part, thread float* sums, thread FourRows<BITS>& next, RowPlan plan, uint k, Place at, thread const Columns& c,
                                uint lane, uint sg) {
    const uint b = block_of(at.lane, k);
    FourRows<BITS> other;
    for (uint g = 0; g < uint(ROW_GROUPS); ++g) {
        float acc[8];
        fetch_rows<BITS>(other, plan.m1, k, plan.first1 + g * plan.step, b);
        multiply_rows<BITS>(acc, next, c);
        if (g + 1 < uint(ROW_GROUPS)) {
            fetch_rows<BITS>(next, plan.m0, k, plan.first0 + (g + 1) * plan.step, b);
        }
        multiply_rows<BITS>(acc + 4, other, c);
        keep_sum(part, sums, g, set_sum(acc, lane, at.lanes), at, lane, sg);
    }
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
    const uint k = WIDTH;
    const RowPlan plan = plan_rows(m, row0);
    float sq = 0.0f;
    FourRows<BITS> next;
    fetch_rows<BITS>(next, plan.m0, k, plan.first0, block_of(at.lane, k));
    Columns c;
    if (at.lane * 32 < k) {
        load_columns(c, x + at.lane * 32);
        sq = scale_columns(c, norm + at.lane * 32);
    } else {
        clear_columns(c);
    }
    sum_columns(c);
    multiply_set<BITS>(part, sums, next, plan, k, at, c, lane, sg);
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

// The residual in the epilogue: x[row] += W c for the rows of a set, c in the lanes, the first four rows in next. Every thread of the threadgroup
// calls it.
static inline void add_rows(device float* x, Matrix m, Place at, thread FourRows<4>& next, thread Columns& c, threadgroup float* part, uint lane, uint sg) {
    const uint row0 = at.set * set_rows();
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    sum_columns(c);
    multiply_set<4>(part, sums, next, plan_rows(m, row0), WIDTH, at, c, lane, sg);
    if (at.lanes > SIMD) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < finish_turns(at); ++i) {
        const float s = finish_sum(part, sums, i, at, lane, sg);
        const uint row = row0 + 8 * finish_group(i, at) + set_row(lane);
        if (finishes(at) && row < m.rows) {
            x[row] += s * CODE_SCALE;
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
    const Matrix m = MATRIX_OF(0, p.Rows[0]);
    FourRows<4> next;
    fetch_rows<4>(next, m, k, at.set * set_rows(), block_of(at.lane, k));
    Columns c;
    if (at.lane * 32 < k) {
        load_columns(c, v + token * k + at.lane * 32);
    } else {
        clear_columns(c);
    }
    add_rows(x + token * m.rows, m, at, next, c, part, lane, sg);
}

// q4_gemv_gdn_out: x [M, N] += W (RMSNorm(y; norm) ⊙ silu(z)), the norm over each value head of DV, y [M, HV, DV], z inside "in".
// A lane's 32 columns lie in one head; the sums of squares of a head's lanes meet in threadgroup memory. Grid as q4_gemv_norm.
kernel void q4_gemv_gdn_out(device const float* y [[buffer(0)]], device const float* in [[buffer(1)]], device const bfloat* norm [[buffer(2)]],
                            device float* x [[buffer(3)]], WEIGHTS(0, 4, 5, 6), constant GDNOutParams& p [[buffer(7)]], THREAD_1D) {
    threadgroup float part[PARTS];
    threadgroup float squares[1024];
    const uint dv = p.GDN.DV, k = WIDTH;
    const uint z0 = 2 * p.GDN.HK * p.GDN.DK + k; // behind q, k, v
    const ulong token = row_of_batch(tg, p.GDN.M);
    y += token * k;
    in += token * uint(p.GDN.Stride);
    const Place at = place_of(k, tg, threads, tid);
    const uint col = at.lane * 32;
    const Matrix m = MATRIX_OF(0, p.N);
    FourRows<4> next;
    fetch_rows<4>(next, m, k, at.set * set_rows(), block_of(at.lane, k));
    Columns c;
    float sq = 0.0f;
    if (col < k) {
        load_columns(c, y + col);
        device const float4* z = (device const float4*)(in + z0 + col);
        device const bfloat4* w = (device const bfloat4*)(norm + col % dv);
        for (uint i = 0; i < 8; ++i) {
            const float4 zi = z[i], wi = float4(w[i]);
            for (uint j = 0; j < 4; ++j) {
                const float v = c.x[4 * i + j];
                sq += v * v;
                c.x[4 * i + j] = v * wi[j] * silu(zi[j]);
            }
        }
    } else {
        clear_columns(c);
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
        for (uint j = 0; j < 32; ++j) {
            c.x[j] *= inv;
        }
    }
    add_rows(x + token * m.rows, m, at, next, c, part, lane, sg);
}
