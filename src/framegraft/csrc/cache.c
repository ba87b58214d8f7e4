/* Entries of guarded code, kept in the extra slot of the code object that they stand for. */
#include "core.h"
#include "structmember.h"
#include <string.h>

static Py_ssize_t slot = -1;

static void extra_free(void *p)
{
    FgExtra *extra = p;
    if (extra) {
        Py_XDECREF(extra->entries);
        PyMem_RawFree(extra);
    }
}

int fg_cache_init(void)
{
    slot = FG_REQUEST_EXTRA(extra_free);
    if (slot < 0)
        PyErr_SetString(PyExc_RuntimeError, "no slot for extra data of code objects is left");
    return slot < 0 ? -1 : 0;
}

FgExtra *fg_extra(PyCodeObject *code, bool create)
{
    FgExtra *extra = NULL;
    if (FG_GET_EXTRA((PyObject *)code, slot, (void **)&extra) < 0) {
        PyErr_Clear();
        return NULL;
    }
    if (!extra && create) {
        extra = PyMem_RawCalloc(1, sizeof *extra);
        if (!extra || FG_SET_EXTRA((PyObject *)code, slot, extra) < 0) {
            PyMem_RawFree(extra);
            if (!PyErr_Occurred())
                PyErr_NoMemory();
            return NULL;
        }
    }
    return extra;
}

/* The list of entries is copied before it is changed where somebody else looks at it: a guard written in Python lets
   other threads in, and may itself change the cache. */
static PyObject *writable(FgExtra *extra)
{
    PyObject *list = extra->entries, *made = NULL;
    if (list && Py_REFCNT(list) == 1)
        return list;
    Py_XINCREF(list); /* making a list may collect garbage, which may run code that changes the cache */
    made = list ? PyList_GetSlice(list, 0, PyList_GET_SIZE(list)) : PyList_New(0);
    if (made)
        Py_XSETREF(extra->entries, made);
    Py_XDECREF(list);
    return made;
}

static int drop(FgExtra *extra, PyObject *entry)
{
    for (Py_ssize_t i = 0; extra->entries && i < PyList_GET_SIZE(extra->entries); i++)
        if (PyList_GET_ITEM(extra->entries, i) == entry) {
            PyObject *list = writable(extra);
            return list && PyList_SetSlice(list, i, i + 1, NULL) == 0 ? 1 : -1;
        }
    return 0;
}

/* Only the caller's reference and the cache's are left: nobody else is looking at the list. */
static void move_to_front(FgExtra *extra, PyObject *list, Py_ssize_t i)
{
    if (extra->entries != list || Py_REFCNT(list) != 2)
        return;
    PyObject *entry = PyList_GET_ITEM(list, i);
    for (Py_ssize_t k = i; k > 0; k--)
        PyList_SET_ITEM(list, k, PyList_GET_ITEM(list, k - 1));
    PyList_SET_ITEM(list, 0, entry);
}

FgEntry *fg_lookup(FgExtra *extra, PyObject *ctx, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs)
{
    PyObject *list = extra->entries;
    if (!list)
        return NULL;
    Py_INCREF(list);
    FgEntry *found = NULL;
    Py_ssize_t failed = 0;
    for (Py_ssize_t i = 0; !found && failed != -3 && i < PyList_GET_SIZE(list); i++) {
        FgEntry *e = (FgEntry *)PyList_GET_ITEM(list, i); /* the list holds it, and does not change */
        if ((ctx && e->ctx != ctx) || e->globals != fn->func_globals)
            continue;
        failed = fg_program_run(e->program, args, n, fn, NULL, inputs);
        if (failed == -1) {
            found = (FgEntry *)Py_NewRef(e);
            e->hits++;
            if (i)
                move_to_front(extra, list, i);
        }
        else if (failed == -2 && drop(extra, (PyObject *)e) < 0)
            failed = -3;
    }
    Py_DECREF(list);
    return found;
}

/* Transformed code is never captured again. */
static int never_captured(PyObject *code)
{
    FgExtra *extra = fg_extra((PyCodeObject *)code, true);
    if (!extra)
        return -1;
    extra->skip = FG_SKIP;
    return 0;
}

/* The entry's code, which is made when it is first wanted. Borrowed; NULL with an error. */
static PyObject *code_of(FgEntry *e)
{
    if (PyCode_Check(e->code))
        return e->code;
    PyObject *maker = Py_NewRef(e->code), *made = fg_call_quietly(maker, NULL, NULL);
    if (made && !PyCode_Check(made)) {
        PyErr_Format(PyExc_TypeError, "an entry's code must be a code object, not %.200s", Py_TYPE(made)->tp_name);
        Py_CLEAR(made);
    }
    if (made && never_captured(made) < 0)
        Py_CLEAR(made);
    if (made && e->code == maker) /* else somebody was quicker */
        Py_SETREF(e->code, Py_NewRef(made));
    Py_DECREF(maker);
    Py_XDECREF(made);
    return made ? e->code : NULL;
}

