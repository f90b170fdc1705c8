/* The bounded cache of compiled kernels: by hash, then by printed form and options. When it is full, the
 * kernel not used for the longest time goes; who still holds a reference keeps it alive. */
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

static bool same_options(const runtime_compile_options *a, const runtime_compile_options *b) {
    return a->target == b->target && memcmp(a->block, b->block, sizeof a->block) == 0 &&
           a->contract == b->contract;
}

static cache_entry *find_locked(simt_runtime *rt, uint64_t key, const char *text,
                                const runtime_compile_options *o) {
    for (cache_entry *e = rt->buckets[key % CACHE_BUCKETS]; e != NULL; e = e->next) {
        if (e->kernel.key != key || !same_options(&e->options, o) || strcmp(e->text, text) != 0)
            continue;
        e->used = ++rt->tick;
        runtime_kernel_ref(&e->kernel);
        return e;
    }
    return NULL;
}

runtime_kernel *cache_find(simt_runtime *rt, uint64_t key, const char *text,
                           const runtime_compile_options *o) {
    pthread_mutex_lock(&rt->lock);
    cache_entry *e = find_locked(rt, key, text, o);
    pthread_mutex_unlock(&rt->lock);
    return e != NULL ? &e->kernel : NULL;
}

static void evict_oldest(simt_runtime *rt) {
    cache_entry **oldest = NULL;
    for (int i = 0; i < CACHE_BUCKETS; i++)
        for (cache_entry **at = &rt->buckets[i]; *at != NULL; at = &(*at)->next)
            if (oldest == NULL || (*at)->used < (*oldest)->used) oldest = at;
    if (oldest == NULL) return;
    cache_entry *e = *oldest;
    *oldest = e->next;
    rt->count--;
    rt->bytes -= strlen(e->text);
    runtime_kernel_unref(&e->kernel);
}

runtime_kernel *cache_keep(simt_runtime *rt, cache_entry *made) {
    pthread_mutex_lock(&rt->lock);
    cache_entry *e = find_locked(rt, made->kernel.key, made->text, &made->options);
    if (e == NULL) {
        rt->bytes += strlen(made->text);
        while (rt->count >= CACHE_MOST || (rt->count && rt->bytes > CACHE_MOST_BYTES))
            evict_oldest(rt);
        cache_entry **bucket = &rt->buckets[made->kernel.key % CACHE_BUCKETS];
        made->next = *bucket;
        made->used = ++rt->tick;
        *bucket = e = made;
        rt->count++;
        runtime_kernel_ref(&e->kernel); /* the cache's; made's own becomes the caller's */
        made = NULL;
    }
    pthread_mutex_unlock(&rt->lock);
    if (made != NULL) runtime_kernel_unref(&made->kernel);
    return &e->kernel;
}

void cache_clear(simt_runtime *rt) {
    for (int i = 0; i < CACHE_BUCKETS; i++)
        while (rt->buckets[i] != NULL) {
            cache_entry *e = rt->buckets[i];
            rt->buckets[i] = e->next;
            runtime_kernel_unref(&e->kernel);
        }
    rt->count = 0;
    rt->bytes = 0;
}
