/* The full run of a guard program: every node reached anew, every check made. */
#include "guards.h"
#include <string.h>

int fg_forgive(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_RecursionError) ||
        PyErr_ExceptionMatches(PyExc_MemoryError))
        return -1;
    PyErr_Clear();
    return 0;
}

/* -- access */

static PyObject *key_at(PyObject *dict, Py_ssize_t index)
{
    Py_ssize_t pos = 0, i = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &pos, &key, &value))
        if (i++ == index)
            return key;
    return NULL;
}

/* An OrderedDict has an order of its own: move_to_end() does not touch the dict. */
static int ordered_key_at(PyObject *dict, Py_ssize_t index, PyObject **found)
{
    PyObject *keys = PySequence_List(dict);
    if (!keys)
        return fg_forgive();
    *found = index < PyList_GET_SIZE(keys) ? Py_NewRef(PyList_GET_ITEM(keys, index)) : NULL;
    Py_DECREF(keys);
    return 0;
}

static PyObject *function_field(enum Access access, PyObject *base)
{
    if (!PyFunction_Check(base))
        return NULL;
    PyFunctionObject *f = (PyFunctionObject *)base;
    switch (access) {
    case A_FCODE:
        return f->func_code;
    case A_FDEFAULTS:
        return f->func_defaults ? f->func_defaults : Py_None;
    case A_FKWDEFAULTS:
        return f->func_kwdefaults ? f->func_kwdefaults : Py_None;
    case A_FCLOSURE:
        return f->func_closure ? f->func_closure : Py_None;
    case A_FGLOBALS:
        return f->func_globals;
    default:
        return f->func_dict;
    }
}

int fg_access(Node *node, PyObject *base, const FgFrameView *view, PyObject **value)
{
    PyObject *v = NULL;
    *value = NULL;
    switch (node->access) {
    case A_ARG:
        v = node->index < view->n ? view->args[node->index] : NULL;
        break;
    case A_GLOBALS:
        v = view->fn->func_globals;
        break;
    case A_BUILTINS:
        v = view->fn->func_builtins;
        break;
    case A_CELL:
    case A_CELLOBJ: {
        PyObject *closure = view->fn->func_closure;
        if (closure && node->index < PyTuple_GET_SIZE(closure)) {
            v = PyTuple_GET_ITEM(closure, node->index);
            if (node->access == A_CELL)
                v = PyCell_GET(v);
        }
        break;
    }
    case A_FN:
        v = (PyObject *)view->fn;
        break;
    case A_CONST:
        v = fg_held(node->arg, node->weak);
        break;
    case A_ATTR:
    case A_GRAD:
        *value = PyObject_GetAttr(base, node->arg);
        return *value ? 0 : fg_forgive();
    case A_PYCALL:
        *value = PyObject_CallOneArg(node->arg, base);
        return *value ? 0 : fg_forgive();
    case A_DICT: {
        PyObject **p = _PyObject_GetDictPtr(base);
        v = p ? *p : NULL;
        break;
    }
    case A_KEY:
        v = PyDict_Check(base) ? PyDict_GetItemWithError(base, node->arg) : NULL;
        if (!v && PyErr_Occurred())
            return fg_forgive();
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
        if (PyODict_Check(base))
            return ordered_key_at(base, node->index, value);
        v = PyDict_Check(base) ? key_at(base, node->index) : NULL;
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
    case A_PROXIED:
        v = Py_TYPE(base) == &PyDictProxy_Type ? FG_PROXIED(base) : NULL;
        break;
    case A_FNOTES:
        *value = PyFunction_Check(base) ? PyFunction_GetAnnotations(base) : NULL; /* makes a dict of them where none was asked for yet */
        Py_XINCREF(*value);
        return *value || !PyErr_Occurred() ? 0 : fg_forgive();
    case A_STATE:
    case A_NONE:
        v = Py_None;
        break;
    default:
        v = function_field(node->access, base);
    }
    *value = Py_XNewRef(v);
    return 0;
}

