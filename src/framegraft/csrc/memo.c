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
#include "memo.h"
#include "structmember.h"
#include <string.h>

enum { VOLATILE = 4, FEW_RECENT = 32, MANY_ITEMS = 8 };

void fg_memo_free(Memo *m)
{
    if (!m)
        return;
    for (Py_ssize_t i = 0; i < m->aliases; i++) {
        PyMem_Free(m->alias[i].table);
        PyMem_Free(m->alias[i].others);
    }
    for (Py_ssize_t i = 0; i < m->helds; i++)
        Py_DECREF(m->held[i]);
    PyMem_Free(m->held);
    PyMem_Free(m->input);
    PyMem_Free(m->word);
    PyMem_Free(m->first_word);
    PyMem_Free(m->root);
    PyMem_Free(m->tensor);
    PyMem_Free(m->rest);
    PyMem_Free(m->fact);
    PyMem_Free(m->packed);
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

/* Such a node's object is only known by its address; another may have been put there since. A function's globals and
   the dicts of attributes are dicts in any case, and a function's closure is a tuple. */
static bool only_pointed_at(const Node *node)
{
    switch (node->access) {
    case A_ARG:
    case A_CELL:
    case A_ITEM:
    case A_CELLVAL:
    case A_MFUNC:
    case A_MSELF:
    case A_FDEFAULTS:
    case A_FKWDEFAULTS:
    case A_FNOTES:
    case A_ATTR:
    case A_PROXIED:
        return true;
    default:
        return false;
    }
}

/* Whether the type of the node's object is proven by the facts so far. */
static bool typed(const Node *node)
{
    return node->last && (has_check(node, C_TYPE) || node->typed || (keeps_type(node->last) && !only_pointed_at(node)));
}

/* Whether the object's dict lies at a place that depends on nothing but its type. */
static bool has_plain_slot(PyTypeObject *type)
{
    return PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT) || type->tp_dictoffset >= 0;
}

/* Whether the object is proven to be a dict, whose keys are such that its version proves what is in it. */
static bool versioned(const Node *node)
{
    return node->last && PyDict_Check(node->last) && (!only_pointed_at(node) || has_check(node, C_TYPE) || node->typed) &&
           fg_stable_keys(node->last) && FG_DICT_SETTLE(node->last);
}

/* Where the object keeps what `access` gives, for the fields that C code keeps; NULL for none. */
static PyObject **field_of(enum Access access, PyObject *obj)
{
    if (PyFunction_Check(obj)) {
        PyFunctionObject *f = (PyFunctionObject *)obj;
        return access == A_FCODE ? &f->func_code : access == A_FDEFAULTS ? &f->func_defaults :
               access == A_FKWDEFAULTS ? &f->func_kwdefaults : access == A_FCLOSURE ? &f->func_closure :
               access == A_FGLOBALS ? &f->func_globals : access == A_FDICT ? &f->func_dict :
               access == A_FNOTES ? &f->func_annotations : NULL;
    }
    if (PyCell_Check(obj) && access == A_CELLVAL)
        return &((PyCellObject *)obj)->ob_ref;
    if (Py_TYPE(obj) == &PyDictProxy_Type && access == A_PROXIED)
        return &FG_PROXIED(obj);
    if (PyMethod_Check(obj))
        return access == A_MFUNC ? &((PyMethodObject *)obj)->im_func : access == A_MSELF ? &((PyMethodObject *)obj)->im_self : NULL;
    return NULL;
}

/* The slot of an instance (__slots__) that the attribute lies in, as long as its class does not change; NULL for none. */
static PyObject **slot_of(PyObject *obj, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(obj);
    PyObject *descriptor = type->tp_getattro == PyObject_GenericGetAttr ? _PyType_Lookup(type, name) : NULL;
    if (!descriptor || Py_TYPE(descriptor) != &PyMemberDescr_Type || !fg_type_version((PyObject *)type))
        return NULL;
    PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
    return member->type == T_OBJECT_EX && PyType_IsSubtype(type, ((PyDescrObject *)descriptor)->d_type) ?
           (PyObject **)((char *)obj + member->offset) : NULL;
}

static void slot_fact(Memo *m, Py_ssize_t i, PyObject **slot)
{
    Fact *f;
    add_fact(m, F_SLOT, i, RUN_UNKNOWN, *slot, &f);
    f->as.slot = slot;
}

static void version_fact(Memo *m, enum Op op, Py_ssize_t i, PyObject *type)
{
    Fact *f;
    add_fact(m, op, i, RUN_UNKNOWN, type, &f);
    f->as.version = fg_type_version(type);
}

static bool is_item(enum Access a)
{
    return a == A_ITEM;
}

/* Whether an object that hangs off the frame is worth a fact: what is looked up below it is much, or what modules keep. Many
   programs make the lists and dicts that they give anew for each call; it takes a few calls to find out (`blame`). */
