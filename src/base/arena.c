/* Bump allocation in chunks that double, from 4 KB. Large ones are the system's own pages: in the heap,
 * what outlives a compilation would lie between the holes that its chunks leave. */
#include "base/arena.h"

#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct arena_chunk {
    arena_chunk *next;
    size_t bytes;
    _Alignas(16) char data[];
};

enum { PAGES_FROM = 128 << 10 };

static arena_chunk *chunk_new(size_t bytes) {
    if (bytes < PAGES_FROM) return heap_alloc(bytes);
    return heap_pages(bytes);
}

static void chunk_free(arena_chunk *chunk) {
    size_t bytes = sizeof *chunk + chunk->bytes;
    if (bytes < PAGES_FROM)
        heap_free(chunk);
    else
        heap_free_pages(chunk, bytes, true);
}

typedef struct running {
    struct running *outer;
    simt_status status;
    jmp_buf end;
} running;
static _Thread_local running *innermost; /* of this thread */

simt_status arena_run(simt_status (*work)(void *context), void *context) {
    running here = {.outer = innermost};
    innermost = &here;
    if (setjmp(here.end) == 0) here.status = work(context);
    innermost = here.outer;
    return here.status;
}

void arena_end_run(simt_status failure) {
    innermost->status = failure;
    longjmp(innermost->end, 1);
}

void arena_init(arena *a) { *a = (arena){0}; }
void arena_init_sure(arena *a) { *a = (arena){.sure = true}; }

void arena_deinit(arena *a) {
    for (arena_chunk *chunk = a->chunks; chunk;) {
        arena_chunk *next = chunk->next;
        chunk_free(chunk);
        chunk = next;
    }
    *a = (arena){.sure = a->sure};
}

static char *arena_grow(arena *a, size_t bytes) {
    size_t size = a->chunks ? a->chunks->bytes * 2 : 4096;
    if (size > (1u << 20)) size = 1u << 20;
    if (size < bytes) size = bytes;
    arena_chunk *chunk = chunk_new(sizeof *chunk + size);
    if (!chunk) return NULL;
    *chunk = (arena_chunk){a->chunks, size};
    a->chunks = chunk;
    a->bytes += size;
    a->next = chunk->data;
    a->end = chunk->data + size;
    return a->next;
}

void *arena_alloc(arena *a, size_t bytes) {
    size_t room = (size_t)(a->end - a->next), most = SIZE_MAX / 4;
    if (bytes <= most) bytes = (bytes + 15) & ~(size_t)15;
    if (heap_denies() || (room < bytes && (bytes > most || !arena_grow(a, bytes)))) {
        if (a->sure && innermost) arena_end_run(status_fail(SIMT_ERR_MEMORY, "out of memory"));
        return NULL;
    }
    char *memory = a->next;
    a->next += bytes;
    return memset(memory, 0, bytes);
}

char *arena_strdup(arena *a, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = arena_alloc(a, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *arena_printf(arena *a, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : arena_alloc(a, (size_t)length + 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}
