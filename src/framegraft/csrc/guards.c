/* The guard program: a flat array of nodes, each an object reached from another, with checks. */
#include "core.h"
#include <string.h>

enum Access {
    A_ARG, A_GLOBALS, A_BUILTINS, A_CELL, A_CELLOBJ, A_FN, A_CONST, A_ATTR, A_DICT, A_KEY, A_ITEM, A_TYPE, A_TYPEATTR,
    A_MAPKEYAT, A_FCODE, A_FDEFAULTS, A_FKWDEFAULTS, A_FCLOSURE, A_FGLOBALS, A_FDICT, A_CELLVAL, A_MFUNC, A_MSELF, A_GRAD,
    A_PYCALL, A_STATE, A_NONE, A_COUNT
};
static const char *const access_names[] = {
    "ARG", "GLOBALS", "BUILTINS", "CELL", "CELLOBJ", "FN", "CONST", "ATTR", "DICT", "KEY", "ITEM", "TYPE", "TYPEATTR",
    "MAPKEYAT", "FCODE", "FDEFAULTS", "FKWDEFAULTS", "FCLOSURE", "FGLOBALS", "FDICT", "CELLVAL", "MFUNC", "MSELF", "GRAD",
    "PYCALL", "STATE", "NONE"};
enum Kind {
    C_ID, C_TYPE, C_EQ, C_LEN, C_KEYS, C_HASKEY, C_NOKEY, C_ABSENT, C_PRESENT, C_TRUTH, C_TYPEVER, C_TENSOR, C_PY, C_RANGE,
    C_STATE, C_NOALIAS, C_ALIAS, C_COUNT
};
static const char *const kind_names[] = {"ID", "TYPE", "EQ", "LEN", "KEYS", "HASKEY", "NOKEY", "ABSENT", "PRESENT", "TRUTH",
                                         "TYPEVER", "TENSOR", "PY", "RANGE", "STATE", "NOALIAS", "ALIAS"};

typedef struct {
    enum Kind kind;
    char weak;
    Py_ssize_t id, n;
    PyObject *payload;   /* ID: the object or a weakref to it; TYPEVER: flat tuple (name, object or weakref, ...) */
    unsigned int version; /* TYPEVER: the type's version tag when all look-ups last held */
} Check;

typedef struct {
    enum Access access;
    char weak;
    Py_ssize_t parent, index, count;
    PyObject *arg;
    Check *checks;
    uint64_t version; /* KEY: the parent dict's version for which `cached` is the entry */
    PyObject *cached;
} Node;

typedef struct {
    PyObject_HEAD
    Py_ssize_t n;
    Node *nodes;
    char dead, runs_python;
} Program;

static int find(const char *const *names, int count, PyObject *name)
{
    for (int i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "unknown guard operation %R", name);
    return -1;
}

/* A weak reference where the object can have one; plain functions of a trace must not keep the program's objects alive. */
static PyObject *hold(PyObject *obj, char *weak)
{
    PyObject *ref = PyType_SUPPORTS_WEAKREFS(Py_TYPE(obj)) ? PyWeakref_NewRef(obj, NULL) : NULL;
    *weak = ref != NULL;
    if (ref)
        return ref;
    PyErr_Clear();
    return Py_NewRef(obj);
}

static inline PyObject *held(PyObject *obj, char weak)
{
    return weak ? PyWeakref_GET_OBJECT(obj) : obj;
}

static void program_dealloc(PyObject *self)
{
    Program *p = (Program *)self;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        Node *node = &p->nodes[i];
        for (Py_ssize_t k = 0; k < node->count; k++)
            Py_XDECREF(node->checks[k].payload);
        PyMem_Free(node->checks);
        Py_XDECREF(node->arg);
    }
    PyMem_Free(p->nodes);
    Py_TYPE(self)->tp_free(self);
}

static int load_typever(Check *check, PyObject *pairs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(pairs);
    PyObject *flat = PyTuple_New(3 * n);
    if (!flat)
        return -1;
    check->payload = flat;
    check->n = n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PyTuple_GET_ITEM(pairs, i), *value = PyTuple_GET_ITEM(pair, 1);
        char weak;
        PyTuple_SET_ITEM(flat, 3 * i, Py_NewRef(PyTuple_GET_ITEM(pair, 0)));
        PyTuple_SET_ITEM(flat, 3 * i + 1, hold(value, &weak));
        PyTuple_SET_ITEM(flat, 3 * i + 2, Py_NewRef(weak ? Py_True : Py_False));
    }
    return 0;
}

