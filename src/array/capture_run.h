/* What capture.c makes and capture_run.c runs. */
#ifndef SIMT_ARRAY_CAPTURE_RUN_H
#define SIMT_ARRAY_CAPTURE_RUN_H

#include "array/capture.h"
#include "array/internal.h"

/* Where a buffer of the program has its memory. */
typedef enum capture_kind {
    CAPTURE_TEMPORARY, /* in the capture's own, as all buffers that only the plan has */
    CAPTURE_INPUT,
    CAPTURE_VARIABLE,
    CAPTURE_OUTPUT,
    CAPTURE_CONSTANT, /* in its storage */
    CAPTURE_PATTERN,  /* in the capture's own; begins as what its storage holds */
} capture_kind;

typedef struct capture_type {
    dtype dt;
    int ndim;
    size_t bytes;
    int64_t shape[ARRAY_MAX_NDIM];
} capture_type;

typedef struct capture_step {
    uint64_t *args; /* of a kernel: the next `nargs` of the capture's */
    uint32_t nargs;
    call_args *call; /* of a library step; else NULL */
} capture_step;

struct array_capture {
    graph_plan *plan;
    double cost; /* rough ns */
    uint32_t ninputs, nvariables, noutputs, nslots;
    int32_t *inputs, *variables, *outputs; /* their buffers; -1: not used */
    bool *writes;                          /* by variable */
    capture_kind *kinds;                   /* by buffer of the program */
    storage **stores;                      /* the same: constants and patterns, with a reference */
    capture_type *types;                   /* of inputs, variables, outputs */
    uint64_t *scalars;
    int64_t *offsets;
    array_position *positions;
    uint32_t npositions;
    /* capture_run.c's */
    char *work; /* on the device */
    size_t work_bytes;
    int64_t *places; /* by buffer of the plan: where in `work`; -1: elsewhere */
    void **memory;   /* by buffer of the plan */
    capture_step *steps;
    uint64_t *args;
    call_args *calls;
    array **rows; /* by input: a batch of gathered rows; NULL: none so far */
};

/* Memory for temporaries and the arguments of the steps. */
simt_status capture_prepare(array_capture *c);
void capture_release(array_capture *c);

#endif
