/* Which instruction set this machine has. */
#include "base/isa.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

isa_level isa_find(const char *wanted) {
#ifdef __x86_64__
    if (wanted == NULL || *wanted == '\0') wanted = getenv("SIMT_ISA");
    if (wanted == NULL) wanted = "";
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (strcmp(wanted, "generic") == 0 || !avx2) return ISA_GENERIC;
    return strcmp(wanted, "avx2") == 0 || !avx512 ? ISA_AVX2 : ISA_AVX512;
#else
    (void)wanted;
    return ISA_GENERIC;
#endif
}
