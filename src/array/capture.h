/* A captured step: the operations of one run of a function, planned as one program, run again by one call.
 *
 * capture_begin .. capture_end record what this thread queues; nothing is computed meanwhile, and what the
 * program is made of are placeholders: arrays without memory, in the place of what changes from replay to
 * replay. A look at a value that depends on one is an error and ends the capture; so does another thread that
 * uses arrays. What was recorded is then dropped: nothing has been changed.
 *
 * Arrays that are neither placeholders nor computed in the step are constants: their memory is read by every
 * replay. Those that the step made in memory and changes afterwards begin each replay as they were made.
 * Numbers given to operations are constants too. Random operations that are to differ take their seed from
 * an array (random_state.from).
 *
 * A replay runs the steps of the plan in memory that the capture keeps: no planning, and no allocation but
 * for the outputs. */
#ifndef SIMT_ARRAY_CAPTURE_H
#define SIMT_ARRAY_CAPTURE_H

#include "array/array.h"

typedef struct array_capture array_capture;

/* A placeholder that the step reads, and what it is to hold after the step: NULL or itself, if it stays. */
typedef struct capture_variable {
    array *before, *after;
} capture_variable;
typedef struct capture_parts {
    array *const *inputs;
    const capture_variable *variables;
    array *const *outputs; /* of any kind: results, placeholders, constants, views of them */
    uint32_t ninputs, nvariables, noutputs;
} capture_parts;

/* Runs what waits. Failure: with SIMT_EAGER, inside another capture, or when that run fails. */
simt_status capture_begin(void);
bool capture_is_open(void); /* of this thread; also when it has failed already */
simt_status capture_placeholder(dtype dt, const int64_t *shape, int ndim, array **out);
/* Ends it in any case. Failure: the first look or intrusion (with its line), or planning failed. */
simt_status capture_end(const capture_parts *parts, array_capture **out);
/* Ends it without a result; nothing where none is open. */
void capture_abort(void);
void capture_free(array_capture *c); /* NULL is fine */

/* The step once. Inputs and variables have the types and shapes of the placeholders, else SIMT_ERR_VALUE;
 * variables that the step changes are whole dense storages of their own, written in place (capture_writes),
 * each another one. outputs: new arrays, one for each. Failure: a step of the library failed (with its line),
 * and those behind it have not run; or an interrupt, and nothing has. */
simt_status capture_replay(array_capture *c, array *const *inputs, array *const *variables,
                           array **outputs);
bool capture_writes(const array_capture *c, uint32_t variable);

/* Several steps: step i reads, as each of its inputs, the rows index[i * batch] .. of that data (the first
 * axis; dense, with its values in memory). Runs up to `most` steps; stops early, but not before the
 * first, when `seconds` have gone by or at an interrupt. *done: how many ran, also on failure. outputs: of
 * the last one; none when *done is 0. */
typedef struct capture_rows {
    array *const *data; /* one for each input */
    const int64_t
        *index; /* most * batch numbers of rows; SIMT_ERR_INDEX when one is out of range */
    int64_t batch, most;
    double seconds;
} capture_rows;
simt_status capture_replay_rows(array_capture *c, const capture_rows *rows, array *const *variables,
                                array **outputs, int64_t *done);

#endif