/* -- checks */

static int equals(PyObject *value, PyObject *expected);

static int equal_items(PyObject *a, PyObject *b)
{
    Py_ssize_t n = PyTuple_GET_SIZE(a);
    if (n != PyTuple_GET_SIZE(b))
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        int same = equals(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
        if (same != 1)
            return same;
    }
    return 1;
}

/* Each item of b is looked for among all of a: an equal one of another type does not do. */
static int equal_sets(PyObject *a, PyObject *b)
{
    if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b))
        return 0;
    PyObject *left = PySequence_Tuple(a), *right = left ? PySequence_Tuple(b) : NULL;
    int all = right ? 1 : fg_forgive();
    for (Py_ssize_t i = 0; all == 1 && i < PyTuple_GET_SIZE(right); i++) {
        int found = 0;
        for (Py_ssize_t k = 0; !found && k < PyTuple_GET_SIZE(left); k++)
            found = equals(PyTuple_GET_ITEM(left, k), PyTuple_GET_ITEM(right, i));
        all = found;
    }
    Py_XDECREF(left);
    Py_XDECREF(right);
    return all;
}

/* The same type and value, all the way down. */
static int equals(PyObject *value, PyObject *expected)
{
    PyTypeObject *type = Py_TYPE(expected);
    if (value == expected)
        return 1;
    if (Py_TYPE(value) != type)
        return 0;
    if (type == &PyFloat_Type) {
        double a = PyFloat_AS_DOUBLE(value), b = PyFloat_AS_DOUBLE(expected);
        return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
    }
    if (type == &PyComplex_Type) {
        Py_complex a = ((PyComplexObject *)value)->cval, b = ((PyComplexObject *)expected)->cval;
        return memcmp(&a, &b, sizeof a) == 0;
    }
    if (type == &PyTuple_Type || type == &PyFrozenSet_Type) {
        if (Py_EnterRecursiveCall(" in a guard"))
            return -1;
        int same = type == &PyTuple_Type ? equal_items(value, expected) : equal_sets(value, expected);
        Py_LeaveRecursiveCall();
        return same;
    }
    if (type == &PySlice_Type) {
        PySliceObject *a = (PySliceObject *)value, *b = (PySliceObject *)expected;
        int same = equals(a->start, b->start);
        same = same == 1 ? equals(a->stop, b->stop) : same;
        return same == 1 ? equals(a->step, b->step) : same;
    }
    int same = PyObject_RichCompareBool(value, expected, Py_EQ);
    return same < 0 ? fg_forgive() : same;
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

static int same_keys(PyObject *dict, PyObject *expected, bool simple)
{
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(expected))
        return 0;
    if (!PyDict_GET_SIZE(dict))
        return 1;
    if (simple && !PyODict_Check(dict)) { /* comparing runs no code, so that the dict cannot change meanwhile */
        Py_ssize_t pos = 0, i = 0;
        PyObject *key, *value;
        while (PyDict_Next(dict, &pos, &key, &value))
            if (equals(key, PyTuple_GET_ITEM(expected, i++)) != 1)
                return 0;
        return 1;
    }
    PyObject *keys = PyODict_Check(dict) ? PySequence_Tuple(dict) : NULL;
    if (!keys && !PyErr_Occurred()) {
        PyObject *list = PyDict_Keys(dict);
        keys = list ? PyList_AsTuple(list) : NULL;
        Py_XDECREF(list);
    }
    if (!keys)
        return fg_forgive();
    int same = equal_items(keys, expected);
    Py_DECREF(keys);
    return same;
}

/* Whether neither the type nor a base of it has changed since the check held. */
static bool same_version(const Check *check, PyTypeObject *type)
{
    return check->version && fg_type_version((PyObject *)type) == check->version;
}

