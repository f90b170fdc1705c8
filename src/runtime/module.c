/* Modules (module.h): a list of variables, each in memory of the device of its own. */
#include "runtime/module.h"
#include "base/heap.h"

#include <pthread.h>
#include <string.h>

enum { DEVICE_ALIGN = 64 }; /* of what a device gives (device.h) */

typedef struct variable variable;
struct variable {
    variable *next;
    char *name;
    ir_type space;
    uint32_t align;
    size_t bytes, room; /* room: what was asked of the device */
    void *memory;       /* as the device gave it, */
    char *address;      /* and the variable inside */
};

struct runtime_module {
    device *device;
    pthread_mutex_t lock;
    variable *first;
};

simt_status runtime_module_new(device *d, runtime_module **out) {
    runtime_module *m = heap_zeroed(1, sizeof *m);
    if (m == NULL) return status_fail(SIMT_ERR_MEMORY, "no memory for a module");
    m->device = d;
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return SIMT_OK;
}

static void free_variable(runtime_module *m, variable *v) {
    if (v->memory != NULL) m->device->free(m->device, v->memory, v->room);
    heap_free(v->name);
    heap_free(v);
}

void runtime_module_free(runtime_module *m) {
    if (m == NULL) return;
    for (variable *v = m->first, *next; v != NULL; v = next) {
        next = v->next;
        free_variable(m, v);
    }
    pthread_mutex_destroy(&m->lock);
    heap_free(m);
}

static variable *find(runtime_module *m, const char *name) {
    variable *v = m->first;
    while (v != NULL && strcmp(v->name, name) != 0) v = v->next;
    return v;
}

static simt_status place(runtime_module *m, variable *v, const ir_variable *declared) {
    v->room = v->bytes + (v->align > DEVICE_ALIGN ? v->align : 0);
    SIMT_TRY(m->device->alloc(m->device, v->room, &v->memory));
    v->address = (char *)v->memory + (-(uintptr_t)v->memory & (v->align - 1));
    SIMT_TRY(device_copy(m->device, DEVICE_IN, v->address, declared->init, declared->init_bytes));
    return m->device->set(m->device, NULL, v->address + declared->init_bytes, 0,
                          v->bytes - declared->init_bytes);
}

static simt_status add(runtime_module *m, const ir_variable *declared) {
    variable *v = find(m, declared->name);
    if (v != NULL) {
        if (v->bytes == declared->bytes && v->align == declared->align &&
            v->space == declared->space)
            return SIMT_OK;
        return status_fail(SIMT_ERR_VALUE, "variable %s: declared in two ways", v->name);
    }
    v = heap_zeroed(1, sizeof *v);
    if (v == NULL || (v->name = heap_text(declared->name)) == NULL) {
        heap_free(v);
        return status_fail(SIMT_ERR_MEMORY, "no memory for variable %s", declared->name);
    }
    v->space = declared->space, v->align = declared->align, v->bytes = declared->bytes;
    simt_status status = place(m, v, declared);
    if (status != SIMT_OK) {
        status_prefix("variable %s: ", v->name);
        free_variable(m, v);
        return status;
    }
    v->next = m->first;
    m->first = v;
    return SIMT_OK;
}

simt_status runtime_module_add(runtime_module *m, const ir_func *unit) {
    simt_status status = SIMT_OK;
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < unit->nvariables && status == SIMT_OK; i++)
        status = add(m, &unit->variables[i]);
    pthread_mutex_unlock(&m->lock);
    return status;
}

uint64_t runtime_module_find(runtime_module *m, const char *name, size_t *bytes) {
    pthread_mutex_lock(&m->lock);
    const variable *v = find(m, name);
    if (v != NULL && bytes != NULL) *bytes = v->bytes;
    pthread_mutex_unlock(&m->lock);
    return v != NULL ? (uint64_t)(uintptr_t)v->address : 0;
}

simt_status runtime_module_bind(runtime_module *m, const code *c, uint64_t *slots) {
    for (uint32_t i = 0; i < c->nvariables; i++) {
        slots[i] = runtime_module_find(m, c->variables[i], NULL);
        if (slots[i] == 0)
            return status_fail(SIMT_ERR_VALUE, "kernel %s: its program has no variable %s", c->name,
                               c->variables[i]);
    }
    return SIMT_OK;
}
