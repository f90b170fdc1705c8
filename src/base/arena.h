/* A bump allocator: everything one compilation makes lives in one arena and goes with it. */
#ifndef SIMT_BASE_ARENA_H
#define SIMT_BASE_ARENA_H

#include <stddef.h>

typedef struct arena_chunk arena_chunk;
typedef struct arena {
    arena_chunk *chunks;
    char *next, *end;
    size_t bytes; /* taken from the system */
} arena;

void arena_init(arena *a);
void arena_deinit(arena *a); /* frees everything; the arena may be used again */
/* Zeroed memory aligned to 16 bytes, or NULL when the system has none. */
void *arena_alloc(arena *a, size_t bytes);
char *arena_strdup(arena *a, const char *text);
/* printf into the arena; NULL when the system has no memory. */
char *arena_printf(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(a, type)          ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, count) ((type *)arena_alloc((a), sizeof(type) * (size_t)(count)))

#endif
