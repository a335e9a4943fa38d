// Gated delta net: convolution, gates, delta rule, gated norm (spec 2.4).

// silu of the causal depthwise convolution of one channel: taps in order, the last for the current token.
static inline float convolve(device const bfloat* taps, uint ch, float u0, float u1, float u2, float u3) {
    const float4 w = float4(((device const bfloat4*)taps)[ch]);
    return silu(w.x * u0 + w.y * u1 + w.z * u2 + w.w * u3);
}

// The input of channel ch at position pos, from the ring; zero before the sequence began.
static inline float ring(device const float* window, uint C, uint ch, int pos) {
    return pos < 0 ? 0.0f : window[uint(pos) % TAPS * C + ch];
}

// The convolution of one channel at position pos, whose own input is cur.
static inline float conv_step(device const bfloat* taps, device const float* window, uint C, uint ch, uint pos, float cur) {
    const int t = int(pos);
    return convolve(taps, ch, ring(window, C, ch, t - 3), ring(window, C, ch, t - 2), ring(window, C, ch, t - 1), cur);
}

// log(1 + exp(x)), which for small exp(x) is exp(x).
static inline float softplus(float x) {
    const float e = precise::exp(-abs(x));
    return max(x, 0.0f) + (e < 1e-4f ? e - 0.5f * e * e : precise::log(1.0f + e));
}

// beta = sigmoid(b), decay = exp(-exp(A_log)·softplus(a + dt_bias)).
static inline float2 gdn_gates(float b, float a, float a_log, float dt_bias) {
    return float2(1.0f / (1.0f + precise::exp(-b)), precise::exp(-precise::exp(a_log) * softplus(a + dt_bias)));
}

// A simdgroup owns eight rows of the state of one value head: row r, dim lane_dim(lane, i) at s[r][i]. One token:
//
//   k̂ = k/|k|, q̂ = q/(|q|·√DK)        |·|² with DK·eps added
//   d = beta·(v − decay·(S·k̂));  S ← decay·S + d ⊗ k̂;  y = decay·(S·q̂) + d·(k̂·q̂)
//
// which is the delta rule with both products taken from the old state, so that one reduction serves both. k and q come
// unnormalised; the factors are applied to the sums. Returns y of row set_row(lane); v is that row's value.
struct StateRows {
    float s[8][8];
};

static inline float gdn_token(thread StateRows& state, thread const float* q, thread const float* k, float v, float beta, float decay,
                              float eps, uint lane) {
    float sk[8], sq[8];
    for (uint r = 0; r < 8; ++r) {
        float a = 0.0f, b = 0.0f;
        for (uint i = 0; i < uint(KEY_LANES); ++i) {
            a += state.s[r][i] * k[i];
            b += state.s[r][i] * q[i];
        }
        sk[r] = a;
        sq[r] = b;
    }
    float kk = 0.0f, qq = 0.0f, kq = 0.0f;
    for (uint i = 0; i < uint(KEY_LANES); ++i) {
        kk += k[i] * k[i];
        qq += q[i] * q[i];
        kq += k[i] * q[i];
    }
    const float width = float(KEY_LANES) * 32.0f;
    const float fk = precise::rsqrt(simd_sum(kk) + width * eps);
    const float fq = precise::rsqrt(simd_sum(qq) + width * eps) * precise::rsqrt(width);
    const float both = simd_sum(kq) * fk * fq;
    const float m = set_sum(sk, lane, SIMD) * fk * decay;
    const float old = set_sum(sq, lane, SIMD) * fq * decay;
    const float d = beta * (v - m);
    const float step = d * fk;
    for (uint r = 0; r < 8; ++r) {
        const float f = simd_shuffle(step, ushort(set_row(r))); // set_row is its own inverse: lane set_row(r) holds row r
        for (uint i = 0; i < uint(KEY_LANES); ++i) {
            state.s[r][i] = state.s[r][i] * decay + f * k[i];
        }
    }
    return old + d * both;
}

// The rows' place: eight rows from v0 on of value head hv, which reads key head hk.
struct HeadRows {
    uint hv;
    uint hk;
    uint v0; // among all value dims, HV*DV
};

static inline HeadRows head_rows(constant GDNParams& p, uint tg, uint sg) {
    const uint blocks = p.DV / 32;
    HeadRows h;
    h.hv = tg / blocks;
    h.hk = h.hv / (p.HV / p.HK);
    h.v0 = h.hv * p.DV + tg % blocks * 32 + sg * 8;
    return h;
}

static inline void load_state(thread StateRows& state, device const float* s, uint dk, bool zero, uint lane) {
    for (uint r = 0; r < 8; ++r) {
        load_lanes(state.s[r], s + r * dk, KEY_LANES, lane);
        for (uint i = 0; i < uint(KEY_LANES); ++i) {
            state.s[r][i] = zero ? 0.0f : state.s[r][i];
        }
    }
}

