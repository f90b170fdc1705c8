// Finds the loops of an instruction set (vector.h). Invariant: the names here are the ones that
// the build compiles vector.c under (src/meson.build).
#include "vector.h"

extern const dev_table dev_table_of_generic;
#ifdef __x86_64__
extern const dev_table dev_table_of_avx2, dev_table_of_avx512;
#endif

const dev_table *dev_table_get(dev_isa isa) {
    switch (isa) {
    case DEV_ISA_GENERIC: return &dev_table_of_generic;
#ifdef __x86_64__
    case DEV_ISA_AVX2: return &dev_table_of_avx2;
    case DEV_ISA_AVX512: return &dev_table_of_avx512;
#endif
    default: return NULL;
    }
}
