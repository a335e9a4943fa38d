// What all files use. Source() puts this first.
//
// Conventions. Letters in shapes are those of shape.go. Buffers are bound in the order of the kernel's signature, weight
// matrices behind them as codes, scales, biases; the parameter struct comes last, its fields those of the Go struct of
// the same name, four bytes each. All arithmetic is float32; bfloat is only read. Sums are taken in one fixed order, so
// that no result depends on which threadgroup runs first. Indices of rows, keys and tokens are 32 bits wide; offsets
// that are products of two of them are computed in ulong.
#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
using namespace metal;

// Function constants (geometry.go): sizes that the compiler should know.
constant int HEAD_LANES [[function_constant(0)]];   // HD/32: dims of an attention head that a lane holds
constant int HEADS [[function_constant(1)]];        // query heads that an attention threadgroup takes
constant int MATRIX [[function_constant(2)]];       // attn_prefill, attn_decode: 1 by simdgroup matrices, 0 by vectors
constant int KEY_LANES [[function_constant(3)]];    // DK/32: dims of a gdn key that a lane holds
constant int TILE_ROWS [[function_constant(4)]];    // rows of x in a tile: 8, 16, 32 or 64
constant int EXPERT_LANES [[function_constant(5)]]; // router logits that a lane holds
constant int ROW_GROUPS [[function_constant(6)]];   // groups of eight rows that a set of lanes takes in a product of one row: 1, 2 or 4
constant int LEAST_ROWS [[function_constant(7)]];   // least height of a tile of an expert's rows: 8, or 64 to try what lower ones are worth
constant int LONE_KEYS [[function_constant(8)]];    // attn_decode: 1, a thread reads a key's whole row, to try what reading it side by side is worth
constant int EVEN_BLOCKS [[function_constant(9)]];  // attention of one token: 1, the keys are split evenly, to try what blocks at fixed places are worth
constant int WIDTH [[function_constant(11)]];       // columns of a product of one row: K; of an expert's down I; attn_decode: of a cached row
constant int SHARED_WIDTH [[function_constant(12)]]; // moe_down_add: SI
constant int EXPERT_ROWS [[function_constant(13)]];  // moe_gate_up: I
constant int SEVERAL [[function_constant(14)]];     // products of one row: 1, p.M rows, each by threadgroups of its own
constant int VALUE_WIDTH [[function_constant(15)]]; // q4_gemv_gdn_out: DV
constant int STORED_STATE [[function_constant(10)]]; // gdn_scan: 1, the state lies in memory between tokens, to try what registers are worth

constant constexpr uint SIMD = 32;
constant constexpr uint GROUP = 64;       // weights that share a scale and a bias
constant constexpr uint TAPS = 4;         // of the gdn convolution
constant constexpr uint ATTN_BLOCK = 256; // keys of one partial result of attention
constant constexpr float LOWEST = -3.4e38f; // stands for minus infinity, which fast arithmetic does not know

struct LinearParams {
    int M;
    int K;
    int Bits;
    int Rows[4];
    float Eps;
    int Parts;
};

struct EmbedParams {
    int M;
    int D;
    int Vocab;
};

struct NormParams {
    int M;
    int D;
    float Eps;
    int Parts;
};

struct ResidualParams {
    int M;
    int D;
};

struct SiluMulParams {
    int M;
    int I;
};

struct SampleParams {
    int N;
    int Block;
};

struct HeadParams {
    LinearParams Product;
    SampleParams Choice;
};

struct GDNParams {
    int M;
    int HK;
    int HV;
    int DK;
    int DV;
    int Stride;
    float Eps;
};

struct GDNOutParams {
    GDNParams GDN;
    int N;
};

struct AttentionParams {
    int M;
    int H;
    int KV;
    int HD;
    int R;
    int Blocks;
    int Context;
    float Eps;
};

struct MoEParams {
    int M;
    int D;
    int E;
    int T;
    int I;
    int SI;
    float Eps;
};

// One quantised weight matrix as published: rows of K codes of BITS bits, and a scale and bias for each 64 of them.
struct Matrix {
    device const uchar* codes;
    device const bfloat* scales;
    device const bfloat* biases;
    uint rows;
};

// The same buffers, n rows each, at matrix e of a stack.
static inline Matrix stacked(Matrix m, uint e, uint n, uint k) {
    const ulong row = ulong(e) * n;
    m.codes += row * (k / 2);
    m.scales += row * (k / GROUP);
    m.biases += row * (k / GROUP);
    m.rows = n;
    return m;
}

// The fast forms are within some units in the last place, which is nothing beside a quantised weight.
static inline float sigmoid(float x) { return fast::divide(1.0f, 1.0f + fast::exp(-x)); }

static inline float silu(float x) { return x * sigmoid(x); }

static inline uint ceil_div(uint a, uint b) { return (a + b - 1) / b; }

