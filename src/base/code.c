/* What the blocks of a launch share: where they meet, and the memory that they take (code.h). */
#include "base/code.h"

#include "base/heap.h"

static void end_round(code_meeting *m) {
    if (m->arrived == 0 || m->arrived + m->ended < m->blocks) return;
    m->arrived = 0;
    m->round++;
}

uint64_t code_meeting_arrive(code_meeting *m) {
    pthread_mutex_lock(&m->lock);
    uint64_t round = m->round;
    m->arrived++;
    end_round(m);
    pthread_mutex_unlock(&m->lock);
    return round;
}

void code_meeting_leave(code_meeting *m) {
    pthread_mutex_lock(&m->lock);
    m->ended++;
    end_round(m);
    pthread_mutex_unlock(&m->lock);
}

/* In front of the memory. */
struct code_piece {
    code_piece *before, *after;
};
enum { HEAD = 64 };

void code_memory_begin(code_memory *m) {
    m->first = NULL;
    pthread_mutex_init(&m->lock, NULL);
}

void *code_memory_take(code_memory *m, size_t bytes) {
    code_piece *p = heap_aligned(HEAD, HEAD + bytes);
    if (p == NULL) return NULL;
    pthread_mutex_lock(&m->lock);
    *p = (code_piece){.after = m->first};
    if (m->first != NULL) m->first->before = p;
    m->first = p;
    pthread_mutex_unlock(&m->lock);
    return (char *)p + HEAD;
}

void code_memory_give(code_memory *m, void *taken) {
    code_piece *p = (code_piece *)((char *)taken - HEAD);
    pthread_mutex_lock(&m->lock);
    if (p->before != NULL)
        p->before->after = p->after;
    else
        m->first = p->after;
    if (p->after != NULL) p->after->before = p->before;
    pthread_mutex_unlock(&m->lock);
    heap_free(p);
}

void code_memory_end(code_memory *m) {
    while (m->first != NULL) {
        code_piece *p = m->first;
        m->first = p->after;
        heap_free(p);
    }
    pthread_mutex_destroy(&m->lock);
}