/* The very same bases in the same order. */
static int same_mro(Check *check, PyObject *value)
{
    if (!PyType_Check(value))
        return 0;
    PyTypeObject *type = (PyTypeObject *)value;
    if (same_version(check, type))
        return 1;
    PyObject *mro = type->tp_mro;
    if (!mro || !PyTuple_Check(mro) || PyTuple_GET_SIZE(mro) != check->n)
        return 0;
    for (Py_ssize_t i = 0; i < check->n; i++)
        if (PyTuple_GET_ITEM(mro, i) != fg_held(check->lookups[i].found, check->lookups[i].weak))
            return 0;
    check->version = fg_type_version(value);
    return 1;
}

static int type_lookups(Check *check, PyObject *value)
{
    if (!PyType_Check(value))
        return 0;
    PyTypeObject *type = (PyTypeObject *)value;
    if (same_version(check, type))
        return 1;
    for (Py_ssize_t i = 0; i < check->n; i++) {
        LookUp *l = &check->lookups[i];
        PyObject *expected = fg_held(l->found, l->weak), *found = _PyType_Lookup(type, l->name);
        if (!expected || (found ? found : fg_missing) != expected)
            return 0;
    }
    /* The look-ups have given the type a tag, if there are tags left. */
    check->version = fg_type_version(value);
    return 1;
}

/* Missing objects are aliases of nothing. */
bool fg_distinct(PyObject *const *found, Py_ssize_t n)
{
    if (n <= 8) {
        for (Py_ssize_t i = 0; i < n; i++)
            for (Py_ssize_t j = 0; found[i] && j < i; j++)
                if (found[i] == found[j])
                    return false;
        return true;
    }
    size_t size = 16;
    while (size < (size_t)n * 2)
        size *= 2;
    PyObject *small[512], **table = size <= 512 ? small : PyMem_Malloc(size * sizeof *table);
    if (!table)
        return false;
    memset(table, 0, size * sizeof *table);
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        if (!found[i])
            continue;
        size_t slot = FG_POINTER_HASH(found[i]) & (size - 1);
        while (table[slot] && table[slot] != found[i])
            slot = (slot + 1) & (size - 1);
        ok = !table[slot];
        table[slot] = found[i];
    }
    if (table != small)
        PyMem_Free(table);
    return ok;
}

static int no_alias(const Check *c, PyObject *const *values)
{
    PyObject *small[256] = {NULL}, **found = c->n <= 256 ? small : PyMem_Malloc((size_t)c->n * sizeof *found);
    if (!found)
        return 0;
    for (Py_ssize_t i = 0; i < c->n; i++)
        found[i] = values[c->indexes[i]];
    int ok = fg_distinct(found, c->n);
    if (found != small)
        PyMem_Free(found);
    return ok;
}

static int shape(const Check *c, PyObject *const *values)
{
    PyObject *small[16], **found = c->n <= 16 ? small : PyMem_Malloc((size_t)c->n * sizeof *found);
    if (!found)
        return 0;
    int ok = 1;
    for (Py_ssize_t i = 0; ok && i < c->n; i++) {
        found[i] = values[c->indexes[i]];
        ok = found[i] != NULL;
    }
    ok = ok ? fg_shape_holds(c->shape, found) : 0;
    if (found != small)
        PyMem_Free(found);
    return ok;
}

