/* The runtime instance, and launches through it. */
#include "base/heap.h"
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

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
    pthread_mutex_init(&rt->lock, NULL);
    const char *asked = getenv("SIMT_DUMP");
    simt_status status = asked != NULL ? dump_check(asked) : SIMT_OK;
    if (status == SIMT_OK && asked != NULL && (rt->dump = heap_text(asked)) == NULL)
        status = status_fail(SIMT_ERR_MEMORY, "no memory for the runtime");
    if (status == SIMT_OK)
        *out = rt;
    else
        runtime_free(rt);
    return status;
}

void runtime_free(simt_runtime *rt) {
    if (rt == NULL) return;
    cache_clear(rt);
    target_free(rt->target);
    pthread_mutex_destroy(&rt->lock);
    heap_free(rt->dump);
    heap_free(rt);
}

void runtime_forget(simt_runtime *rt) {
    pthread_mutex_lock(&rt->lock);
    cache_clear(rt);
    pthread_mutex_unlock(&rt->lock);
}

device *runtime_device(simt_runtime *rt) { return rt->target->device; }
device *runtime_host(simt_runtime *rt) { return rt->target->host; }

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
    simt_status status = d->launch(d, NULL, c, &launch, fault);
    return status == SIMT_OK && !d->prompt ? d->wait(d, NULL) : status;
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
