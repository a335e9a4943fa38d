// Kernels of plans without an optimisation (inference/ablate). No plan as shipped has one of them.

// residual_add: x [M, D] += y. A thread takes four columns of one row.
kernel void residual_add(device const float* y [[buffer(0)]], device float* x [[buffer(1)]], constant ResidualParams& p [[buffer(2)]], THREAD_2D) {
    const uint i = (tg.x * threads.x + tid) * 4, D = p.D;
    if (i >= D) {
        return;
    }
    const ulong at = ulong(tg.y) * D + i;
    *(device float4*)(x + at) += *(device const float4*)(y + at);
}
