/* Counted storages and array descriptors, recycled through free lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/internal.h"
#include "array/meta.h"
#include "base/heap.h"

storage *storage_new_locked(size_t bytes) {
    storage *s = array_ctx.free_storages;
    if (s) {
        array_ctx.free_storages = (storage *)s->owner;
    } else if (!(s = heap_alloc(sizeof *s))) {
        status_fail(SIMT_ERR_MEMORY, "out of memory for an array descriptor");
        return NULL;
    }
    *s = (storage){.refs = 1,
                   .slot = -1,
                   .bytes = bytes,
                   .device = array_ctx.dev,
                   .capture = array_ctx.capturing ? array_ctx.captures : 0};
    return s;
}

void storage_expose_locked(storage *s) {
    if (s->exposed) return; /* foreign ones were so from the start */
    s->exposed = true;
    s->next = array_ctx.exposed;
    if (s->next) s->next->before = s;
    array_ctx.exposed = s;
}

static void conceal_locked(storage *s) {
    if (s->next) s->next->before = s->before;
    if (s->before)
        s->before->next = s->next;
    else
        array_ctx.exposed = s->next;
}

static void storage_free_locked(storage *s) {
    heap_free(s->diag);
    s->diag = NULL;
    if (s->exposed && !s->foreign) conceal_locked(s);
    if (s->foreign) {
        s->diag = (simt_diag *)array_ctx.doomed; /* chained through the unused field */
        array_ctx.doomed = s;
        return;
    }
    if (s->data) s->device->free(s->device, s->data, s->bytes);
    s->owner = array_ctx.free_storages;
    array_ctx.free_storages = s;
}

void storage_unref_locked(storage *s) {
    if (--s->refs == 0) {
        storage_free_locked(s);
    } else if (s->refs == s->program_refs && s->data) {
        array_ctx.pinned += s->bytes; /* from now on only the open program keeps it */
    }
}

simt_status storage_failure(const storage *s) {
    if (s->diag) return status_adopt(s->diag);
    return storage_is_meta(s) ? status_fail(s->failed, "Cannot copy out of meta tensor; no data!")
                              : status_fail(s->failed, "out of memory");
}

void storage_fail_locked(storage *s, const simt_diag *diag) {
    if (s->failed) return;
    s->failed = diag->code;
    s->diag = heap_alloc(sizeof *s->diag);
    if (s->diag)
        *s->diag = *diag;
    else
        s->failed = SIMT_ERR_MEMORY;
}

simt_status array_new_locked(storage *s, dtype dt, const int64_t *shape, const int64_t *strides,
                             int ndim, int64_t offset, array **out) {
    array *a = array_ctx.free_arrays;
    if (a) {
        array_ctx.free_arrays = (array *)a->store;
    } else if (!(a = heap_alloc(sizeof *a))) {
        storage_unref_locked(s);
        return status_fail(SIMT_ERR_MEMORY, "out of memory for an array descriptor");
    }
    a->refs = 1;
    a->dt = dt;
    a->ndim = ndim;
    a->offset = offset;
    a->store = s;
    a->hidden = false;
    int64_t size = 1, itemsize = (int64_t)dtype_bytes(dt);
    for (int d = ndim - 1; d >= 0; d--) {
        a->shape[d] = shape[d];
        a->strides[d] = strides ? strides[d] : size * itemsize;
        size *= shape[d];
    }
    a->size = size;
    *out = a;
    return SIMT_OK;
}

simt_status array_new(dtype dt, const int64_t *shape, int ndim, bool now, array **out) {
    int64_t size;
    SIMT_TRY(array_check_shape(shape, ndim, dt, &size));
    SIMT_TRY(array_lock());
    simt_status status;
    storage *s = storage_new_locked((size_t)size * dtype_bytes(dt));
    if (!s) {
        status = SIMT_ERR_MEMORY;
    } else if (now &&
               (status = array_ctx.dev->alloc(array_ctx.dev, s->bytes, &s->data)) != SIMT_OK) {
        storage_unref_locked(s);
    } else {
        status = array_new_locked(s, dt, shape, NULL, ndim, 0, out);
    }
    array_unlock();
    return status;
}

