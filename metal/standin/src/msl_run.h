/*
 * msl_run.h - the C interface of the kernel runtime: what a compiled kernel library contains, and running its kernels.
 *
 * The runtime is one shared library; a kernel library is another that depends on it, made from .metal text by the compile
 * driver (compile.go). dlopen of a kernel library brings the runtime it was built for along (rpath), and dlsym on its handle finds
 * every function below. The interface is C, so that Objective-C objects, C++ and Go (purego) share it.
 *
 * Conventions:
 *   - Text that comes back is written to (text, textBytes), always terminated, cut where it does not fit.
 *   - Functions that return int give 0 for success; anything else comes with a text.
 *   - Pointers to const char belong to the library and live as long as it does.
 *   - Functions may be called from any thread. msl_run is serialised by the runtime: one dispatch at a time.
 *   - A kernel that faults, or that a check objects to, is a text and never a signal for the process.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change below; msl_abi() of the loaded runtime must return the same. */
#define MSL_ABI 4
uint32_t msl_abi(void);

/* Turns an address inside a kernel library into "gemv.metal:42" for reports; 0 when it cannot. Set once, before libraries are opened. */
typedef int (*msl_symboliser)(const char* library, uint64_t offset, char* out, size_t outBytes);
void msl_set_symboliser(msl_symboliser f);

/* What the model of the GPU allows; the numbers of Apple family 7 and later. */
enum {
  MSL_SIMD_WIDTH = 32,
  MSL_MAX_THREADS = 1024,            /* threads in a threadgroup */
  MSL_MAX_THREADGROUP_BYTES = 32768, /* threadgroup memory, static and dynamic together */
  MSL_MAX_BUFFERS = 31,              /* [[buffer(0)]] to [[buffer(30)]] */
  MSL_MAX_THREADGROUP_ARGS = 8,      /* [[threadgroup(0)]] to [[threadgroup(7)]] */
  MSL_MAX_BYTES_ARG = 4096           /* setBytes:length:atIndex: takes no more */
};

/* ---- libraries ------------------------------------------------------------------------------------------------------- */

typedef struct msl_library msl_library;

/* Loads a compiled kernel library. Libraries are not unloaded: threads may still be inside, and a process opens few. */
msl_library* msl_library_open(const char* path, char* text, size_t textBytes);

const char* msl_library_path(const msl_library* lib); /* as it was opened */

/* 1 when the library was compiled with access hooks, which MSL_CHECK and MSL_COUNT need. */
int msl_library_checked(const msl_library* lib);

int msl_library_kernels(const msl_library* lib);                         /* how many */
const char* msl_library_kernel(const msl_library* lib, int i);           /* name, in the order of the text; NULL outside */

typedef enum { MSL_ARG_BUFFER = 0, MSL_ARG_THREADGROUP = 1 } msl_arg_kind;
typedef enum { MSL_READ = 1, MSL_WRITE = 2, MSL_READ_WRITE = 3 } msl_access; /* as declared: pointer to const is read */

typedef struct {
  const char* name;      /* of the parameter */
  uint32_t kind;         /* msl_arg_kind */
  uint32_t index;        /* n of [[buffer(n)]] or [[threadgroup(n)]] */
  uint32_t access;       /* msl_access */
  uint32_t elementBytes; /* sizeof what the pointer points to, or the reference refers to */
  uint32_t alignBytes;   /* alignment of the element: base + offset must be a multiple */
  uint32_t reference;    /* 1 for constant T&: at least elementBytes must be bound */
} msl_arg_info;

/* What a kernel needs. Arguments of one kernel are listed by msl_kernel_arg, i from 0. */
typedef struct {
  uint32_t args;             /* how many msl_arg_info */
  uint32_t maxThreads;       /* [[max_total_threads_per_threadgroup(n)]], or MSL_MAX_THREADS */
  uint32_t threadgroupBytes; /* static threadgroup memory; for a template, the most of its instantiations */
  uint32_t synchronises;     /* 0: no barrier and no simdgroup operation anywhere below it */
} msl_kernel_info;

