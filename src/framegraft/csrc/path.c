/* Path: what model/source.py builds its sources on. A trace looks each up in sets and dicts many times over. */
#include "core.h"
#include "structmember.h"

typedef struct FgPath {
    PyObject_HEAD
    PyObject *access, *key, *name;
    struct FgPath *base;
    Py_hash_t hash;
} Path;

/* Accessors whose key is an object that stands for itself. */
static bool by_identity(PyObject *access)
{
    if (!PyUnicode_GET_LENGTH(access) || (PyUnicode_READ_CHAR(access, 0) != 'C' && PyUnicode_READ_CHAR(access, 0) != 'P'))
        return false; /* most of them */
    return PyUnicode_CompareWithASCIIString(access, "CONST") == 0 || PyUnicode_CompareWithASCIIString(access, "PYCALL") == 0 ||
           PyUnicode_CompareWithASCIIString(access, "PROXIED") == 0;
}

static Py_uhash_t mixed(Py_uhash_t hash, Py_uhash_t more)
{
    return (hash ^ more) * (Py_uhash_t)1000003UL + 97;
}

static PyObject *make(PyTypeObject *type, PyObject *access, PyObject *key, PyObject *base)
{
    if (!PyUnicode_Check(access))
        return PyErr_Format(PyExc_TypeError, "access must be a str, not %.200s", Py_TYPE(access)->tp_name);
    if (base && !PyObject_TypeCheck(base, &FgPath_Type))
        return PyErr_Format(PyExc_TypeError, "base must be a path or None, not %.200s", Py_TYPE(base)->tp_name);
    Py_hash_t of_access = PyObject_Hash(access);
    Py_uhash_t of_key = (uintptr_t)key >> 4;
    if (!by_identity(access)) {
        Py_hash_t found = PyObject_Hash(key);
        if (found == -1)
            return NULL;
        of_key = mixed((Py_uhash_t)found, (uintptr_t)Py_TYPE(key) >> 4);
    }
    Path *self = (Path *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->access = Py_NewRef(access);
    self->key = Py_NewRef(key);
    self->base = (Path *)Py_XNewRef(base);
    Py_uhash_t hash = mixed(mixed((Py_uhash_t)of_access, of_key), base ? (Py_uhash_t)self->base->hash : 0);
    self->hash = hash == (Py_uhash_t)-1 ? -2 : (Py_hash_t)hash;
    return (PyObject *)self;
}

static PyObject *path_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"access", "key", "base", NULL};
    PyObject *access, *key = Py_None, *base = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|OO:Path", names, &access, &key, &base))
        return NULL;
    return make(type, access, key, base == Py_None ? NULL : base);
}

static PyObject *path_child(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (n < 1 || n > 2)
        return PyErr_Format(PyExc_TypeError, "child() takes an accessor and a key, not %zd arguments", n);
    return make(Py_TYPE(self), args[0], n == 2 ? args[1] : Py_None, self);
}

static PyObject *path_root(PyObject *o, PyObject *unused)
{
    Path *self = (Path *)o;
    while (self->base)
        self = self->base;
    return Py_NewRef(self);
}

static Py_hash_t path_hash(PyObject *self)
{
    return ((Path *)self)->hash;
}

/* 1, 0, or -1 with an exception, which comparing keys may raise. */
static int equal(Path *a, Path *b)
{
    for (; a != b; a = a->base, b = b->base) {
        if (!a || !b || a->hash != b->hash || (a->access != b->access && PyUnicode_Compare(a->access, b->access) != 0))
            return 0;
        if (a->key == b->key)
            continue;
        if (Py_TYPE(a->key) != Py_TYPE(b->key) || by_identity(a->access))
            return 0;
        int same = PyObject_RichCompareBool(a->key, b->key, Py_EQ);
        if (same <= 0)
            return same;
    }
    return 1;
}

static PyObject *path_compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(other, &FgPath_Type))
        Py_RETURN_NOTIMPLEMENTED;
    int same = equal((Path *)self, (Path *)other);
    return same < 0 ? NULL : PyBool_FromLong(same == (op == Py_EQ));
}

static int path_traverse(PyObject *o, visitproc visit, void *arg)
{
    Path *self = (Path *)o;
    Py_VISIT(self->access);
    Py_VISIT(self->key);
    Py_VISIT(self->name);
    Py_VISIT(self->base);
    return 0;
}

/* Only the key can lead back to the path: the other fields stay, so that one which is looked at on the way is whole. */
static int path_clear(PyObject *o)
{
    Path *self = (Path *)o;
    PyObject *key = self->key;
    self->key = Py_NewRef(Py_None);
    Py_XDECREF(key);
    return 0;
}

static void path_dealloc(PyObject *o)
{
    Path *self = (Path *)o;
    PyObject_GC_UnTrack(o);
    Py_XDECREF(self->access);
    Py_XDECREF(self->key);
    Py_XDECREF(self->name);
    Py_XDECREF(self->base);
    Py_TYPE(o)->tp_free(o);
}

static PyMemberDef members[] = {
    {"access", T_OBJECT, offsetof(Path, access), READONLY, "How the step is made."},
    {"key", T_OBJECT, offsetof(Path, key), READONLY, "What the accessor takes."},
    {"base", T_OBJECT, offsetof(Path, base), READONLY, "The path that the step is made from, or None."},
    {"_name", T_OBJECT, offsetof(Path, name), 0, "The path as it prints, once it has been."},
    {NULL}};

static PyMethodDef methods[] = {
    {"child", (PyCFunction)(void (*)(void))path_child, METH_FASTCALL, "child(access, key=None): one step further."},
    {"root", path_root, METH_NOARGS, "Where the path starts."},
    {NULL}};

PyTypeObject FgPath_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.Path",
    .tp_basicsize = sizeof(Path),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Path(access, key=None, base=None): a step from a path to an object; equal by value.",
    .tp_new = path_new,
    .tp_dealloc = path_dealloc,
    .tp_traverse = path_traverse,
    .tp_clear = path_clear,
    .tp_hash = path_hash,
    .tp_richcompare = path_compare,
    .tp_members = members,
    .tp_methods = methods,
};