/* A function over `code` for this callee's closure; new reference. */
static PyObject *function_over(FgEntry *e, PyObject *code, PyFunctionObject *fn)
{
    if (e->fn && ((PyFunctionObject *)e->fn)->func_code == code)
        return Py_NewRef(e->fn);
    Py_ssize_t cells = PyCode_GetNumFree((PyCodeObject *)code);
    if (cells != (fn->func_closure ? PyTuple_GET_SIZE(fn->func_closure) : 0) && cells) {
        PyErr_Format(PyExc_ValueError, "compiled code of %U needs a closure of %zd cells", fn->func_qualname, cells);
        return NULL;
    }
    PyObject *target = PyFunction_NewWithQualName(code, e->globals, fn->func_qualname);
    if (target && cells) {
        /* Not kept: it would keep the closure's objects alive as long as the code. */
        if (PyFunction_SetClosure(target, fn->func_closure) < 0)
            Py_CLEAR(target);
    }
    else if (target && !e->fn)
        e->fn = Py_NewRef(target);
    return target;
}

static PyObject *call_code(FgEntry *e, PyObject *code, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, const FgGift *gift)
{
    PyObject *target = function_over(e, code, fn);
    PyObject *result = target ? fg_call_giving((PyFunctionObject *)target, args, (size_t)n, gift) : NULL;
    Py_XDECREF(target);
    return result;
}

/* The quick code takes the graph's inputs after the frame's parameters. */
static PyObject *call_quick(FgEntry *e, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs,
                            const FgGift *gift)
{
    PyObject *small[16], **all = n + inputs->n <= 16 ? small : PyMem_Malloc((size_t)(n + inputs->n) * sizeof *all);
    if (!all)
        return PyErr_NoMemory();
    memcpy(all, args, (size_t)n * sizeof *all);
    memcpy(all + n, inputs->items, (size_t)inputs->n * sizeof *all);
    PyObject *result = call_code(e, e->quick, fn, all, n + inputs->n, gift);
    if (all != small)
        PyMem_Free(all);
    return result;
}

/* The error that is set, no longer set, with its traceback. */
static PyObject *taken_error(void)
{
    PyObject *type, *error, *tb;
    PyErr_Fetch(&type, &error, &tb);
    PyErr_NormalizeException(&type, &error, &tb);
    if (tb && PyException_SetTraceback(error, tb) < 0)
        PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(tb);
    return error;
}

/* The graph has failed: the frame once more, as it was written, where that is the plan. */
static PyObject *rescue(FgEntry *e, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n)
{
    PyObject *error = taken_error(), *closure = NULL, *all = NULL, *result = NULL;
    closure = fn->func_closure ? Py_NewRef(fn->func_closure) : PyTuple_New(0);
    all = closure ? PyTuple_New(3 + n) : NULL;
    if (all) {
        PyTuple_SET_ITEM(all, 0, Py_NewRef(error));
        PyTuple_SET_ITEM(all, 1, Py_NewRef(PyTuple_GET_ITEM(e->rescue, 1)));
        PyTuple_SET_ITEM(all, 2, Py_NewRef(closure));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SET_ITEM(all, 3 + i, Py_NewRef(args[i]));
        result = PyObject_Call(PyTuple_GET_ITEM(e->rescue, 0), all, NULL);
    }
    Py_XDECREF(all);
    Py_XDECREF(closure);
    Py_DECREF(error);
    return result;
}

