/* Thread modes and the PEP 523 frame evaluation hook. */
#include "core.h"
#include <string.h>

static __thread FgThread thread;
static __thread bool registered; /* thread_ends will be called */
static Py_ssize_t hooking; /* threads (and nested blocks) that need the hook; guarded by the GIL */
static _PyFrameEvalFunction before; /* who evaluated frames when we came */
static __thread FgFrame *passing;   /* the frame that `before` has in hand */
static __thread int shielded;       /* frames of this thread are ours: no evaluator is to see them */

/* What the next frame of `code` takes over. */
static __thread struct {
    PyCodeObject *code;
    const FgGift *gift;
} giving;

static PyObject *evaluate(PyThreadState *ts, FgFrame *frame, int throwing);

FgThread *fg_thread(void)
{
    return &thread;
}

static bool needs_hook(int mode)
{
    return mode == FG_HOOK || mode == FG_RUN_ONLY;
}

/* On top of whoever evaluates frames now; another may have come on top of us since the last time. */
static void count(int delta)
{
    PyInterpreterState *interp = PyInterpreterState_Get();
    Py_ssize_t old = hooking;
    hooking += delta;
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interp);
    if (old == 0 && hooking && now == evaluate)
        before = NULL; /* the one that had come on top of us has gone, and left us here */
    else if (delta > 0 && now != evaluate) {
        before = now;
        _PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
    }
    else if (old && !hooking && now == evaluate)
        _PyInterpreterState_SetEvalFrameFunc(interp, before ? before : _PyEval_EvalFrameDefault);
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

PyObject *fg_call_apart(PyObject *callable, PyObject *first, PyObject *second)
{
    FgThread old = fg_swap_mode(FG_DISABLED, NULL, NULL);
    /* Another evaluator must not capture the capturing. */
    PyInterpreterState *interp = PyInterpreterState_Get();
    _PyFrameEvalFunction other = _PyInterpreterState_GetEvalFrameFunc(interp);
    if (other != _PyEval_EvalFrameDefault)
        _PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
    shielded++;
    PyObject *answer = PyObject_CallFunctionObjArgs(callable, first, second, NULL);
    shielded--;
    if (_PyInterpreterState_GetEvalFrameFunc(interp) == evaluate)
        _PyInterpreterState_SetEvalFrameFunc(interp, other);
    fg_restore_mode(old);
    return answer;
}

FgEntry *fg_ask(PyObject *miss, PyObject *callee, PyObject *const *args, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    if (!tuple)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    PyObject *answer = fg_call_quietly(miss, callee, tuple);
    Py_DECREF(tuple);
    if (answer == Py_None)
        Py_CLEAR(answer);
    else if (answer && Py_TYPE(answer) != &FgEntry_Type) {
        PyErr_Format(PyExc_TypeError, "miss must return an Entry or None, not %.200s", Py_TYPE(answer)->tp_name);
        Py_CLEAR(answer);
    }
    return (FgEntry *)answer;
}

/* Another evaluator may have saved us as the one to go on with, and come back with the very frame it got from us. */
static PyObject *next(PyThreadState *ts, FgFrame *frame, int throwing)
{
    if (!before || before == _PyEval_EvalFrameDefault || passing == frame)
        return _PyEval_EvalFrameDefault(ts, frame, throwing);
    FgFrame *outer = passing;
    passing = frame;
    PyObject *result = before(ts, frame, throwing);
    passing = outer;
    return result;
}

PyObject *fg_call_giving(PyFunctionObject *fn, PyObject *const *args, size_t nargsf, const FgGift *gift)
{
    if (gift && gift->n) {
        giving.code = (PyCodeObject *)fn->func_code;
        giving.gift = gift;
    }
    PyObject *result = PyObject_Vectorcall((PyObject *)fn, args, nargsf, NULL);
    giving.code = NULL; /* nobody took it: another evaluator has the frames, or there was none */
    return result;
}

void fg_hand_over(const FgGift *gift)
{
    for (int s = 0; s < gift->n; s++) {
        const FgSpan *span = &gift->spans[s];
        for (Py_ssize_t i = 0; i < span->n; i++) {
            PyObject *given = span->items[i];
            span->items[i] = Py_XNewRef(span->left);
            Py_XDECREF(given);
        }
    }
}

