/* The guard program as an object: nodes, each an object reached from another, with checks. Loaded from Python, validated. */
#include "guards.h"
#include <string.h>

static const char *const access_names[] = {
    "ARG", "GLOBALS", "BUILTINS", "CELL", "CELLOBJ", "FN", "CONST", "ATTR", "DICT", "KEY", "ITEM", "TYPE", "TYPEATTR",
    "MAPKEYAT", "FCODE", "FDEFAULTS", "FKWDEFAULTS", "FCLOSURE", "FGLOBALS", "FNOTES", "FDICT", "CELLVAL", "MFUNC",
    "MSELF", "GRAD", "PYCALL", "PROXIED", "STATE", "NONE"};
static const char *const kind_names[] = {"ID", "TYPE", "EQ", "LEN", "KEYS", "HASKEY", "NOKEY", "ABSENT", "PRESENT", "TRUTH",
                                         "TYPEVER", "TENSOR", "PY", "RANGE", "STATE", "NOALIAS", "ALIAS", "MRO", "SHAPE", "METHOD",
                                         "SUBCLASS"};
_Static_assert(sizeof access_names / sizeof *access_names == A_COUNT, "a name for each access");
_Static_assert(sizeof kind_names / sizeof *kind_names == C_COUNT, "a name for each check");

static int find(const char *const *names, int count, PyObject *name)
{
    for (int i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "unknown guard operation %R", name);
    return -1;
}

/* A weak reference where the object can have one: guards must not keep the program's objects alive. NULL with an error. */
static PyObject *hold(PyObject *obj, char *weak)
{
    PyObject *ref = PyType_SUPPORTS_WEAKREFS(Py_TYPE(obj)) ? PyWeakref_NewRef(obj, NULL) : NULL;
    *weak = ref != NULL;
    if (!ref && PyErr_Occurred() && fg_forgive() < 0)
        return NULL;
    return ref ? ref : Py_NewRef(obj);
}

static bool simple(PyObject *obj, int depth)
{
    PyTypeObject *t = Py_TYPE(obj);
    if (t == &PyUnicode_Type || t == &PyLong_Type || t == &PyBool_Type || t == &PyFloat_Type || t == &PyBytes_Type ||
        t == &PyComplex_Type || obj == Py_None || obj == Py_Ellipsis)
        return true;
    if (t == &PyTuple_Type && depth < 8) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(obj); i++)
            if (!simple(PyTuple_GET_ITEM(obj, i), depth + 1))
                return false;
        return true;
    }
    return false;
}

bool fg_is_simple(PyObject *obj)
{
    return simple(obj, 0);
}

/* Objects of C's own types that are equal to nothing but themselves (a torch.dtype, a plain class) are keys as good as values. */
bool fg_is_stable_key(PyObject *obj)
{
    PyTypeObject *t = Py_TYPE(obj);
    return simple(obj, 0) || (PyType_HasFeature(t, Py_TPFLAGS_IMMUTABLETYPE) && t->tp_hash == PyBaseObject_Type.tp_hash &&
                              t->tp_richcompare == PyBaseObject_Type.tp_richcompare);
}

/* -- loading */

static int refuse(const char *kind, const char *wanted, PyObject *payload)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s takes %s, not %.80R", kind, wanted, payload);
    return -1;
}

static int load_lookups(Check *check, PyObject *pairs)
{
    if (!PyTuple_Check(pairs))
        return refuse("TYPEVER", "a tuple of (name, object)", pairs);
    check->lookups = PyMem_Calloc((size_t)PyTuple_GET_SIZE(pairs) + 1, sizeof *check->lookups);
    if (!check->lookups) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); i++) {
        PyObject *pair = PyTuple_GET_ITEM(pairs, i);
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyUnicode_CheckExact(PyTuple_GET_ITEM(pair, 0)))
            return refuse("TYPEVER", "a tuple of (name, object)", pairs);
        LookUp *l = &check->lookups[i];
        l->found = hold(PyTuple_GET_ITEM(pair, 1), &l->weak);
        if (!l->found)
            return -1;
        l->name = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
        check->n++;
    }
    return 0;
}

static int load_bases(Check *check, PyObject *bases)
{
    if (!PyTuple_Check(bases))
        return refuse("MRO", "a tuple of types", bases);
    check->lookups = PyMem_Calloc((size_t)PyTuple_GET_SIZE(bases) + 1, sizeof *check->lookups);
    if (!check->lookups) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
        LookUp *l = &check->lookups[check->n++];
        l->found = hold(PyTuple_GET_ITEM(bases, i), &l->weak);
        if (!l->found)
            return -1;
    }
    return 0;
}

