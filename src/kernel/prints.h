/* A thread prints: the code that writes its record into the launch's buffer (kernel.h). */
#ifndef SIMT_KERNEL_PRINTS_H
#define SIMT_KERNEL_PRINTS_H

#include "kernel/kernel.h"

/* Takes a place in the buffer, a pointer, and writes the record of print `number` where it fits: n words, i64. */
void print_emit(ir_builder *b, ir_value *buffer, uint32_t number, ir_value *const *words,
                uint32_t n);

#endif
