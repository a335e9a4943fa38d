// The experts of one token, or one each of a few sequences, and the choice of experts of any number of tokens.

// A float as a whole number of the same order, and back.
static inline uint ordered(float x) {
    const uint u = as_type<uint>(x);
    return (u & 0x80000000u) != 0 ? ~u : u | 0x80000000u;
}

static inline float unordered(uint key) { return as_type<float>((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key); }

// The T largest of E logits, by one simdgroup: lane r < T ends with the expert of rank r and its weight, softmax over the chosen
// (spec 2.6). The lower index wins a tie. Each lane holds the logits of experts lane, lane+32, ... in registers, so a round is a maximum
// in registers and two reductions. Logits are whole numbers of the same order meanwhile, 0 for what is taken or not there: reductions of
// those are one instruction. A logit that is not a number counts as the lowest, so that no index can leave the table. With a T below the
// model's the ids are the first of its, and the weights mean nothing.
static inline void choose(device const float* logits, uint E, uint T, uint lane, thread uint& id, thread float& weight) {
    uint v[32];
    for (uint i = 0; i < uint(EXPERT_LANES); ++i) {
        const uint e = lane + SIMD * i;
        const float x = e < E ? logits[e] : LOWEST;
        const bool number = (as_type<uint>(x) & 0x7fffffffu) <= 0x7f800000u;
        v[i] = e < E ? ordered(number ? max(x, LOWEST) : LOWEST) : 0;
    }
    id = 0;
    uint mine = 0, top = 0;
    for (uint r = 0; r < T; ++r) {
        uint best = 0;
        for (uint i = 0; i < uint(EXPERT_LANES); ++i) {
            best = max(best, v[i]);
        }
        const uint highest = simd_max(best);
        uint at = 0xffffffffu;
        for (uint i = uint(EXPERT_LANES); i > 0; --i) {
            at = v[i - 1] == highest ? lane + SIMD * (i - 1) : at;
        }
        const uint winner = min(simd_min(at), E - 1);
        for (uint i = 0; i < uint(EXPERT_LANES); ++i) {
            v[i] = lane + SIMD * i == winner ? 0 : v[i];
        }
        top = r == 0 ? highest : top;
        id = lane == r ? winner : id;
        mine = lane == r ? highest : mine;
    }
    const float e = lane < T ? precise::exp(unordered(mine) - unordered(top)) : 0.0f;
    weight = e / simd_sum(e);
}

// moe_route: ids [M, T] and weights [M, T+1] of each token of a chunk; weights[T] is the sigmoid of logit E, the shared expert's gate.
// One simdgroup a token, eight a threadgroup.
kernel void moe_route(device const float* logits [[buffer(0)]], device uint* ids [[buffer(1)]], device float* weights [[buffer(2)]],
                      constant MoEParams& p [[buffer(3)]], THREAD_1D) {
    const uint m = tg * 8 + sg, E = p.E, T = p.T;
    if (m >= uint(p.M)) {
        return;
    }
    device const float* row = logits + ulong(m) * (E + 1);
    uint id;
    float weight;
    choose(row, E, T, lane, id, weight);
    if (lane < T) {
        ids[m * T + lane] = id;
        weights[m * (T + 1) + lane] = weight;
    }
    if (lane == 0) {
        weights[m * (T + 1) + T] = sigmoid(row[E]);
    }
}

// Columns that were there before the rows were known.
struct ReadyColumns {
    Columns c;

    float fill(thread Columns& to) const {
        to = c;
        return 0.0f;
    }
};

// moe_gate_up: act [M, T*I + SI] = silu(G h) ⊙ (U h), h = x̂ ⊙ norm, for the chosen experts in order of rank and, as one more, the shared
// expert. A set of lanes takes rows of gate and the rows of up that go with them, four
// by four, so that SwiGLU needs one exchange.
// Each threadgroup's first simdgroup chooses the experts again from the router's logits, 257 numbers, rather than wait a
// level for it, as far as the rank that it works for; threadgroup 0 chooses all and stores them for moe_down_add. Grid: for each token sets, expert by expert;
// what tokens have in common, the shared expert above all, is read side by side.
kernel void moe_gate_up(device const float* x [[buffer(0)]], device const bfloat* norm [[buffer(1)]], device const float* logits [[buffer(2)]],
                        device uint* ids [[buffer(3)]], device float* weights [[buffer(4)]], device float* act [[buffer(5)]],
                        WEIGHTS(0, 6, 7, 8), WEIGHTS(1, 9, 10, 11), WEIGHTS(2, 12, 13, 14), WEIGHTS(3, 15, 16, 17),
                        constant MoEParams& p [[buffer(18)]], THREAD_1D) {
    threadgroup float part[PARTS];
    threadgroup float squares[32];
    threadgroup uint chosen[32];
    const uint k = WIDTH, E = p.E, T = p.T, I = EXPERT_ROWS, SI = p.SI;
    const uint set = set_rows() / 2, per_expert = ceil_div(I, set), routed = T * per_expert; // gate rows of a set
    const ulong token = row_of_batch(tg, p.M);
    x += token * k;
    logits += token * (E + 1);
    ids += token * T;
    weights += token * (T + 1);
    act += token * (T * I + SI);
    const Place at = place_of(k, tg, threads, tid);
    const uint col = at.lane * 32;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    ReadyColumns columns;
    float sq = NormedColumns{x + col, norm + col, col < k}.fill(columns.c);
    if (sg == 0) {
        const uint sets = threads / at.lanes, first = tg * sets;
        const uint ranks = tg == 0 ? T : first >= routed ? 0 : min((first + sets - 1) / per_expert + 1, T);
        uint id;
        float weight;
        choose(logits, E, ranks, lane, id, weight);
        chosen[lane] = id;
        if (tg == 0 && lane < T) {
            ids[lane] = id;
            weights[lane] = weight;
        }
        if (tg == 0 && lane == 0) {
            weights[T] = sigmoid(logits[E]);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const bool shared = at.set >= routed;
    const uint rank = shared ? T : at.set / per_expert;
    const uint row0 = (shared ? at.set - routed : at.set % per_expert) * set, e = chosen[shared ? 0 : rank];
    const Matrix gate = shared ? MATRIX_OF(2, SI) : stacked(MATRIX_OF(0, 0), e, I, k);
    const Matrix up = shared ? MATRIX_OF(3, SI) : stacked(MATRIX_OF(1, 0), e, I, k);
    const RowPlan plan = {gate, up, row0, row0, 4, all_whole(row0 + set <= gate.rows, at)};
    multiply_set<4>(part, sums, columns, plan, k, at, lane, sg);
    sq = lane_sum(sq, at.lanes);
    if (at.lanes > SIMD) {
        if (lane == 0) {
            squares[sg] = sq;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sq = wide_total(squares, 1, 0, sg, at.lanes);
    }
    const float inv = CODE_SCALE * precise::rsqrt(sq / float(k) + p.Eps);
    for (uint i = 0; i < finish_turns(at); ++i) {
        const float s = finish_sum(part, sums, i, at, lane, sg) * inv;
        const float u = simd_shuffle_xor(s, ushort(1)); // even lanes hold a gate row, their neighbours its up row
        const uint r = set_row(lane), row = row0 + 4 * finish_group(i, at) + r;
        if (finishes(at) && r < 4 && row < (shared ? SI : I)) {
            act[(shared ? T * I : rank * I) + row] = silu(s) * u;
        }
    }
}

// Activations of an expert times its weight.
struct WeightedColumns {
    device const float* act;
    device const float* weight;
    bool exist;

    float fill(thread Columns& c) const {
        if (exist) {
            const float w = *weight;
            load_columns(c, act);
            multiply_columns(c, w);
        } else {
            clear_columns(c);
        }
        return 0.0f;
    }
};

// moe_down_add: x [M, D] += sum over ranks of weights[r]·(down_r act_r) + weights[T]·(shared down act_T): one product with all chosen experts
// side by side, T*I + SI columns. A threadgroup takes the rows of one set; a thread owns 32 columns of one expert, scaled by its weight.
// Sums: within a simdgroup, then over the simdgroups in order.
kernel void moe_down_add(device const float* act [[buffer(0)]], device const uint* ids [[buffer(1)]], device const float* weights [[buffer(2)]],
                         device float* x [[buffer(3)]], WEIGHTS(0, 4, 5, 6), WEIGHTS(1, 7, 8, 9), constant MoEParams& p [[buffer(10)]], THREAD_1D) {
    threadgroup float part[PARTS];
    const uint D = p.D, T = p.T, I = WIDTH, SI = SHARED_WIDTH;
    const ulong token = row_of_batch(tg, p.M);
    act += token * (T * I + SI);
    ids += token * T;
    weights += token * (T + 1);
    x += token * D;
    const uint per_expert = I / 32, routed = T * per_expert, row0 = tg * set_rows();
    const bool holds_columns = tid < routed + SI / 32;
    const bool shared = tid >= routed;
    const uint rank = shared ? T : tid / per_expert;
    Matrix m = MATRIX_OF(1, D);
    if (!shared) {
        m = stacked(MATRIX_OF(0, 0), ids[rank], D, I);
    }
    const uint k = shared ? SI : I;
    const Place at = {2 * SIMD, tg, shared ? tid - routed : tid % per_expert}; // as in a wide set; lane: the block of columns inside the expert
    const RowPlan plan = plan_rows(m, row0, at);
    const uint row = row0 + (tid & ~7u) + set_row(lane); // that the thread finishes
    const bool finishing = tid < set_rows() && row < D;
    const float before = finishing ? x[row] : 0.0f;
    float sums[4];
    multiply_set<4>(part, sums, WeightedColumns{act + tid * 32, weights + rank, holds_columns}, plan, k, at, lane, sg);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (finishing) {
        float total = 0.0f;
        for (uint i = 0; i < threads / SIMD; ++i) {
            total += part[tid / 8 * PART_GROUP + i * 8 + tid % 8];
        }
        x[row] = before + total * CODE_SCALE;
    }
}