int fg_holds(Check *c, PyObject *value, PyObject *const *values)
{
    if (c->kind == C_ABSENT)
        return value == NULL;
    if (!value)
        return 0;
    int r = 0, over = 0;
    switch (c->kind) {
    case C_ID:
        return value == fg_held(c->payload, c->weak);
    case C_TYPE:
        return (PyObject *)Py_TYPE(value) == c->payload;
    case C_EQ:
        return equals(value, c->payload);
    case C_LEN:
        return length(value) == c->n;
    case C_KEYS:
        return same_keys(value, c->payload, c->simple);
    case C_HASKEY:
    case C_NOKEY:
        if (!PyDict_Check(value))
            return 0;
        r = PyDict_Contains(value, c->payload);
        return r < 0 ? fg_forgive() : r == (c->kind == C_HASKEY);
    case C_PRESENT:
        return 1;
    case C_METHOD:
        return PyCFunction_CheckExact(value) && ((PyCFunctionObject *)value)->m_ml == ((PyMethodDescrObject *)c->payload)->d_method;
    case C_TRUTH:
        r = PyObject_IsTrue(value);
        return r < 0 ? fg_forgive() : r == (c->payload == Py_True);
    case C_TYPEVER:
        return type_lookups(c, value);
    case C_MRO:
        return same_mro(c, value);
    case C_SUBCLASS:
        return fg_subclass_holds(c, value);
    case C_TENSOR:
        r = fg_tensor_matches(c->payload, value);
        return r < 0 ? fg_forgive() : r;
    case C_STATE:
        r = fg_state_matches(c->payload);
        return r < 0 ? fg_forgive() : r;
    case C_PY: {
        PyObject *answer = PyObject_CallOneArg(c->payload, value);
        r = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        return r < 0 ? fg_forgive() : r;
    }
    case C_RANGE: {
        if (!PyLong_CheckExact(value))
            return 0;
        long long v = PyLong_AsLongLongAndOverflow(value, &over);
        return !over && v >= c->low && v <= c->high;
    }
    case C_NOALIAS:
        return no_alias(c, values);
    case C_SHAPE:
        return shape(c, values);
    case C_ALIAS: {
        PyObject *a = values[c->indexes[0]];
        return a && a == values[c->indexes[1]];
    }
    default:
        return 0;
    }
}

/* -- purity */

bool fg_stable_keys(PyObject *dict)
{
    if (FG_DICT_ALL_STR(dict))
        return true;
    if (PyDict_GET_SIZE(dict) > 64)
        return false; /* not worth the look */
    Py_ssize_t pos = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &pos, &key, &value))
        if (!fg_is_stable_key(key))
            return false;
    return true;
}

bool fg_is_pure(const Check *c, PyObject *value)
{
    switch (c->kind) {
    case C_PY:
    case C_TRUTH:
    case C_SUBCLASS:
        return false;
    case C_EQ:
        return c->simple;
    case C_SHAPE:
        return !fg_shape_function(c->shape);
    case C_KEYS:
    case C_HASKEY:
    case C_NOKEY:
        return c->simple && value && PyDict_CheckExact(value) && fg_stable_keys(value);
    case C_TENSOR:
    case C_STATE:
        return fg_metadata_is_native(c->payload);
    default:
        return true;
    }
}

/* -- the run */

static Py_ssize_t run_node(Program *p, Node *node, const FgFrameView *view, PyObject **values, PyObject **out)
{
    PyObject *base = node->parent >= 0 ? values[node->parent] : NULL;
    *out = NULL;
    if ((node->parent < 0 || base) && fg_access(node, base, view, out) < 0)
        return RUN_ERROR;
    if (node->access == A_CONST && !*out) {
        p->dead = 1;
        return RUN_DEAD;
    }
    for (Py_ssize_t k = 0; k < node->count; k++) {
        Check *check = &node->checks[k];
        int ok = fg_holds(check, *out, values);
        if (ok == 1)
            continue;
        if (ok < 0)
            return RUN_ERROR;
        if (check->kind == C_ID && !fg_held(check->payload, check->weak)) {
            p->dead = 1;
            return RUN_DEAD;
        }
        return check->id;
    }
    return RUN_HOLDS;
}

void fg_inputs_clear(FgInputs *inputs)
{
    if (!inputs->items)
        return;
    PyObject **items = inputs->items;
    inputs->items = NULL; /* letting go of an object may run code */
    for (Py_ssize_t i = 0; i < inputs->n; i++)
        Py_XDECREF(items[i]);
    if (items != inputs->small + 1)
        PyMem_Free(items - 1);
}

