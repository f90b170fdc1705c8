/* A launch on its way: what kernel/args.c, kernel/fault.c and kernel/launch.c share. */
#ifndef SIMT_BINDING_KERNEL_LAUNCH_H
#define SIMT_BINDING_KERNEL_LAUNCH_H

#include "binding/kernel/entries.h"
#include "kernel/report.h"

enum { MAX_SIGNATURE_BYTES = 2048, MAX_SLOTS = 640, MAX_LAUNCH_ARRAYS = 64 };

/* An array among the arguments (possibly inside a tuple). */
typedef struct launch_array {
    enum { ARG_DEVICE, ARG_FACE, ARG_HOST } kind;
    int argument;       /* number of the argument */
    uint32_t slot;      /* its address; sizes and strides follow */
    uint32_t signature; /* where its 'A' stands */
    int64_t itemsize;
    bool readonly;
    device_array *owned; /* DEVICE: what holds the memory when the argument itself does not */
    array *a;            /* FACE: borrowed from the argument */
    storage *store;      /* DEVICE, FACE: its version grows with a write */
    Py_buffer view; /* HOST: held until the launch is over (its shape and strides: not valid) */
    void *copy;     /* HOST: dense memory that stands in for it; NULL: used as it is */
    int64_t strides[PY_MAX_NDIM]; /* of the memory that `copy` stands for */
} launch_array;

typedef struct staged staged;
typedef struct kernel_args {
    uint32_t nsignature, nslots, narrays;
    staged *staged; /* stage.c's */
    bool faces;     /* there are arrays of other faces: what waits must be computed first */
    uint8_t signature[MAX_SIGNATURE_BYTES];
    uint64_t slots[MAX_SLOTS];
    launch_array arrays[MAX_LAUNCH_ARRAYS];
} kernel_args;

/* Who is launched, for errors. */
typedef struct kernel_names {
    const char *kernel;
    PyObject *function; /* for the parameters' names; NULL: it is no Python function */
} kernel_names;

/* How a kernel is launched. */
typedef struct kernel_launch {
    const char *name;
    int64_t grid[3], block[3], shared; /* bytes of dynamic shared memory */
    int64_t most_threads;              /* launch_bounds; 0: none */
    bool stream;                       /* one of its own */
    bool cupy;                         /* whose exceptions are raised; else numba.cuda's */
} kernel_launch;

/* An integer or up to three. */
bool kernel_dimensions(PyObject *o, const char *name, int64_t out[3]);
/* Without a kernel the sizes of grid and block; with it its shared memory. Raises what the driver would. */
bool kernel_launch_check(const kernel_launch *how, const kernel *k);
/* With arguments that are prepared: the launch, its prints, its exceptions. */
bool kernel_launch_run(const kernel_launch *how, const kernel_entry *e, kernel_args *k,
                       const kernel_names *names);

/* Fills everything but memory (slots of addresses). Failure: an exception is set, nothing is held. */
bool kernel_args_walk(kernel_args *k, const kernel_names *names, PyObject *const *args,
                      Py_ssize_t n);
/* The arguments for a declared signature: numbers are converted. -1: they do not fit (no exception), else
 * what the conversions cost (py_scalar_cost). alone: it is the only declared one. With `convert` false only
 * asks; with true, where it is known that they fit, -1 means that an exception is set. */
int64_t kernel_args_match(kernel_args *k, const kernel_names *names, const uint8_t *signature,
                          uint32_t bytes, bool alone, bool convert);
/* Addresses: evaluates other faces' arrays, copies host arrays that cannot be used directly. writes: per
 * argument. */
bool kernel_args_prepare(kernel_args *k, const kernel_names *names, const bool *writes);
/* After the launch: copies back, marks what was written. */
simt_status kernel_args_finish(kernel_args *k, const bool *writes);
void kernel_args_release(kernel_args *k);
/* Where the kernel finds these bytes of the host; back: kernel_stage_back copies them back from there. Failure: an
 * exception is set. */
bool kernel_stage(kernel_args *k, const void *host, size_t bytes, bool back, uint64_t *slot);
bool kernel_stage_constant(kernel_args *k, const kernel_constant *c, uint64_t *slot);
simt_status kernel_stage_back(kernel_args *k);
void kernel_stage_release(kernel_args *k);
/* "argument 2 ('x')" */
void kernel_argument_text(const kernel_names *names, int argument, char *text, size_t size);

/* Raises the exception of a fault. */
void kernel_raise_fault(const report_launch *launch, const code_fault *fault);
/* Writes the records of a print buffer to sys.stdout, by block and thread. */
bool kernel_flush_prints(const kernel *k, const void *buffer);

#endif
