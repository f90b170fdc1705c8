/* The open program: nodes encoded as 64-bit words, which are the key of the plan cache.
 *
 * Node:  op | nin<<16 | nscalars<<24 | nparams<<32 | compute<<40 ; params... ; operands (inputs, then output)
 * View:  1 | dtype<<8 | ndim<<16 | contiguous<<24 | buffer<<32 ; shape... ; strides... unless contiguous
 * Scalar operand: 0 | number<<8
 * Buffers at the end: bytes<<2 | ready<<1 | kept
 */
#include "base/hash.h"
#include "base/heap.h"
#include "graph/graph.h"

#include <string.h>

void graph_program_init(graph_program *p) { *p = (graph_program){0}; }

void graph_program_deinit(graph_program *p) {
    heap_free(p->words);
    heap_free(p->offsets);
    heap_free(p->view_buffers);
    heap_free(p->first_view);
    heap_free(p->scalars);
    *p = (graph_program){0};
}

void graph_program_clear(graph_program *p) {
    p->nwords = p->noffsets = p->nscalars = p->nnodes = p->nbuffers = 0;
    p->open_words = 0;
    p->hash = p->open_hash = 0;
}

static bool reserve(void **array, uint32_t *capacity, size_t item, uint32_t needed) {
    if (needed <= *capacity) return true;
    uint32_t grown = *capacity ? *capacity * 2 : 256;
    while (grown < needed) grown *= 2;
    void *memory = heap_resize(*array, grown * item);
    if (!memory) return false;
    *array = memory;
    *capacity = grown;
    return true;
}

bool graph_view_contiguous(const graph_view *v) {
    int64_t expected = (int64_t)dtype_bytes(v->dt);
    for (int d = v->ndim - 1; d >= 0; d--) {
        if (v->shape[d] != 1 && v->strides[d] != expected) return false;
        expected *= v->shape[d];
    }
    return true;
}

static uint64_t *encode_view(graph_program *p, uint64_t *w, const graph_view *v) {
    bool contiguous = graph_view_contiguous(v);
    *w++ = 1 | (uint64_t)v->dt << 8 | (uint64_t)v->ndim << 16 | (uint64_t)contiguous << 24 |
           (uint64_t)v->buffer << 32;
    memcpy(w, v->shape, sizeof *w * (size_t)v->ndim);
    w += v->ndim;
    if (!contiguous) {
        memcpy(w, v->strides, sizeof *w * (size_t)v->ndim);
        w += v->ndim;
    }
    p->view_buffers[p->noffsets] = v->buffer;
    p->offsets[p->noffsets++] = v->offset;
    return w;
}

/* Room for nodes with so many operands, outputs counted. */
static bool make_room(graph_program *p, uint32_t nodes, uint32_t operands) {
    uint32_t most = nodes * (1 + GRAPH_MAX_PARAMS + operands * (1 + 2 * GRAPH_MAX_NDIM));
    uint32_t views = p->noffsets + nodes * (GRAPH_MAX_INPUTS + 1);
    return reserve((void **)&p->words, &p->words_capacity, 8, p->nwords + most) &&
           reserve((void **)&p->offsets, &p->offsets_capacity, 8, views) &&
           reserve((void **)&p->view_buffers, &p->view_buffers_capacity, 4, views) &&
           reserve((void **)&p->scalars, &p->scalars_capacity, 8,
                   p->nscalars + nodes * GRAPH_MAX_SCALARS);
}

simt_status graph_program_reserve(graph_program *p, uint32_t nodes) {
    if (make_room(p, nodes, 4)) return SIMT_OK;
    return status_fail(SIMT_ERR_MEMORY, "out of memory while recording operations");
}

simt_status graph_program_add(graph_program *p, const graph_node *node, const uint64_t *scalars) {
    if (!make_room(p, 1, (uint32_t)node->nin + 1))
        return status_fail(SIMT_ERR_MEMORY, "out of memory while recording '%s'",
                           array_op_table[node->op].name);
    uint64_t *first = p->words + p->nwords, *w = first;
    *w++ = (uint64_t)node->op | (uint64_t)node->nin << 16 | (uint64_t)node->nscalars << 24 |
           (uint64_t)node->nparams << 32 | (uint64_t)node->compute << 40;
    memcpy(w, node->params, sizeof *w * (size_t)node->nparams);
    w += node->nparams;
    for (int i = 0; i < node->nin; i++) {
        if (node->scalar[i] >= 0)
            *w++ = (uint64_t)node->scalar[i] << 8;
        else
            w = encode_view(p, w, &node->in[i]);
    }
    w = encode_view(p, w, &node->out);
    p->view_buffers[p->noffsets - 1] |= GRAPH_WRITTEN;
    uint64_t hash = p->hash;
    for (uint64_t *word = first; word < w; word++) hash = hash_mix(hash, *word);
    p->hash = p->open_hash = hash;
    p->nwords = p->open_words = (uint32_t)(w - p->words);
    for (int i = 0; i < node->nscalars; i++) p->scalars[p->nscalars++] = scalars[i];
    p->nnodes++;
    return SIMT_OK;
}

static void add_word(graph_program *p, uint64_t word) {
    p->words[p->nwords++] = word;
    p->hash = hash_mix(p->hash, word);
}