/* Positions of nodes that come before this one. */
static int load_indexes(Check *check, PyObject *payload, Py_ssize_t here)
{
    PyObject *items = PySequence_Tuple(payload);
    if (!items)
        return -1;
    check->n = PyTuple_GET_SIZE(items);
    check->indexes = PyMem_Calloc((size_t)check->n + 1, sizeof *check->indexes);
    int ok = check->indexes ? 0 : -1;
    if (ok < 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; ok == 0 && i < check->n; i++) {
        check->indexes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(items, i));
        if (check->indexes[i] < 0 || check->indexes[i] >= here) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "a check of node %zd cannot look at node %zd", here, check->indexes[i]);
            ok = -1;
        }
    }
    Py_DECREF(items);
    if (ok == 0 && check->kind == C_ALIAS && check->n != 2)
        return refuse("ALIAS", "two positions", payload);
    return ok;
}

static int load_shape(Check *check, PyObject *payload, Py_ssize_t here)
{
    check->shape = fg_shape_load(payload);
    if (!check->shape)
        return -1;
    PyObject *slots = PyTuple_GET_ITEM(payload, 0), *positions = PyTuple_New(PyTuple_GET_SIZE(slots));
    for (Py_ssize_t i = 0; positions && i < PyTuple_GET_SIZE(slots); i++)
        PyTuple_SET_ITEM(positions, i, Py_NewRef(PyTuple_GET_ITEM(PyTuple_GET_ITEM(slots, i), 0)));
    int loaded = positions ? load_indexes(check, positions, here) : -1;
    Py_XDECREF(positions);
    return loaded;
}

static int load_range(Check *check, PyObject *payload)
{
    if (!PyTuple_Check(payload) || PyTuple_GET_SIZE(payload) != 2)
        return refuse("RANGE", "(low, high)", payload);
    check->low = PyLong_AsLongLong(PyTuple_GET_ITEM(payload, 0));
    if (check->low == -1 && PyErr_Occurred())
        return -1;
    check->high = PyLong_AsLongLong(PyTuple_GET_ITEM(payload, 1));
    return check->high == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Whether comparing what the check compares with the payload runs no code of the user's. */
static bool is_plain(enum Kind kind, PyObject *payload)
{
    if (kind == C_HASKEY || kind == C_NOKEY)
        return fg_is_stable_key(payload);
    if (kind != C_KEYS || !PyTuple_Check(payload))
        return fg_is_simple(payload);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(payload); i++)
        if (!fg_is_stable_key(PyTuple_GET_ITEM(payload, i)))
            return false;
    return true;
}

/* The payload is stored at once: whatever is wrong with it, the program's deallocation lets go of it. */
static int load_check(Check *check, PyObject *item, Py_ssize_t here)
{
    PyObject *kind, *payload;
    if (!PyTuple_Check(item)) {
        PyErr_Format(PyExc_TypeError, "a check is a tuple (kind, payload, id), not %.80R", item);
        return -1;
    }
    if (!PyArg_ParseTuple(item, "UOn", &kind, &payload, &check->id))
        return -1;
    if (check->id < 0) {
        PyErr_Format(PyExc_ValueError, "a check's id must not be negative, as %zd is", check->id);
        return -1;
    }
    int k = find(kind_names, C_COUNT, kind);
    if (k < 0)
        return -1;
    check->kind = (enum Kind)k;
    if (check->kind == C_ID) {
        check->payload = hold(payload, &check->weak);
        return check->payload ? 0 : -1;
    }
    check->simple = is_plain(check->kind, payload);
    switch (check->kind) {
    case C_TYPEVER:
        return load_lookups(check, payload);
    case C_MRO:
        return load_bases(check, payload);
    case C_NOALIAS:
    case C_ALIAS:
        return load_indexes(check, payload, here);
    case C_SHAPE:
        return load_shape(check, payload, here);
    case C_RANGE:
        return load_range(check, payload);
    case C_LEN:
        check->n = PyLong_AsSsize_t(payload);
        return check->n == -1 && PyErr_Occurred() ? -1 : 0;
    case C_TYPE:
        if (!PyType_Check(payload))
            return refuse("TYPE", "a type", payload);
        break;
    case C_METHOD:
        if (Py_TYPE(payload) != &PyMethodDescr_Type)
            return refuse("METHOD", "a method descriptor", payload);
        break;
    case C_KEYS:
        if (!PyTuple_Check(payload))
            return refuse("KEYS", "a tuple", payload);
        break;
    case C_SUBCLASS:
        if (!PyTuple_Check(payload) || PyTuple_GET_SIZE(payload) != 2 || !PyType_Check(PyTuple_GET_ITEM(payload, 0)))
            return refuse("SUBCLASS", "(a type, the answer)", payload);
        break;
    case C_TENSOR:
        if (Py_TYPE(payload) != &FgTensorSpec_Type)
            return refuse("TENSOR", "a TensorSpec", payload);
        break;
    case C_STATE:
        if (Py_TYPE(payload) != &FgGlobalState_Type)
            return refuse("STATE", "a GlobalState", payload);
        break;
    default:
        break;
    }
    check->payload = Py_NewRef(payload);
    return 0;
}