static bool is_worth_knowing(const Program *p, const Memo *m, Py_ssize_t i)
{
    const Node *node = &p->nodes[i];
    if (!node->last)
        return false;
    if (has_child(p, m, i, is_dict))
        return true;
    if (m->first[i + 1] - m->first[i] < MANY_ITEMS)
        return false;
    if (PyList_CheckExact(node->last) || PyTuple_CheckExact(node->last))
        return has_child(p, m, i, is_item);
    return versioned(node) && has_child(p, m, i, fg_is_key);
}

/* Objects that facts prove to be the ones they were, and that were the same one, are the same one. */
static bool only_known_aliases(const Program *p, const Node *node)
{
    for (Py_ssize_t k = 0; k < node->count; k++) {
        const Check *c = &node->checks[k];
        if (c->kind != C_ALIAS || !p->nodes[c->indexes[0]].fixed || !p->nodes[c->indexes[1]].fixed)
            return false;
    }
    return true;
}

/* Emits the fact that proves the node's object, given its parent's; false where there is none. */
static bool prove(Program *p, Memo *m, Py_ssize_t i)
{
    Node *node = &p->nodes[i], *parent = node->parent >= 0 ? &p->nodes[node->parent] : NULL;
    PyObject *v = node->last, **slot;
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
        if (!is_worth_knowing(p, m, i))
            return false;
        add_fact(m, node->access == A_ARG ? F_ARG : F_CELL, i, RUN_UNKNOWN, v, &f);
        return true;
    case A_DICT:
        if (!typed(parent) || !has_plain_slot(Py_TYPE(parent->last)))
            return false;
        if ((slot = _PyObject_GetDictPtr(parent->last)))
            slot_fact(m, i, slot);
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
    case A_NONE:
        return only_known_aliases(p, node);
    case A_PROXIED:
    case A_FCODE:
    case A_FDEFAULTS:
    case A_FKWDEFAULTS:
    case A_FCLOSURE:
    case A_FGLOBALS:
    case A_FNOTES:
    case A_FDICT:
    case A_CELLVAL:
    case A_MFUNC:
    case A_MSELF:
        slot = typed(parent) ? field_of(node->access, parent->last) : NULL;
        if (slot)
            slot_fact(m, i, slot);
        return slot != NULL;
    case A_TYPEATTR:
        if (only_pointed_at(parent) || !PyType_Check(parent->last) || !fg_type_version(parent->last))
            return false;
        version_fact(m, F_LOOKUP, i, parent->last);
        return true;
    case A_ATTR:
        slot = v ? slot_of(parent->last, node->arg) : NULL;
        if (!slot)
            return false;
        if (!typed(parent)) { /* with its version, the class is that one and not another in its place */
            add_fact(m, F_TYPE, i, RUN_UNKNOWN, parent->last, &f);
            f->as.type = Py_TYPE(parent->last);
        }
        version_fact(m, F_CLASS, i, (PyObject *)Py_TYPE(parent->last));
        slot_fact(m, i, slot);
        return true;
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
    return versioned(node) && (has_child(p, m, i, fg_is_key) || has_check(node, C_KEYS) || has_check(node, C_HASKEY) ||
                               has_check(node, C_NOKEY));
}

static void late_step(Memo *m, Py_ssize_t node, Check *check)
{
    m->late[m->lates].node = (int)node;
    m->late[m->lates++].check = check;
}

/* Whether the check always holds for the one object that the node was proven to have. What has no address of its own
   for as long as it is wanted is held. */
static bool settled(const Node *node, Memo *m, const Check *c)
{
    PyObject *v = node->last;
    if (c->kind == C_EQ && c->simple && fg_is_simple(v)) {
        m->held[m->helds++] = Py_NewRef(v);
        return true;
    }
    return c->kind == C_PRESENT || (c->kind == C_ID && (!c->weak || (node->access == A_CONST && c->payload == node->arg)));
}

/* The fact or late step for one check of a fixed node's object. */
static void state_check(Node *node, Memo *m, Py_ssize_t i, Check *c)
{
    PyObject *v = node->last;
    bool pure = fg_is_pure(c, v);
    Fact *f;
    if (settled(node, m, c))
        return;
    if (c->kind == C_SUBCLASS && fg_abc_token && c->token == *fg_abc_token) {
        if (!m->token) {
            add_fact(m, F_TOKEN, i, RUN_UNKNOWN, v, &f);
            f->as.version = c->token;
        }
        m->token = true; /* one fact for all */
        return;
    }
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
        m->packed_size += c->kind == C_TENSOR ? fg_packed_size(c->payload) : 0;
    }
}