int msl_kernel_describe(const msl_library* lib, const char* kernel, msl_kernel_info* out); /* -1: no such kernel */
int msl_kernel_arg(const msl_library* lib, const char* kernel, int i, msl_arg_info* out);  /* -1: no such argument */

/* Function constants that the text declares: [[function_constant(index)]]. */
typedef enum { MSL_BOOL = 1, MSL_INT8, MSL_UINT8, MSL_INT16, MSL_UINT16, MSL_INT32, MSL_UINT32, MSL_INT64, MSL_UINT64, MSL_HALF, MSL_FLOAT, MSL_BFLOAT } msl_scalar;
typedef struct {
  const char* name;
  uint32_t index;
  uint32_t type;     /* msl_scalar; 0 for a vector */
  uint32_t bytes;    /* size of its value */
  uint32_t optional; /* 1: the text asks is_function_constant_defined, so it may stay unset */
} msl_constant_info;
int msl_library_constants(const msl_library* lib);
int msl_library_constant(const msl_library* lib, int i, msl_constant_info* out); /* -1: outside */

/* 1 when the kernel, or a function that it may call, reads the i-th constant of the library. */
int msl_kernel_reads(const msl_library* lib, const char* kernel, int i);

/* ---- pipelines ------------------------------------------------------------------------------------------------------- */

typedef struct msl_pipeline msl_pipeline;

typedef struct {
  uint32_t index;
  uint32_t bytes; /* must equal the declared size */
  const void* value;
} msl_constant;

/* A kernel with its function constants. NULL with a text: unknown kernel, a constant that it reads and that has no value, wrong size. */
msl_pipeline* msl_pipeline_new(msl_library* lib, const char* kernel, const msl_constant* constants, int n, char* text, size_t textBytes);
void msl_pipeline_free(msl_pipeline* p);

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/*
 * Zeroed memory with a guard zone of 64 KiB on each side. It ends at the guard (up to 16 bytes of alignment), so that the
 * first byte behind it faults; the base is a multiple of 16, and of 16384 when flags has MSL_PAGE_ALIGNED (then the end is only
 * watched in check mode). NULL: the system has no memory.
 */
enum { MSL_PAGE_ALIGNED = 1 };
void* msl_memory_new(uint64_t lenBytes, const char* label, uint32_t flags);

/* Makes memory of the caller known by name: no guard zones, but bounds in check mode. It must outlive its registration. */
void* msl_memory_wrap(void* base, uint64_t lenBytes, const char* label);

void msl_memory_label(void* base, const char* label); /* a new name, copied */
void msl_memory_free(void* base);                     /* frees, or forgets what was wrapped */

/*
 * For check mode: bytes the host has not written, whose load by a kernel before a store is an error. New memory counts as written
 * (it is zero), since stores by the host cannot be seen.
 */
void msl_memory_unwritten(void* base, uint64_t offset, uint64_t lenBytes);

/* Traffic of one memory since the last call, in counting mode. Lines are distinct 64-byte lines touched. */
typedef struct { uint64_t loadBytes, storeBytes, loadLines, storeLines; } msl_traffic;
void msl_memory_traffic(void* base, msl_traffic* out);

/* ---- running --------------------------------------------------------------------------------------------------------- */

/* What is bound at one [[buffer(index)]]. */
typedef struct {
  uint32_t index;
  uint32_t inlineBytes; /* 0: base is memory; else base points to this many bytes of setBytes, copied by msl_run */
  void* base;           /* with the offset already added */
  uint64_t lenBytes;    /* from base to the end of the buffer */
  const char* label;    /* for reports; may be NULL, then the memory's own */
} msl_binding;

typedef enum { MSL_ASCENDING = 0, MSL_DESCENDING = 1, MSL_SHUFFLED = 2 } msl_order;
enum {
  MSL_POISON = 1, /* threadgroup memory is filled with NaN bit patterns before each threadgroup */
  MSL_CHECK = 2,  /* races, bounds, unwritten memory, barriers; needs a checked library; implies MSL_POISON */
  MSL_COUNT = 4   /* bytes and lines of each memory, threadgroup traffic; needs a checked library */
};