static bool is_root(enum Access a)
{
    return a == A_ARG || a == A_GLOBALS || a == A_BUILTINS || a == A_CELL || a == A_CELLOBJ || a == A_FN || a == A_CONST ||
           a == A_STATE || a == A_NONE;
}

static bool takes_index(enum Access a)
{
    return a == A_ARG || a == A_CELL || a == A_CELLOBJ || a == A_ITEM || a == A_MAPKEYAT;
}

static int reserve_checks(Node *node, Py_ssize_t n)
{
    node->checks = PyMem_Calloc((size_t)n + 1, sizeof(Check));
    if (node->checks)
        return 0;
    PyErr_NoMemory();
    return -1;
}

static int load_node(Program *p, PyObject *item)
{
    Node *node = &p->nodes[p->n];
    PyObject *access, *arg, *checks;
    if (!PyTuple_Check(item)) {
        PyErr_Format(PyExc_TypeError, "a node is a tuple (parent, access, argument, checks), not %.80R", item);
        return -1;
    }
    if (!PyArg_ParseTuple(item, "nUOO!", &node->parent, &access, &arg, &PyList_Type, &checks))
        return -1;
    int a = find(access_names, A_COUNT, access);
    if (a < 0)
        return -1;
    node->access = (enum Access)a;
    if (node->parent < -1 || node->parent >= p->n || (node->parent < 0) != is_root(node->access)) {
        PyErr_Format(PyExc_ValueError, "node %zd (%U) cannot have the parent %zd", p->n, access, node->parent);
        return -1;
    }
    if (takes_index(node->access)) {
        node->index = PyLong_AsSsize_t(arg);
        if (node->index < 0) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "%U takes an index that is not negative, not %zd", access, node->index);
            return -1;
        }
    }
    if ((a == A_ATTR || a == A_GRAD || a == A_TYPEATTR) && !PyUnicode_CheckExact(arg))
        return refuse(access_names[a], "a name", arg);
    node->simple = fg_is_stable_key(arg);
    node->arg = a == A_CONST ? hold(arg, &node->weak) : Py_NewRef(arg);
    Py_ssize_t n = PyList_GET_SIZE(checks);
    if (!node->arg || reserve_checks(node, n) < 0)
        return -1;
    for (; node->count < n && node->count < PyList_GET_SIZE(checks); node->count++)
        if (load_check(&node->checks[node->count], PyList_GET_ITEM(checks, node->count), p->n) < 0) {
            node->count++; /* parts of it may be there */
            return -1;
        }
    p->n++;
    return 0;
}

/* -- repeated guards */

/* The program that an item stands for, borrowed; NULL for an item that is a node. */
static Program *repeated(PyObject *item)
{
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 3 || Py_TYPE(PyTuple_GET_ITEM(item, 1)) != &FgGuardProgram_Type)
        return NULL;
    return (Program *)PyTuple_GET_ITEM(item, 1);
}

/* How many nodes the item becomes. */
static Py_ssize_t nodes_of(PyObject *item)
{
    const Program *t = repeated(item);
    return !t ? 1 : t->n ? t->n - 1 : 0;
}