static inline void store_state(thread const StateRows& state, device float* s, uint dk, uint lane) {
    for (uint r = 0; r < 8; ++r) {
        store_lanes(s + r * dk, state.s[r], KEY_LANES, lane);
    }
}

// gdn_step: one token of all heads: convolution, gates, delta rule; the state [HV, DV, DK] is read and written once, through registers,
// to next, which may be the same memory. y [HV, DV] is the output times norm ⊙ silu(z), z inside "in", and squares [HV, DV/8] what its squares were before,
// in sums of eight rows: what q4_gemv_gdn_out needs of the gated norm, made once and not in each of its sets. Threadgroup: 32 rows of one value head, four simdgroups of eight rows each; the convolution of
// the key head's 2*DK channels is made by all threads and shared through threadgroup memory. At position 0 state and window
// count as zero. Every channel's input is put into the ring by one threadgroup, in the row that nobody reads in this step.
[[kernel, max_total_threads_per_threadgroup(128)]] void gdn_step(device const float* in [[buffer(0)]], device const bfloat* conv [[buffer(1)]], device const bfloat* a_log [[buffer(2)]],
                     device const bfloat* dt_bias [[buffer(3)]], device const uint* step [[buffer(4)]], device float* window [[buffer(5)]],
                     device const float* state [[buffer(6)]], device float* next [[buffer(7)]], device const bfloat* norm [[buffer(8)]], device float* y [[buffer(9)]],
                     device float* squares [[buffer(10)]], constant GDNParams& p [[buffer(11)]], THREAD_1D) {
    threadgroup float qk[2 * 256];
    const uint dk = p.DK, keys = p.HK * dk, values = p.HV * p.DV, C = 2 * keys + values, pos = step[0];
    const HeadRows h = head_rows(p, tg, sg);
    StateRows rows;
    load_state(rows, state + ulong(h.v0) * dk, dk, pos == 0, lane);
    device float* own = window + pos % TAPS * C; // the ring's row of this position
    const bool first = h.v0 - sg * 8 == h.hk * (p.HV / p.HK) * p.DV; // the one threadgroup that stores the key head's inputs
    for (uint i = tid; i < 2 * dk; i += threads) {
        const uint ch = (i < dk ? 0 : keys) + h.hk * dk + (i < dk ? i : i - dk);
        const float cur = in[ch];
        qk[i] = conv_step(conv, window, C, ch, pos, cur);
        if (first) {
            own[ch] = cur;
        }
    }
    const uint row = h.v0 + set_row(lane), ch = 2 * keys + row;
    const float cur = in[ch];
    const float v = conv_step(conv, window, C, ch, pos, cur);
    const float gate = float(norm[row - h.hv * p.DV]) * silu(in[C + row]);
    if (lane < 8) {
        own[ch] = cur;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float q[8], k[8];
    for (uint i = 0; i < uint(KEY_LANES); ++i) {
        q[i] = qk[lane_dim(lane, i, KEY_LANES)];
        k[i] = qk[dk + lane_dim(lane, i, KEY_LANES)];
    }
    const uint gates = C + values + h.hv;
    const float2 g = gdn_gates(in[gates], in[gates + p.HV], float(a_log[h.hv]), float(dt_bias[h.hv]));
    const float out = gdn_token(rows, q, k, v, g.x, g.y, p.Eps, lane);
    const float square = lane_sum(out * out, 8);
    if (lane < 8) {
        y[row] = out * gate;
    }
    if (lane == 0) {
        squares[h.v0 / 8] = square;
    }
    store_state(rows, next + ulong(h.v0) * dk, dk, lane);
}

// gdn_scan: the delta rule over the M tokens of a chunk, in order, with gdn_step's arithmetic. c [M, C] is the convolved input; the gates
// come from "in". Rows as in gdn_step; they stay in registers for the whole chunk. The gates of 32 tokens are computed at once,
// one a lane, and the next token's inputs are loaded while this one is worked on. STORED_STATE leaves the rows in memory between tokens.
[[kernel, max_total_threads_per_threadgroup(128)]] void gdn_scan(device const float* c [[buffer(0)]], device const float* in [[buffer(1)]], device const bfloat* a_log [[buffer(2)]],
                     device const bfloat* dt_bias [[buffer(3)]], device const uint* step [[buffer(4)]], device float* state [[buffer(5)]],
                     device float* y [[buffer(6)]], constant GDNParams& p [[buffer(7)]], THREAD_1D) {
    const uint dk = p.DK, keys = p.HK * dk, values = p.HV * p.DV, C = 2 * keys + values, M = p.M;
    const HeadRows h = head_rows(p, tg, sg);
    StateRows rows;
    load_state(rows, state + ulong(h.v0) * dk, dk, step[0] == 0, lane);
    const uint row = h.v0 + set_row(lane), gates = C + values + h.hv;
    const float al = float(a_log[h.hv]), dt = float(dt_bias[h.hv]);
    float q[8], k[8], v = c[2 * keys + row];
    load_lanes(q, c + h.hk * dk, KEY_LANES, lane);
    load_lanes(k, c + keys + h.hk * dk, KEY_LANES, lane);
    for (uint m0 = 0; m0 < M; m0 += SIMD) {
        device const float* gate_row = in + ulong(min(m0 + lane, M - 1)) * p.Stride + gates;
        const float2 g = gdn_gates(gate_row[0], gate_row[p.HV], al, dt);
        const uint end = min(SIMD, M - m0);
        for (uint j = 0; j < end; ++j) {
            const uint m = m0 + j;
            device const float* next = c + ulong(min(m + 1, M - 1)) * C;
            float nq[8], nk[8];
            const float nv = next[2 * keys + row];
            load_lanes(nq, next + h.hk * dk, KEY_LANES, lane);
            load_lanes(nk, next + keys + h.hk * dk, KEY_LANES, lane);
            const float out = gdn_token(rows, q, k, v, simd_shuffle(g.x, ushort(j)), simd_shuffle(g.y, ushort(j)), p.Eps, lane);
            if (lane < 8) {
                y[ulong(m) * values + row] = out;
            }
            if (STORED_STATE != 0) {
                store_state(rows, state + ulong(h.v0) * dk, dk, lane);
                simdgroup_barrier(mem_flags::mem_device); // or the compiler keeps them in registers after all
                load_state(rows, state + ulong(h.v0) * dk, dk, false, lane);
            }
            v = nv;
            for (uint i = 0; i < uint(KEY_LANES); ++i) {
                q[i] = nq[i];
                k[i] = nk[i];
            }
        }
    }
    store_state(rows, state + ulong(h.v0) * dk, dk, lane);
}

// gdn_conv: c [M, C] = silu(convolution of "in" [M, Stride]); before the chunk the ring's rows count, before the sequence zero. A thread
// walks 16 tokens of one channel with the last three inputs in registers. Grid: 128 channels by 16 tokens.
kernel void gdn_conv(device const float* in [[buffer(0)]], device const bfloat* conv [[buffer(1)]], device const uint* step [[buffer(2)]],
                     device const float* window [[buffer(3)]], device float* c [[buffer(4)]], constant GDNParams& p [[buffer(5)]], THREAD_2D) {
    const uint C = 2 * p.HK * p.DK + p.HV * p.DV, ch = tg.x * threads.x + tid;
    if (ch >= C) {
        return;
    }
    const int pos = int(step[0]), m0 = int(tg.y * 16), m1 = min(m0 + 16, p.M);
    float u[3];
    for (int j = 0; j < 3; ++j) {
        const int t = m0 - 3 + j;
        u[j] = t >= 0 ? in[ulong(t) * p.Stride + ch] : ring(window, C, ch, pos + t);
    }
    for (int m = m0; m < m1; ++m) {
        const float cur = in[ulong(m) * p.Stride + ch];
        c[ulong(m) * C + ch] = convolve(conv, ch, u[0], u[1], u[2], cur);
        u[0] = u[1];
        u[1] = u[2];
        u[2] = cur;
    }
}

// gdn_window_store: the last inputs of a chunk into the ring [4, C], position p at row p%4. A thread copies one channel of one row.
kernel void gdn_window_store(device const float* in [[buffer(0)]], device const uint* step [[buffer(1)]], device float* window [[buffer(2)]],
                             constant GDNParams& p [[buffer(3)]], THREAD_2D) {
    const uint C = 2 * p.HK * p.DK + p.HV * p.DV, ch = tg.x * threads.x + tid;
    if (ch >= C) {
        return;
    }
    const uint M = p.M, m = M - min(M, TAPS) + tg.y;
    window[(step[0] + m) % TAPS * C + ch] = in[ulong(m) * p.Stride + ch];
}

// gdn_gate_norm: o [M, HV*DV] = RMSNorm(y; norm) ⊙ silu(z), head by head, z inside "in". One simdgroup a head of a token.
kernel void gdn_gate_norm(device const float* y [[buffer(0)]], device const float* in [[buffer(1)]], device const bfloat* norm [[buffer(2)]],
                          device float* o [[buffer(3)]], constant GDNParams& p [[buffer(4)]], THREAD_2D) {
    const uint hv = tg.x * 8 + sg, m = tg.y, dv = p.DV, values = p.HV * dv;
    if (hv >= uint(p.HV)) {
        return;
    }
    device const float* row = y + ulong(m) * values + hv * dv;
    device const float* z = in + ulong(m) * p.Stride + 2 * p.HK * p.DK + values + hv * dv;
    device float* out = o + ulong(m) * values + hv * dv;
    float s = 0.0f;
    for (uint i = lane; i < dv; i += SIMD) {
        s += row[i] * row[i];
    }
    const float inv = precise::rsqrt(simd_sum(s) / float(dv) + p.Eps);
    for (uint i = lane; i < dv; i += SIMD) {
        out[i] = row[i] * (float(norm[i]) * silu(z[i])) * inv;
    }
}