typedef struct {
  uint32_t order;   /* msl_order of lanes, simdgroups and threadgroups */
  uint32_t flags;   /* MSL_POISON | MSL_CHECK | MSL_COUNT */
  uint64_t seed;    /* of MSL_SHUFFLED */
  uint32_t workers; /* processor threads; 0: two from about 16,000 threads up, else one. Checks and counts use one */
  uint32_t reserved;
  /*
   * Dispatches with the same number, not zero, run on a GPU without a barrier between them: check mode reports what one writes and
   * another touches. Take a new number after every barrier and for every encoder.
   */
  uint64_t group;
} msl_options;

/* What one dispatch did; in counting mode all of it, else the first eight. */
typedef struct {
  uint64_t dispatches, threadgroups, threads;
  uint64_t simdOps;      /* simdgroup operations, each counted once for its simdgroup */
  uint64_t matrixOps;    /* of which simdgroup_matrix loads, stores and products */
  uint64_t tgBarriers, sgBarriers, switches;
  uint64_t loadBytes, storeBytes;     /* device and constant memory, as requested */
  uint64_t tgLoadBytes, tgStoreBytes; /* threadgroup memory */
  uint64_t atomics;
  uint64_t threadgroupBytes; /* most threadgroup memory in use: the sum of these structs takes the maximum */
} msl_counts;

typedef struct {
  uint32_t groups[3];  /* threadgroupsPerGrid */
  uint32_t threads[3]; /* threadsPerThreadgroup */
  uint32_t last[3];    /* threads in the last threadgroup of each dimension, for dispatchThreads:; 0: as many as the others */
  uint32_t threadgroupBytes[MSL_MAX_THREADGROUP_ARGS]; /* setThreadgroupMemoryLength:atIndex: */
} msl_grid;

/*
 * Runs one dispatch to its end. counts may be NULL, else it is added to. A result other than 0 comes with a text, a sentence a line:
 * "q4_gemv: gemv.metal:42: load out of bounds: buffer x, byte 1024 of 1024, thread 255 of threadgroup 0".
 * Before the run the bindings are checked against the kernel: nothing bound, less than a reference needs, wrong alignment, too many
 * threads, too much threadgroup memory.
 */
int msl_run(msl_pipeline* p, const msl_binding* bindings, int n, const msl_grid* grid, const msl_options* o, msl_counts* counts, char* text, size_t textBytes);

/* ---- submitting ------------------------------------------------------------------------------------------------------ */

/*
 * A runtime that drives a GPU has msl_submit and msl_finish too: it takes the dispatches of a pass at once and runs them while the caller goes on.
 * One that has not (the one that runs kernels on the processor) is given one dispatch after the other.
 */
typedef struct {
  msl_pipeline* pipeline;
  const msl_binding* bindings; /* count of them; they and what they point to stay until msl_finish */
  uint32_t count;
  uint32_t level;              /* does not fall; dispatches of one level may run side by side, and all of them before the next level */
  const msl_grid* grid;
} msl_dispatch;

typedef struct msl_submission msl_submission;

/* Gives dispatches to the GPU, behind those of earlier submissions. flags: MSL_POISON. NULL with a text: none of them runs. */
msl_submission* msl_submit(const msl_dispatch* dispatches, int n, uint32_t flags, char* text, size_t textBytes);

enum { MSL_FAILED = 1, MSL_TIMEOUT = 2, MSL_FAULT = 3 }; /* fault: memory that no buffer has was touched, by a dispatch of this or of an earlier submission */

/* Waits until all of it has run, tells how long the GPU worked on it, and frees it. 0, or one of the above with a text. */
int msl_finish(msl_submission* s, double* seconds, char* text, size_t textBytes);

#ifdef __cplusplus
}
#endif
