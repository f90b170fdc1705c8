/* Inside the kernel files of the binding: what a dispatcher has compiled.
 *
 * Two steps: a signature gives a kernel_typed (IR, with globals frozen as Numba does), this and a block
 * size a kernel_entry (code). Both are counted; a launch holds its entry, so that it may be dropped from
 * the table meanwhile. All of it under the GIL. */
#ifndef SIMT_BINDING_KERNEL_ENTRIES_H
#define SIMT_BINDING_KERNEL_ENTRIES_H

#include "binding/kernel/kernel.h"
#include "runtime/runtime.h"

/* One signature. */
typedef struct kernel_typed {
    uint32_t refs, nsignature;
    uint8_t *signature;
    kernel *kernel;        /* its constant arrays are frozen, as Numba's */
    runtime_kernel *first; /* the first that kernel->func became: it has the text for more */
    PyObject *raised;      /* list or NULL: the program's exception classes that faults name */
    uint64_t visited;
    struct kernel_typed *next; /* of the declared ones */
} kernel_typed;

/* One signature and block size. */
typedef struct kernel_entry {
    uint32_t refs, block[3];
    kernel_typed *typed;
    runtime_kernel *code;
} kernel_entry;

enum { KERNEL_MOST_ENTRIES = 128 };

typedef struct kernel_slot {
    uint64_t hash, used; /* used: the table's clock at its last launch */
    kernel_entry *entry;
} kernel_slot;

/* A dispatcher's table: the entries used last, and the signatures declared, which stay. */
typedef struct kernel_entries {
    kernel_slot *slots;
    uint32_t count, last; /* last: the slot used last */
    uint64_t clock;
    kernel_typed *declared;
} kernel_entries;

/* Compiled where need be; a new reference. NULL: an exception is set. */
kernel_entry *kernel_entries_get(kernel_entries *all, PyObject *function, const py_options *options,
                                 const uint8_t *signature, uint32_t n, const uint32_t block[3]);
void kernel_entry_unref(kernel_entry *e);
/* Compiles a signature that stays. */
bool kernel_entries_declare(kernel_entries *all, PyObject *function, const py_options *options,
                            const uint8_t *signature, uint32_t n);
/* A kernel that was not made from a Python function, for a table of its own: of no signature. Takes k. */
bool kernel_entries_keep(kernel_entries *all, kernel *k);
void kernel_entries_clear(kernel_entries *all);
int kernel_entries_traverse(kernel_entries *all, visitproc visit, void *arg);

#endif
