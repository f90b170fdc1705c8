/* What was taken out of objects while operations were in flight: see section.h. */
#include "array/section.h"

#include "base/heap.h"

section_state sections;
_Thread_local section_own sections_own;

typedef struct retired {
    struct retired *next;
    void *object;
    void (*release)(void *object);
} retired;

static retired *waiting[2]; /* by the phase in which they were retired */

/* Records are used again; the first ones need no allocation. */
enum { RECORDS = 64 };
static retired first_records[RECORDS], *unused;
static size_t nused;

static retired *take_record(void) {
    retired *r = unused;
    if (r)
        unused = r->next;
    else if (nused < RECORDS)
        r = &first_records[nused++];
    else
        r = heap_alloc(sizeof *r);
    return r;
}

static void give_record(retired *r) {
    if (r < first_records || r >= first_records + RECORDS) {
        heap_free(r);
        return;
    }
    r->next = unused;
    unused = r;
}

/* A release may run code of the user's, which may begin, end and retire: the list is detached first. */
static void release_all(retired *list) {
    while (list) {
        retired r = *list;
        give_record(list);
        list = r.next;
        r.release(r.object);
    }
}

void section_advance(void) {
    while (sections.any_retired && !sections.open[!sections.phase]) {
        unsigned before = !sections.phase;
        retired *list = waiting[before];
        waiting[before] = NULL;
        sections.any_retired = waiting[sections.phase] != NULL;
        if (sections.any_retired) sections.phase = before; /* the present phase ends */
        release_all(list);
    }
}

void section_retire(void *object, void (*release)(void *object)) {
    if (!object) return;
    retired *r = take_record();
    if (!r) return; /* without memory it is kept for good rather than released too early */
    *r = (retired){waiting[sections.phase], object, release};
    waiting[sections.phase] = r;
    sections.any_retired = true;
    /* Where sections follow each other without a gap, a phase must end all the same. */
    if (!sections.open[!sections.phase] && !waiting[!sections.phase])
        sections.phase = !sections.phase;
}

void section_after_fork(void) {
    for (int phase = 0; phase < 2; phase++) sections.open[phase] = sections_own.open[phase];
}
