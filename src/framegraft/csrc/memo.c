/* The quick run of a guard program: facts that prove that what the last full run found is still so.

A full run that succeeds leaves behind which object each node gave. Most nodes hang off dicts, and a dict's version tells
one state of one dict from every other state of every dict there ever was. So a list of facts is enough, in the order of
the nodes, parents first: this object still has that type; its dict is that one, in that version; this list is as long as
it was. No look-up is made, no reference taken. A fact may follow a borrowed pointer because the facts before it prove
that the object is alive. Where a dict changed, only what hangs off it is looked up again (`refresh`).

What a fact cannot prove is evaluated in each run: before the facts what depends on no pointer of theirs (`early`), after
them the rest (`late`). Facts run no Python code. What runs late may, and then holds on to the pointers that it needs.

Pointers may be those of other objects than before: an object died and another took its place. That is why nothing is
concluded from an equal pointer but that it is alive, if something alive holds it; all checks are made again, unless a
version proves that nothing changed. */
#include "guards.h"
#include <string.h>

enum Op { F_GLOBALS, F_BUILTINS, F_ALIVE, F_ARG, F_CELL, F_ITEM, F_TYPE, F_SLOT, F_VERSION, F_LEN, F_TENSOR, F_CHECK };

typedef struct {
    enum Op op;
    int node;
    Py_ssize_t id; /* what to answer where it does not hold: the guard, or RUN_UNKNOWN */
    PyObject *obj;
    union {
        PyObject **slot;
        uint64_t version;
        PyTypeObject *type;
        Py_ssize_t n;
        Check *check;
    } as;
} Fact;

/* A node to reach and check (check NULL), or one check of a node that is fixed. */
typedef struct {
    int node;
    Check *check;
} Step;

/* A NOALIAS check: the fixed objects are known to differ and lie in a hash table. */
typedef struct {
    Check *check;
    PyObject **table;
    size_t mask;
    Py_ssize_t *others, count;
} Alias;

struct Memo {
    Py_ssize_t facts, earlies, lates, keeps, aliases, places;
    Fact *fact;
    Step *early, *late;
    int *keep;           /* fixed nodes whose objects late steps use */
    Alias *alias;
    int *first, *child;  /* children of node i: child[first[i]] to child[first[i + 1] - 1] */
    bool python;         /* late steps may run Python code */
};

enum { VOLATILE = 4, FEW_OTHERS = 16 };

void fg_memo_free(Memo *m)
{
    if (!m)
        return;
    for (Py_ssize_t i = 0; i < m->aliases; i++) {
        PyMem_Free(m->alias[i].table);
        PyMem_Free(m->alias[i].others);
    }
    PyMem_Free(m->fact);
    PyMem_Free(m->early);
    PyMem_Free(m->late);
    PyMem_Free(m->keep);
    PyMem_Free(m->alias);
    PyMem_Free(m->first);
    PyMem_Free(m->child);
    PyMem_Free(m);
}

/* -- building */

/* The type of such an object cannot change: __class__ is assigned only between mutable types, and to modules. */
static bool keeps_type(PyObject *obj)
{
    return PyType_HasFeature(Py_TYPE(obj), Py_TPFLAGS_IMMUTABLETYPE) && !PyModule_Check(obj);
}

static bool has_check(const Node *node, enum Kind kind)
{
    for (Py_ssize_t k = 0; k < node->count; k++)
        if (node->checks[k].kind == kind)
            return true;
    return false;
}

static bool is_key(enum Access a)
{
    return a == A_KEY || a == A_MAPKEYAT;
}

/* Whether a child is reached by `a`. */
static bool has_child(const Program *p, const Memo *m, Py_ssize_t i, bool (*fits)(enum Access))
{
    for (int k = m->first[i]; k < m->first[i + 1]; k++)
        if (fits(p->nodes[m->child[k]].access))
            return true;
    return false;
}

static bool is_dict(enum Access a)
{
    return a == A_DICT;
}

static void add_fact(Memo *m, enum Op op, Py_ssize_t node, Py_ssize_t id, PyObject *obj, Fact **out)
{
    Fact *f = &m->fact[m->facts++];
    f->op = op;
    f->node = (int)node;
    f->id = id;
    f->obj = obj;
    *out = f;
}

