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
extern _Thread_local size_t sections_own[2]; /* this thread's: all that a forked child has left */

/* Releases what may go (slow path of section_end). */
void section_advance(void);
void section_after_fork(void);

/* Whether this thread's section (of those in each other, the outermost) has queued no operation so far, or
 * there is none (a call that makes one array): it may still be left as if it had not begun. */
extern _Thread_local unsigned sections_begun,
    sections_queued; /* the last one that queued something */
static inline void section_queued(void) { sections_queued = sections_begun; }
static inline bool section_is_fresh(void) {
    return !(sections_own[0] | sections_own[1]) || sections_queued != sections_begun;
}

static inline unsigned section_begin(void) {
    unsigned phase = sections.phase;
    if (!(sections_own[0] | sections_own[1])) sections_begun++;
    sections.open[phase]++;
    sections_own[phase]++;
    return phase;
}

static inline void section_end(unsigned phase) {
    sections_own[phase]--;
    if (--sections.open[phase] == 0 && __builtin_expect(sections.any_retired, 0)) section_advance();
}

/* Releases `object` (NULL is fine) when all that is in flight has ended, the caller's own section included:
 * never within this call. */
void section_retire(void *object, void (*release)(void *object));

#endif
