/* Places in the user's source, of code made from a function and what it calls: callees are put inside,
 * and keep their own file and lines. */
#ifndef SIMT_BASE_SOURCE_H
#define SIMT_BASE_SOURCE_H

#include <stdint.h>

enum { SOURCE_MOST_CALLS = UINT16_MAX, SOURCE_MOST_COLUMNS = UINT16_MAX };

typedef struct source_pos {
    uint32_t line;   /* from 1; 0 unknown */
    uint16_t column; /* from 1; 0 unknown */
    uint16_t call;   /* in which call it stands: a number in the code's table, from 1; 0: in none */
} source_pos;

/* A call; its number is larger than that of the call in which it stands. Of a function that is called while the
 * code runs (functions that call themselves) it is from line 0: from wherever the thread came. */
typedef struct source_call {
    const char *function, *file; /* what was called */
    source_pos at;               /* from where */
} source_call;

/* Where a thread has called such functions, the innermost first. */
typedef struct source_outer {
    const source_pos *at;
    uint32_t count,
        room; /* where there are more than room, the last one that is kept is the outermost */
} source_outer;

#endif