/* Such a node's object is only known by its address; another may have been put there since. */
static bool only_pointed_at(const Node *node)
{
    return node->access == A_ARG || node->access == A_CELL || node->access == A_ITEM;
}

/* Whether the type of the node's object is proven by the facts so far. */
static bool typed(const Node *node)
{
    return node->last && (has_check(node, C_TYPE) || (keeps_type(node->last) && !only_pointed_at(node)));
}

/* Whether the object's dict lies at a place that depends on nothing but its type. */
static bool has_plain_slot(PyTypeObject *type)
{
    return PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT) || type->tp_dictoffset >= 0;
}

/* Whether the object is proven to be a dict, whose keys are such that its version proves what is in it. */
static bool versioned(const Node *node)
{
    return node->last && PyDict_Check(node->last) && (!only_pointed_at(node) || has_check(node, C_TYPE)) &&
           fg_stable_keys(node->last);
}

/* Emits the fact that proves the node's object, given its parent's; false where there is none. */
static bool prove(Program *p, Memo *m, Py_ssize_t i)
{
    Node *node = &p->nodes[i], *parent = node->parent >= 0 ? &p->nodes[node->parent] : NULL;
    PyObject *v = node->last;
    Fact *f;
    if (parent && !parent->fixed)
        return false;
    if (parent && !parent->last)
        return true; /* missing below what is missing */
    if (node->volatility >= VOLATILE)
        return false;
    switch (node->access) {
    case A_GLOBALS:
    case A_BUILTINS:
        add_fact(m, node->access == A_GLOBALS ? F_GLOBALS : F_BUILTINS, i, RUN_UNKNOWN, v, &f);
        return true;
    case A_CONST:
        if (node->weak)
            add_fact(m, F_ALIVE, i, RUN_UNKNOWN, v, &f);
        return true;
    case A_ARG:
    case A_CELL:
        if (!v || !has_child(p, m, i, is_dict))
            return false;
        add_fact(m, node->access == A_ARG ? F_ARG : F_CELL, i, RUN_UNKNOWN, v, &f);
        return true;
    case A_DICT:
        if (!typed(parent) || !has_plain_slot(Py_TYPE(parent->last)))
            return false;
        PyObject **slot = _PyObject_GetDictPtr(parent->last);
        if (slot) {
            add_fact(m, F_SLOT, i, RUN_UNKNOWN, v, &f);
            f->as.slot = slot;
        }
        return true;
    case A_KEY:
        return node->simple && versioned(parent);
    case A_MAPKEYAT:
        return versioned(parent) && !PyODict_Check(parent->last);
    case A_ITEM:
        if (!v || !(PyList_CheckExact(parent->last) || PyTuple_CheckExact(parent->last)))
            return false;
        add_fact(m, F_ITEM, i, RUN_UNKNOWN, parent->last, &f);
        f->as.n = node->index;
        return true;
    case A_TYPE:
        return typed(parent);
    default:
        return false;
    }
}

/* Whether the check needs no fact of its own. by_version: the dict that holds the object proves that it is the same.
   version: the object is a dict, whose version is a fact. */
static bool implied(const Check *c, const Node *node, bool by_version, bool version)
{
    PyObject *v = node->last;
    switch (c->kind) {
    case C_KEYS:
    case C_HASKEY:
    case C_NOKEY:
        return version && c->simple && PyDict_CheckExact(v);
    case C_LEN:
        return version || (by_version && PyTuple_CheckExact(v));
    case C_EQ:
        return by_version && c->simple;
    case C_ID:
    case C_PRESENT:
    case C_RANGE:
        return by_version;
    default:
        return false;
    }
}

static bool wants_version(const Program *p, const Memo *m, Py_ssize_t i)
{
    const Node *node = &p->nodes[i];
    return versioned(node) && (has_child(p, m, i, is_key) || has_check(node, C_KEYS) || has_check(node, C_HASKEY) ||
                               has_check(node, C_NOKEY));
}

static void late_step(Memo *m, Py_ssize_t node, Check *check)
{
    m->late[m->lates].node = (int)node;
    m->late[m->lates++].check = check;
}