bool fg_inputs_reserve(FgInputs *inputs, const Program *p)
{
    PyObject **room = p->inputs_n <= FG_FEW_INPUTS ? inputs->small : PyMem_Malloc((size_t)(p->inputs_n + 1) * sizeof *room);
    if (!room) {
        PyErr_NoMemory();
        return false;
    }
    inputs->items = room + 1;
    inputs->n = p->inputs_n;
    return true;
}

static Py_ssize_t hand_out(Program *p, PyObject *const *values, FgInputs *inputs)
{
    if (!fg_inputs_reserve(inputs, p))
        return RUN_ERROR;
    bool all = true;
    for (Py_ssize_t i = 0; i < p->inputs_n; i++) {
        inputs->items[i] = Py_XNewRef(values[p->inputs[i]]);
        all = all && inputs->items[i];
    }
    if (!all) {
        fg_inputs_clear(inputs);
        PyErr_SetString(PyExc_SystemError, "no guard proves that an input of the graph is there");
    }
    return all ? RUN_HOLDS : RUN_ERROR;
}

/* How many nodes were reached is in *reached; values: new references, of those. */
static Py_ssize_t run_nodes(Program *p, const FgFrameView *view, PyObject **values, Py_ssize_t *reached)
{
    Py_ssize_t result = RUN_HOLDS, i = 0;
    while (i < p->n && result == RUN_HOLDS) {
        result = run_node(p, &p->nodes[i], view, values, &values[i]);
        i++;
    }
    *reached = i;
    return result;
}

PyObject *fg_program_values(PyObject *program, PyObject *const *args, Py_ssize_t n, PyFunctionObject *fn)
{
    Program *p = (Program *)program;
    FgFrameView view = {args, n, fn};
    PyObject **values = PyMem_Malloc(sizeof *values * (size_t)(p->n + 1)), *out = NULL;
    if (!values)
        return PyErr_NoMemory();
    Py_ssize_t reached, result = run_nodes(p, &view, values, &reached);
    if (result == RUN_HOLDS && (out = PyList_New(p->n)))
        for (Py_ssize_t i = 0; i < p->n; i++)
            PyList_SET_ITEM(out, i, Py_NewRef(values[i] ? values[i] : fg_missing));
    while (reached-- > 0)
        Py_XDECREF(values[reached]);
    PyMem_Free(values);
    return result == RUN_HOLDS || result == RUN_ERROR ? out : Py_NewRef(Py_None);
}

static Py_ssize_t walk(Program *p, const FgFrameView *view, PyObject **value, FgInputs *inputs)
{
    PyObject *small[256], **values = p->n <= 256 ? small : PyMem_Malloc(sizeof *values * (size_t)p->n);
    if (!values) {
        PyErr_NoMemory();
        return RUN_ERROR;
    }
    Py_ssize_t i, result = run_nodes(p, view, values, &i);
    if (result == RUN_HOLDS)
        fg_memo_build(p, view, values);
    if (result == RUN_HOLDS && inputs)
        result = hand_out(p, values, inputs);
    if (value)
        *value = result == RUN_HOLDS ? NULL : Py_NewRef(i && values[i - 1] ? values[i - 1] : fg_missing);
    while (i-- > 0)
        Py_XDECREF(values[i]);
    if (values != small)
        PyMem_Free(values);
    return result;
}

Py_ssize_t fg_program_run(PyObject *program, PyObject *const *args, Py_ssize_t n, PyFunctionObject *fn, PyObject **value,
                          FgInputs *inputs)
{
    Program *p = (Program *)program;
    FgFrameView view = {args, n, fn};
    if (p->memo && !value) {
        Py_ssize_t result = fg_memo_run(p, &view, inputs);
        if (result != RUN_UNKNOWN)
            return result;
    }
    return walk(p, &view, value, inputs);
}
