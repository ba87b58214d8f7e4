/* Entries of guarded code, kept in the extra slot of the code object that they stand for. */
#include "core.h"
#include "structmember.h"

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

FgEntry *fg_lookup(FgExtra *extra, PyObject *ctx, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n)
{
    PyObject *list = extra->entries;
    if (!list)
        return NULL;
    Py_INCREF(list); /* a guard written in Python may change the cache */
    FgEntry *found = NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        FgEntry *e = (FgEntry *)Py_NewRef(PyList_GET_ITEM(list, i));
        if ((ctx == NULL || e->ctx == ctx) && e->globals == fn->func_globals) {
            Py_ssize_t failed = fg_program_run(e->program, args, n, fn, NULL);
            if (failed == -1) {
                if (i && i < PyList_GET_SIZE(list) && PyList_GET_ITEM(list, i) == (PyObject *)e) {
                    for (Py_ssize_t k = i; k > 0; k--)
                        PyList_SET_ITEM(list, k, PyList_GET_ITEM(list, k - 1));
                    PyList_SET_ITEM(list, 0, (PyObject *)e);
                }
                e->hits++;
                found = e;
                break;
            }
            if (failed == -3)
                PyErr_Clear();
            if (failed == -2 && i < PyList_GET_SIZE(list) && PyList_GET_ITEM(list, i) == (PyObject *)e) {
                if (PyList_SetSlice(list, i, i + 1, NULL) < 0)
                    PyErr_Clear();
                else
                    i--;
            }
        }
        Py_DECREF(e);
    }
    Py_DECREF(list);
    return found;
}

PyObject *fg_entry_call(FgEntry *e, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n)
{
    PyObject *target;
    if (e->fn)
        target = Py_NewRef(e->fn);
    else {
        target = PyFunction_NewWithQualName(e->code, e->globals, fn->func_qualname);
        if (!target)
            return NULL;
        if (PyCode_GetNumFree((PyCodeObject *)e->code)) {
            /* Not kept: it would keep the closure's objects alive as long as the code. */
            if (fn->func_closure && PyFunction_SetClosure(target, fn->func_closure) < 0) {
                Py_DECREF(target);
                return NULL;
            }
        }
        else
            e->fn = Py_NewRef(target);
    }
    PyObject *result = PyObject_Vectorcall(target, args, (size_t)n, NULL);
    Py_DECREF(target);
    return result;
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = {"program", "code", "globals", "ctx", "info", "needs_hook", NULL};
    PyObject *program, *code, *globals, *ctx, *info = Py_None;
    int needs_hook = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!O!O!O|Op", names, &FgGuardProgram_Type, &program, &PyCode_Type, &code,
                                     &PyDict_Type, &globals, &ctx, &info, &needs_hook))
        return NULL;
    FgExtra *extra = fg_extra((PyCodeObject *)code, true);
    if (!extra)
        return NULL;
    extra->skip = 1; /* transformed code is never captured again */
    FgEntry *e = (FgEntry *)type->tp_alloc(type, 0);
    if (!e)
        return NULL;
    e->program = Py_NewRef(program);
    e->code = Py_NewRef(code);
    e->globals = Py_NewRef(globals);
    e->ctx = Py_NewRef(ctx);
    e->info = Py_NewRef(info);
    e->needs_hook = (char)needs_hook;
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
    return 0;
}

static int entry_clear(PyObject *self)
{
    FgEntry *e = (FgEntry *)self;
    Py_CLEAR(e->ctx);
    Py_CLEAR(e->info);
    Py_CLEAR(e->fn);
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

static PyMemberDef entry_members[] = {
    {"program", T_OBJECT, offsetof(FgEntry, program), READONLY, NULL},
    {"code", T_OBJECT, offsetof(FgEntry, code), READONLY, NULL},
    {"globals", T_OBJECT, offsetof(FgEntry, globals), READONLY, NULL},
    {"ctx", T_OBJECT, offsetof(FgEntry, ctx), READONLY, NULL},
    {"info", T_OBJECT, offsetof(FgEntry, info), READONLY, NULL},
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
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Entry(program, code, globals, ctx, info=None, needs_hook=False): guarded code.",
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
    return extra && extra->entries ? PyList_GetSlice(extra->entries, 0, PyList_GET_SIZE(extra->entries)) : PyList_New(0);
}

PyObject *fg_add_entry(PyObject *self, PyObject *args)
{
    PyObject *code, *entry;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &FgEntry_Type, &entry))
        return NULL;
    FgExtra *extra = fg_extra((PyCodeObject *)code, true);
    if (!extra)
        return NULL;
    if (!extra->entries && !(extra->entries = PyList_New(0)))
        return NULL;
    if (PyList_Insert(extra->entries, 0, entry) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *fg_remove_entry(PyObject *self, PyObject *args)
{
    PyObject *code, *entry;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &FgEntry_Type, &entry))
        return NULL;
    FgExtra *extra = fg_extra((PyCodeObject *)code, false);
    for (Py_ssize_t i = 0; extra && extra->entries && i < PyList_GET_SIZE(extra->entries); i++)
        if (PyList_GET_ITEM(extra->entries, i) == entry) {
            if (PyList_SetSlice(extra->entries, i, i + 1, NULL) < 0)
                return NULL;
            Py_RETURN_TRUE;
        }
    Py_RETURN_FALSE;
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
    PyObject *code, *ctx;
    int on;
    if (!PyArg_ParseTuple(args, "O!Op", &PyCode_Type, &code, &ctx, &on))
        return NULL;
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
