/* The one place that knows CPython versions. */
#ifndef FRAMEGRAFT_COMPAT_H
#define FRAMEGRAFT_COMPAT_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <stdbool.h>
#if PY_VERSION_HEX < 0x030A0000 || PY_VERSION_HEX >= 0x030E0000
#error "framegraft supports CPython 3.10 to 3.13"
#endif
#ifdef Py_GIL_DISABLED
#error "framegraft does not support free-threaded builds of CPython"
#endif
/* The frame's layout is not public before 3.14. */
#undef _PyGC_FINALIZED
#if PY_VERSION_HEX >= 0x030C0000
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* versions of dicts */
#endif
#define Py_BUILD_CORE
#define Py_BUILD_CORE_MODULE
#if PY_VERSION_HEX >= 0x030B0000
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#else
#include <internal/pycore_interp.h>
#include <opcode.h>
#endif
#if PY_VERSION_HEX >= 0x030D0000
#include <internal/pycore_ceval.h>
#include <internal/pycore_traceback.h>
#endif
#undef Py_BUILD_CORE

#if PY_VERSION_HEX >= 0x030B0000
typedef struct _PyInterpreterFrame FgFrame;
#define FG_FRAME_LOCALS(f) ((f)->localsplus)
#define FG_CODE_NAME_AT(c, i) PyTuple_GET_ITEM((c)->co_localsplusnames, (i))
/* The argument in a frame that has not begun, borrowed; NULL for none. */
static inline PyObject *fg_frame_argument(FgFrame *f, Py_ssize_t i)
{
    return f->localsplus[i];
}
#else
#define Py_TPFLAGS_MANAGED_DICT 0
#define FG_BLOCK_STACK /* who handles exceptions is told by blocks, and an exception takes three entries of the stack */
typedef struct _frame FgFrame;
#define FG_FRAME_LOCALS(f) ((f)->f_localsplus)
#define FG_CODE_NAME_AT(c, i) PyTuple_GET_ITEM((c)->co_varnames, (i))
#define FG_FRAME_CODE(f) ((f)->f_code)
#define FG_FRAME_AT_START(f) ((f)->f_lasti == -1)
/* A frame that has ended keeps its caller alive. */
static inline void fg_frame_forget_caller(FgFrame *f)
{
    if (f->f_state > FRAME_EXECUTING)
        Py_CLEAR(f->f_back);
}
/* Arguments that are cells have been put there already. */
static inline PyObject *fg_frame_argument(FgFrame *f, Py_ssize_t i)
{
    PyCodeObject *code = f->f_code;
    if (f->f_localsplus[i] || !code->co_cell2arg)
        return f->f_localsplus[i];
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(code->co_cellvars); k++)
        if (code->co_cell2arg[k] == i)
            return PyCell_GET(f->f_localsplus[code->co_nlocals + k]);
    return NULL;
}
/* Frames do not know their function: one that does the same. */
static inline PyFunctionObject *fg_frame_function(FgFrame *f)
{
    PyCodeObject *code = f->f_code;
    Py_ssize_t n = PyTuple_GET_SIZE(code->co_freevars);
    PyObject **cells = f->f_localsplus + code->co_nlocals + PyTuple_GET_SIZE(code->co_cellvars);
    PyObject *fn = PyFunction_New((PyObject *)code, f->f_globals), *closure = fn && n ? PyTuple_New(n) : NULL;
    for (Py_ssize_t i = 0; closure && i < n; i++)
        PyTuple_SET_ITEM(closure, i, Py_NewRef(cells[i]));
    if (n && (!closure || PyFunction_SetClosure(fn, closure) < 0))
        Py_CLEAR(fn);
    Py_XDECREF(closure);
    return (PyFunctionObject *)fn;
}
#endif
#if PY_VERSION_HEX < 0x030B0000
#elif PY_VERSION_HEX >= 0x030D0000
#define FG_FRAME_CODE(f) ((PyCodeObject *)(f)->f_executable)
#define FG_FRAME_AT_START(f) ((f)->instr_ptr == _PyCode_CODE(FG_FRAME_CODE(f)))
#else
#define FG_FRAME_CODE(f) ((f)->f_code)
#define FG_FRAME_AT_START(f) ((f)->prev_instr == _PyCode_CODE((f)->f_code) - 1)
#endif
#if PY_VERSION_HEX >= 0x030C0000
#define FG_FRAME_FUNC(f) ((f)->f_funcobj)
#define FG_REQUEST_EXTRA PyUnstable_Eval_RequestCodeExtraIndex
#define FG_GET_EXTRA PyUnstable_Code_GetExtra
#define FG_SET_EXTRA PyUnstable_Code_SetExtra
#else
#define FG_FRAME_FUNC(f) ((f)->f_func)
#define FG_REQUEST_EXTRA _PyEval_RequestCodeExtraIndex
#define FG_GET_EXTRA _PyCode_GetExtra
#define FG_SET_EXTRA _PyCode_SetExtra
#endif
#ifndef FG_BLOCK_STACK
/* The function of a frame; a new reference. */
static inline PyFunctionObject *fg_frame_function(FgFrame *f)
{
    return (PyFunctionObject *)Py_NewRef((PyObject *)FG_FRAME_FUNC(f));
}
#endif