// A lane's share of a row of n*32 floats: four neighbours at a time where that fits, so that a load is 16 bytes; else every 32nd.
static inline uint lane_dim(uint lane, uint i, int n) { return n % 4 == 0 ? 4 * lane + 128 * (i / 4) + i % 4 : lane + SIMD * i; }

static inline void load_lanes(thread float* out, device const float* row, int n, uint lane) {
    if (n % 4 == 0) {
        for (int i = 0; i < n / 4; ++i) {
            const float4 v = ((device const float4*)row)[lane + SIMD * i];
            out[4 * i] = v.x;
            out[4 * i + 1] = v.y;
            out[4 * i + 2] = v.z;
            out[4 * i + 3] = v.w;
        }
    } else {
        for (int i = 0; i < n; ++i) {
            out[i] = row[lane + SIMD * i];
        }
    }
}

static inline void store_lanes(device float* row, thread const float* v, int n, uint lane) {
    if (n % 4 == 0) {
        for (int i = 0; i < n / 4; ++i) {
            ((device float4*)row)[lane + SIMD * i] = float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
        }
    } else {
        for (int i = 0; i < n; ++i) {
            row[lane + SIMD * i] = v[i];
        }
    }
}

// Parameters that many kernels have: a weight matrix, and where a thread stands.
#define WEIGHTS(N, C, S, B) \
    device const uchar *codes##N [[buffer(C)]], device const bfloat *scales##N [[buffer(S)]], device const bfloat *biases##N [[buffer(B)]]
#define THREAD_1D \
    uint tg [[threadgroup_position_in_grid]], uint threads [[threads_per_threadgroup]], uint tid [[thread_index_in_threadgroup]], \
        uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]
#define THREAD_2D \
    uint2 tg [[threadgroup_position_in_grid]], uint2 threads [[threads_per_threadgroup]], uint tid [[thread_index_in_threadgroup]], \
        uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]
#define THREAD_3D \
    uint3 tg [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]], uint tid [[thread_index_in_threadgroup]], \
        uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]
#define MATRIX_OF(N, ROWS) Matrix{codes##N, scales##N, biases##N, uint(ROWS)}

// One of four matrices by index.
#define PICK_MATRIX(S) \
    ((S) == 0 ? MATRIX_OF(0, p.Rows[0]) : (S) == 1 ? MATRIX_OF(1, p.Rows[1]) : (S) == 2 ? MATRIX_OF(2, p.Rows[2]) : MATRIX_OF(3, p.Rows[3]))

// A run of rows of one of up to four matrices that lie side by side in the output.
struct SetRows {
    uint segment;
    uint row0; // in the matrix
    uint y0;   // in the output
};

// Which of a set's eight rows set_sum leaves in a lane.
static inline uint set_row(uint lane) { return (lane & 1) * 4 + ((lane >> 1) & 1) * 2 + ((lane >> 2) & 1); }

// The first exchange of set_sum: of eight values even lanes keep the first four, odd lanes the last four, each with its neighbour's part.
static inline void keep_four(thread float* a, thread const float* v, uint lane) {
    const bool high = (lane & 1) != 0;
    // Both values are named before one is chosen: a choice between two places of an array is an index, and puts the array into memory.
    for (uint i = 0; i < 4; ++i) {
        const float first = v[i], second = v[4 + i];
        a[i] = (high ? second : first) + simd_shuffle_xor(high ? first : second, ushort(1));
    }
}

// The other exchanges of set_sum.
static inline float four_sum(thread const float* a, uint lane, uint lanes) {
    float b[2];
    const bool mid = (lane & 2) != 0, low = (lane & 4) != 0;
    for (uint i = 0; i < 2; ++i) {
        const float first = a[i], second = a[2 + i];
        b[i] = (mid ? second : first) + simd_shuffle_xor(mid ? first : second, ushort(2));
    }
    float s = (low ? b[1] : b[0]) + simd_shuffle_xor(low ? b[0] : b[1], ushort(4));
    if (lanes > 8) {
        s += simd_shuffle_xor(s, ushort(8));
    }
    if (lanes > 16) {
        s += simd_shuffle_xor(s, ushort(16));
    }
    return s;
}

// Sums eight values over the lanes of a set, or over the simdgroup when the set is wider: each step sends half of the values to the
// partner and keeps the other half, so nine exchanges do the work of forty. Each lane ends with the sum of row set_row(lane).
static inline float set_sum(thread const float* v, uint lane, uint lanes) {
    float a[4];
    keep_four(a, v, lane);
    return four_sum(a, lane, lanes);
}

// The sum of one value over the lanes of a set, or over the simdgroup when the set is wider.
static inline float lane_sum(float v, uint lanes) {
    if (lanes >= SIMD) {
        return simd_sum(v);
    }
    for (uint step = 1; step < lanes; step *= 2) {
        v += simd_shuffle_xor(v, ushort(step));
    }
    return v;
}
