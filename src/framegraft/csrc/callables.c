/* Small callables that would cost too much in Python: a compiled graph out of the hook's reach, and a compiled module's call. */
#include "core.h"
#include "structmember.h"

/* -- Shielded: what a backend returned, called with the capturing switched off */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *compiled, *weakrefs;
} Shielded;

static PyObject *shielded_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *compiled = ((Shielded *)callable)->compiled;
    if (!compiled) {
        PyErr_SetString(PyExc_ReferenceError, "the compiled graph has been collected");
        return NULL;
    }
    Py_INCREF(compiled);
    FgThread old = fg_swap_mode(FG_DISABLED, NULL, NULL);
    PyObject *result = PyObject_Vectorcall(compiled, args, nargsf, kwnames);
    fg_restore_mode(old);
    Py_DECREF(compiled);
    return result;
}

static PyObject *shielded_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *compiled;
    if (!PyArg_ParseTuple(args, "O", &compiled))
        return NULL;
    if (!PyCallable_Check(compiled)) {
        PyErr_Format(PyExc_TypeError, "compiled must be callable, not %.200s", Py_TYPE(compiled)->tp_name);
        return NULL;
    }
    Shielded *self = (Shielded *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = shielded_call;
    self->compiled = Py_NewRef(compiled);
    return (PyObject *)self;
}

static int shielded_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(((Shielded *)o)->compiled);
    return 0;
}

static int shielded_clear(PyObject *o)
{
    Py_CLEAR(((Shielded *)o)->compiled);
    return 0;
}

static void shielded_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    if (((Shielded *)o)->weakrefs)
        PyObject_ClearWeakRefs(o);
    shielded_clear(o);
    Py_TYPE(o)->tp_free(o);
}

static PyMemberDef shielded_members[] = {{"__wrapped__", T_OBJECT, offsetof(Shielded, compiled), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};

PyTypeObject FgShielded_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.Shielded",
    .tp_basicsize = sizeof(Shielded),
    .tp_new = shielded_new,
    .tp_dealloc = shielded_dealloc,
    .tp_traverse = shielded_traverse,
    .tp_clear = shielded_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Shielded, vectorcall),
    .tp_weaklistoffset = offsetof(Shielded, weakrefs),
    .tp_members = shielded_members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Shielded(compiled): calls it with capturing switched off in this thread.",
};

/* -- ModuleCall: OptimizedModule.__call__ */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *call, *original; /* names in the instance's dict */
} ModuleCall;

enum { FEW = 8 };

/* Borrowed; NULL without an error for what is not there. */
static PyObject *entry_of(PyObject *dict, PyObject *name)
{
    return dict && PyDict_Check(dict) ? PyDict_GetItemWithError(dict, name) : NULL;
}

static PyObject *module_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    ModuleCall *self = (ModuleCall *)callable;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject **slot = n ? _PyObject_GetDictPtr(args[0]) : NULL, *dict = slot ? *slot : NULL;
    PyObject *call = entry_of(dict, self->call), *module = call ? entry_of(dict, self->original) : NULL;
    if (!module) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "__call__ takes a compiled module as its first argument");
        return NULL;
    }
    PyObject *small[FEW], **all = total <= FEW ? small : PyMem_Malloc((size_t)total * sizeof *all);
    if (!all)
        return PyErr_NoMemory();
    Py_INCREF(call);
    all[0] = Py_NewRef(module);
    for (Py_ssize_t i = 1; i < total; i++)
        all[i] = args[i];
    PyObject *result = PyObject_Vectorcall(call, all, (size_t)n, kwnames);
    Py_DECREF(module);
    Py_DECREF(call);
    if (all != small)
        PyMem_Free(all);
    return result;
}

static PyObject *module_call_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *call, *original;
    if (!PyArg_ParseTuple(args, "UU", &call, &original))
        return NULL;
    ModuleCall *self = (ModuleCall *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = module_call;
    self->call = Py_NewRef(call);
    self->original = Py_NewRef(original);
    return (PyObject *)self;
}

static void module_call_dealloc(PyObject *o)
{
    ModuleCall *self = (ModuleCall *)o;
    Py_XDECREF(self->call);
    Py_XDECREF(self->original);
    Py_TYPE(o)->tp_free(o);
}

static PyObject *module_call_get(PyObject *self, PyObject *obj, PyObject *type)
{
    return obj && obj != Py_None ? PyMethod_New(self, obj) : Py_NewRef(self);
}

PyTypeObject FgModuleCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.ModuleCall",
    .tp_basicsize = sizeof(ModuleCall),
    .tp_new = module_call_new,
    .tp_dealloc = module_call_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ModuleCall, vectorcall),
    .tp_descr_get = module_call_get,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc = "ModuleCall(call, original): the method that does\n"
              "self.__dict__[call](self.__dict__[original], *args, **kwargs).",
};