/* The fact or late step for one check of a fixed node's object. */
static void state_check(Node *node, Memo *m, Py_ssize_t i, Check *c)
{
    PyObject *v = node->last;
    bool pure = fg_is_pure(c, v);
    Fact *f;
    if (!pure || fg_looks_around(c)) {
        m->python |= !pure;
        late_step(m, i, c);
    }
    else if (c->kind == C_LEN && PyDict_Check(v) && (!only_pointed_at(node) || has_check(node, C_TYPE))) {
        add_fact(m, F_LEN, i, c->id, v, &f);
        f->as.n = c->n;
    }
    else {
        add_fact(m, c->kind == C_TENSOR ? F_TENSOR : F_CHECK, i, c->id, v, &f);
        f->as.check = c;
    }
}

/* The facts for what is checked of a fixed node's object: its type first, which the others rely on. */
static void state_checks(Program *p, Memo *m, Py_ssize_t i)
{
    Node *node = &p->nodes[i];
    PyObject *v = node->last;
    bool by_version = is_key(node->access), version = wants_version(p, m, i);
    Fact *f;
    if (!v)
        return;
    for (Py_ssize_t k = 0; k < node->count; k++)
        if (node->checks[k].kind == C_TYPE && !(by_version && keeps_type(v))) {
            add_fact(m, F_TYPE, i, node->checks[k].id, v, &f);
            f->as.type = (PyTypeObject *)node->checks[k].payload;
        }
    if (version) {
        add_fact(m, F_VERSION, i, RUN_UNKNOWN, v, &f);
        f->as.version = FG_DICT_VERSION(v);
    }
    for (Py_ssize_t k = 0; k < node->count; k++)
        if (node->checks[k].kind != C_TYPE && !implied(&node->checks[k], node, by_version, version))
            state_check(node, m, i, &node->checks[k]);
}

static bool runs_python(const Node *node)
{
    enum Access a = node->access;
    if (a == A_ATTR || a == A_GRAD || a == A_PYCALL || a == A_KEY || a == A_MAPKEYAT)
        return true;
    for (Py_ssize_t k = 0; k < node->count; k++)
        if (!fg_is_pure(&node->checks[k], NULL))
            return true;
    return false;
}

/* A node that is reached and checked in each run. */
static void evaluate_each_time(Program *p, Memo *m, Py_ssize_t i)
{
    Node *node = &p->nodes[i];
    bool alone = !has_check(node, C_ALIAS) && !has_check(node, C_NOALIAS) && !has_check(node, C_SHAPE);
    node->place = m->places++;
    if (alone && (node->parent < 0 || p->nodes[node->parent].early)) {
        node->early = 1;
        m->early[m->earlies].node = (int)i;
        m->early[m->earlies++].check = NULL;
        return;
    }
    m->python |= runs_python(node);
    late_step(m, i, NULL);
}

static void keep(Program *p, Memo *m, Py_ssize_t i)
{
    if (i >= 0 && p->nodes[i].fixed && p->nodes[i].last)
        m->keep[m->keeps++] = (int)i;
}

static bool build_alias(Program *p, Memo *m, Check *c)
{
    size_t size = 16;
    while (size < (size_t)c->n * 2)
        size *= 2;
    Alias *a = &m->alias[m->aliases++];
    a->check = c;
    a->mask = size - 1;
    a->table = PyMem_Calloc(size, sizeof *a->table);
    a->others = PyMem_Calloc((size_t)c->n + 1, sizeof *a->others);
    if (!a->table || !a->others)
        return false;
    for (Py_ssize_t i = 0; i < c->n; i++) {
        Node *node = &p->nodes[c->indexes[i]];
        if (!node->fixed)
            a->others[a->count++] = c->indexes[i];
        else if (node->last) {
            size_t slot = FG_POINTER_HASH(node->last) & a->mask;
            while (a->table[slot])
                slot = (slot + 1) & a->mask;
            a->table[slot] = node->last;
        }
    }
    return true;
}

static bool index_children(Program *p, Memo *m)
{
    for (Py_ssize_t i = 0; i < p->n; i++)
        if (p->nodes[i].parent >= 0)
            m->first[p->nodes[i].parent + 1]++;
    for (Py_ssize_t i = 0; i < p->n; i++)
        m->first[i + 1] += m->first[i];
    int *next = PyMem_Malloc(sizeof *next * (size_t)(p->n + 1));
    if (!next)
        return false;
    memcpy(next, m->first, sizeof *next * (size_t)(p->n + 1));
    for (Py_ssize_t i = 0; i < p->n; i++)
        if (p->nodes[i].parent >= 0)
            m->child[next[p->nodes[i].parent]++] = (int)i;
    PyMem_Free(next);
    return true;
}