/* Nothing but the graph: its only result. */
static PyObject *call_graph(FgEntry *e, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs)
{
    PyObject *found = PyObject_Vectorcall(e->graph, inputs->items, (size_t)inputs->n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (found) {
        PyObject *result = NULL;
        if (PyTuple_CheckExact(found) || PyList_CheckExact(found)) {
            if (Py_SIZE(found) == 1)
                result = Py_NewRef(PySequence_Fast_GET_ITEM(found, 0));
        }
        else {
            PyObject *list = PySequence_List(found);
            if (list && PyList_GET_SIZE(list) == 1)
                result = Py_NewRef(PyList_GET_ITEM(list, 0));
            Py_XDECREF(list);
        }
        if (!result && !PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a compiled graph of one result must return it in a tuple or list of one");
        Py_DECREF(found);
        return result;
    }
    return e->rescue ? rescue(e, fn, args, n) : NULL;
}

int fg_entry_inputs(FgEntry *e, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs)
{
    if (!e->graph && !e->quick)
        return 0;
    return fg_program_run(e->program, args, n, fn, NULL, inputs) == -3 ? -1 : 0;
}

/* An error has left `ran` (NULL: the graph): its traceback is put right by info.mend(error, ran or None), where there is that. */
static PyObject *failed(FgEntry *e, PyObject *ran)
{
    PyObject *error = taken_error();
    PyObject *mend = e->info == Py_None ? NULL : PyObject_GetAttrString(e->info, "mend");
    PyObject *answer = mend ? fg_call_apart(mend, error, ran ? ran : Py_None) : NULL;
    if (!answer)
        PyErr_Clear(); /* no room left for another call, say: the error is what counts */
    Py_XDECREF(answer);
    Py_XDECREF(mend);
    PyErr_Restore(Py_NewRef(Py_TYPE(error)), error, PyException_GetTraceback(error));
    return NULL;
}

PyObject *fg_entry_call(FgEntry *e, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs, const FgGift *gift)
{
    PyObject *result;
    if (e->graph && inputs->items) {
        result = call_graph(e, fn, args, n, inputs);
        return result ? result : failed(e, NULL);
    }
    FgGift all;
    all.n = 0;
    if (gift && e->needs_hook) {
        all = *gift;
        if (inputs->items)
            fg_give(&all, inputs->items, inputs->n, NULL);
    }
    PyObject *code = e->quick && inputs->items ? e->quick : code_of(e);
    if (!code)
        return NULL;
    Py_INCREF(code);
    result = code == e->quick ? call_quick(e, fn, args, n, inputs, &all) : call_code(e, code, fn, args, n, &all);
    if (!result)
        failed(e, code);
    Py_DECREF(code);
    return result;
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = {"program", "code", "globals", "ctx", "info", "needs_hook", "quick", "graph", "rescue", "unhooked", NULL};
    PyObject *program, *code, *globals, *ctx, *info = Py_None, *quick = Py_None, *graph = Py_None, *rescue = Py_None;
    int needs_hook = 0, unhooked = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!OO!O|OpOOOp", names, &FgGuardProgram_Type, &program, &code, &PyDict_Type,
                                     &globals, &ctx, &info, &needs_hook, &quick, &graph, &rescue, &unhooked))
        return NULL;
    if (!PyCode_Check(code) && !PyCallable_Check(code)) {
        PyErr_Format(PyExc_TypeError, "code must be a code object or make one, not %.200s", Py_TYPE(code)->tp_name);
        return NULL;
    }
    if (quick != Py_None && !PyCode_Check(quick)) {
        PyErr_Format(PyExc_TypeError, "quick must be a code object or None, not %.200s", Py_TYPE(quick)->tp_name);
        return NULL;
    }
    if (rescue != Py_None && (!PyTuple_Check(rescue) || PyTuple_GET_SIZE(rescue) != 2)) {
        PyErr_Format(PyExc_TypeError, "rescue must be a tuple (callable, plan) or None, not %.200s", Py_TYPE(rescue)->tp_name);
        return NULL;
    }
    if ((PyCode_Check(code) && never_captured(code) < 0) || (quick != Py_None && never_captured(quick) < 0))
        return NULL;
    FgEntry *e = (FgEntry *)type->tp_alloc(type, 0);
    if (!e)
        return NULL;
    e->program = Py_NewRef(program);
    e->code = Py_NewRef(code);
    e->globals = Py_NewRef(globals);
    e->ctx = Py_NewRef(ctx);
    e->info = Py_NewRef(info);
    e->quick = quick == Py_None ? NULL : Py_NewRef(quick);
    e->graph = graph == Py_None ? NULL : Py_NewRef(graph);
    e->rescue = rescue == Py_None ? NULL : Py_NewRef(rescue);
    e->needs_hook = (char)needs_hook;
    e->unhooked = (char)unhooked;
    return (PyObject *)e;
}

static int entry_traverse(PyObject *self, visitproc visit, void *arg)
{
    FgEntry *e = (FgEntry *)self;
    Py_VISIT(e->program);
    Py_VISIT(e->code);
    Py_VISIT(e->globals);
    Py_VISIT(e->ctx);
    Py_VISIT(e->info);
    Py_VISIT(e->fn);
    Py_VISIT(e->quick);
    Py_VISIT(e->graph);
    Py_VISIT(e->rescue);
    return 0;
}

static int entry_clear(PyObject *self)
{
    FgEntry *e = (FgEntry *)self;
    Py_CLEAR(e->ctx);
    Py_CLEAR(e->info);
    Py_CLEAR(e->fn);
    Py_CLEAR(e->quick);
    Py_CLEAR(e->graph);
    Py_CLEAR(e->rescue);
    return 0;
}

