/* What the parts of the native core share. */
#ifndef FRAMEGRAFT_CORE_H
#define FRAMEGRAFT_CORE_H
#include "compat.h"
#include <stdbool.h>
#include <stdint.h>

#define FG_POINTER_HASH(p) ((size_t)((uint64_t)((uintptr_t)(p) >> 4) * 0x9E3779B97F4A7C15u >> 20))

extern PyObject *fg_missing; /* the MISSING marker */

/* -- tensors and global state (tensor.c) */
typedef struct FgTensorSpec FgTensorSpec;
extern PyTypeObject FgTensorSpec_Type, FgGlobalState_Type, FgPath_Type;
int fg_tensor_matches(PyObject *spec, PyObject *value); /* 1, 0, or -1 with an error set */
int fg_state_matches(PyObject *snapshot);
/* *out: a size or stride; 0 where value is no tensor or has no such dimension, -1 with an error. */
int fg_tensor_extent(PyObject *value, bool stride, int dim, int64_t *out);
bool fg_metadata_is_native(PyObject *snapshot); /* a TensorSpec or GlobalState is compared without calling Python */
PyObject *fg_calibrate(PyObject *self, PyObject *args);
PyObject *fg_tensor_spec(PyObject *self, PyObject *args);
PyObject *fg_tensor_info(PyObject *self, PyObject *tensor);
PyObject *fg_grad_is_late(PyObject *self, PyObject *tensor);
PyObject *fg_set_abc_token(PyObject *self, PyObject *address); /* subclass.c */
PyObject *fg_global_state(PyObject *self, PyObject *unused);
PyObject *fg_set_fallbacks(PyObject *self, PyObject *args);

/* -- guards (guards.c) */
extern PyTypeObject FgGuardProgram_Type;
/* The objects that a run met at the places the program names: what the entry's graph takes. Owned references.
   items[-1] is room for a callee that wants to put `self` in front. */
enum { FG_FEW_INPUTS = 6 };
typedef struct {
    PyObject **items;
    Py_ssize_t n;
    PyObject *small[FG_FEW_INPUTS + 1];
} FgInputs;
static inline void fg_inputs_init(FgInputs *inputs)
{
    inputs->items = NULL;
    inputs->n = 0;
}
void fg_inputs_clear(FgInputs *inputs);
/* The first guard that fails: -1 none, -2 dead; -3 with an error set. *value, if given: a new reference to what it saw.
   inputs, if given: filled where all guards hold. */
Py_ssize_t fg_program_run(PyObject *program, PyObject *const *args, Py_ssize_t n, PyFunctionObject *fn, PyObject **value,
                          FgInputs *inputs);
/* What all nodes give, a list; None where a guard fails. */
PyObject *fg_program_values(PyObject *program, PyObject *const *args, Py_ssize_t n, PyFunctionObject *fn);

/* -- handing over (hook.c): what a call has of its own, which the frame that takes it is to hold alone. `left` is put in the place
   of each reference that is dropped: None where an interpreter will drop it again, NULL elsewhere. */
typedef struct {
    PyObject **items;
    Py_ssize_t n;
    PyObject *left;
} FgSpan;
enum { FG_SPANS = 3 };
typedef struct {
    FgSpan spans[FG_SPANS];
    int n;
} FgGift;
static inline void fg_give(FgGift *gift, PyObject **items, Py_ssize_t n, PyObject *left)
{
    gift->spans[gift->n++] = (FgSpan){items, n, left};
}
void fg_hand_over(const FgGift *gift); /* drops what is given, from the first to the last */
/* As PyObject_Vectorcall of a Python function without keywords, for a caller that needs its arguments no more (gift: NULL where it
   does): the references in `gift` are dropped as soon as the function's frame has its own. */
PyObject *fg_call_giving(PyFunctionObject *fn, PyObject *const *args, size_t nargsf, const FgGift *gift);

