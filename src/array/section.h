/* Operations in flight, and what they may still be looking at.
 *
 * An operation gives up the interpreter's lock where it waits, and code of the user's may run inside it
 * (signal handlers, hooks, destructors). Meanwhile others may replace what an object holds: a tensor's
 * array (`p.data = ...`), its gradient, its node, an array's shape. What was replaced is not released but
 * retired: it goes when every operation that was in flight then has ended. So an operation may use what
 * the objects in its hands hold without references of its own, from section_begin to section_end.
 *
 * Sections are counted in two phases: a new phase begins when the one before the present one has no open
 * section left, and what was retired in a phase goes when that phase has none. Whoever retires is in a
 * section. All of it is called with the interpreter's lock held.
 */
#ifndef SIMT_ARRAY_SECTION_H
#define SIMT_ARRAY_SECTION_H

#include <stdbool.h>
#include <stddef.h>

typedef struct section_state {
    unsigned phase;   /* 0 or 1 */
    size_t open[2];   /* sections by the phase they began in */
    bool any_retired; /* something waits */
} section_state;
extern section_state sections;

/* This thread's. */
typedef struct section_own {
    size_t open[2];         /* all that a forked child has left */
    unsigned begun, queued; /* outermost sections; the last one that queued something */
} section_own;
extern _Thread_local section_own sections_own;

/* Releases what may go (slow path of section_end). */
void section_advance(void);
void section_after_fork(void);

/* Whether this thread's section (of those in each other, the outermost) has queued no operation so far, or
 * there is none (a call that makes one array): it may still be left as if it had not begun. */
static inline void section_queued(void) {
    section_own *own = &sections_own;
    own->queued = own->begun;
}
static inline bool section_is_fresh(void) {
    const section_own *own = &sections_own;
    return !(own->open[0] | own->open[1]) || own->queued != own->begun;
}

typedef struct section {
    unsigned phase; /* the one it began in */
    section_own *own;
} section;

static inline section section_begin(void) {
    section s = {sections.phase, &sections_own};
    __asm__("" : "+r"(s.own)); /* to find it costs a call: section_end shall not do it again */
    s.own->begun += !(s.own->open[0] | s.own->open[1]);
    sections.open[s.phase]++;
    s.own->open[s.phase]++;
    return s;
}

static inline void section_end(section s) {
    s.own->open[s.phase]--;
    if (--sections.open[s.phase] == 0 && __builtin_expect(sections.any_retired, 0))
        section_advance();
}

/* Releases `object` (NULL is fine) when all that is in flight has ended, the caller's own section included:
 * never within this call. */
void section_retire(void *object, void (*release)(void *object));

#endif