/* The frame has references of its own by now, so that none of these is the last. */
static void take_over(void)
{
    const FgGift *gift = giving.gift;
    giving.code = NULL;
    fg_hand_over(gift);
}

/* A frame that is not captured, nor is what it calls. */
static PyObject *skip_deep(PyThreadState *ts, FgFrame *frame, int throwing)
{
    FgThread old = fg_swap_mode(FG_DEFAULT, NULL, NULL);
    PyObject *result = next(ts, frame, throwing);
    fg_restore_mode(old);
    return result;
}

static PyObject *skip(PyThreadState *ts, FgFrame *frame, int throwing, FgExtra *extra)
{
    return extra && extra->skip == FG_SKIP_DEEP ? skip_deep(ts, frame, throwing) : next(ts, frame, throwing);
}

/* The frame is answered for, by a result or an error. */
static PyObject *done(PyThreadState *ts, FgFrame *frame, PyObject *result)
{
    FG_FRAME_DONE(ts, frame);
    return result;
}

/* Whether the call is answered for: by an entry that fits or is made now, or by an error. */
static bool captured(FgExtra *extra, FgFrame *frame, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    FgInputs inputs;
    fg_inputs_init(&inputs);
    *result = NULL;
    shielded++; /* code of the program that guards run (an __eq__) would be guarded in its turn, without end */
    FgEntry *entry = extra ? fg_lookup(extra, thread.ctx, fn, args, n, &inputs) : NULL;
    shielded--;
    if (!entry && extra && PyErr_Occurred())
        return true;
    if (!entry && thread.mode == FG_HOOK && thread.miss) {
        entry = fg_ask(thread.miss, (PyObject *)fn, args, n);
        if (entry && fg_entry_inputs(entry, fn, args, n, &inputs) < 0)
            Py_CLEAR(entry);
        if (!entry && PyErr_Occurred())
            return true;
    }
    if (!entry)
        return false;
    FgGift gift;
    gift.n = 0;
    fg_give(&gift, FG_FRAME_LOCALS(frame), n, NULL);
    *result = fg_entry_call(entry, fn, args, n, &inputs, &gift);
    fg_inputs_clear(&inputs);
    Py_DECREF(entry);
    return true;
}

static PyObject *evaluate(PyThreadState *ts, FgFrame *frame, int throwing)
{
    PyCodeObject *code = FG_FRAME_CODE(frame);
    const int wanted = CO_OPTIMIZED | CO_NEWLOCALS, unwanted = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    if (giving.code == code)
        take_over();
    if (shielded)
        return _PyEval_EvalFrameDefault(ts, frame, throwing);
    /* Under another evaluator that came on top of us, frames are its own. */
    if (_PyInterpreterState_GetEvalFrameFunc(ts->interp) != evaluate)
        return next(ts, frame, throwing);
    if (throwing || passing == frame || !needs_hook(thread.mode) || (code->co_flags & wanted) != wanted || code->co_flags & unwanted ||
        !FG_FRAME_AT_START(frame))
        return next(ts, frame, throwing);
    if (ts->tracing) /* a debugger's or profiler's own */
        return next(ts, frame, throwing);
    if (FG_RECURSION_LOW(ts)) /* captured, a call may take two frames and some of the C stack */
        return skip_deep(ts, frame, throwing);
    FgExtra *extra = fg_extra(code, false);
    if ((extra && extra->skip) || (!extra && thread.mode == FG_RUN_ONLY))
        return skip(ts, frame, throwing, extra);
    Py_ssize_t n = fg_parameter_count(code);
    if (n > 255) /* more than any function that is worth capturing */
        return next(ts, frame, throwing);
    PyObject *args[256];
    for (Py_ssize_t i = 0; i < n; i++) {
        args[i] = fg_frame_argument(frame, i);
        if (!args[i])
            return next(ts, frame, throwing);
    }
    PyFunctionObject *fn = fg_frame_function(frame);
    if (!fn)
        return done(ts, frame, NULL);
    PyObject *result;
    if (!captured(extra, frame, fn, args, n, &result))
        result = skip(ts, frame, throwing, fg_extra(code, false));
    else
        result = done(ts, frame, result);
    Py_DECREF(fn);
    return result;
}