static int load_check(Program *p, Check *check, PyObject *item)
{
    PyObject *kind, *payload;
    if (!PyArg_ParseTuple(item, "UOn", &kind, &payload, &check->id))
        return -1;
    int k = find(kind_names, C_COUNT, kind);
    if (k < 0)
        return -1;
    check->kind = (enum Kind)k;
    switch (check->kind) {
    case C_ID:
        check->payload = hold(payload, &check->weak);
        return 0;
    case C_TYPEVER:
        return load_typever(check, payload);
    case C_LEN:
        check->n = PyLong_AsSsize_t(payload);
        return check->n == -1 && PyErr_Occurred() ? -1 : 0;
    case C_PY:
        p->runs_python = 1;
        break;
    case C_NOALIAS:
    case C_ALIAS:
        check->payload = PySequence_Tuple(payload);
        return check->payload ? 0 : -1;
    default:
        break;
    }
    check->payload = Py_NewRef(payload);
    return 0;
}

static int load_node(Program *p, Node *node, PyObject *item)
{
    PyObject *access, *arg, *checks;
    if (!PyArg_ParseTuple(item, "nUOO!", &node->parent, &access, &arg, &PyList_Type, &checks))
        return -1;
    int a = find(access_names, A_COUNT, access);
    if (a < 0)
        return -1;
    node->access = (enum Access)a;
    if (a == A_ARG || a == A_CELL || a == A_CELLOBJ || a == A_ITEM || a == A_MAPKEYAT) {
        node->index = PyLong_AsSsize_t(arg);
        if (node->index == -1 && PyErr_Occurred())
            return -1;
    }
    if (a == A_ATTR || a == A_PYCALL || a == A_GRAD)
        p->runs_python = 1;
    node->arg = a == A_CONST ? hold(arg, &node->weak) : Py_NewRef(arg);
    Py_ssize_t n = PyList_GET_SIZE(checks);
    node->checks = PyMem_Calloc((size_t)n + 1, sizeof(Check));
    if (!node->checks) {
        PyErr_NoMemory();
        return -1;
    }
    for (; node->count < n; node->count++)
        if (load_check(p, &node->checks[node->count], PyList_GET_ITEM(checks, node->count)) < 0) {
            node->count++; /* its payload may be set */
            return -1;
        }
    return 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *nodes;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &nodes))
        return NULL;
    Program *p = (Program *)type->tp_alloc(type, 0);
    if (!p)
        return NULL;
    Py_ssize_t n = PyList_GET_SIZE(nodes);
    p->nodes = PyMem_Calloc((size_t)n + 1, sizeof(Node));
    if (!p->nodes) {
        Py_DECREF(p);
        return PyErr_NoMemory();
    }
    for (; p->n < n; p->n++)
        if (load_node(p, &p->nodes[p->n], PyList_GET_ITEM(nodes, p->n)) < 0) {
            p->n++;
            Py_DECREF(p);
            return NULL;
        }
    return (PyObject *)p;
}

/* -- access: each gives a new reference, or NULL for "missing" (errors are cleared) */

static PyObject *key_of(Node *node, PyObject *dict)
{
    if (!PyDict_Check(dict))
        return NULL;
    uint64_t version = FG_DICT_VERSION(dict);
    if (version == node->version && node->version)
        return node->cached;
    PyObject *value = PyDict_GetItemWithError(dict, node->arg);
    if (!value)
        PyErr_Clear();
    /* The look-up may have run __eq__ of a key and changed the dict: cache only what still holds. */
    node->version = FG_DICT_VERSION(dict) == version ? version : 0;
    node->cached = value;
    return value;
}

static PyObject *builtins_of(PyFunctionObject *fn)
{
    return fn->func_builtins;
}

