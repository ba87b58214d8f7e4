/* The quick run of a guard program: what memo.c laid out, from the first step to the last. */
#include "memo.h"
#include <string.h>
#include <time.h>

enum { FEW_OTHERS = 16 };

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
        if (!child->fixed || !fg_is_key(child->access))
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

/* The class changed: the attribute is looked up again. */
static bool look_up(Program *p, Fact *f)
{
    Node *node = &p->nodes[f->node];
    PyObject *v = _PyType_Lookup((PyTypeObject *)f->obj, node->arg);
    unsigned int version = fg_type_version(f->obj);
    if (v != node->last || (v && Py_TYPE(v) != node->type) || !version)
        return false;
    for (Py_ssize_t k = 0; k < node->count; k++) {
        Check *c = &node->checks[k];
        if (fg_is_pure(c, v) && !fg_looks_around(c) && fg_holds(c, v, NULL) != 1)
            return false;
    }
    f->as.version = version;
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
    case F_LOOKUP:
        return fg_type_version(f->obj) == f->as.version || look_up(p, f);
    case F_CLASS:
        return fg_type_version(f->obj) == f->as.version;
    case F_LEN:
        return PyDict_GET_SIZE(f->obj) == f->as.n;
    case F_TOKEN:
        return *fg_abc_token == f->as.version;
    case F_TENSOR:
        return fg_packed_matches_at(f->as.packed, f->obj, &fg_at);
    default:
        return fg_holds(f->as.check, f->obj, NULL) == 1;
    }
}

static bool renewed(Program *p, Py_ssize_t i, const FgFrameView *view)
{
    bool holds = fact_holds(p, &p->memo->fact[i], view);
    if (holds)
        fg_words_renew(p, p->memo, i);
    else
        fg_words_spoil(p->memo, i);
    return holds;
}

/* One by one, in their order: which does not hold, or all do. */
static Py_ssize_t run_each_fact(Program *p, const FgFrameView *view)
{
    for (Py_ssize_t i = 0; i < p->memo->facts; i++) {
        Fact *f = &p->memo->fact[i];
        if (!renewed(p, i, view)) {
            if (f->id == RUN_UNKNOWN && p->suspect < 0)
                p->suspect = f->node;
            return f->id;
        }
    }
    return RUN_HOLDS;
}

static bool all_hold(Program *p, const int *fact, Py_ssize_t n, const FgFrameView *view)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (!fact_holds(p, &p->memo->fact[fact[i]], view))
            return false;
    return true;
}

static bool roots_hold(Program *p, const FgFrameView *view)
{
    return all_hold(p, p->memo->root, p->memo->roots, view);
}

/* A word has another value than it had, and its fact may hold nonetheless: only that fact is looked at, not all of them. */
static bool words_hold(Program *p, const FgFrameView *view)
{
    const Memo *m = p->memo;
    Py_ssize_t at = 0;
    while ((at = fg_first_wrong(m, at)) < m->words) {
        Py_ssize_t fact = fg_fact_of_word(m, at);
        do
            if (!renewed(p, fact, view))
                return false;
        while (++fact < m->facts && fg_words_go_on(m, fact));
        at = m->first_word[fact];
    }
    return true;
}

static bool tensors_hold(Program *p, const FgFrameView *view)
{
    return fg_tensors_hold(p->memo);
}

static bool rest_holds(Program *p, const FgFrameView *view)
{
    return all_hold(p, p->memo->rest, p->memo->rests, view);
}

static Py_ssize_t run_facts(Program *p, const FgFrameView *view)
{
    if (roots_hold(p, view) && words_hold(p, view) && tensors_hold(p, view) && rest_holds(p, view))
        return RUN_HOLDS;
    p->suspect = -1;
    return run_each_fact(p, view);
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

/* Once the facts hold: what is fixed. It is held, so that what runs late cannot take it away. */
static bool hand_out_fixed(const Program *p, FgInputs *inputs)
{
    if (!fg_inputs_reserve(inputs, p))
        return false;
    for (Py_ssize_t i = 0; i < p->inputs_n; i++)
        inputs->items[i] = Py_XNewRef(p->memo->input[i]);
    return true;
}

static bool hand_out_rest(const Program *p, PyObject *const *values, FgInputs *inputs)
{
    bool all = true;
    for (Py_ssize_t i = 0; i < p->inputs_n; i++) {
        if (!inputs->items[i])
            inputs->items[i] = Py_XNewRef(value_of(p, values, p->inputs[i]));
        all = all && inputs->items[i];
    }
    return all;
}

Py_ssize_t fg_memo_run(Program *p, const FgFrameView *view, FgInputs *inputs)
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
    if (result == RUN_HOLDS && inputs && !hand_out_fixed(p, inputs))
        result = RUN_ERROR;
    if (result == RUN_HOLDS && m->lates)
        result = run_late(p, view, values);
    if (result == RUN_HOLDS && inputs && !hand_out_rest(p, values, inputs))
        result = RUN_UNKNOWN; /* the full run says what is wrong */
    if (result != RUN_HOLDS && inputs)
        fg_inputs_clear(inputs);
    for (Py_ssize_t i = 0; i < m->places; i++)
        Py_XDECREF(values[i]);
    p->running--;
    if (values != small)
        PyMem_Free(values);
    return result;
}

