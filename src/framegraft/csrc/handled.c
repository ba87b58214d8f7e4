/* Exceptions that are being handled, as one object each, where CPython has three entries of the stack for one. */
#include "core.h"
#ifdef FG_BLOCK_STACK

/* -> the exception that was being handled before, or None */
PyObject *fg_handle(PyObject *self, PyObject *exception)
{
    if (!PyExceptionInstance_Check(exception)) {
        PyErr_Format(PyExc_TypeError, "exception must be one, not %.200s", Py_TYPE(exception)->tp_name);
        return NULL;
    }
    PyObject *before = PyThreadState_Get()->exc_info->exc_value;
    Py_XINCREF(before);
    fg_unhandle(self, exception);
    return before ? before : Py_NewRef(Py_None);
}

PyObject *fg_unhandle(PyObject *self, PyObject *before)
{
    bool none = !PyExceptionInstance_Check(before);
    _PyErr_StackItem *item = PyThreadState_Get()->exc_info;
    PyObject *type = item->exc_type, *value = item->exc_value, *trace = item->exc_traceback;
    item->exc_type = none ? NULL : Py_NewRef((PyObject *)Py_TYPE(before));
    item->exc_value = none ? NULL : Py_NewRef(before);
    item->exc_traceback = none ? NULL : PyException_GetTraceback(before);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
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
