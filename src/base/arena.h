/* A bump allocator: everything one compilation makes lives in one arena and goes with it.
 *
 * Where memory ends, arena_alloc gives NULL. A sure arena never does: it ends the innermost arena_run, so
 * that what builds trees and instructions by the thousand has no failure to look for.
 */
#ifndef SIMT_BASE_ARENA_H
#define SIMT_BASE_ARENA_H

#include "base/status.h"

#include <stddef.h>

typedef struct arena_chunk arena_chunk;
typedef struct arena {
    arena_chunk *chunks;
    char *next, *end;
    size_t bytes; /* taken from the system */
    bool sure;
} arena;

void arena_init(arena *a);
void arena_init_sure(arena *a);
/* work(context), which ends at once with SIMT_ERR_MEMORY where a sure arena finds no memory. What is taken
 * inside and not given back there the caller must know of: work keeps it in arenas and places that live
 * longer than the run, and holds no lock, heap memory or Python object of its own. Runs nest. */
simt_status arena_run(simt_status (*work)(void *context), void *context);
_Noreturn void arena_end_run(simt_status failure); /* the innermost, which there must be */
void arena_deinit(arena *a); /* frees everything; the arena may be used again */
/* Zeroed memory aligned to 16 bytes, or NULL when the system has none. */
void *arena_alloc(arena *a, size_t bytes);
char *arena_strdup(arena *a, const char *text);
/* printf into the arena; NULL when the system has no memory. */
char *arena_printf(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(a, type)          ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, count) ((type *)arena_alloc((a), sizeof(type) * (size_t)(count)))

#endif
