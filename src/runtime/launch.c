/* The runtime instance, and launches through it. */
#include "base/heap.h"
#include "runtime/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void dump_to_stderr(void *context, const char *stage, const char *text) {
    fprintf(stderr, "; simt: %s\n%s%s", stage, text, *text != '\0' ? "\n" : "");
    (void)context;
}

/* SIMT_DUMP names kinds; opt shows the function as it came, too. */
static unsigned kinds_of(const char *text) {
    if (text == NULL) return 0;
    return (strstr(text, "ir") != NULL ? DUMP_IR : 0u) |
           (strstr(text, "opt") != NULL ? DUMP_IR | DUMP_OPT : 0u) |
           (strstr(text, "asm") != NULL ? DUMP_ASM : 0u) |
           (strstr(text, "facts") != NULL ? DUMP_FACTS : 0u);
}

static bool wants_verify(void) {
    const char *text = getenv("SIMT_VERIFY");
#ifdef NDEBUG
    return text != NULL && strcmp(text, "0") != 0;
#else
    return text == NULL || strcmp(text, "0") != 0;
#endif
}

simt_status runtime_new(target *first, simt_runtime **out) {
    simt_runtime *rt = heap_zeroed(1, sizeof *rt);
    if (rt == NULL) {
        target_free(first);
        return status_fail(SIMT_ERR_MEMORY, "no memory for the runtime");
    }
    rt->target = first;
    rt->verify = wants_verify();
    rt->dump_kinds = kinds_of(getenv("SIMT_DUMP"));
    if (rt->dump_kinds != 0) rt->dump = dump_to_stderr;
    pthread_mutex_init(&rt->lock, NULL);
    *out = rt;
    return SIMT_OK;
}

void runtime_free(simt_runtime *rt) {
    if (rt == NULL) return;
    cache_clear(rt);
    target_free(rt->target);
    pthread_mutex_destroy(&rt->lock);
    heap_free(rt);
}

void runtime_forget(simt_runtime *rt) {
    pthread_mutex_lock(&rt->lock);
    cache_clear(rt);
    pthread_mutex_unlock(&rt->lock);
}

device *runtime_device(simt_runtime *rt) { return rt->target->device; }

void runtime_set_dump(simt_runtime *rt, runtime_dump_sink sink, void *context) {
    rt->dump = sink;
    rt->dump_kinds = DUMP_IR | DUMP_OPT | DUMP_ASM;
    rt->dump_context = context;
}

static simt_status launch_code(const runtime_kernel *k, const uint32_t grid[3],
                               const uint64_t *args, size_t shared_bytes, bool whole,
                               code_fault *fault) {
    const code *c = k->code;
    code_launch launch = {.grid = {grid[0], grid[1], grid[2]},
                          .block = {c->block[0], c->block[1], c->block[2]},
                          .args = args,
                          .shared_bytes = shared_bytes,
                          .whole = whole};
    device *d = k->target->device;
    return d->launch(d, c, &launch, fault);
}

simt_status runtime_launch(const runtime_kernel *k, const uint32_t grid[3], const uint64_t *args,
                           size_t shared_bytes, code_fault *fault) {
    return launch_code(k, grid, args, shared_bytes, false, fault);
}

simt_status runtime_launch_whole(const runtime_kernel *k, const uint32_t grid[3],
                                 const uint64_t *args, size_t shared_bytes, code_fault *fault) {
    return launch_code(k, grid, args, shared_bytes, true, fault);
}

double runtime_launch_cost(const runtime_kernel *k, const uint32_t grid[3]) {
    double blocks = (double)grid[0] * grid[1] * grid[2];
    return blocks * k->target->device->block_cost(k->target->device, k->code);
}