static int copy_check(Check *to, const Check *from, Py_ssize_t first)
{
    *to = *from;
    to->id += first;
    to->lookups = NULL;
    to->token = to->version = 0; /* these were of another object */
    Py_XINCREF(to->payload);
    if (!from->lookups)
        return 0;
    to->n = 0;
    to->lookups = PyMem_Calloc((size_t)from->n + 1, sizeof *to->lookups);
    if (!to->lookups) {
        PyErr_NoMemory();
        return -1;
    }
    for (; to->n < from->n; to->n++) {
        to->lookups[to->n] = from->lookups[to->n];
        Py_XINCREF(to->lookups[to->n].name);
        Py_XINCREF(to->lookups[to->n].found);
    }
    return 0;
}

/* Whether the program looks at nothing but what is below one argument. */
static bool is_template(const Program *t)
{
    for (Py_ssize_t i = 0; i < t->n; i++) {
        const Node *node = &t->nodes[i];
        if (i ? is_root(node->access) : node->access != A_ARG || node->count)
            return false;
        for (Py_ssize_t k = 0; k < node->count; k++)
            if (fg_looks_around(&node->checks[k]))
                return false;
    }
    return t->n > 0;
}

/* item: (node, program, number of its first guard). The program's nodes but the first, whose place the node takes. */
static int load_repeat(Program *p, PyObject *item, const Program *t)
{
    Py_ssize_t top, first, base = p->n - 1;
    PyObject *program;
    if (!PyArg_ParseTuple(item, "nOn", &top, &program, &first))
        return -1;
    if (!is_template(t) || top < 0 || top >= p->n || first < 0) {
        PyErr_Format(PyExc_ValueError, "guards that are repeated look at what is below one argument, a node before them takes its place, "
                     "and their numbers are not negative: %R", item);
        return -1;
    }
    for (Py_ssize_t i = 1; i < t->n; i++, p->n++) {
        const Node *from = &t->nodes[i];
        Node *node = &p->nodes[p->n];
        node->parent = from->parent ? base + from->parent : top;
        node->access = from->access;
        node->index = from->index;
        node->weak = from->weak;
        node->simple = from->simple;
        node->arg = Py_NewRef(from->arg);
        if (reserve_checks(node, from->count) < 0)
            return -1;
        while (node->count < from->count) {
            Py_ssize_t k = node->count++;
            if (copy_check(&node->checks[k], &from->checks[k], first) < 0)
                return -1;
        }
    }
    return 0;
}

/* -- the object */

static void program_dealloc(PyObject *self)
{
    Program *p = (Program *)self;
    PyObject_GC_UnTrack(self);
    fg_memo_free(p->memo);
    for (Py_ssize_t i = 0; i < p->n; i++) {
        Node *node = &p->nodes[i];
        for (Py_ssize_t k = 0; k < node->count; k++) {
            Check *check = &node->checks[k];
            for (Py_ssize_t j = 0; check->lookups && j < check->n; j++) {
                Py_XDECREF(check->lookups[j].name);
                Py_XDECREF(check->lookups[j].found);
            }
            PyMem_Free(check->lookups);
            PyMem_Free(check->indexes);
            fg_shape_free(check->shape);
            Py_XDECREF(check->payload);
        }
        PyMem_Free(node->checks);
        Py_XDECREF(node->arg);
    }
    PyMem_Free(p->nodes);
    PyMem_Free(p->inputs);
    Py_TYPE(self)->tp_free(self);
}

/* No tp_clear: a program without its payloads would answer wrongly. As with tuples, a cycle is broken elsewhere. */
static int program_traverse(PyObject *self, visitproc visit, void *arg)
{
    Program *p = (Program *)self;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        Node *node = &p->nodes[i];
        Py_VISIT(node->arg);
        for (Py_ssize_t k = 0; k < node->count; k++) {
            Check *check = &node->checks[k];
            Py_VISIT(check->payload);
            if (check->shape)
                Py_VISIT(fg_shape_function(check->shape));
            for (Py_ssize_t j = 0; check->lookups && j < check->n; j++)
                Py_VISIT(check->lookups[j].found);
        }
    }
    return 0;
}

static int load_inputs(Program *p, PyObject *positions)
{
    Py_ssize_t n = PyTuple_GET_SIZE(positions);
    p->inputs = PyMem_Calloc((size_t)n + 1, sizeof *p->inputs);
    if (!p->inputs) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        p->inputs[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, i));
        if (p->inputs[i] < 0 || p->inputs[i] >= p->n) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "there is no node %zd to take an input from", p->inputs[i]);
            return -1;
        }
    }
    p->inputs_n = n;
    return 0;
}

