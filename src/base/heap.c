/* The heap (heap.h): counted, and failing when asked to, in development builds. */
#include "base/heap.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if HEAP_COUNTS

static atomic_ullong asked, first_denied = 1, last_denied = 0;
static atomic_llong alive;

bool heap_denies(void) {
    uint64_t n = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
    return n >= atomic_load_explicit(&first_denied, memory_order_relaxed) &&
           n <= atomic_load_explicit(&last_denied, memory_order_relaxed);
}

static void *counted(void *memory) {
    if (memory != NULL) atomic_fetch_add_explicit(&alive, 1, memory_order_relaxed);
    return memory;
}

static void uncounted(const void *memory) {
    if (memory != NULL) atomic_fetch_sub_explicit(&alive, 1, memory_order_relaxed);
}

uint64_t heap_asked(void) { return atomic_load(&asked); }
int64_t heap_alive(void) { return atomic_load(&alive); }

void heap_deny(uint64_t first, uint64_t last) {
    uint64_t now = atomic_load(&asked), room = UINT64_MAX - now;
    atomic_store(&first_denied, 1);
    atomic_store(&last_denied, 0);
    if (first > last || first > room) return;
    atomic_store(&first_denied, now + first);
    atomic_store(&last_denied, now + (last > room ? room : last));
}

#else

static inline void *counted(void *memory) { return memory; }
static inline void uncounted(const void *memory) { (void)memory; }
uint64_t heap_asked(void) { return 0; }
int64_t heap_alive(void) { return 0; }
void heap_deny(uint64_t first, uint64_t last) { (void)first, (void)last; }

#endif

/* ---- what is kept for work that must not stop halfway ---- */

static _Thread_local void *reserve;
static _Thread_local bool reserving;

bool heap_reserve_begin(size_t bytes) {
    if (bytes == 0) return true;
    reserve = heap_alloc(bytes);
    reserving = reserve != NULL;
    return reserving;
}

void heap_reserve_end(void) {
    heap_free(reserve);
    reserve = NULL;
    reserving = false;
}

/* The system has no more: what was reserved goes back to it, for this thread to ask again. */
static bool give_reserve(void) {
    heap_free(reserve);
    reserve = NULL;
    return reserving;
}

/* ---- the calls ---- */

void *heap_alloc(size_t bytes) {
    void *memory = heap_denies() ? NULL : counted(malloc(bytes));
    return memory != NULL || !give_reserve() ? memory : counted(malloc(bytes));
}

/* glibc's calloc does not take what free has put into the thread's own cache; small pieces do. */
static void *zeroed(size_t count, size_t size) {
    enum { SMALL = 512 };
    if (count > SMALL || size > SMALL || count * size > SMALL) return calloc(count, size);
    void *memory = malloc(count * size);
    __asm__("" : "+r"(memory)); /* or gcc makes it calloc */
    return memory == NULL ? NULL : memset(memory, 0, count * size);
}

void *heap_zeroed(size_t count, size_t size) {
    void *memory = heap_denies() ? NULL : counted(zeroed(count, size));
    return memory != NULL || !give_reserve() ? memory : counted(zeroed(count, size));
}

void *heap_resize(void *memory, size_t bytes) {
    if (heap_denies()) return NULL;
    void *grown = realloc(memory, bytes);
    return memory == NULL ? counted(grown) : grown;
}

void *heap_aligned(size_t alignment, size_t bytes) {
    void *memory = NULL;
    if (heap_denies() || posix_memalign(&memory, alignment, bytes) != 0) return NULL;
    return counted(memory);
}

char *heap_text(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = heap_alloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

void heap_free(void *memory) {
    uncounted(memory);
    free(memory);
}

void *heap_pages(size_t bytes) {
    if (heap_denies()) return NULL;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : counted(pages);
}

void heap_free_pages(void *pages, size_t bytes, bool last) {
    if (last) uncounted(pages);
    munmap(pages, bytes);
}