/* -- cache (cache.c) */
typedef struct {
    PyObject_HEAD
    PyObject *program, *code, *globals, *ctx, *info;
    PyObject *quick;  /* code that takes the graph's inputs after the parameters; NULL: `code` runs */
    PyObject *graph;  /* `code` does nothing but return the only result of this callable; NULL otherwise */
    PyObject *rescue; /* (callable, plan): what to do when the graph fails; NULL: nothing */
    PyObject *fn;     /* the function over the code that runs, where it needs no closure */
    Py_ssize_t hits;
    char needs_hook;
    char unhooked; /* nothing that the code calls is captured */
} FgEntry;
extern PyTypeObject FgEntry_Type;
typedef struct {
    PyObject *entries; /* list, most recent first; NULL when there are none */
    char skip; /* FG_SKIP: never captured; FG_SKIP_DEEP: nor is what it calls, while the hook is on */
} FgExtra;
FgExtra *fg_extra(PyCodeObject *code, bool create);
int fg_cache_init(void);
/* The entry that fits, new reference; NULL for none, with an error where a guard raised what must not be swallowed. */
FgEntry *fg_lookup(FgExtra *extra, PyObject *ctx, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs);
/* What the guards of a new entry meet, for its first call: without items where they do not hold. -1 with an error. */
int fg_entry_inputs(FgEntry *entry, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs);
/* inputs: of the run that found the entry, without items where none did. gift: what the caller has no more use for, or NULL. */
PyObject *fg_entry_call(FgEntry *entry, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs,
                        const FgGift *gift);
PyObject *fg_cache_entries(PyObject *self, PyObject *code);
PyObject *fg_add_entry(PyObject *self, PyObject *args);
PyObject *fg_remove_entry(PyObject *self, PyObject *args);
PyObject *fg_clear_cache(PyObject *self, PyObject *code);
PyObject *fg_set_skip(PyObject *self, PyObject *args);
PyObject *fg_is_skipped(PyObject *self, PyObject *code);

/* -- hook and thread state (hook.c) */
enum { FG_SKIP = 1, FG_SKIP_DEEP = 2 };
enum { FG_DEFAULT = 0, FG_HOOK = 1, FG_DISABLED = 2, FG_RUN_ONLY = 3 };
typedef struct { int mode; PyObject *ctx, *miss; } FgThread;
FgThread *fg_thread(void);
/* Swap in a mode; the old one comes back with its references. */
FgThread fg_swap_mode(int mode, PyObject *ctx, PyObject *miss);
void fg_restore_mode(FgThread old);
PyObject *fg_set_mode(PyObject *self, PyObject *args);
PyObject *fg_get_mode(PyObject *self, PyObject *unused);
Py_ssize_t fg_parameter_count(PyCodeObject *code);
/* callable(first, second), or with fewer arguments where they are NULL, unseen by this hook and by any other. */
PyObject *fg_call_apart(PyObject *callable, PyObject *first, PyObject *second);
/* Ask miss(callee, args); a new Entry reference, NULL without an error for None. */
FgEntry *fg_ask(PyObject *miss, PyObject *callee, PyObject *const *args, Py_ssize_t n);

/* -- debuggers (quiet.c) */
PyObject *fg_set_quiet(PyObject *self, PyObject *fn);
/* As fg_call_apart; a debugger sees only the program's own functions. */
PyObject *fg_call_quietly(PyObject *callable, PyObject *first, PyObject *second);

/* -- Python's stack (chunks.c): from now on, chunks of it that are let go of wait for the next call that needs one. */
void fg_keep_chunks(void);

/* -- exceptions being handled (handled.c) */
#ifdef FG_BLOCK_STACK
PyObject *fg_handle(PyObject *self, PyObject *exception);
PyObject *fg_unhandle(PyObject *self, PyObject *before);
PyObject *fg_as_three(PyObject *self, PyObject *exception);
PyObject *fg_as_handled(PyObject *self, PyObject *exception);
PyObject *fg_set_handled_traceback(PyObject *self, PyObject *trace);
PyObject *fg_load_cell(PyObject *self, PyObject *args);
#endif

/* -- callables (function.c, callables.c) */
extern PyTypeObject FgCompiledFunction_Type, FgShielded_Type, FgModuleCall_Type, FgDelegate_Type;
#endif