/* Whether the arguments lie on the stack of the frame that is running, put there by it to call `callable`, and by nobody in
   between: an interpreter only drops them when the call is over. */
#if PY_VERSION_HEX >= 0x030B0000
#define FG_CALLS_HAND_OVER true /* a call of a Python function moves its arguments into the new frame */
static inline bool fg_args_of_frame(PyThreadState *t, PyObject *callable, PyObject *const *args, Py_ssize_t n)
{
#if PY_VERSION_HEX >= 0x030D0000
    FgFrame *f = t->current_frame;
    const bool apart = true; /* something may lie between the callable and the arguments: NULL, for want of a `self` */
#else
    FgFrame *f = t->cframe->current_frame;
    const bool apart = false;
#endif
    if (!f)
        return false;
    PyCodeObject *code = FG_FRAME_CODE(f);
    PyObject **base = f->localsplus + code->co_nlocalsplus;
    return args > base && args + n <= base + code->co_stacksize &&
           (args[-1] == callable || (apart && !args[-1] && args - 1 > base && args[-2] == callable));
}
#else
#define FG_CALLS_HAND_OVER false
static inline bool fg_args_of_frame(PyThreadState *t, PyObject *callable, PyObject *const *args, Py_ssize_t n)
{
    FgFrame *f = t->frame;
    if (!f || f->f_lasti < 0)
        return false;
    PyObject **base = f->f_valuestack;
    _Py_CODEUNIT word = ((_Py_CODEUNIT *)PyBytes_AS_STRING(f->f_code->co_code))[f->f_lasti];
    return args > base && args + n <= base + f->f_code->co_stacksize && args[-1] == callable && _Py_OPCODE(word) == CALL_FUNCTION &&
           _Py_OPARG(word) == n;
}
#endif

/* Half of the frames that may be nested are used up. From 3.12 on, calls that an evaluator sees take of the C stack, too,
   which has a limit of its own. */
#if PY_VERSION_HEX >= 0x030D0000
#define FG_C_LIMIT Py_C_RECURSION_LIMIT
#elif PY_VERSION_HEX >= 0x030C0000
#define FG_C_LIMIT C_RECURSION_LIMIT
#endif
#if PY_VERSION_HEX >= 0x030C0000
#define FG_RECURSION_LOW(t) \
    ((t)->py_recursion_remaining < (t)->py_recursion_limit / 2 || (t)->c_recursion_remaining < FG_C_LIMIT / 2)
#elif PY_VERSION_HEX >= 0x030B0000
#define FG_RECURSION_LOW(t) ((t)->recursion_remaining < (t)->recursion_limit / 2)
#else
#define FG_RECURSION_LOW(t) ((t)->recursion_depth > (t)->interp->ceval.recursion_limit / 2)
#endif

