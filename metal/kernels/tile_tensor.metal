// A tile of a product by Metal 4's tensor operations, which run on the tensor units of GPUs that have them (Apple family 10, M5). It takes
// the place of tile_matrix.metal in a library of its own (source.go).
//
// x and the rebuilt weights are rounded to bfloat on their way into threadgroup memory, as the units want them; sums are float32. Two
// steps' tiles lie there at once: while one is multiplied the next is written, so that a step has one barrier. Tiles are 32 or 64 rows
// high: with fewer rows the weights' bytes decide, not the multiplications. All four simdgroups work on one product, BM x 64 x 32. An
// element of y does not depend on BM.
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>

constant constexpr uint RESULT_LD = TILE_COLS;

// The tile's sums, left at mem as [BM][RESULT_LD] behind a barrier. rows: see tile_row; w: the thread's row of the weights. Of heights below
// 32, which launches never ask for, only the text exists.
template <uint BM, uint BITS>
static inline void multiply_tile(threadgroup float* mem, TileRows rows, Matrix w, uint K, uint tid, uint sg) {
    using namespace mpp::tensor_ops;
    constexpr uint height = BM < 32 ? 32 : BM, quads = height / 16;
    constexpr uint stage = (height + TILE_COLS) * TILE_DEPTH; // of a step: x [height][TILE_DEPTH], weights [TILE_COLS][TILE_DEPTH]
    threadgroup bfloat* stages = (threadgroup bfloat*)mem;    // two
    const uint col = tile_col(tid), k0 = (tid & 1) * 16;

    constexpr auto shape = matmul2d_descriptor(int(height), int(TILE_COLS), int(TILE_DEPTH), false, true, false, matmul2d_descriptor::mode::multiply_accumulate);
    matmul2d<shape, execution_simdgroups<4>> op;
    typedef tensor<threadgroup bfloat, dextents<int32_t, 2>, tensor_inline> Part;
    auto acc = op.template get_destination_cooperative_tensor<Part, Part, float>();
    for (ushort i = 0; i < acc.get_capacity(); ++i) {
        acc[i] = 0.0f;
    }
    float4 xv[quads];
    TileWeights<BITS> wv;
    for (uint j = 0; j < quads; ++j) {
        xv[j] = *(device const float4*)(rows.x[j] + col);
    }
    fetch_weights<BITS>(wv, w.codes, w.scales, w.biases, k0);
    for (uint k = 0; k < K; k += TILE_DEPTH) {
        // Whoever writes here has passed the barrier of the step before, so all have left the step before that, which had this memory.
        threadgroup bfloat* xs = stages + k / TILE_DEPTH % 2 * stage;
        threadgroup bfloat* ws = xs + height * TILE_DEPTH;
        for (uint j = 0; j < quads; ++j) {
            *(threadgroup bfloat4*)(xs + tile_row(tid, j) * TILE_DEPTH + col) = bfloat4(xv[j]);
        }
        unpack_weights<bfloat, BITS>(ws + tile_weight(tid) * TILE_DEPTH + k0, wv);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (k + TILE_DEPTH < K) {
            for (uint j = 0; j < quads; ++j) {
                xv[j] = *(device const float4*)(rows.x[j] + k + TILE_DEPTH + col);
            }
            fetch_weights<BITS>(wv, w.codes, w.scales, w.biases, k + TILE_DEPTH + k0);
        }
        Part a(xs, dextents<int32_t, 2>(int(TILE_DEPTH), int(height)));
        Part b(ws, dextents<int32_t, 2>(int(TILE_DEPTH), int(TILE_COLS)));
        op.run(a, b, acc);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tensor<threadgroup float, dextents<int32_t, 2>, tensor_inline> result(mem, dextents<int32_t, 2>(int(RESULT_LD), int(height)));
    acc.store(result);
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
