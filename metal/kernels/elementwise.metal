// Operations without a product: embedding, norms, activation.

// embed_q4: x [M, D] = scale*q + bias of row tokens[m] of the table. A thread takes 32 columns: one load of 16 bytes.
// Grid: 1,024 columns by tokens.
kernel void embed_q4(device const uint* tokens [[buffer(0)]], device float* x [[buffer(1)]], WEIGHTS(0, 2, 3, 4),
                     constant EmbedParams& p [[buffer(5)]], THREAD_2D) {
    const uint D = p.D, b = tg.x * SIMD + tid, m = tg.y;
    if (b * 32 >= D) {
        return;
    }
    const ulong row = min(tokens[m], uint(p.Vocab) - 1);
    const uint4 codes = *(device const uint4*)(codes0 + row * (D / 2) + b * 16);
    const ulong g = row * (D / GROUP) + b / 2;
    const float scale = float(scales0[g]), bias = float(biases0[g]);
    device float4* out = (device float4*)(x + ulong(m) * D + b * 32);
    for (uint i = 0; i < 8; ++i) {
        const uint w = codes[i / 2] >> (16 * (i & 1));
        out[i] = scale * float4(float(w & 15u), float((w >> 4) & 15u), float((w >> 8) & 15u), float((w >> 12) & 15u)) + bias;
    }
}

// A row of a norm: y = x / sqrt(mean(x²) + eps) ⊙ norm, four columns a thread at a time. add: x, which is stored again, gets the parts first.
static inline void norm_row(device const float4* x, device float4* sum, device const float4* parts, device const bfloat4* norm, device float4* y, bool add,
                            constant NormParams& p, threadgroup float* squares, uint threads, uint tid, uint lane, uint sg) {
    const uint quads = p.D / 4;
    const ulong next = ulong(p.M) * quads; // between parts
    float s = 0.0f;
    for (uint i = tid; i < quads; i += threads) {
        float4 v = x[i];
        if (add) {
            float4 more = parts[i];
            for (int j = 1; j < p.Parts; ++j) {
                more += parts[j * next + i];
            }
            v += more;
            sum[i] = v;
        }
        s += dot(v, v);
    }
    s = simd_sum(s);
    if (lane == 0) {
        squares[sg] = s;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = 0.0f;
    for (uint i = 0; i < threads / SIMD; ++i) {
        total += squares[i];
    }
    const float inv = precise::rsqrt(total / float(p.D) + p.Eps);
    for (uint i = tid; i < quads; i += threads) {
        y[i] = (add ? sum[i] : x[i]) * inv * float4(norm[i]); // a thread reads what it wrote
    }
}

// rmsnorm: y [M, D] = x / sqrt(mean(x²) + eps) ⊙ norm. One threadgroup a row.
kernel void rmsnorm(device const float* x [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device float* y [[buffer(2)]],
                    constant NormParams& p [[buffer(3)]], THREAD_1D) {
    threadgroup float squares[32];
    const ulong row = ulong(tg) * p.D;
    device const float4* from = (device const float4*)(x + row);
    device float4* to = (device float4*)(y + row);
    norm_row(from, to, from, (device const bfloat4*)norm, to, false, p, squares, threads, tid, lane, sg);
}

// rmsnorm_add: x [M, D] += the Parts products of parts [Parts, M, D]; y = RMSNorm(x; norm). One threadgroup a row.
kernel void rmsnorm_add(device const float* parts [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device float* x [[buffer(2)]],
                        device float* y [[buffer(3)]], constant NormParams& p [[buffer(4)]], THREAD_1D) {
    threadgroup float squares[32];
    const ulong row = ulong(tg) * p.D;
    device float4* stream = (device float4*)(x + row);
    norm_row(stream, stream, (device const float4*)(parts + row), (device const bfloat4*)norm, (device float4*)(y + row), true, p, squares, threads, tid,
             lane, sg);
}

// silu_mul: act [M, I] = silu(gate) ⊙ up, gate and up side by side in gu [M, 2*I]. A thread takes four columns.
kernel void silu_mul(device const float* gu [[buffer(0)]], device float* act [[buffer(1)]], constant SiluMulParams& p [[buffer(2)]], THREAD_2D) {
    const uint i = (tg.x * threads.x + tid) * 4, I = p.I;
    if (i >= I) {
        return;
    }
    device const float* row = gu + ulong(tg.y) * (2 * I);
    const float4 gate = *(device const float4*)(row + i), up = *(device const float4*)(row + I + i);
    *(device float4*)(act + ulong(tg.y) * I + i) = float4(silu(gate.x), silu(gate.y), silu(gate.z), silu(gate.w)) * up;
}
