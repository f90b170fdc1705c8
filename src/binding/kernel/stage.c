/* Memory of the host that a kernel reads or writes: host arrays, constants, the buffer of prints. A device with
 * the host's memory uses it where it lies; for another it is copied there, and back after the launch. */
#include "base/heap.h"
#include "binding/kernel/launch.h"

struct staged {
    struct staged *next;
    void *host, *there;
    size_t bytes;
    bool back;
};

static device *target_device(void) { return runtime_device(array_runtime()); }

bool kernel_stage(kernel_args *k, const void *host, size_t bytes, bool back, uint64_t *slot) {
    device *dev = target_device();
    *slot = (uint64_t)(uintptr_t)host;
    if (dev->is_host) return true;
    staged *s = binding_alloc(1, sizeof *s);
    if (!s) return false;
    *s = (staged){k->staged, (void *)(uintptr_t)host, NULL, bytes, back};
    if (!binding_ok(dev->alloc(dev, bytes, &s->there))) {
        heap_free(s);
        return false;
    }
    k->staged = s;
    *slot = (uint64_t)(uintptr_t)s->there;
    return binding_ok(device_copy(dev, DEVICE_IN, s->there, host, bytes));
}

bool kernel_stage_constant(kernel_args *k, const kernel_constant *c, uint64_t *slot) {
    int64_t low, high;
    if (array_is_on_host()) return *slot = (uint64_t)(uintptr_t)c->data, true;
    if (!binding_extent(c->item_bytes, c->shape, c->strides, c->ndim, &low, &high) ||
        !kernel_stage(k, (const char *)c->data + low, (size_t)(high - low), false, slot))
        return false;
    *slot -= (uint64_t)low;
    return true;
}

simt_status kernel_stage_back(kernel_args *k) {
    for (staged *s = k->staged; s; s = s->next)
        if (s->back)
            SIMT_TRY(device_copy(target_device(), DEVICE_OUT, s->host, s->there, s->bytes));
    return SIMT_OK;
}

void kernel_stage_release(kernel_args *k) {
    for (staged *s; (s = k->staged);) {
        k->staged = s->next;
        target_device()->free(target_device(), s->there, s->bytes);
        heap_free(s);
    }
}
