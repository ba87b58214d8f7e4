/* Whether a class is a (virtual) subclass of an abstract base class.

ABCMeta keeps each answer: "yes" for as long as the class lives, "no" until the next ABCMeta.register() of anybody, which counts
the ABC cache token (abc.get_cache_token) up. So an answer that has been given once stays the same as long as the token does. */
#include "guards.h"

const uint64_t *fg_abc_token;

static PyObject *ask(PyObject *base, PyObject *cls)
{
    static PyObject *check; /* what ABCMeta.__subclasscheck__ calls */
    if (!check) {
        PyObject *module = PyImport_ImportModule("_abc");
        check = module ? PyObject_GetAttrString(module, "_abc_subclasscheck") : NULL;
        Py_XDECREF(module);
    }
    return check ? PyObject_CallFunctionObjArgs(check, base, cls, NULL) : NULL;
}

int fg_subclass_holds(Check *c, PyObject *value)
{
    c->token = fg_abc_token ? *fg_abc_token : 0; /* before the answer, which may run code that registers more */
    PyObject *answer = ask(value, PyTuple_GET_ITEM(c->payload, 0));
    int yes = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return yes < 0 ? fg_forgive() : yes == (PyTuple_GET_ITEM(c->payload, 1) == Py_True);
}

PyObject *fg_set_abc_token(PyObject *self, PyObject *address)
{
    void *at = PyLong_AsVoidPtr(address);
    if (!at && PyErr_Occurred())
        return NULL;
    fg_abc_token = at;
    Py_RETURN_NONE;
}