/* What of the offsets belongs to the key: for buffers that the program writes, every offset but 0 (fusion
 * depends on overlaps); for others, which views start where the buffer's first view starts. */
static simt_status close_offsets(graph_program *p, uint32_t nbuffers) {
    uint32_t facts = (p->noffsets + 63) / 64;
    if (!reserve((void **)&p->words, &p->words_capacity, 8,
                 p->nwords + 2 * p->noffsets + facts + 2 * nbuffers + 2) ||
        !reserve((void **)&p->first_view, &p->first_view_capacity, 4, nbuffers + 1))
        return status_fail(SIMT_ERR_MEMORY, "out of memory while evaluating");
    memset(p->first_view, 0, sizeof *p->first_view * nbuffers);
    uint32_t *first = p->first_view; /* 1 + number of the first view, the top bit: written */
    for (uint32_t i = 0; i < p->noffsets; i++) {
        uint32_t buffer = p->view_buffers[i] & ~GRAPH_WRITTEN;
        if (!first[buffer]) first[buffer] = i + 1;
        first[buffer] |= p->view_buffers[i] & GRAPH_WRITTEN;
    }
    uint64_t same = 0;
    for (uint32_t i = 0; i < p->noffsets; i++) {
        uint32_t fact = first[p->view_buffers[i] & ~GRAPH_WRITTEN];
        if (!(fact & GRAPH_WRITTEN)) {
            same |= (uint64_t)(p->offsets[i] == p->offsets[fact - 1]) << (i & 63);
        } else if (p->offsets[i] != 0) {
            add_word(p, (uint64_t)i << 32 | 0xffffffff);
            add_word(p, (uint64_t)p->offsets[i]);
        }
        if ((i & 63) == 63) {
            add_word(p, same);
            same = 0;
        }
    }
    add_word(p, same);
    return SIMT_OK;
}

void graph_program_reopen(graph_program *p) {
    p->nwords = p->open_words;
    p->hash = p->open_hash;
    p->nbuffers = 0;
}

void graph_program_withdraw(graph_program *p, const graph_mark *mark) {
    p->nwords = p->open_words = mark->nwords;
    p->noffsets = mark->noffsets;
    p->nscalars = mark->nscalars;
    p->nnodes = mark->nnodes;
    p->hash = p->open_hash = mark->hash;
}

simt_status graph_program_close(graph_program *p, const graph_buffer *buffers, uint32_t n) {
    SIMT_TRY(close_offsets(p, n));
    p->buffer_words = p->nwords;
    for (uint32_t i = 0; i < n; i++)
        add_word(p, (uint64_t)buffers[i].bytes << 2 | (uint64_t)buffers[i].ready << 1 |
                        buffers[i].kept);
    p->nbuffers = n;
    return SIMT_OK;
}

static const uint64_t *decode_view(const graph_program *p, const uint64_t *w, uint32_t *offset,
                                   graph_view *v) {
    uint64_t head = *w++;
    v->dt = (dtype)(head >> 8 & 255);
    v->ndim = (int)(head >> 16 & 255);
    v->buffer = (uint32_t)(head >> 32);
    v->offset = p->offsets[(*offset)++];
    memcpy(v->shape, w, sizeof *w * (size_t)v->ndim);
    w += v->ndim;
    if (!(head >> 24 & 1)) {
        memcpy(v->strides, w, sizeof *w * (size_t)v->ndim);
        return w + v->ndim;
    }
    int64_t stride = (int64_t)dtype_bytes(v->dt);
    for (int d = v->ndim - 1; d >= 0; d--) {
        v->strides[d] = stride;
        stride *= v->shape[d];
    }
    return w;
}

void graph_program_decode(const graph_program *p, arena *mem, graph_node **nodes,
                          graph_buffer **buffers) {
    *nodes = ARENA_ARRAY(mem, graph_node, p->nnodes + 1);
    *buffers = ARENA_ARRAY(mem, graph_buffer, p->nbuffers + 1);
    const uint64_t *w = p->words;
    uint32_t offset = 0, scalar = 0;
    for (uint32_t i = 0; i < p->nnodes; i++) {
        graph_node *n = &(*nodes)[i];
        uint64_t head = *w++;
        n->op = (array_op)(head & 0xffff);
        n->nin = (int)(head >> 16 & 255);
        n->nscalars = (int)(head >> 24 & 255);
        n->nparams = (int)(head >> 32 & 255);
        n->compute = (dtype)(head >> 40 & 255);
        n->first_scalar = scalar;
        n->first_offset = offset;
        scalar += (uint32_t)n->nscalars;
        memcpy(n->params, w, sizeof *w * (size_t)n->nparams);
        w += n->nparams;
        for (int k = 0; k < n->nin; k++) {
            n->scalar[k] = -1;
            if (*w & 1)
                w = decode_view(p, w, &offset, &n->in[k]);
            else
                n->scalar[k] = (int8_t)(*w++ >> 8);
        }
        w = decode_view(p, w, &offset, &n->out);
    }
    w = p->words + p->buffer_words;
    for (uint32_t i = 0; i < p->nbuffers; i++)
        (*buffers)[i] = (graph_buffer){(int64_t)(w[i] >> 2), w[i] >> 1 & 1, w[i] & 1};
}
