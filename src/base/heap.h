/* Memory of the C heap: every allocation of the project that is not Python's goes through here.
 *
 * In the release build these are malloc and its kin. The development build counts what is alive, and
 * can let a given allocation fail, so that tests reach each place that handles it; what else can fail for
 * want of memory (a thread that cannot start) asks heap_denies first.
 */
#ifndef SIMT_BASE_HEAP_H
#define SIMT_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef NDEBUG
#define HEAP_COUNTS 0
static inline bool heap_denies(void) { return false; }
#else
#define HEAP_COUNTS 1
/* Counts an allocation; true: it is to fail. */
bool heap_denies(void);
#endif

/* All give NULL where the system has no memory. */
void *heap_alloc(size_t bytes);
void *heap_zeroed(size_t count, size_t size);
void *heap_resize(void *memory, size_t bytes); /* NULL: memory is as it was */
void *heap_aligned(size_t alignment, size_t bytes);
char *heap_text(const char *text); /* a copy */
/* For work that must not stop halfway: until the end, heap_alloc and heap_zeroed of this thread find so many
 * bytes where the system has no more. False: there is no memory for them. */
bool heap_reserve_begin(size_t bytes);
void heap_reserve_end(void);
void heap_free(void *memory);   /* of one of these, or NULL */
void *heap_pages(size_t bytes); /* the system's own pages, zeroed */
/* The ends of pages may go before the rest does: `last` says that this is the rest. */
void heap_free_pages(void *pages, size_t bytes, bool last);

/* For tests. All are 0 in the release build. */
uint64_t heap_asked(void); /* allocations so far, those that failed too */
int64_t heap_alive(void);  /* what was allocated and is not freed */
/* Of the allocations from now on those numbered first..last (from 0) fail; first > last: none. */
void heap_deny(uint64_t first, uint64_t last);

#endif