static PyObject *access_value(Node *node, PyObject *base, PyObject *const *args, Py_ssize_t n, PyFunctionObject *fn)
{
    PyObject *v = NULL;
    switch (node->access) {
    case A_ARG:
        v = node->index < n ? args[node->index] : NULL;
        break;
    case A_GLOBALS:
        v = fn->func_globals;
        break;
    case A_BUILTINS:
        v = builtins_of(fn);
        break;
    case A_CELL:
    case A_CELLOBJ:
        if (fn->func_closure && node->index < PyTuple_GET_SIZE(fn->func_closure)) {
            v = PyTuple_GET_ITEM(fn->func_closure, node->index);
            if (node->access == A_CELL)
                v = PyCell_GET(v);
        }
        break;
    case A_FN:
        v = (PyObject *)fn;
        break;
    case A_CONST:
        v = held(node->arg, node->weak);
        break;
    case A_ATTR:
    case A_GRAD:
        v = PyObject_GetAttr(base, node->arg);
        if (!v)
            PyErr_Clear();
        return v;
    case A_PYCALL:
        v = PyObject_CallOneArg(node->arg, base);
        if (!v)
            PyErr_Clear();
        return v;
    case A_DICT: {
        PyObject **p = _PyObject_GetDictPtr(base);
        v = p ? *p : NULL;
        break;
    }
    case A_KEY:
        v = key_of(node, base);
        break;
    case A_ITEM:
        if (PyList_Check(base))
            v = node->index < PyList_GET_SIZE(base) ? PyList_GET_ITEM(base, node->index) : NULL;
        else if (PyTuple_Check(base))
            v = node->index < PyTuple_GET_SIZE(base) ? PyTuple_GET_ITEM(base, node->index) : NULL;
        break;
    case A_TYPE:
        v = (PyObject *)Py_TYPE(base);
        break;
    case A_TYPEATTR:
        v = PyType_Check(base) ? _PyType_Lookup((PyTypeObject *)base, node->arg) : NULL;
        break;
    case A_MAPKEYAT:
        if (PyDict_Check(base)) {
            Py_ssize_t pos = 0, i = 0;
            PyObject *key, *value;
            while (PyDict_Next(base, &pos, &key, &value))
                if (i++ == node->index) {
                    v = key;
                    break;
                }
        }
        break;
    case A_CELLVAL:
        v = PyCell_Check(base) ? PyCell_GET(base) : NULL;
        break;
    case A_MFUNC:
        v = PyMethod_Check(base) ? PyMethod_GET_FUNCTION(base) : NULL;
        break;
    case A_MSELF:
        v = PyMethod_Check(base) ? PyMethod_GET_SELF(base) : NULL;
        break;
    case A_STATE:
    case A_NONE:
        v = Py_None;
        break;
    default:
        if (!PyFunction_Check(base))
            break;
        PyFunctionObject *f = (PyFunctionObject *)base;
        if (node->access == A_FCODE)
            v = f->func_code;
        else if (node->access == A_FDEFAULTS)
            v = f->func_defaults ? f->func_defaults : Py_None;
        else if (node->access == A_FKWDEFAULTS)
            v = f->func_kwdefaults ? f->func_kwdefaults : Py_None;
        else if (node->access == A_FCLOSURE)
            v = f->func_closure ? f->func_closure : Py_None;
        else if (node->access == A_FGLOBALS)
            v = f->func_globals;
        else if (node->access == A_FDICT)
            v = f->func_dict;
    }
    return Py_XNewRef(v);
}

/* -- checks: 1 holds, 0 fails; errors are cleared and count as a failure */

static int equals(PyObject *value, PyObject *expected)
{
    if (Py_TYPE(value) != Py_TYPE(expected))
        return 0;
    if (value == expected)
        return 1;
    if (PyFloat_CheckExact(value)) {
        double a = PyFloat_AS_DOUBLE(value), b = PyFloat_AS_DOUBLE(expected);
        return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
    }
    if (PyComplex_CheckExact(value)) {
        Py_complex a = ((PyComplexObject *)value)->cval, b = ((PyComplexObject *)expected)->cval;
        return memcmp(&a, &b, sizeof a) == 0;
    }
    int same = PyObject_RichCompareBool(value, expected, Py_EQ);
    if (same < 0)
        PyErr_Clear();
    return same > 0;
}

