// Products of weight matrices with many rows, for prefill: y = x Wᵀ, tile by tile.
//
// A threadgroup of four simdgroups makes a tile of BM rows (8, 16, 32 or 64) by 64 columns. Each step brings 32 columns of x and of W
// into threadgroup memory, the weights rebuilt on the way as scale*q + bias: no matrix is ever stored unpacked. The next step's loads
// are issued into registers before this step's multiplications, so that they overlap. Rows beyond the last are loaded as copies of it
// and not stored.
//
// multiply_tile, which does the multiplying, has two texts of one signature: tile_matrix.metal by simdgroup matrices and
// tile_tensor.metal by Metal 4's tensor operations. The kernels behind it (product_gemm.metal, moe_tile.metal) are the same.

constant constexpr uint TILE_COLS = 64;
constant constexpr uint TILE_DEPTH = 32;

// The rows of x that a thread loads: four columns of each.
struct TileRows {
    device const float* x[4];
};

// Where a thread's part of x lies: row and first column of quad j.
static inline uint tile_row(uint tid, uint j) { return (tid + 128 * j) / 8; }
static inline uint tile_col(uint tid) { return tid % 8 * 4; }
// Which row of the weights' tile it unpacks, 16 columns of it.
static inline uint tile_weight(uint tid) { return tid / 2; }

// BITS 4 and 8 are codes; 32 are floats, of plans that have their matrices written out (unfused.metal).
template <uint BITS>
struct TileWeights {
    uint q[BITS / 2];
    float scale, bias;
};

template <uint BITS>
static inline void fetch_weights(thread TileWeights<BITS>& w, device const uchar* codes, device const bfloat* scales, device const bfloat* biases, uint k) {
    device const uint2* p = (device const uint2*)(codes + k * BITS / 8);
    for (uint i = 0; i < BITS / 4; ++i) {
        const uint2 v = p[i];
        w.q[2 * i] = v.x;
        w.q[2 * i + 1] = v.y;
    }
    if (BITS < 32) {
        w.scale = float(scales[k / GROUP]);
        w.bias = float(biases[k / GROUP]);
    }
}

// Weights 4i to 4i+4 of the sixteen.
template <uint BITS>
static inline float4 four_weights(thread const TileWeights<BITS>& w, uint i) {
    constexpr uint per = 32 / BITS, mask = BITS == 4 ? 15u : 255u, words = BITS / 2, bits = BITS % 32;
    if (BITS == 32) {
        const uint at = 4 * i % words;
        return float4(as_type<float>(w.q[at]), as_type<float>(w.q[(at + 1) % words]), as_type<float>(w.q[(at + 2) % words]), as_type<float>(w.q[(at + 3) % words]));
    }
    const uint q = w.q[4 * i / per] >> (bits * (4 * i % per));
    const float4 v = float4(float(q & mask), float((q >> bits) & mask), float((q >> (2 * bits)) & mask), float((q >> (3 * bits)) & mask));
    return w.scale * v + w.bias;
}

template <typename T, uint BITS>
static inline void unpack_weights(threadgroup T* out, thread const TileWeights<BITS>& w) {
    for (uint i = 0; i < 4; ++i) {
        ((threadgroup vec<T, 4>*)out)[i] = vec<T, 4>(four_weights<BITS>(w, i));
    }
}