/* Python code that ran during the walk may have changed what had been looked at before. Nothing runs from here on. */
static bool still_true(Node *node, PyObject *base, const FgFrameView *view)
{
    PyObject *v = NULL;
    if ((node->parent < 0 || base) && fg_access(node, base, view, &v) < 0)
        PyErr_Clear();
    bool same = v == node->last;
    Py_XDECREF(v);
    for (Py_ssize_t k = 0; same && k < node->count; k++) {
        Check *c = &node->checks[k];
        if (fg_is_pure(c, node->last) && !fg_looks_around(c))
            same = fg_holds(c, node->last, NULL) == 1;
    }
    return same;
}

static bool fill(Program *p, Memo *m, const FgFrameView *view, PyObject *const *values)
{
    if (!index_children(p, m))
        return false;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        Node *node = &p->nodes[i];
        node->last = values[i];
        node->type = values[i] ? Py_TYPE(values[i]) : NULL;
        node->early = 0;
        node->fixed = prove(p, m, i);
        if (!node->fixed) {
            evaluate_each_time(p, m, i);
            continue;
        }
        if (!still_true(node, node->parent >= 0 ? values[node->parent] : NULL, view))
            return false;
        state_checks(p, m, i);
    }
    for (Py_ssize_t k = 0; k < m->lates; k++) {
        Check *c = m->late[k].check;
        Node *node = &p->nodes[m->late[k].node];
        keep(p, m, c ? m->late[k].node : node->parent);
        for (Py_ssize_t j = 0; !c && j < node->count; j++)
            for (Py_ssize_t slot = 0; node->checks[j].shape && slot < node->checks[j].n; slot++)
                keep(p, m, node->checks[j].indexes[slot]);
    }
    for (Py_ssize_t i = 0; i < p->n; i++)
        for (Py_ssize_t k = 0; k < p->nodes[i].count; k++)
            if (p->nodes[i].checks[k].kind == C_NOALIAS && !build_alias(p, m, &p->nodes[i].checks[k]))
                return false;
    return true;
}

void fg_memo_build(Program *p, const FgFrameView *view, PyObject *const *values)
{
    if (p->running || p->n > 1000000)
        return;
    fg_memo_free(p->memo);
    p->memo = NULL;
    if (p->suspect >= 0)
        p->nodes[p->suspect].volatility++;
    p->suspect = -1;
    size_t n = (size_t)p->n + 1, checks = 0, aliases = 0, slots = 0;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        checks += (size_t)p->nodes[i].count;
        for (Py_ssize_t k = 0; k < p->nodes[i].count; k++)
            slots += p->nodes[i].checks[k].shape ? (size_t)p->nodes[i].checks[k].n : 0;
        aliases += has_check(&p->nodes[i], C_NOALIAS) ? (size_t)p->nodes[i].count : 0;
    }
    Memo *m = PyMem_Calloc(1, sizeof *m);
    if (!m)
        return;
    m->fact = PyMem_Calloc(2 * n + checks, sizeof *m->fact);
    m->early = PyMem_Calloc(n, sizeof *m->early);
    m->late = PyMem_Calloc(n + checks, sizeof *m->late);
    m->keep = PyMem_Calloc(n + checks + slots, sizeof *m->keep);
    m->alias = PyMem_Calloc(aliases + 1, sizeof *m->alias);
    m->first = PyMem_Calloc(n + 1, sizeof *m->first);
    m->child = PyMem_Calloc(n, sizeof *m->child);
    if (m->fact && m->early && m->late && m->keep && m->alias && m->first && m->child && fill(p, m, view, values)) {
        /* Facts are many and stay: the rest of the room is given back. */
        Fact *fitting = PyMem_Realloc(m->fact, (size_t)(m->facts + 1) * sizeof *fitting);
        m->fact = fitting ? fitting : m->fact;
        p->memo = m;
        return;
    }
    fg_memo_free(m);
}

/* -- running */