simt_status array_at_address(uintptr_t address, array **out) {
    *out = NULL;
    SIMT_TRY(array_lock());
    storage *s = array_ctx.exposed;
    while (s && (s->device != array_ctx.dev || address - (uintptr_t)s->data >= s->bytes))
        s = s->next;
    simt_status status = SIMT_OK;
    if (s) {
        s->refs++;
        status = array_new_locked(s, DT_U8, &(int64_t){(int64_t)s->bytes}, NULL, 1, 0, out);
    }
    array_unlock();
    return status;
}

simt_status array_meta(dtype dt, const int64_t *shape, int ndim, array **out) {
    int64_t size;
    SIMT_TRY(array_context_init());
    SIMT_TRY(array_check_shape(shape, ndim, dt, &size));
    SIMT_TRY(array_lock());
    simt_status status = SIMT_ERR_MEMORY;
    storage *s = storage_new_locked((size_t)size * dtype_bytes(dt));
    if (s) {
        storage_make_meta(s);
        status = array_new_locked(s, dt, shape, NULL, ndim, 0, out);
    }
    array_unlock();
    return status;
}

array *array_ref(array *a) {
    __atomic_add_fetch(&a->refs, 1, __ATOMIC_RELAXED);
    return a;
}

/* Never waits: it may run inside a destructor that holds the GIL. */
void array_unref(array *a) {
    if (!a || __atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (pthread_mutex_trylock(&array_ctx.lock) == 0) {
        storage_unref_locked(a->store);
        a->store = (storage *)array_ctx.free_arrays;
        array_ctx.free_arrays = a;
        array_unlock();
        return;
    }
    array *head = atomic_load(&array_ctx.orphans);
    do memcpy(&a->shape[0], &head, sizeof head);
    while (!atomic_compare_exchange_weak(&array_ctx.orphans, &head, a));
}

void array_extent(const array *a, int64_t *low, int64_t *high) {
    *low = *high = a->offset;
    if (a->size == 0) return;
    for (int d = 0; d < a->ndim; d++) {
        int64_t reach = a->strides[d] * (a->shape[d] - 1);
        if (reach < 0)
            *low += reach;
        else
            *high += reach;
    }
    *high += (int64_t)dtype_bytes(a->dt);
}

bool array_same_shape(const array *a, const int64_t *shape, int ndim) {
    return a->ndim == ndim && memcmp(a->shape, shape, sizeof *shape * (size_t)ndim) == 0;
}

bool array_same_view(const array *a, const array *b) {
    if (a->store != b->store || a->offset != b->offset || a->dt != b->dt ||
        !array_same_shape(a, b->shape, b->ndim))
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != 1 && a->strides[d] != b->strides[d]) return false;
    return true;
}

bool array_may_overlap(const array *a, const array *b) {
    int64_t a_low, a_high, b_low, b_high;
    array_extent(a, &a_low, &a_high);
    array_extent(b, &b_low, &b_high);
    if (a->store != b->store) { /* two windows of foreign code on the same memory */
        if (!a->store->exposed || !b->store->exposed) return false;
        int64_t distance = (char *)b->store->data - (char *)a->store->data;
        b_low += distance;
        b_high += distance;
    }
    return a_low < b_high && b_low < a_high;
}

bool array_is_contiguous(const array *a) {
    if (a->size == 0) return true;
    int64_t expected = (int64_t)dtype_bytes(a->dt);
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->shape[d] != 1 && a->strides[d] != expected) return false;
        expected *= a->shape[d];
    }
    return true;
}

void *array_data(const array *a) {
    return a->store->data ? (char *)a->store->data + a->offset : NULL;
}

char *shape_print(const int64_t *shape, int ndim, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "(");
    for (int d = 0; d < ndim && used < size; d++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", d ? "," : "", (long long)shape[d]);
    if (used < size) snprintf(text + used, size - used, ndim == 1 ? ",)" : ")");
    return text;
}
