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

/* A call; its number is larger than that of the call in which it stands. */
typedef struct source_call {
    const char *function, *file; /* what was called */
    source_pos at;               /* from where */
} source_call;

#endif
