// msl_matrix.h - simdgroup_matrix, 8 x 8.
//
// A lane's variable refers to a value that the whole simdgroup shares, and operations go through the simdgroup's journal: the first lane to
// reach one computes all 64 elements, the others only take the result. So a product costs no switch between lanes. A lane gets elements
// of its own when it asks for thread_elements(), which all lanes must then do alike; the next operation gathers them again.
//
// A library with access hooks does without: each lane loads and stores its own two elements, so that the checks see who touches what.
// Both ways add products in the order of k, each rounded on its own, and give the same bits.
#pragma once

namespace metal {
// Lane to element, as public Metal code relies on it: a lane holds (row, col) and (row, col + 1).
struct msl_place { int row, col; };
MSL_INLINE msl_place msl_place_of(int lane) { int q = lane >> 2; return {(q & 4) + (lane >> 1 & 3), (q & 2) * 2 + (lane & 1) * 2}; }
MSL_INLINE int msl_lane_of(int row, int col) { return (row & 4) << 2 | (row & 3) << 1 | (col & 4) << 1 | (col >> 1 & 1); }

// The way of the 31 lanes that only take a result is a dozen instructions where all of it is inlined. With access hooks nothing goes this way.
#if MSL_CHECKED
#define MSL_HOT MSL_SILENT inline
#else
#define MSL_HOT inline __attribute__((always_inline))
#endif
#if MSL_CHECKED
#define MSL_ACCESS inline
#else
#define MSL_ACCESS inline __attribute__((always_inline))
#endif
#define MSL_COLD MSL_SILENT __attribute__((noinline, cold))

MSL_HOT void msl_release(msl::Matrix* m) {
  if (m && --m->references == 0) {
    m->next = msl::context->freeMatrices;
    msl::context->freeMatrices = m;
  }
}
// The first lane at an operation takes a matrix for its result and notes it for the others.
MSL_SILENT __attribute__((noinline)) inline msl::Matrix* msl_first(msl::Journal& j, int site, msl::Where line) {
  msl::Context* c = msl::context;
  if (!j.whole) msl::stop(line, "simdgroup_matrix operation without all 32 lanes of a simdgroup");
  msl::Matrix* m = c->freeMatrices;
  if (!m) m = msl::moreMatrices();
  c->freeMatrices = m->next;
  m->references = 32;
  auto& op = j.ops[j.count++ % msl::MSL_JOURNAL];
  op.value = m;
  op.site = site;
  c->matrixOps++;
  return m;
}
MSL_COLD inline void msl_wait_for_all(msl::Where line) { msl::done(msl::meet(0, 0, msl::siteOf({0, ""}, msl::OP_GATHER), line.file)); }
// The next operation of this simdgroup: f(Matrix*) computes it if this lane is the first. The caller owns one reference.
template <class F> MSL_HOT msl::Matrix* msl_step(msl::Where line, msl::Operation kind, F f) {
  const int site = msl::siteOf(line, kind);
  msl::Context* c = msl::context;
  msl::Journal& j = c->journals[c->lane->simdgroup];
  const int lane = c->lane->lane;
  const uint32_t n = j.lane[lane];
  if (__builtin_expect(n % msl::MSL_JOURNAL == msl::MSL_JOURNAL - 1, 0)) msl_wait_for_all(line);
  j.lane[lane] = n + 1;
  if (__builtin_expect(n == j.count, 0)) {
    msl::Matrix* m = msl_first(j, site, line);
    f(m);
    return m;
  }
  auto& op = j.ops[n % msl::MSL_JOURNAL];
  if (__builtin_expect(op.site != site, 0)) msl::stop(line, "lanes of a simdgroup do different simdgroup_matrix operations");
  return op.value;
}

template <class T, int Rows = 8, int Cols = 8> struct simdgroup_matrix {
  static_assert(Rows == 8 && Cols == 8, "simdgroup_matrix is 8 x 8");
  static_assert(is_same_v<T, float> || is_same_v<T, half> || is_same_v<T, bfloat>, "simdgroup_matrix holds float, half or bfloat");
  typedef vec<T, 2> storage_type;
  mutable msl::Matrix* shared = nullptr; // the value, or null: this lane's elements are in own
  mutable storage_type own;
  MSL_HOT simdgroup_matrix() { memset((void*)&own, 0xff, sizeof own); } // NaN until it is loaded
  MSL_SILENT simdgroup_matrix(const simdgroup_matrix& m) : shared(m.shared), own(m.own) { if (shared) shared->references++; }
  MSL_SILENT simdgroup_matrix& operator=(const simdgroup_matrix& m) {
    if (m.shared) m.shared->references++;
    msl_release(shared);
    shared = m.shared;
    own = m.own;
    return *this;
  }
  MSL_HOT ~simdgroup_matrix() { msl_release(shared); }
  explicit simdgroup_matrix(T diagonal, MSL_LINE);
  MSL_HOT void set(msl::Matrix* m) { msl_release(shared); shared = m; }
  MSL_SILENT void settle() const {
    if (!shared) return;
    const msl_place p = msl_place_of(msl_lane());
    own = storage_type(T(shared->e[p.row * 8 + p.col]), T(shared->e[p.row * 8 + p.col + 1]));
    msl_release(shared);
    shared = nullptr;
  }
  storage_type& thread_elements() { settle(); return own; }
  const storage_type& thread_elements() const { settle(); return own; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

// All 64 elements, for an operation. Every lane comes by here, so that elements of single lanes are gathered.
template <class T> MSL_COLD const float* msl_gather(const simdgroup_matrix<T>& m, msl::Where line) {
  {
    float v[2] = {float(m.own.d[0]), float(m.own.d[1])};
    msl::Exchange* x = msl_meet(v, line, msl::OP_GATHER);
    if (x->active != ~0u) msl::stop(line, "simdgroup_matrix operation without all 32 lanes of a simdgroup");
    m.shared = msl_step(line, msl::OP_GATHER, [&](msl::Matrix* d) MSL_SILENT {
      for (int lane = 0; lane < 32; lane++) {
        const msl_place p = msl_place_of(lane);
        memcpy(&d->e[p.row * 8 + p.col], x->slot[lane], 8);
      }
    });
    msl::done(x);
  }
  return m.shared->e;
}
template <class T> MSL_HOT const float* msl_whole(const simdgroup_matrix<T>& m, msl::Where line) { return __builtin_expect(m.shared != nullptr, 1) ? m.shared->e : msl_gather(m, line); }
template <class T, class F> MSL_SILENT inline void msl_fill(simdgroup_matrix<T>& m, msl::Where line, F f) { // f(row, col)
  if (MSL_CHECKED) {
    const msl_place p = msl_place_of(msl_lane());
    m.own = vec<T, 2>(f(p.row, p.col), f(p.row, p.col + 1));
    return;
  }
  m.set(msl_step(line, msl::OP_FILLED, [&](msl::Matrix* d) MSL_SILENT { for (int i = 0; i < 64; i++) d->e[i] = float(f(i / 8, i % 8)); }));
}
template <class T, int R, int C> simdgroup_matrix<T, R, C>::simdgroup_matrix(T v, msl::Where line) : simdgroup_matrix() { msl_fill(*this, line, [v](int r, int c) MSL_SILENT { return r == c ? v : T(0.0f); }); }
template <class T, int R = 8, int C = 8> inline simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T v, MSL_LINE) {
  simdgroup_matrix<T, R, C> m;
  msl_fill(m, line, [v](int, int) MSL_SILENT { return v; });
  return m;
}

template <class U> __attribute__((noinline)) void msl_read(float* e, const U* p, ulong down, ulong right) {
  if (right == 1) {
    for (int i = 0; i < 8; i++)
      for (int j = 0; j < 8; j++) e[i * 8 + j] = float(p[ulong(i) * down + j]);
  } else {
    for (int j = 0; j < 8; j++)
      for (int i = 0; i < 8; i++) e[i * 8 + j] = float(p[ulong(i) * down + ulong(j) * right]);
  }
}
template <class T, class U> MSL_ACCESS void simdgroup_load(simdgroup_matrix<T>& m, const U* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false, MSL_LINE) {
  static_assert(is_same_v<T, remove_cv_t<U>>, "simdgroup_load: the matrix and the memory have different element types");
  p += origin.y * stride + origin.x;
  const ulong down = transposed ? 1 : stride, right = transposed ? stride : 1;
  if (MSL_CHECKED) {
    const msl_place a = msl_place_of(msl_lane());
    m.own = vec<T, 2>(p[a.row * down + a.col * right], p[a.row * down + (a.col + 1) * right]);
    msl::done(msl::meet(0, 0, msl::siteOf(line, msl::OP_LOAD), line.file));
    return;
  }
  m.set(msl_step(line, msl::OP_LOAD, [&](msl::Matrix* d) { msl_read(d->e, p, down, right); }));
}
template <class T, class U> inline void simdgroup_store(const simdgroup_matrix<T>& m, U* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false, MSL_LINE) {
  static_assert(is_same_v<T, U>, "simdgroup_store: the matrix and the memory have different element types");
  p += origin.y * stride + origin.x;
  const ulong down = transposed ? 1 : stride, right = transposed ? stride : 1;
  if (MSL_CHECKED) {
    const msl_place a = msl_place_of(msl_lane());
    p[a.row * down + a.col * right] = m.own.d[0];
    p[a.row * down + (a.col + 1) * right] = m.own.d[1];
    msl::done(msl::meet(0, 0, msl::siteOf(line, msl::OP_STORE), line.file));
    return;
  }
  const float* e = msl_whole(m, line);
  msl_release(msl_step(line, msl::OP_STORE, [&](msl::Matrix*) { for (int i = 0; i < 64; i++) p[ulong(i / 8) * down + ulong(i % 8) * right] = T(e[i]); }));
}
template <class D, class A, class B, class C>
MSL_HOT void simdgroup_multiply_accumulate(simdgroup_matrix<D>& d, const simdgroup_matrix<A>& a, const simdgroup_matrix<B>& b, const simdgroup_matrix<C>& c, MSL_LINE) {
  if (MSL_CHECKED) {
    float v[4] = {float(a.own.d[0]), float(a.own.d[1]), float(b.own.d[0]), float(b.own.d[1])};
    msl::Exchange* x = msl_meet(v, line, msl::OP_MULTIPLY);
    if (x->active != ~0u) msl::stop(line, "simdgroup_matrix operation without all 32 lanes of a simdgroup");
    const float(*s)[4] = (const float(*)[4])x->slot;
    const msl_place p = msl_place_of(msl_lane());
    float left = float(c.own.d[0]), right = float(c.own.d[1]);
    for (int k = 0; k < 8; k++) {
      const float e = s[msl_lane_of(p.row, k)][k & 1];
      const float* f = s[msl_lane_of(k, p.col)] + 2;
      left += e * f[0];
      right += e * f[1];
    }
    msl::done(x);
    d.own = vec<D, 2>(D(left), D(right));
    return;
  }
  const float *wa = msl_whole(a, line), *wb = msl_whole(b, line), *wc = msl_whole(c, line);
  d.set(msl_step(line, msl::OP_MULTIPLY, [&](msl::Matrix* m) MSL_SILENT {
    msl::multiply(m->e, wa, wb, wc);
    if (!is_same_v<D, float>) for (int i = 0; i < 64; i++) m->e[i] = float(D(m->e[i]));
  }));
}
template <class D, class A, class B> inline void simdgroup_multiply(simdgroup_matrix<D>& d, const simdgroup_matrix<A>& a, const simdgroup_matrix<B>& b, MSL_LINE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D>(D(0.0f), line), line);
}
template <class T> inline simdgroup_matrix<T> operator*(const simdgroup_matrix<T>& a, const simdgroup_matrix<T>& b) { simdgroup_matrix<T> d; simdgroup_multiply(d, a, b); return d; }
} // namespace metal
