/* Reading a tensor's metadata, and comparing it without a call: hundreds of parameters are compared at each call of a model. */
#ifndef FRAMEGRAFT_TENSOR_H
#define FRAMEGRAFT_TENSOR_H
#include "core.h"
#include <string.h>

/* Offsets that calibrate.py found and verified; ready: they may be used. */
typedef struct {
    int ready, cdata, keys, dtype, device, ndim, meta, rg, grad_fn, inlined;
    uint64_t plain_meta; /* the first word of an autograd record that is no view's: its vtable; 0: not known */
} FgOffsets;
extern FgOffsets fg_at;

/* By memcpy: nothing says that a field found at some offset is aligned. */
#define FG_READ(T, p, o)  \
    ({                 \
        T read_;       \
        memcpy(&read_, (const char *)(p) + (o), sizeof read_);                                                         \
        read_;         \
    })

static inline const int64_t *fg_sizes_of(const char *impl, int64_t ndim, const int64_t **strides, const FgOffsets *at)
{
    bool inlined = ndim <= at->inlined;
    const int64_t *s = inlined ? (const int64_t *)(impl + at->ndim + 8) : FG_READ(const int64_t *, impl, at->ndim + 8);
    *strides = s + (inlined ? at->inlined : ndim);
    return s;
}

/* Whether a tensor requires a gradient. FG_LATE: a view from before its base was written to with a gradient. torch gives it a grad_fn
   when somebody looks (`is_leaf`, an operation), and refuses to write to it until then; `requires_grad` asks the base meanwhile
   (DifferentiableViewMeta::requires_grad; AutogradMeta's own has nobody to ask). */
enum { FG_NO_GRAD, FG_GRAD, FG_LATE };
char fg_ask_grad(PyObject *tensor);

static inline char fg_grad_of(PyObject *tensor, const char *impl, const FgOffsets *at)
{
    const char *meta = FG_READ(const char *, impl, at->meta);
    if (!meta)
        return FG_NO_GRAD;
    if (FG_READ(uint8_t, meta, at->rg) || FG_READ(void *, meta, at->grad_fn))
        return FG_GRAD;
    return at->plain_meta && FG_READ(uint64_t, meta, 0) == at->plain_meta ? FG_NO_GRAD : fg_ask_grad(tensor);
}

#define FG_ANY INT64_MIN /* in place of a size or stride that may be anything */

/* What a TensorSpec that is read natively compares, in one piece of memory. */
typedef struct {
    PyTypeObject *type;
    uint64_t keys;
    uint16_t dtype, device;
    char requires_grad;
    int64_t ndim;
    int64_t sizes[]; /* ndim sizes, then ndim strides */
} FgPacked;

size_t fg_packed_size(PyObject *spec);
void fg_pack(PyObject *spec, FgPacked *out);

/* at: a copy of fg_at, which a loop over many tensors need not read again and again. */
static inline bool fg_packed_matches_at(const FgPacked *s, PyObject *value, const FgOffsets *at)
{
    if (Py_TYPE(value) != s->type)
        return false;
    const char *impl = FG_READ(const char *, value, at->cdata);
    if (!impl || FG_READ(uint64_t, impl, at->keys) != s->keys || FG_READ(uint16_t, impl, at->dtype) != s->dtype ||
        FG_READ(uint16_t, impl, at->device) != s->device || FG_READ(int64_t, impl, at->ndim) != s->ndim ||
        fg_grad_of(value, impl, at) != s->requires_grad)
        return false;
    const int64_t *strides, *sizes = fg_sizes_of(impl, s->ndim, &strides, at);
    for (int64_t i = 0; i < s->ndim; i++)
        if ((sizes[i] != s->sizes[i] && s->sizes[i] != FG_ANY) ||
            (strides[i] != s->sizes[s->ndim + i] && s->sizes[s->ndim + i] != FG_ANY))
            return false;
    return true;
}

/* Where a tensor's metadata lie: hints for asking ahead, never read. */
typedef struct {
    const char *impl, *meta;
} FgNear;

static inline FgNear fg_near_of(PyObject *tensor)
{
    const char *impl = FG_READ(const char *, tensor, fg_at.cdata);
    return (FgNear){impl, impl ? FG_READ(const char *, impl, fg_at.meta) : NULL};
}

/* Asks for the cache lines that fg_packed_matches_at will read. Always inline: gcc takes a function that does no more than this for
   one without effects, and leaves out its calls. */
static inline __attribute__((always_inline)) void fg_ask_ahead(PyObject *tensor, FgNear near, const FgOffsets *at)
{
    __builtin_prefetch(tensor);
    if (near.impl) { /* asking for what is no memory at all takes long */
        __builtin_prefetch(near.impl + at->meta);
        __builtin_prefetch(near.impl + at->ndim + 8 * (1 + at->inlined)); /* the strides */
        __builtin_prefetch(near.impl + at->keys);
    }
    if (near.meta) {
        __builtin_prefetch(near.meta);
        __builtin_prefetch(near.meta + at->rg);
    }
}
#endif