static void entry_dealloc(PyObject *self)
{
    FgEntry *e = (FgEntry *)self;
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    Py_CLEAR(e->program);
    Py_CLEAR(e->code);
    Py_CLEAR(e->globals);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *entry_code(PyObject *self, void *unused)
{
    PyObject *code = code_of((FgEntry *)self);
    return Py_XNewRef(code);
}

static PyGetSetDef entry_getset[] = {{"code", entry_code, NULL, "The transformed code.", NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef entry_members[] = {
    {"program", T_OBJECT, offsetof(FgEntry, program), READONLY, NULL},
    {"globals", T_OBJECT, offsetof(FgEntry, globals), READONLY, NULL},
    {"ctx", T_OBJECT, offsetof(FgEntry, ctx), READONLY, NULL},
    {"info", T_OBJECT, offsetof(FgEntry, info), READONLY, NULL},
    {"quick", T_OBJECT, offsetof(FgEntry, quick), READONLY, NULL},
    {"graph", T_OBJECT, offsetof(FgEntry, graph), READONLY, NULL},
    {"hits", T_PYSSIZET, offsetof(FgEntry, hits), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

PyTypeObject FgEntry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.Entry",
    .tp_basicsize = sizeof(FgEntry),
    .tp_new = entry_new,
    .tp_dealloc = entry_dealloc,
    .tp_traverse = entry_traverse,
    .tp_clear = entry_clear,
    .tp_members = entry_members,
    .tp_getset = entry_getset,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Entry(program, code, globals, ctx, info=None, needs_hook=False, quick=None, graph=None, rescue=None, unhooked=False): guarded "
              "code.\n\n"
              "code: a code object, or a callable that makes it when it is first wanted.\n"
              "quick: code that does what `code` does, and takes the program's inputs after the parameters.\n"
              "graph: a callable of the program's inputs; `code` does nothing but return the only item of what it returns.\n"
              "rescue: (callable, plan); callable(error, plan, closure, *parameters) where `graph` fails.\n"
              "unhooked: nothing that the code calls is captured.",
};

static PyCodeObject *code_arg(PyObject *code)
{
    if (!PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "code must be a code object, not %.200s", Py_TYPE(code)->tp_name);
        return NULL;
    }
    return (PyCodeObject *)code;
}

PyObject *fg_cache_entries(PyObject *self, PyObject *arg)
{
    PyCodeObject *code = code_arg(arg);
    if (!code)
        return NULL;
    FgExtra *extra = fg_extra(code, false);
    if (!extra || !extra->entries)
        return PyList_New(0);
    PyObject *list = Py_NewRef(extra->entries);
    PyObject *copy = PyList_GetSlice(list, 0, PyList_GET_SIZE(list));
    Py_DECREF(list);
    return copy;
}

PyObject *fg_add_entry(PyObject *self, PyObject *args)
{
    PyObject *code, *entry;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &FgEntry_Type, &entry))
        return NULL;
    FgExtra *extra = fg_extra((PyCodeObject *)code, true);
    if (!extra)
        return NULL;
    PyObject *list = writable(extra);
    if (!list || PyList_Insert(list, 0, entry) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *fg_remove_entry(PyObject *self, PyObject *args)
{
    PyObject *code, *entry;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &FgEntry_Type, &entry))
        return NULL;
    FgExtra *extra = fg_extra((PyCodeObject *)code, false);
    int dropped = extra ? drop(extra, entry) : 0;
    return dropped < 0 ? NULL : PyBool_FromLong(dropped);
}

PyObject *fg_clear_cache(PyObject *self, PyObject *arg)
{
    PyCodeObject *code = code_arg(arg);
    if (!code)
        return NULL;
    FgExtra *extra = fg_extra(code, false);
    if (extra)
        Py_CLEAR(extra->entries);
    Py_RETURN_NONE;
}

PyObject *fg_set_skip(PyObject *self, PyObject *args)
{
    PyObject *code;
    int on;
    if (!PyArg_ParseTuple(args, "O!i", &PyCode_Type, &code, &on))
        return NULL;
    if (on < 0 || on > FG_SKIP_DEEP) {
        PyErr_Format(PyExc_ValueError, "on must be 0 to 2, not %d", on);
        return NULL;
    }
    FgExtra *extra = fg_extra((PyCodeObject *)code, true);
    if (!extra)
        return NULL;
    extra->skip = (char)on;
    Py_RETURN_NONE;
}

PyObject *fg_is_skipped(PyObject *self, PyObject *arg)
{
    PyCodeObject *code = code_arg(arg);
    if (!code)
        return NULL;
    FgExtra *extra = fg_extra(code, false);
    return PyBool_FromLong(extra && extra->skip);
}
