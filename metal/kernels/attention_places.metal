// Where attention's numbers lie, for one token and for many.

constant constexpr float LOG2E = 1.44269504f;
constant constexpr float LN2 = 0.693147181f;

// The width of a row of qkv: per query head HD of query and HD of gate, then all keys, then all values.
static inline uint qkv_stride(constant AttentionParams& p) { return 2 * (p.H + p.KV) * p.HD; }

// Where query head h of token m lies in q [KV, M, H/KV, HD]: the heads of a KV head are the rows of its matrix, at one stride for a whole chunk.
static inline ulong query_row(constant AttentionParams& p, uint m, uint h) {
    const uint group = p.H / p.KV;
    return (ulong(h / group) * p.M + m) * group + h % group;
}

// A chunk's attention has a threadgroup for a few queries, which is too few of them when a short chunk comes behind a long context. Its keys are
// then split: part b of p.Blocks takes every query over the keys from b*span on, and attn_prefill_merge adds the parts up. span is a whole number
// of blocks of 256 keys.
struct KeyPart {
    uint first, end; // keys
    uint b;
};

static inline KeyPart key_part(constant AttentionParams& p, uint pos, uint b) {
    const uint keys = ceil_div(pos + p.M, max(p.Blocks, 1));
    const uint span = ATTN_BLOCK * ceil_div(keys, ATTN_BLOCK);
    KeyPart part;
    part.b = b;
    part.first = span * b;
    part.end = part.first + span;
    return part;
}

// Where a part of a query head leaves its sum of values, not divided, and its maximum and sum of weights, as attn_decode does.
static inline ulong part_slot(constant AttentionParams& p, uint m, uint h, uint b) { return (ulong(m) * p.H + h) * p.Blocks + b; }