/* The dict changed: what hangs off it is looked up again. */
static bool refresh(Program *p, Fact *f)
{
    Memo *m = p->memo;
    PyObject *dict = f->obj;
    Node *node = &p->nodes[f->node];
    const FgFrameView none = {NULL, 0, NULL};
    if (!PyDict_Check(dict) || Py_TYPE(dict) != node->type || !fg_stable_keys(dict))
        return false;
    for (Py_ssize_t k = 0; k < node->count; k++)
        if (fg_is_pure(&node->checks[k], dict) && fg_holds(&node->checks[k], dict, NULL) != 1)
            return false;
    for (int at = m->first[f->node]; at < m->first[f->node + 1]; at++) {
        Node *child = &p->nodes[m->child[at]];
        if (!child->fixed || !is_key(child->access))
            continue;
        PyObject *v = NULL;
        if (fg_access(child, dict, &none, &v) < 0)
            PyErr_Clear();
        Py_XDECREF(v); /* the dict holds it */
        if (v != child->last || (v && Py_TYPE(v) != child->type)) {
            p->suspect = m->child[at];
            return false;
        }
        for (Py_ssize_t k = 0; k < child->count; k++) {
            Check *c = &child->checks[k];
            if (fg_is_pure(c, v) && !fg_looks_around(c) && fg_holds(c, v, NULL) != 1)
                return false;
        }
    }
    f->as.version = FG_DICT_VERSION(dict);
    return true;
}

static PyObject *cell_contents(const FgFrameView *view, Py_ssize_t index)
{
    PyObject *closure = view->fn->func_closure;
    return closure && index < PyTuple_GET_SIZE(closure) ? PyCell_GET(PyTuple_GET_ITEM(closure, index)) : NULL;
}

static bool item_is(PyObject *sequence, Py_ssize_t index, PyObject *item)
{
    if (PyList_CheckExact(sequence))
        return index < PyList_GET_SIZE(sequence) && PyList_GET_ITEM(sequence, index) == item;
    return PyTuple_CheckExact(sequence) && index < PyTuple_GET_SIZE(sequence) && PyTuple_GET_ITEM(sequence, index) == item;
}

static bool fact_holds(Program *p, Fact *f, const FgFrameView *view)
{
    Node *node = &p->nodes[f->node];
    switch (f->op) {
    case F_GLOBALS:
        return view->fn->func_globals == f->obj;
    case F_BUILTINS:
        return view->fn->func_builtins == f->obj;
    case F_ALIVE:
        return fg_held(node->arg, 1) == f->obj;
    case F_ARG:
        return node->index < view->n && view->args[node->index] == f->obj;
    case F_CELL:
        return cell_contents(view, node->index) == f->obj;
    case F_ITEM:
        return item_is(f->obj, f->as.n, node->last);
    case F_TYPE:
        return Py_TYPE(f->obj) == f->as.type;
    case F_SLOT:
        return *f->as.slot == f->obj;
    case F_VERSION:
        return FG_DICT_VERSION(f->obj) == f->as.version || refresh(p, f);
    case F_LEN:
        return PyDict_GET_SIZE(f->obj) == f->as.n;
    case F_TENSOR:
        return fg_tensor_matches(f->as.check->payload, f->obj) == 1;
    default:
        return fg_holds(f->as.check, f->obj, NULL) == 1;
    }
}

static Py_ssize_t run_facts(Program *p, const FgFrameView *view)
{
    Fact *f = p->memo->fact, *end = f + p->memo->facts;
    for (; f < end; f++)
        if (!fact_holds(p, f, view)) {
            if (f->id == RUN_UNKNOWN && p->suspect < 0)
                p->suspect = f->node;
            return f->id;
        }
    return RUN_HOLDS;
}

static inline PyObject *value_of(const Program *p, PyObject *const *values, Py_ssize_t i)
{
    const Node *node = &p->nodes[i];
    return node->fixed ? node->last : values[node->place];
}