static Py_ssize_t length(PyObject *value)
{
    if (PyList_Check(value) || PyTuple_Check(value))
        return Py_SIZE(value);
    if (PyDict_Check(value))
        return PyDict_GET_SIZE(value);
    if (PyAnySet_Check(value))
        return PySet_GET_SIZE(value);
    return -1;
}

static int same_keys(PyObject *dict, PyObject *keys)
{
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys))
        return 0;
    Py_ssize_t pos = 0, i = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &pos, &key, &value)) {
        PyObject *expected = PyTuple_GET_ITEM(keys, i++);
        if (key != expected && !equals(key, expected))
            return 0;
    }
    return 1;
}

static int type_lookups(Check *check, PyObject *value)
{
    if (!PyType_Check(value))
        return 0;
    PyTypeObject *type = (PyTypeObject *)value;
    if (check->version && type->tp_version_tag == check->version && PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG))
        return 1;
    for (Py_ssize_t i = 0; i < check->n; i++) {
        PyObject *expected = held(PyTuple_GET_ITEM(check->payload, 3 * i + 1), PyTuple_GET_ITEM(check->payload, 3 * i + 2) == Py_True);
        PyObject *found = _PyType_Lookup(type, PyTuple_GET_ITEM(check->payload, 3 * i));
        if ((found ? found : fg_missing) != expected)
            return 0;
    }
    check->version = PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
    return 1;
}

static int distinct(PyObject *indexes, PyObject **values)
{
    Py_ssize_t n = PyTuple_GET_SIZE(indexes);
    if (n <= 8) {
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *a = values[PyLong_AsSsize_t(PyTuple_GET_ITEM(indexes, i))];
            for (Py_ssize_t j = 0; j < i; j++)
                if (a == values[PyLong_AsSsize_t(PyTuple_GET_ITEM(indexes, j))])
                    return 0;
        }
        return 1;
    }
    size_t size = 16;
    while (size < (size_t)n * 2)
        size *= 2;
    PyObject *small[1024], **table = size <= 1024 ? small : PyMem_Malloc(size * sizeof *table);
    if (!table)
        return 0;
    memset(table, 0, size * sizeof *table);
    int ok = 1;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *a = values[PyLong_AsSsize_t(PyTuple_GET_ITEM(indexes, i))];
        size_t slot = ((uintptr_t)a >> 4) * 0x9E3779B97F4A7C15u >> 20 & (size - 1);
        while (table[slot] && table[slot] != a)
            slot = (slot + 1) & (size - 1);
        ok = table[slot] != a || !a;
        table[slot] = a;
    }
    if (table != small)
        PyMem_Free(table);
    return ok;
}

static int holds(Check *c, PyObject *value, PyObject **values)
{
    if (c->kind == C_ABSENT)
        return value == NULL;
    if (!value)
        return 0;
    int r = 0;
    switch (c->kind) {
    case C_ID:
        return value == held(c->payload, c->weak);
    case C_TYPE:
        return (PyObject *)Py_TYPE(value) == c->payload;
    case C_EQ:
        return equals(value, c->payload);
    case C_LEN:
        return length(value) == c->n;
    case C_KEYS:
        return same_keys(value, c->payload);
    case C_HASKEY:
    case C_NOKEY:
        r = PyDict_Check(value) ? PyDict_Contains(value, c->payload) : -1;
        if (r < 0) {
            PyErr_Clear();
            return 0;
        }
        return r == (c->kind == C_HASKEY);
    case C_PRESENT:
        return 1;
    case C_TRUTH:
        r = PyObject_IsTrue(value);
        break;
    case C_TYPEVER:
        return type_lookups(c, value);
    case C_TENSOR:
        r = fg_tensor_matches(c->payload, value);
        break;
    case C_STATE:
        r = fg_state_matches(c->payload);
        break;
    case C_PY: {
        PyObject *answer = PyObject_CallOneArg(c->payload, value);
        r = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        break;
    }
    case C_RANGE: {
        int over;
        long long v = PyLong_CheckExact(value) ? PyLong_AsLongLongAndOverflow(value, &over) : 0;
        r = PyLong_CheckExact(value) && !over && v >= PyLong_AsLongLong(PyTuple_GET_ITEM(c->payload, 0)) &&
            v <= PyLong_AsLongLong(PyTuple_GET_ITEM(c->payload, 1));
        break;
    }
    case C_NOALIAS:
        return distinct(c->payload, values);
    case C_ALIAS: {
        PyObject *a = values[PyLong_AsSsize_t(PyTuple_GET_ITEM(c->payload, 0))];
        return a && a == values[PyLong_AsSsize_t(PyTuple_GET_ITEM(c->payload, 1))];
    }
    default:
        break;
    }
    if (r < 0)
        PyErr_Clear();
    if (c->kind == C_TRUTH)
        return r >= 0 && r == (c->payload == Py_True);
    return r > 0;
}