/* n: how many there is room for. Loading may run code of the program's, which may change the list. */
static int load_nodes(Program *p, PyObject *items, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
        PyObject *item = PyList_GET_ITEM(items, i);
        const Program *t = repeated(item);
        if (nodes_of(item) > n - p->n)
            break;
        if ((t ? load_repeat(p, item, t) : load_node(p, item)) < 0) {
            p->n++; /* parts of the node may be there */
            return -1;
        }
    }
    return 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *nodes, *inputs = NULL;
    if (!PyArg_ParseTuple(args, "O!|O!", &PyList_Type, &nodes, &PyTuple_Type, &inputs))
        return NULL;
    Program *p = (Program *)type->tp_alloc(type, 0);
    if (!p)
        return NULL;
    Py_ssize_t items = PyList_GET_SIZE(nodes), n = 0;
    for (Py_ssize_t i = 0; i < items; i++)
        n += nodes_of(PyList_GET_ITEM(nodes, i));
    p->suspect = -1;
    p->nodes = PyMem_Calloc((size_t)n + 1, sizeof(Node));
    if (!p->nodes) {
        Py_DECREF(p);
        return PyErr_NoMemory();
    }
    if (load_nodes(p, nodes, n) < 0) {
        Py_DECREF(p);
        return NULL;
    }
    if (inputs && load_inputs(p, inputs) < 0) {
        Py_DECREF(p);
        return NULL;
    }
    return (PyObject *)p;
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
    Py_ssize_t failed = fg_program_run(self, &PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple), (PyFunctionObject *)fn, NULL, NULL);
    return failed == RUN_ERROR ? NULL : PyBool_FromLong(failed == RUN_HOLDS);
}

static PyObject *program_explain(PyObject *self, PyObject *args)
{
    PyObject *tuple, *fn, *value;
    if (!parse_call(args, &tuple, &fn))
        return NULL;
    Py_ssize_t failed = fg_program_run(self, &PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple), (PyFunctionObject *)fn, &value, NULL);
    if (failed == RUN_ERROR)
        return NULL;
    if (failed == RUN_HOLDS)
        Py_RETURN_NONE;
    return Py_BuildValue("nN", failed, value);
}

static PyObject *program_values(PyObject *self, PyObject *args)
{
    PyObject *tuple, *fn;
    if (!parse_call(args, &tuple, &fn))
        return NULL;
    return fg_program_values(self, &PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple), (PyFunctionObject *)fn);
}

static PyObject *program_costs(PyObject *self, PyObject *args)
{
    PyObject *tuple, *fn;
    int rounds = 1000;
    if (!PyArg_ParseTuple(args, "O!O!|i", &PyTuple_Type, &tuple, &PyFunction_Type, &fn, &rounds))
        return NULL;
    Program *p = (Program *)self;
    FgFrameView view = {&PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple), (PyFunctionObject *)fn};
    for (int i = 0; i < 2; i++) { /* so that there is a memo, and it is up to date */
        Py_ssize_t failed = fg_program_run(self, view.args, view.n, view.fn, NULL, NULL);
        if (failed == RUN_ERROR)
            return NULL;
        if (failed != RUN_HOLDS) {
            PyErr_SetString(PyExc_ValueError, "the guards do not hold for these arguments");
            return NULL;
        }
    }
    if (!p->memo || rounds < 1)
        return PyList_New(0);
    return fg_memo_costs(p, &view, rounds);
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
    {"values", program_values, METH_VARARGS,
     "values(args, fn): what each node gives, MISSING where there is nothing; None where a guard fails."},
    {"costs", program_costs, METH_VARARGS,
     "costs(args, fn, rounds=1000): [(phase, node, guard, nanoseconds)] of a run whose guards hold. \"first\" and \"last\" are\n"
     "steps, each made again at every call, before the facts and after them. Facts are one item for each kind (\"roots\": of the\n"
     "frame; \"words\": of memory; \"tensors\"; \"others\"), without a guard; node is how many there are."},
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
    .tp_traverse = program_traverse,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "GuardProgram(nodes, inputs=()): checks of everything that a capture relied on. inputs: nodes that the graph takes.\n\n"
              "A node is (parent, access, argument, checks), a check (kind, payload, id). (node, program, id) stands for the nodes of\n"
              "another program, but for its first: the node takes the place of that. Their ids start at the one that is given.",
};