static bool no_alias(const Program *p, const Alias *a, PyObject *const *values)
{
    PyObject *small[FEW_OTHERS], **found = a->count <= FEW_OTHERS ? small : PyMem_Malloc((size_t)a->count * sizeof *found);
    if (!found)
        return false;
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < a->count; i++) {
        PyObject *v = found[i] = value_of(p, values, a->others[i]);
        size_t slot = FG_POINTER_HASH(v) & a->mask;
        while (v && a->table[slot] && a->table[slot] != v)
            slot = (slot + 1) & a->mask;
        ok = !v || !a->table[slot];
    }
    ok = ok && fg_distinct(found, a->count);
    if (found != small)
        PyMem_Free(found);
    return ok;
}

static int shape_holds(const Program *p, const Check *c, PyObject *const *values)
{
    PyObject *small[FEW_OTHERS], **found = c->n <= FEW_OTHERS ? small : PyMem_Malloc((size_t)c->n * sizeof *found);
    if (!found)
        return 0;
    int ok = 1;
    for (Py_ssize_t i = 0; ok && i < c->n; i++) {
        found[i] = value_of(p, values, c->indexes[i]);
        ok = found[i] != NULL;
    }
    ok = ok ? fg_shape_holds(c->shape, found) : 0;
    if (found != small)
        PyMem_Free(found);
    return ok;
}

static int check_holds(Program *p, Check *c, PyObject *value, PyObject *const *values)
{
    if (c->kind == C_SHAPE)
        return shape_holds(p, c, values);
    if (c->kind == C_ALIAS) {
        PyObject *a = value_of(p, values, c->indexes[0]);
        return a && a == value_of(p, values, c->indexes[1]);
    }
    if (c->kind == C_NOALIAS)
        for (Py_ssize_t i = 0; i < p->memo->aliases; i++)
            if (p->memo->alias[i].check == c)
                return no_alias(p, &p->memo->alias[i], values);
    return fg_holds(c, value, NULL);
}

static Py_ssize_t run_step(Program *p, const Step *s, const FgFrameView *view, PyObject **values)
{
    Node *node = &p->nodes[s->node];
    Check *first = node->checks, *end = node->checks + node->count;
    PyObject *value = node->last;
    if (s->check) {
        first = s->check;
        end = first + 1;
    }
    else {
        PyObject *base = node->parent >= 0 ? value_of(p, values, node->parent) : NULL;
        if ((node->parent < 0 || base) && fg_access(node, base, view, &values[node->place]) < 0)
            return RUN_ERROR;
        value = values[node->place];
    }
    for (Check *c = first; c < end; c++) {
        int ok = check_holds(p, c, value, values);
        if (ok != 1)
            return ok < 0 ? RUN_ERROR : c->kind == C_ID && !fg_held(c->payload, c->weak) ? RUN_UNKNOWN : c->id;
    }
    return RUN_HOLDS;
}

static Py_ssize_t run_late(Program *p, const FgFrameView *view, PyObject **values)
{
    Memo *m = p->memo;
    Py_ssize_t result = RUN_HOLDS;
    if (m->python)
        for (Py_ssize_t i = 0; i < m->keeps; i++)
            Py_INCREF(p->nodes[m->keep[i]].last);
    for (Py_ssize_t i = 0; result == RUN_HOLDS && i < m->lates; i++)
        result = run_step(p, &m->late[i], view, values);
    if (m->python)
        for (Py_ssize_t i = 0; i < m->keeps; i++)
            Py_DECREF(p->nodes[m->keep[i]].last);
    return result;
}

Py_ssize_t fg_memo_run(Program *p, const FgFrameView *view)
{
    Memo *m = p->memo;
    PyObject *small[32], **values = m->places <= 32 ? small : PyMem_Malloc((size_t)m->places * sizeof *values);
    if (!values) {
        PyErr_NoMemory();
        return RUN_ERROR;
    }
    memset(values, 0, (size_t)m->places * sizeof *values);
    p->running++; /* nobody builds another memo meanwhile */
    p->suspect = -1;
    Py_ssize_t result = RUN_HOLDS;
    for (Py_ssize_t i = 0; result == RUN_HOLDS && i < m->earlies; i++)
        result = run_step(p, &m->early[i], view, values);
    if (result == RUN_HOLDS)
        result = run_facts(p, view);
    if (result == RUN_HOLDS && m->lates)
        result = run_late(p, view, values);
    for (Py_ssize_t i = 0; i < m->places; i++)
        Py_XDECREF(values[i]);
    p->running--;
    if (values != small)
        PyMem_Free(values);
    return result;
}