/* -- what it costs */

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static Py_ssize_t guard_of(const Program *p, const Step *s)
{
    const Node *node = &p->nodes[s->node];
    return s->check ? s->check->id : node->count ? node->checks[0].id : -1;
}

enum { BATCH = 16 };

static int add_item(const char *phase, Py_ssize_t node, Py_ssize_t guard, double ns, PyObject *out)
{
    PyObject *item = Py_BuildValue("snnd", phase, node, guard, ns);
    int ok = item ? PyList_Append(out, item) : -1;
    Py_XDECREF(item);
    return ok;
}

/* One step, `rounds` times or more, after a run has filled `values` with what came before it. */
static int add_step(Program *p, const FgFrameView *view, PyObject **values, const Step *s, int rounds, const char *phase, PyObject *out)
{
    double best = 1e30;
    Py_ssize_t result = RUN_HOLDS;
    for (int i = 0; i < rounds && result == RUN_HOLDS; i += BATCH) {
        double start = now_ns();
        for (int k = 0; k < BATCH && result == RUN_HOLDS; k++) {
            if (!s->check)
                Py_CLEAR(values[p->nodes[s->node].place]);
            result = run_step(p, s, view, values);
        }
        best = Py_MIN(best, (now_ns() - start) / BATCH);
    }
    return result == RUN_ERROR ? -1 : add_item(phase, s->node, guard_of(p, s), best, out);
}

/* All facts of one kind. */
static int add_facts(Program *p, const FgFrameView *view, bool (*hold)(Program *, const FgFrameView *), Py_ssize_t count, int rounds,
                     const char *phase, PyObject *out)
{
    double best = 1e30;
    bool all = true;
    for (int i = 0; i < rounds && all; i += BATCH) {
        double start = now_ns();
        for (int k = 0; k < BATCH && all; k++)
            all = hold(p, view);
        best = Py_MIN(best, (now_ns() - start) / BATCH);
    }
    return count ? add_item(phase, count, -1, best, out) : 0;
}

static int add_phases(Program *p, const FgFrameView *view, PyObject **values, int rounds, PyObject *out)
{
    const Memo *m = p->memo;
    for (Py_ssize_t i = 0; i < m->earlies; i++)
        if (add_step(p, view, values, &m->early[i], rounds, "first", out) < 0)
            return -1;
    Py_ssize_t plain = m->facts - m->roots - m->tensors - m->rests;
    if (run_facts(p, view) != RUN_HOLDS) /* what ran first is Python code, and has changed something */
        return 0;
    if (add_facts(p, view, roots_hold, m->roots, rounds, "roots", out) < 0 ||
        add_facts(p, view, words_hold, plain, rounds, "words", out) < 0 ||
        add_facts(p, view, tensors_hold, m->tensors, rounds, "tensors", out) < 0 ||
        add_facts(p, view, rest_holds, m->rests, rounds, "others", out) < 0)
        return -1;
    int ok = 0;
    for (Py_ssize_t i = 0; i < m->keeps; i++)
        Py_INCREF(p->nodes[m->keep[i]].last);
    for (Py_ssize_t i = 0; ok == 0 && i < m->lates; i++)
        ok = add_step(p, view, values, &m->late[i], rounds, "last", out);
    for (Py_ssize_t i = 0; i < m->keeps; i++)
        Py_DECREF(p->nodes[m->keep[i]].last);
    return ok;
}

PyObject *fg_memo_costs(Program *p, const FgFrameView *view, int rounds)
{
    Py_ssize_t places = p->memo->places;
    PyObject *out = PyList_New(0), **values = PyMem_Calloc((size_t)places + 1, sizeof *values);
    if (!out || !values) {
        PyMem_Free(values);
        Py_XDECREF(out);
        return PyErr_NoMemory();
    }
    p->running++;
    int ok = add_phases(p, view, values, rounds, out);
    for (Py_ssize_t i = 0; i < places; i++)
        Py_XDECREF(values[i]);
    p->running--;
    PyMem_Free(values);
    if (ok < 0)
        Py_CLEAR(out);
    return out;
}
