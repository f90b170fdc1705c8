/* Caching memory: what is given back is kept by size class for the next taker.
 *
 * New memory costs 2 us per 4 KB page, so reuse is the point; pieces of 2 MB and more come from mmap,
 * aligned for huge pages. Size classes are an eighth of a power of two apart, so that at most 12 % is
 * lost; the class follows from the bytes asked for, which the giver repeats. Free pieces of a class are
 * a list through their first word, under the class's own spin lock. Cached bytes are bounded; beyond
 * the bound, and under AddressSanitizer, memory goes straight back.
 */
#include "base/heap.h"
#include "device/cpu/cpu.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { CACHING = 0 };
#else
enum { CACHING = 1 };
#endif

enum { CLASSES = 8 * 48, HUGE_PAGE = 2 << 20 };

typedef struct class_list {
    atomic_flag lock;
    void *_Atomic first; /* written under the lock */
} class_list;

struct memory {
    class_list classes[CLASSES];
    atomic_size_t in_use, cached;
    size_t most_cached, machine_bytes;
};

/* Class of a size and the bytes its pieces have: 64, 128, ... 512, then 8 steps per doubling. */
static unsigned class_of(size_t bytes, size_t *piece) {
    size_t units = bytes == 0 ? 1 : (bytes + 63) / 64;
    if (units <= 8) {
        *piece = units * 64;
        return (unsigned)units - 1;
    }
    unsigned top = 63 - (unsigned)__builtin_clzll(units - 1); /* 2^top < units <= 2^(top+1) */
    size_t step = (size_t)1 << (top - 3), steps = (units - 1) / step + 1 - 8; /* 1..8 above 2^top */
    *piece = (8 + steps) * step * 64;
    if (*piece >= HUGE_PAGE) *piece = (*piece + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    return 8 * (top - 3) + 8 + (unsigned)steps - 1;
}

static void lock(class_list *l) {
    while (atomic_flag_test_and_set_explicit(&l->lock, memory_order_acquire)) cpu_pause();
}
static void unlock(class_list *l) { atomic_flag_clear_explicit(&l->lock, memory_order_release); }

static void *first_of(class_list *l) {
    return atomic_load_explicit(&l->first, memory_order_relaxed);
}
static void set_first(class_list *l, void *p) {
    atomic_store_explicit(&l->first, p, memory_order_relaxed);
}

static void *new_piece(size_t bytes) {
    if (bytes < HUGE_PAGE) return heap_aligned(64, bytes);
    char *p = heap_pages(bytes + HUGE_PAGE);
    if (p == NULL) return NULL;
    size_t head = (size_t)(-(uintptr_t)p & (HUGE_PAGE - 1));
    if (head > 0) heap_free_pages(p, head, false);
    heap_free_pages(p + head + bytes, HUGE_PAGE - head, false);
#ifdef MADV_HUGEPAGE
    madvise(p + head, bytes, MADV_HUGEPAGE);
#endif
    return p + head;
}

static void drop_piece(void *p, size_t bytes) {
    if (bytes < HUGE_PAGE)
        heap_free(p);
    else
        heap_free_pages(p, bytes, true);
}

memory *memory_new(void) {
    memory *m = heap_zeroed(1, sizeof *m);
    if (m == NULL) return NULL;
    for (unsigned i = 0; i < CLASSES; i++) atomic_flag_clear(&m->classes[i].lock);
    m->machine_bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    m->most_cached = m->machine_bytes / 4;
    return m;
}

static simt_status fail(const memory *m, size_t bytes) {
    return status_fail(SIMT_ERR_MEMORY,
                       "cannot allocate %zu bytes (%.4g GB; this machine has %.3g GB)", bytes,
                       (double)bytes / 1e9, (double)m->machine_bytes / 1e9);
}

simt_status memory_take(memory *m, size_t bytes, void **out) {
    if (bytes > m->machine_bytes) return fail(m, bytes);
    size_t piece;
    class_list *l = &m->classes[class_of(bytes, &piece)];
    void *p = NULL;
    if (CACHING && first_of(l) != NULL) { /* without the lock: a miss only costs a new piece */
        lock(l);
        p = first_of(l);
        void *next;
        if (p != NULL) memcpy(&next, p, sizeof next), set_first(l, next);
        unlock(l);
    }
    if (p != NULL) {
        atomic_fetch_sub_explicit(&m->cached, piece, memory_order_relaxed);
    } else {
        if (!CACHING) piece = bytes == 0 ? 1 : bytes;
        p = new_piece(piece);
        if (p == NULL) {
            memory_trim(m);
            p = new_piece(piece);
        }
        if (p == NULL) return fail(m, bytes);
    }
    atomic_fetch_add_explicit(&m->in_use, bytes, memory_order_relaxed);
    *out = p;
    return SIMT_OK;
}

void memory_give(memory *m, void *p, size_t bytes) {
    if (p == NULL) return;
    size_t piece;
    class_list *l = &m->classes[class_of(bytes, &piece)];
    atomic_fetch_sub_explicit(&m->in_use, bytes, memory_order_relaxed);
    if (!CACHING) {
        drop_piece(p, bytes == 0 ? 1 : bytes);
        return;
    }
    if (atomic_load_explicit(&m->cached, memory_order_relaxed) + piece > m->most_cached) {
        drop_piece(p, piece);
        return;
    }
    atomic_fetch_add_explicit(&m->cached, piece, memory_order_relaxed);
    lock(l);
    void *next = first_of(l);
    memcpy(p, &next, sizeof next);
    set_first(l, p);
    unlock(l);
}

/* Bytes of a class's pieces, for trimming. */
static size_t piece_of(unsigned class) {
    if (class < 8) return (class + 1) * (size_t)64;
    size_t piece = (8 + (class - 8) % 8 + 1) * ((size_t)1 << (class - 8) / 8) * 64;
    return piece >= HUGE_PAGE ? (piece + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1) : piece;
}

void memory_trim(memory *m) {
    for (unsigned i = 0; i < CLASSES; i++) {
        class_list *l = &m->classes[i];
        if (first_of(l) == NULL) continue;
        lock(l);
        void *p = first_of(l);
        set_first(l, NULL);
        unlock(l);
        while (p != NULL) {
            void *next;
            memcpy(&next, p, sizeof next);
            drop_piece(p, piece_of(i));
            atomic_fetch_sub(&m->cached, piece_of(i));
            p = next;
        }
    }
}

/* A list is right at every moment: a taker that got no further leaves its piece in it or has it lost. */
void memory_forget(memory *m) {
    for (unsigned i = 0; i < CLASSES; i++) unlock(&m->classes[i]);
}

size_t memory_in_use(memory *m) { return atomic_load(&m->in_use); }
size_t memory_cached(memory *m) { return atomic_load(&m->cached); }

void memory_free(memory *m) {
    if (m == NULL) return;
    memory_trim(m);
    heap_free(m);
}
