/* Instruction sets. Files compiled once for each (isa_sources) name their functions SIMT_ISA(name),
 * which is name_<isa> in them; ISA_CHOOSE says which to use. */
#ifndef SIMT_BASE_ISA_H
#define SIMT_BASE_ISA_H

#define SIMT_ISA_PASTE_(name, isa) name##_##isa
#define SIMT_ISA_PASTE(name, isa)  SIMT_ISA_PASTE_(name, isa)
#ifdef SIMT_ISA_NAME
#define SIMT_ISA(name) SIMT_ISA_PASTE(name, SIMT_ISA_NAME)
#endif

typedef enum isa_level { ISA_GENERIC, ISA_AVX2, ISA_AVX512 } isa_level;
/* The best of this machine, or a lower one by name: wanted, else $SIMT_ISA ("generic", "avx2"). */
isa_level isa_find(const char *wanted);

/* The address of name_<isa> for isa_find(wanted). */
#ifdef __x86_64__
#define ISA_CHOOSE(name, wanted)                                     \
    (((__typeof__(&name##_generic)[]){&name##_generic, &name##_avx2, \
                                      &name##_avx512})[isa_find(wanted)])
#else
#define ISA_CHOOSE(name, wanted) ((void)(wanted), &name##_generic)
#endif

#endif
