/* A module: the variables of a program (ir.h: ir_variable) on one device. Kernels of the program are given their
 * addresses with every launch, behind the arguments (code_launch): compiled code is of no module, and found
 * in the cache for all of them. Variables live as long as their module. Safe under threads. */
#ifndef SIMT_RUNTIME_MODULE_H
#define SIMT_RUNTIME_MODULE_H

#include "device/device.h"
#include "ir/ir.h"

typedef struct runtime_module runtime_module;

simt_status runtime_module_new(device *d, runtime_module **out);
void runtime_module_free(runtime_module *m); /* no launch of its kernels is on its way */

/* The variables of a unit: those that the module has not come to it with their initial bytes. One that it has
 * stays as it is, and is to be of the same bytes, alignment and space: else SIMT_ERR_VALUE, naming it. */
simt_status runtime_module_add(runtime_module *m, const ir_func *unit);
/* The slots of a launch behind its arguments, for code of such a unit. SIMT_ERR_VALUE: a variable is missing. */
simt_status runtime_module_bind(runtime_module *m, const code *c, uint64_t *slots);
/* The address on the device; *bytes, where that is not NULL. 0: the module has no such variable. */
uint64_t runtime_module_find(runtime_module *m, const char *name, size_t *bytes);

#endif
