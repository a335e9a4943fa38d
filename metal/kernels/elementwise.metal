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

// rmsnorm: y [M, D] = x / sqrt(mean(x²) + eps) ⊙ norm. One threadgroup a row, four columns a thread at a time.
kernel void rmsnorm(device const float* x [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device float* y [[buffer(2)]],
                    constant NormParams& p [[buffer(3)]], THREAD_1D) {
    threadgroup float squares[32];
    const uint quads = p.D / 4;
    device const float4* row = (device const float4*)(x + ulong(tg) * p.D);
    device const bfloat4* w = (device const bfloat4*)norm;
    device float4* out = (device float4*)(y + ulong(tg) * p.D);
    float s = 0.0f;
    for (uint i = tid; i < quads; i += threads) {
        const float4 v = row[i];
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
        out[i] = row[i] * inv * float4(w[i]);
    }
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
