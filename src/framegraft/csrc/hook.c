/* Thread modes and the PEP 523 frame evaluation hook. */
#include "core.h"
#include <string.h>

static __thread FgThread thread;
static __thread bool registered; /* thread_ends will be called */
static Py_ssize_t hooking; /* threads (and nested blocks) that need the hook; guarded by the GIL */
static _PyFrameEvalFunction before, over; /* the hook that ours calls; one that calls ours, if it stayed on top */

static PyObject *evaluate(PyThreadState *ts, FgFrame *frame, int throwing);

FgThread *fg_thread(void)
{
    return &thread;
}

static bool needs_hook(int mode)
{
    return mode == FG_HOOK || mode == FG_RUN_ONLY;
}

/* Another hook may be put over ours while ours is on. It calls ours for as long as it stays, and we leave it there. */
static void count(int delta)
{
    PyInterpreterState *interp = PyInterpreterState_Get();
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interp);
    Py_ssize_t old = hooking;
    hooking += delta;
    if (old == 0 && hooking) {
        if (now == evaluate || (over && now == over))
            return;
        before = now;
        over = NULL;
        _PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
    }
    else if (old && !hooking) {
        if (now == evaluate)
            _PyInterpreterState_SetEvalFrameFunc(interp, before);
        over = now == evaluate ? NULL : now;
    }
}

FgThread fg_swap_mode(int mode, PyObject *ctx, PyObject *miss)
{
    FgThread old = thread;
    thread.mode = mode;
    thread.ctx = Py_XNewRef(ctx);
    thread.miss = Py_XNewRef(miss);
    if (needs_hook(mode) != needs_hook(old.mode))
        count(needs_hook(mode) ? 1 : -1);
    return old;
}

void fg_restore_mode(FgThread old)
{
    FgThread now = thread;
    thread = old;
    if (needs_hook(old.mode) != needs_hook(now.mode))
        count(needs_hook(old.mode) ? 1 : -1);
    Py_XDECREF(now.ctx);
    Py_XDECREF(now.miss);
}

static PyObject *or_none(PyObject *o)
{
    return Py_NewRef(o ? o : Py_None);
}

PyObject *fg_get_mode(PyObject *self, PyObject *unused)
{
    return Py_BuildValue("iNN", thread.mode, or_none(thread.ctx), or_none(thread.miss));
}

/* At the end of a thread: what it left on is switched off. (Another thread's state that is cleared from here is let be.) */
static void thread_ends(PyObject *capsule)
{
    if (PyCapsule_GetPointer(capsule, NULL) == &thread) {
        registered = false;
        fg_restore_mode((FgThread){FG_DEFAULT, NULL, NULL});
    }
}

static int watch_thread(void)
{
    PyObject *dict = registered ? NULL : PyThreadState_GetDict();
    if (!dict)
        return 0;
    PyObject *capsule = PyCapsule_New(&thread, NULL, thread_ends);
    int ok = capsule ? PyDict_SetItemString(dict, "framegraft._native", capsule) : -1;
    registered = ok == 0;
    Py_XDECREF(capsule);
    return ok;
}

PyObject *fg_set_mode(PyObject *self, PyObject *args)
{
    int mode;
    PyObject *ctx, *miss;
    if (!PyArg_ParseTuple(args, "iOO", &mode, &ctx, &miss))
        return NULL;
    if (mode < FG_DEFAULT || mode > FG_RUN_ONLY) {
        PyErr_Format(PyExc_ValueError, "mode must be 0 to 3, not %d", mode);
        return NULL;
    }
    PyObject *result = watch_thread() < 0 ? NULL : fg_get_mode(NULL, NULL);
    if (!result)
        return NULL;
    FgThread old = fg_swap_mode(mode, ctx == Py_None ? NULL : ctx, miss == Py_None ? NULL : miss);
    Py_XDECREF(old.ctx);
    Py_XDECREF(old.miss);
    return result;
}

Py_ssize_t fg_parameter_count(PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
}

FgEntry *fg_ask(PyObject *miss, PyObject *callee, PyObject *const *args, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    if (!tuple)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    FgThread old = fg_swap_mode(FG_DISABLED, NULL, NULL);
    PyObject *answer = PyObject_CallFunctionObjArgs(miss, callee, tuple, NULL);
    fg_restore_mode(old);
    Py_DECREF(tuple);
    if (answer == Py_None)
        Py_CLEAR(answer);
    else if (answer && Py_TYPE(answer) != &FgEntry_Type) {
        PyErr_Format(PyExc_TypeError, "miss must return an Entry or None, not %.200s", Py_TYPE(answer)->tp_name);
        Py_CLEAR(answer);
    }
    return (FgEntry *)answer;
}

static PyObject *evaluate(PyThreadState *ts, FgFrame *frame, int throwing)
{
    _PyFrameEvalFunction next = before ? before : _PyEval_EvalFrameDefault;
    PyCodeObject *code = FG_FRAME_CODE(frame);
    const int wanted = CO_OPTIMIZED | CO_NEWLOCALS, unwanted = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    if (throwing || !needs_hook(thread.mode) || (code->co_flags & wanted) != wanted || code->co_flags & unwanted ||
        !FG_FRAME_AT_START(frame))
        return next(ts, frame, throwing);
    FgExtra *extra = fg_extra(code, false);
    if ((extra && extra->skip) || (!extra && thread.mode == FG_RUN_ONLY))
        return next(ts, frame, throwing);
    PyFunctionObject *fn = FG_FRAME_FUNC(frame);
    Py_ssize_t n = fg_parameter_count(code);
    if (n > 255) /* more than any function that is worth capturing */
        return next(ts, frame, throwing);
    PyObject *args[256];
    for (Py_ssize_t i = 0; i < n; i++) {
        args[i] = FG_FRAME_LOCALS(frame)[i];
        if (!args[i])
            return next(ts, frame, throwing);
    }
    FgEntry *entry = extra ? fg_lookup(extra, thread.ctx, fn, args, n) : NULL;
    if (!entry && extra && PyErr_Occurred())
        return NULL;
    if (!entry && thread.mode == FG_HOOK && thread.miss) {
        entry = fg_ask(thread.miss, (PyObject *)fn, args, n);
        if (!entry && PyErr_Occurred())
            return NULL;
    }
    if (!entry)
        return next(ts, frame, throwing);
    PyObject *result = fg_entry_call(entry, fn, args, n);
    Py_DECREF(entry);
    return result;
}
