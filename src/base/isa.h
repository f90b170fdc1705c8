/* Files compiled once per instruction set (isa_sources): SIMT_ISA(name) is name_<isa> in them. */
#ifndef SIMT_BASE_ISA_H
#define SIMT_BASE_ISA_H

#define SIMT_ISA_PASTE_(name, isa) name##_##isa
#define SIMT_ISA_PASTE(name, isa)  SIMT_ISA_PASTE_(name, isa)
#ifdef SIMT_ISA_NAME
#define SIMT_ISA(name) SIMT_ISA_PASTE(name, SIMT_ISA_NAME)
#endif

#endif
