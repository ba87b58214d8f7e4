/* Exceptions that are being handled, as one object each, where CPython has three entries of the stack for one. */
#include "core.h"
#ifdef FG_BLOCK_STACK

/* NULL: none is handled */
static void set_handled(PyObject *exception, PyObject *trace)
{
    _PyErr_StackItem *item = PyThreadState_Get()->exc_info;
    PyObject *old_type = item->exc_type, *old_value = item->exc_value, *old_trace = item->exc_traceback;
    item->exc_type = exception ? Py_NewRef((PyObject *)Py_TYPE(exception)) : NULL;
    item->exc_value = Py_XNewRef(exception);
    item->exc_traceback = exception ? Py_XNewRef(trace) : NULL;
    Py_XDECREF(old_type);
    Py_XDECREF(old_value);
    Py_XDECREF(old_trace);
}

/* -> what unhandle() takes: the exception that was being handled before, with the traceback that its handler got; or None */
PyObject *fg_handle(PyObject *self, PyObject *exception)
{
    if (!PyExceptionInstance_Check(exception)) {
        PyErr_Format(PyExc_TypeError, "exception must be one, not %.200s", Py_TYPE(exception)->tp_name);
        return NULL;
    }
    _PyErr_StackItem *item = PyThreadState_Get()->exc_info;
    PyObject *before = item->exc_value, *kept = item->exc_traceback;
    before = !before || before == Py_None ? Py_NewRef(Py_None) : PyTuple_Pack(2, before, kept ? kept : Py_None);
    if (!before)
        return NULL;
    PyObject *trace = PyException_GetTraceback(exception);
    set_handled(exception, trace);
    Py_XDECREF(trace);
    return before;
}

PyObject *fg_unhandle(PyObject *self, PyObject *before)
{
    if (before == Py_None)
        set_handled(NULL, NULL);
    else if (PyTuple_CheckExact(before) && PyTuple_GET_SIZE(before) == 2)
        set_handled(PyTuple_GET_ITEM(before, 0), PyTuple_GET_ITEM(before, 1));
    else
        return PyErr_Format(PyExc_TypeError, "not from handle(): %.200s", Py_TYPE(before)->tp_name);
    Py_RETURN_NONE;
}

PyObject *fg_set_handled_traceback(PyObject *self, PyObject *trace)
{
    PyObject *exception = PyThreadState_Get()->exc_info->exc_value;
    Py_XINCREF(exception);
    set_handled(exception, trace);
    Py_XDECREF(exception);
    Py_RETURN_NONE;
}

/* (type, value, traceback) */
PyObject *fg_as_three(PyObject *self, PyObject *exception)
{
    if (!PyExceptionInstance_Check(exception)) {
        PyErr_Format(PyExc_TypeError, "exception must be one, not %.200s", Py_TYPE(exception)->tp_name);
        return NULL;
    }
    PyObject *trace = PyException_GetTraceback(exception);
    return Py_BuildValue("(OON)", Py_TYPE(exception), exception, trace ? trace : Py_NewRef(Py_None));
}

/* The same of one that goes on as its handler got it: with the traceback of that time, which a context manager into whose
   generator it was thrown has lengthened since. */
PyObject *fg_as_handled(PyObject *self, PyObject *exception)
{
    _PyErr_StackItem *item = PyThreadState_Get()->exc_info;
    if (item->exc_value != exception || !item->exc_traceback)
        return fg_as_three(self, exception);
    return PyTuple_Pack(3, Py_TYPE(exception), exception, item->exc_traceback);
}

/* (cell, name): what LOAD_DEREF does. */
PyObject *fg_load_cell(PyObject *self, PyObject *args)
{
    PyObject *cell, *name;
    if (!PyArg_ParseTuple(args, "O!U", &PyCell_Type, &cell, &name))
        return NULL;
    PyObject *value = PyCell_GET(cell);
    if (!value)
        return PyErr_Format(PyExc_UnboundLocalError, "local variable '%U' referenced before assignment", name);
    return Py_NewRef(value);
}
#endif
