/* A target: a device, and the back ends (backend/backends.def) that make code for it. They are tried in order: the first that has
 * all of a kernel's operations and does not decline compiles it; the last one takes every kernel. Beside it
 * stands the host's device, for what the target has no code for. */
#ifndef SIMT_RUNTIME_TARGET_H
#define SIMT_RUNTIME_TARGET_H

#include "backend/backend.h"
#include "device/device.h"

enum { TARGET_MOST_BACKENDS = 4 }; /* those of one kind, of backend/backends.def */

typedef struct target {
    const char *name;                                  /* "cpu" */
    device *device;                                    /* owned, as is */
    device *host;                                      /* where is_host: `device` itself */
    const backend *backends[TARGET_MOST_BACKENDS + 1]; /* NULL behind the last */
} target;

/* The CPU. threads as for device_cpu_new. */
simt_status target_cpu_new(int threads, target **out);
/* Takes over both devices, also on failure. The back ends are those that make the kind of code which d runs. */
simt_status target_new(const char *name, device *d, device *host, target **out);
void target_free(target *t);

/* f is verified, optimised and renumbered; facts: its book. *by: the back end whose code it is. */
simt_status target_compile(const target *t, const ir_func *f, facts_book *facts,
                           const backend_options *options, code **out, const backend **by);

#endif
