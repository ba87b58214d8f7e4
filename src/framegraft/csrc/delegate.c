/* Delegate: stands for the iterator of a `yield from` at which a generator that is made anew has to stop first. */
#include "core.h"

typedef struct {
    PyObject_HEAD
    PyObject *iterator;
    bool waits; /* what it gives first is None, and not the iterator's */
} Delegate;

/* What SEND does: an iterator of any kind (PyIter_Send asks this type itself). */
static PySendResult delegate_send(PyObject *o, PyObject *value, PyObject **result)
{
    Delegate *self = (Delegate *)o;
    if (self->waits) {
        self->waits = false;
        *result = Py_NewRef(Py_None);
        return PYGEN_NEXT;
    }
    PyObject *iterator = Py_NewRef(self->iterator);
    PySendResult how = PyIter_Send(iterator, value, result);
    Py_DECREF(iterator);
    return how;
}

static PyObject *delegate_next(PyObject *o)
{
    PyObject *result = NULL;
    PySendResult how = delegate_send(o, Py_None, &result);
    if (how != PYGEN_RETURN)
        return result;
    if (result != Py_None) { /* an instance of its own, since a tuple would be taken for its arguments */
        PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, result);
        if (stop)
            PyErr_SetObject(PyExc_StopIteration, stop);
        Py_XDECREF(stop);
    }
    Py_DECREF(result);
    return NULL;
}

/* send, throw, close and what else the iterator has */
static PyObject *delegate_getattro(PyObject *o, PyObject *name)
{
    return PyObject_GetAttr(((Delegate *)o)->iterator, name);
}

static PyObject *delegate_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *iterator;
    if (!PyArg_ParseTuple(args, "O", &iterator))
        return NULL;
    Delegate *self = (Delegate *)type->tp_alloc(type, 0);
    if (self) {
        self->iterator = Py_NewRef(iterator);
        self->waits = true;
    }
    return (PyObject *)self;
}

static int delegate_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(((Delegate *)o)->iterator);
    return 0;
}

/* No tp_clear: a cycle through it passes the generator that waits for it, and is cleared there. */
static void delegate_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    Py_CLEAR(((Delegate *)o)->iterator);
    Py_TYPE(o)->tp_free(o);
}

static PyAsyncMethods delegate_async = {.am_send = delegate_send};

PyTypeObject FgDelegate_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.Delegate",
    .tp_basicsize = sizeof(Delegate),
    .tp_new = delegate_new,
    .tp_dealloc = delegate_dealloc,
    .tp_traverse = delegate_traverse,
    .tp_as_async = &delegate_async,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = delegate_next,
    .tp_getattro = delegate_getattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Delegate(iterator): gives None, then is the iterator of a `yield from`.",
};
