// Runs kernels of basic.metal through msl_run.h: a sum by simdgroups and a barrier in three orders, a product of matrices, an access outside a buffer.
// Prints "all right", or what is not.
#include <cstdio>
#include <cstring>

#include "msl_run.h"

static char text[1000];
static float value(int i, int step) { return (i * step % 33 - 16) / 8.0f; } // sums of these are exact
static int fail(const char* what) { return printf("%s: %s\n", what, text), 1; }

int main(int, char** argv) {
  msl_library* lib = msl_library_open(argv[1], text, sizeof text);
  if (!lib) return fail("open");
  enum { ROWS = 300, N = 515, M = 16, COLS = 24, K = 640 };
  float* x = (float*)msl_memory_new(4 * ROWS * N, "x", 0);
  float* y = (float*)msl_memory_new(4 * ROWS, "y", 0);
  for (int i = 0; i < ROWS * N; i++) x[i] = value(i, 7);
  unsigned n = N;
  msl_binding b[] = {{0, 0, x, 4 * ROWS * N, nullptr}, {1, 0, y, 4 * ROWS, nullptr}, {2, 4, &n, 4, nullptr}};
  msl_pipeline* sum = msl_pipeline_new(lib, "row_sum", nullptr, 0, text, sizeof text);
  const msl_grid rows = {{ROWS, 1, 1}, {128, 1, 1}, {}, {}};
  for (unsigned order = 0; order < 3; order++) {
    msl_options o{};
    o.order = order;
    o.seed = 5;
    o.flags = MSL_POISON;
    memset(y, 0, 4 * ROWS);
    if (msl_run(sum, b, 3, &rows, &o, nullptr, text, sizeof text)) return fail("row_sum");
    for (int r = 0; r < ROWS; r++) {
      float want = 0;
      for (int i = 0; i < N; i++) want += x[r * N + i];
      if (y[r] != want) return printf("order %u, row %d: got %g, want %g\n", order, r, y[r], want), 1;
    }
  }
  float* a = (float*)msl_memory_new(4 * M * K, "a", 0);
  float* c = (float*)msl_memory_new(4 * COLS * K, "b", 0);
  float* d = (float*)msl_memory_new(4 * M * COLS, "d", 0);
  for (int i = 0; i < M * K; i++) a[i] = value(i, 5);
  for (int i = 0; i < COLS * K; i++) c[i] = value(i, 11);
  unsigned mnk[4] = {M, COLS, K, 0};
  msl_binding p[] = {{0, 0, a, 4 * M * K, nullptr}, {1, 0, c, 4 * COLS * K, nullptr}, {2, 0, d, 4 * M * COLS, nullptr}, {3, 16, mnk, 16, nullptr}};
  const msl_grid tiles = {{COLS / 8, M / 8, 1}, {32, 1, 1}, {}, {}};
  if (msl_run(msl_pipeline_new(lib, "product_f32", nullptr, 0, text, sizeof text), p, 4, &tiles, nullptr, nullptr, text, sizeof text)) return fail("product");
  for (int i = 0; i < M; i++)
    for (int j = 0; j < COLS; j++) {
      float want = 1;
      float s = 0;
      for (int k = 0; k < K; k++) s += a[i * K + k] * c[j * K + k];
      want += s;
      if (d[i * COLS + j] != want) return printf("product %d, %d: got %g, want %g\n", i, j, d[i * COLS + j], want), 1;
    }
  b[1].base = y + 100; // the last hundred rows lie behind the end
  b[1].lenBytes = 4 * (ROWS - 100);
  if (!msl_run(sum, b, 3, &rows, nullptr, nullptr, text, sizeof text) || !strstr(text, "out of bounds: buffer y, byte 1200 of 1200, thread 0 of threadgroup 200")) return fail("a store outside");
  puts("all right");
}