/* A frame that the evaluator has not evaluated but answered for. From 3.12 on it has to take it off the stack. */
#if PY_VERSION_HEX >= 0x030D0000
#define FG_FRAME_DONE(t, f) _PyEval_FrameClearAndPop((t), (f))
#elif PY_VERSION_HEX >= 0x030C0000
/* As _PyEvalFrameClearAndPop, which is not exported, does with a thread's frame that no frame object shows. */
static inline void fg_frame_done(PyThreadState *t, FgFrame *f)
{
    int n = f->stacktop;
    f->stacktop = 0;
    for (int i = 0; i < n; i++)
        Py_XDECREF(f->localsplus[i]);
    Py_XDECREF(f->f_locals);
    Py_DECREF(f->f_funcobj);
    Py_DECREF(f->f_code);
    PyObject **base = (PyObject **)f;
    _PyStackChunk *chunk = t->datastack_chunk;
    if (base != &chunk->data[0]) {
        t->datastack_top = base;
        return;
    }
    _PyStackChunk *previous = chunk->previous;
    PyObjectArenaAllocator allocator;
    t->datastack_top = &previous->data[previous->top];
    t->datastack_chunk = previous;
    PyObject_GetArenaAllocator(&allocator);
    allocator.free(allocator.ctx, chunk, chunk->size);
    t->datastack_limit = (PyObject **)((char *)previous + previous->size);
}
#define FG_FRAME_DONE(t, f) fg_frame_done((t), (f))
#else
#define FG_FRAME_DONE(t, f) ((void)0)
#endif

/* A number that no other state of any dict has or had. */
#define FG_DICT_VERSION(d) (((PyDictObject *)(d))->ma_version_tag)
/* Whether every change of the dict changes its version. From 3.13 on, a dict that shows the values inside an instance is
   not told of attributes that are set; such a dict is made to keep its values itself, as it does anyhow once it has grown.
   Nothing that a program sees changes. */
#if PY_VERSION_HEX >= 0x030D0000
static inline bool fg_dict_settle(PyObject *d)
{
    PyDictObject *dict = (PyDictObject *)d;
    if (!dict->ma_values || !dict->ma_values->embedded)
        return true;
    if (!PyDict_CheckExact(d))
        return false;
    /* Only a table of its own can lose its last item, or have a key that is no string. */
    PyObject *item = dict->ma_used ? PyObject_CallMethod(d, "popitem", NULL) : NULL;
    bool ok = item ? PyDict_SetItem(d, PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1)) == 0
                   : !dict->ma_used && PyDict_SetItem(d, Py_None, Py_None) == 0;
    if (ok && !item)
        PyDict_Clear(d);
    Py_XDECREF(item);
    if (!ok)
        PyErr_Clear();
    return ok && (!dict->ma_values || !dict->ma_values->embedded);
}
#define FG_DICT_SETTLE(d) fg_dict_settle(d)
#else
#define FG_DICT_SETTLE(d) true
#endif
/* The version of a type as its tag tells it: no other state of any type had it. 0: it has none, which a flag tells before 3.13. */
#if PY_VERSION_HEX >= 0x030D0000
#define FG_TYPE_HAS_TAG(t) true
#else
#define FG_TYPE_HAS_TAG(t) PyType_HasFeature((t), Py_TPFLAGS_VALID_VERSION_TAG)
#endif
static inline unsigned int fg_type_version(PyObject *type)
{
    return FG_TYPE_HAS_TAG((PyTypeObject *)type) ? ((PyTypeObject *)type)->tp_version_tag : 0;
}
/* What a mappingproxy shows: its only field. */
#define FG_PROXIED(p) (*(PyObject **)((PyObject *)(p) + 1))
/* All keys are plain strings: looking one up runs no code of the user's. */
#if PY_VERSION_HEX >= 0x030B0000
#define FG_DICT_ALL_STR(d) (((PyDictObject *)(d))->ma_keys->dk_kind != DICT_KEYS_GENERAL)
#else
/* The beginning of a table of keys, whose layout is private: dicts with other keys share a function that looks keys up. */
typedef struct {
    Py_ssize_t refcnt, size;
    void *lookup;
} FgDictKeys;
#define FG_DICT_LOOKUP(d) (((FgDictKeys *)((PyDictObject *)(d))->ma_keys)->lookup)
static inline bool fg_dict_all_str(PyObject *d)
{
    static void *general;
    if (!general) {
        PyObject *other = PyDict_New();
        if (!other || PyDict_SetItem(other, Py_None, Py_None) < 0)
            PyErr_Clear();
        else
            general = FG_DICT_LOOKUP(other);
        Py_XDECREF(other);
    }
    return general && FG_DICT_LOOKUP(d) != general;
}
#define FG_DICT_ALL_STR(d) fg_dict_all_str((PyObject *)(d))
#endif
#endif