Py_ssize_t fg_program_run(PyObject *program, PyObject *const *args, Py_ssize_t n, PyFunctionObject *fn, PyObject **value)
{
    Program *p = (Program *)program;
    PyObject *small[256], **values = p->n <= 256 ? small : PyMem_Malloc(sizeof(PyObject *) * (size_t)p->n);
    if (!values) {
        PyErr_NoMemory();
        return -3;
    }
    Py_ssize_t failed = -1, i = 0;
    for (; i < p->n && failed == -1; i++) {
        Node *node = &p->nodes[i];
        PyObject *base = node->parent >= 0 ? values[node->parent] : NULL;
        PyObject *v = node->parent >= 0 && !base ? NULL : access_value(node, base, args, n, fn);
        values[i] = v;
        if (node->access == A_CONST && node->weak && v == Py_None) {
            p->dead = 1;
            failed = -2;
        }
        for (Py_ssize_t k = 0; failed == -1 && k < node->count; k++)
            if (!holds(&node->checks[k], v, values))
                failed = node->checks[k].id;
    }
    if (value)
        *value = failed == -1 ? NULL : Py_NewRef(i && values[i - 1] ? values[i - 1] : fg_missing);
    while (i-- > 0)
        Py_XDECREF(values[i]);
    if (values != small)
        PyMem_Free(values);
    return failed;
}

static int parse_call(PyObject *args, PyObject **tuple, PyObject **fn)
{
    return PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, tuple, &PyFunction_Type, fn);
}

static PyObject *program_check(PyObject *self, PyObject *args)
{
    PyObject *tuple, *fn;
    if (!parse_call(args, &tuple, &fn))
        return NULL;
    Py_ssize_t failed = fg_program_run(self, &PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple), (PyFunctionObject *)fn, NULL);
    return failed == -3 ? NULL : PyBool_FromLong(failed == -1);
}

static PyObject *program_explain(PyObject *self, PyObject *args)
{
    PyObject *tuple, *fn, *value;
    if (!parse_call(args, &tuple, &fn))
        return NULL;
    Py_ssize_t failed = fg_program_run(self, &PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple), (PyFunctionObject *)fn, &value);
    if (failed == -3)
        return NULL;
    if (failed == -1)
        Py_RETURN_NONE;
    return Py_BuildValue("nN", failed, value);
}

static PyObject *program_dead(PyObject *self, void *unused)
{
    return PyBool_FromLong(((Program *)self)->dead);
}

static Py_ssize_t program_len(PyObject *self)
{
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < ((Program *)self)->n; i++)
        total += ((Program *)self)->nodes[i].count;
    return total;
}

static PyMethodDef program_methods[] = {
    {"check", program_check, METH_VARARGS, "check(args, fn): whether every guard holds."},
    {"explain", program_explain, METH_VARARGS, "explain(args, fn): None, or (guard, value) of the first that fails."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef program_getset[] = {{"dead", program_dead, NULL, "An object that it relies on has died.", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
static PySequenceMethods program_sequence = {.sq_length = program_len};

PyTypeObject FgGuardProgram_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.GuardProgram",
    .tp_basicsize = sizeof(Program),
    .tp_dealloc = program_dealloc,
    .tp_new = program_new,
    .tp_methods = program_methods,
    .tp_getset = program_getset,
    .tp_as_sequence = &program_sequence,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "GuardProgram(nodes): checks of everything that a capture relied on.",
};