/* The facts for what is checked of a fixed node's object: its type first, which the others rely on. */
static void state_checks(Program *p, Memo *m, Py_ssize_t i)
{
    Node *node = &p->nodes[i];
    PyObject *v = node->last;
    bool by_version = fg_is_key(node->access) || node->access == A_TYPEATTR, version;
    Fact *f;
    if (!v || node->access == A_NONE)
        return;
    if (only_pointed_at(node) && node->access != A_ARG && node->access != A_CELL && !has_check(node, C_TYPE) &&
        m->first[i] != m->first[i + 1] && !PyType_HasFeature(Py_TYPE(v), Py_TPFLAGS_HEAPTYPE)) {
        add_fact(m, F_TYPE, i, RUN_UNKNOWN, v, &f); /* what hangs off it relies on that */
        f->as.type = Py_TYPE(v);
        node->typed = 1;
    }
    version = wants_version(p, m, i);
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

/* What tells entries apart, mostly arguments, comes before torch's state, which is mostly the same for all of them. */
static void state_last(const Program *p, Memo *m)
{
    for (Py_ssize_t i = 0; i + 1 < m->earlies; i++)
        if (p->nodes[m->early[i].node].access == A_STATE) {
            Step state = m->early[i];
            memmove(&m->early[i], &m->early[i + 1], sizeof state * (size_t)(m->earlies - i - 1));
            m->early[m->earlies - 1] = state;
            return;
        }
}

static bool fill(Program *p, Memo *m, const FgFrameView *view, PyObject *const *values)
{
    if (!index_children(p, m))
        return false;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        Node *node = &p->nodes[i];
        node->last = values[i];
        node->type = values[i] ? Py_TYPE(values[i]) : NULL;
        node->early = node->typed = 0;
        node->fixed = prove(p, m, i);
        if (!node->fixed) {
            evaluate_each_time(p, m, i);
            continue;
        }
        if (!still_true(node, node->parent >= 0 ? values[node->parent] : NULL, view))
            return false;
        state_checks(p, m, i);
    }
    state_last(p, m);
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

/* What tensors are compared with. There are few different ones, however many tensors: they are to stay in the cache. */
static bool pack(Memo *m)
{
    FgPacked *recent[FEW_RECENT] = {NULL};
    int next = 0;
    m->packed = PyMem_Calloc(m->packed_size + 1, 1);
    if (!m->packed)
        return false;
    char *place = m->packed;
    for (Py_ssize_t i = 0; i < m->facts; i++) {
        if (m->fact[i].op != F_TENSOR)
            continue;
        PyObject *spec = m->fact[i].as.check->payload;
        FgPacked *made = (FgPacked *)place, *equal = NULL;
        size_t size = fg_packed_size(spec);
        fg_pack(spec, made);
        for (int k = 0; !equal && k < FEW_RECENT && recent[k]; k++)
            if (recent[k]->ndim == made->ndim && memcmp(recent[k], made, size) == 0)
                equal = recent[k];
        m->fact[i].as.packed = equal ? equal : made;
        if (!equal) {
            recent[next++ % FEW_RECENT] = made;
            place += size;
        }
        else
            memset(place, 0, size); /* the padding of the next one is compared, too */
    }
    return true;
}

static bool note_inputs(const Program *p, Memo *m)
{
    m->input = PyMem_Malloc(sizeof *m->input * (size_t)(p->inputs_n + 1));
    for (Py_ssize_t i = 0; m->input && i < p->inputs_n; i++) {
        const Node *node = &p->nodes[p->inputs[i]];
        m->input[i] = node->fixed ? node->last : NULL;
    }
    return m->input != NULL;
}

/* The memo was wrong about a node, or about one item of an argument: there may be a thousand more. */
static void blame(Program *p)
{
    Py_ssize_t i = p->suspect;
    if (i >= 0)
        p->nodes[i].volatility++;
    while (i >= 0 && p->nodes[i].parent >= 0)
        i = p->nodes[i].parent;
    PyTypeObject *type = i >= 0 && i != p->suspect ? p->nodes[i].type : NULL; /* the object may be gone */
    if (type && (type == &PyList_Type || type == &PyTuple_Type || type == &PyDict_Type))
        p->nodes[i].volatility++;
    p->suspect = -1;
}

void fg_memo_build(Program *p, const FgFrameView *view, PyObject *const *values)
{
    if (p->running || p->n > 1000000)
        return;
    fg_memo_free(p->memo);
    p->memo = NULL;
    blame(p);
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
    m->fact = PyMem_Calloc(4 * n + checks, sizeof *m->fact);
    m->early = PyMem_Calloc(n, sizeof *m->early);
    m->late = PyMem_Calloc(n + checks, sizeof *m->late);
    m->keep = PyMem_Calloc(n + checks + slots, sizeof *m->keep);
    m->held = PyMem_Calloc(checks + 1, sizeof *m->held);
    m->alias = PyMem_Calloc(aliases + 1, sizeof *m->alias);
    m->first = PyMem_Calloc(n + 1, sizeof *m->first);
    m->child = PyMem_Calloc(n, sizeof *m->child);
    if (m->fact && m->early && m->late && m->keep && m->held && m->alias && m->first && m->child && fill(p, m, view, values)) {
        /* Facts are many and stay: the rest of the room is given back. */
        Fact *fitting = PyMem_Realloc(m->fact, (size_t)(m->facts + 1) * sizeof *fitting);
        m->fact = fitting ? fitting : m->fact;
        if (pack(m) && note_inputs(p, m) && fg_words_build(p, m)) {
            p->memo = m;
            return;
        }
    }
    fg_memo_free(m);
}
