/* Stands in for the host of kernel_host.c until it is there. */
#include "binding/kernel.h"

static simt_status not_yet(const char *name) {
    return status_fail(SIMT_ERR_NOT_IMPLEMENTED, "the name '%s' in a kernel is not in simt yet",
                       name);
}
static simt_status lookup(void *context, const py_function *fn, const char *name, py_entity *out) {
    return not_yet(name);
}
static simt_status attribute(void *context, const py_entity *of, const char *name, py_entity *out) {
    return not_yet(name);
}
static simt_status function(void *context, const py_entity *of, const py_function **out) {
    return not_yet(of->name);
}

__attribute__((weak)) const py_host *kernel_host(void) {
    static const py_host host = {.lookup = lookup, .attribute = attribute, .function = function};
    return &host;
}
