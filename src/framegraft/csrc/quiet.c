/* What a debugger sees of a capture: the program's own functions, such as a backend, and no frames of the engine, of torch, of the
   standard library or of installed packages. Who steps into a call is to land in what it runs. */
#include "core.h"

static PyObject *is_foreign; /* is_foreign(filename) -> bool */
static PyObject *known;      /* filename -> bool */
static _Thread_local Py_tracefunc debugger;

PyObject *fg_set_quiet(PyObject *self, PyObject *fn)
{
    if (!known && !(known = PyDict_New()))
        return NULL;
    Py_XSETREF(is_foreign, Py_NewRef(fn));
    PyDict_Clear(known);
    Py_RETURN_NONE;
}

/* 1, 0 or -1 with an error */
static int is_hidden(PyObject *filename)
{
    PyObject *found = PyDict_GetItemWithError(known, filename);
    if (found || PyErr_Occurred())
        return found ? found == Py_True : -1;
    PyObject *told = PyObject_CallOneArg(is_foreign, filename);
    int answer = told ? PyObject_IsTrue(told) : -1;
    Py_XDECREF(told);
    if (answer >= 0 && PyDict_SetItem(known, filename, answer ? Py_True : Py_False) < 0)
        return -1;
    return answer;
}

static int quiet(PyObject *obj, PyFrameObject *frame, int what, PyObject *arg)
{
    PyObject *type, *value, *traceback; /* some events come with an error set */
    PyErr_Fetch(&type, &value, &traceback);
    PyCodeObject *code = PyFrame_GetCode(frame);
    int hidden = is_hidden(code->co_filename);
    Py_DECREF(code);
    if (hidden < 0) { /* out of memory: the debugger sees it all */
        PyErr_Clear();
        hidden = 0;
    }
    PyErr_Restore(type, value, traceback);
    return hidden ? 0 : debugger(obj, frame, what, arg);
}

PyObject *fg_call_quietly(PyObject *callable, PyObject *first, PyObject *second)
{
    PyThreadState *ts = PyThreadState_Get();
    PyObject *tracer = ts->c_tracefunc && ts->c_tracefunc != quiet && is_foreign ? ts->c_traceobj : NULL;
    if (!tracer || !(PyFunction_Check(tracer) || PyMethod_Check(tracer))) /* what measures coverage in C is to see everything */
        return fg_call_apart(callable, first, second);
    debugger = ts->c_tracefunc;
    ts->c_tracefunc = quiet;
    PyObject *answer = fg_call_apart(callable, first, second);
    if (ts->c_tracefunc == quiet) /* and was not switched on, off or exchanged meanwhile */
        ts->c_tracefunc = debugger;
    return answer;
}
