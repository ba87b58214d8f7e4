/* CompiledFunction: what framegraft.compile returns for a function. */
#include "core.h"
#include "structmember.h"
#include <string.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fn, *ctx, *miss, *dict, *weakrefs;
    int rest; /* of a frame that was interrupted: nobody but that has the arguments */
} Compiled;

enum { MAX_PARAMETERS = 255 };

/* Flat parameters in co_varnames order, new references; false where CPython would raise (it words the error itself). */
static bool bind(PyFunctionObject *fn, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    PyCodeObject *code = (PyCodeObject *)fn->func_code;
    Py_ssize_t npos = code->co_argcount, nkw = code->co_kwonlyargcount, total = fg_parameter_count(code);
    Py_ssize_t varargs = code->co_flags & CO_VARARGS ? npos + nkw : -1;
    Py_ssize_t varkw = code->co_flags & CO_VARKEYWORDS ? total - 1 : -1;
    memset(out, 0, sizeof *out * (size_t)total);
    if (nargs > npos && varargs < 0)
        return false;
    for (Py_ssize_t i = 0; i < nargs && i < npos; i++)
        out[i] = Py_NewRef(args[i]);
    if (varargs >= 0) {
        Py_ssize_t extra = nargs > npos ? nargs - npos : 0;
        out[varargs] = PyTuple_New(extra);
        if (!out[varargs])
            goto fail;
        for (Py_ssize_t i = 0; i < extra; i++)
            PyTuple_SET_ITEM(out[varargs], i, Py_NewRef(args[npos + i]));
    }
    if (varkw >= 0 && !(out[varkw] = PyDict_New()))
        goto fail;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        Py_ssize_t i = code->co_posonlyargcount;
        while (i < npos + nkw && FG_CODE_NAME_AT(code, i) != name)
            i++;
        if (i == npos + nkw)
            for (i = code->co_posonlyargcount; i < npos + nkw; i++)
                if (PyUnicode_Compare(FG_CODE_NAME_AT(code, i), name) == 0)
                    break;
        if (i < npos + nkw) {
            if (out[i])
                goto fail;
            out[i] = Py_NewRef(args[nargs + k]);
        }
        else if (varkw < 0 || PyDict_SetItem(out[varkw], name, args[nargs + k]) < 0)
            goto fail;
    }
    PyObject *defaults = fn->func_defaults;
    Py_ssize_t first = npos - (defaults ? PyTuple_GET_SIZE(defaults) : 0);
    for (Py_ssize_t i = 0; i < npos; i++)
        if (!out[i]) {
            if (i < first)
                goto fail;
            out[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, i - first));
        }
    for (Py_ssize_t i = npos; i < npos + nkw; i++)
        if (!out[i]) {
            PyObject *v = fn->func_kwdefaults ? PyDict_GetItemWithError(fn->func_kwdefaults, FG_CODE_NAME_AT(code, i)) : NULL;
            if (!v)
                goto fail;
            out[i] = Py_NewRef(v);
        }
    return true;
fail:
    PyErr_Clear();
    for (Py_ssize_t i = 0; i < total; i++)
        Py_CLEAR(out[i]);
    return false;
}

/* Adds to the gift what the running frame has put on its stack for this call. */
static void give_arguments(FgGift *gift, Compiled *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if ((FG_CALLS_HAND_OVER || self->rest) && fg_args_of_frame(PyThreadState_Get(), (PyObject *)self, args, n))
        fg_give(gift, (PyObject **)args, n, Py_None);
}

/* The arguments that no frame has taken die as a frame's variables do: from the first to the last. Calls of 3.10 drop theirs from
   the last to the first. */
static inline void drop_arguments(Compiled *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (FG_CALLS_HAND_OVER || !self->rest)
        return;
    FgGift gift;
    gift.n = 0;
    give_arguments(&gift, self, args, nargsf, kwnames);
    fg_hand_over(&gift);
}

/* The function as it is written. */
static PyObject *call_plain(Compiled *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    FgGift gift;
    gift.n = 0;
    if (!kwnames)
        give_arguments(&gift, self, args, nargsf, NULL);
    return kwnames ? PyObject_Vectorcall(self->fn, args, nargsf, kwnames)
                   : fg_call_giving((PyFunctionObject *)self->fn, args, nargsf, &gift);
}

static PyObject *run(Compiled *self, FgEntry *entry, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t n, FgInputs *inputs,
                     const FgGift *gift)
{
    if (!entry->unhooked && (!entry->needs_hook || fg_thread()->mode != FG_DEFAULT))
        return fg_entry_call(entry, fn, args, n, inputs, gift);
    /* What the code calls for real may hold frames to capture. */
    FgThread old = entry->unhooked ? fg_swap_mode(FG_DISABLED, NULL, NULL) : fg_swap_mode(FG_HOOK, self->ctx, self->miss);
    PyObject *result = fg_entry_call(entry, fn, args, n, inputs, gift);
    fg_restore_mode(old);
    return result;
}

/* With the parameters flat and in order: the entry that fits, or one made for them, or the function as it is.
   gift: what is to go to the frame that runs. */
static PyObject *call_flat(Compiled *self, FgExtra *extra, int mode, PyObject *const *flat, Py_ssize_t n, PyObject *const *args,
                           size_t nargsf, PyObject *kwnames, FgGift *gift)
{
    PyFunctionObject *fn = (PyFunctionObject *)self->fn;
    FgInputs inputs;
    fg_inputs_init(&inputs);
    FgEntry *entry = extra ? fg_lookup(extra, self->ctx, fn, flat, n, &inputs) : NULL;
    if (!entry && mode != FG_RUN_ONLY && !(extra && PyErr_Occurred()))
        if ((entry = fg_ask(self->miss, (PyObject *)self, flat, n)) && fg_entry_inputs(entry, fn, flat, n, &inputs) < 0)
            Py_CLEAR(entry);
    if (!entry && PyErr_Occurred())
        return NULL;
    if (!entry || entry->needs_hook) /* there is more to come when the graph has run */
        give_arguments(gift, self, args, nargsf, kwnames);
    if (!entry)
        return kwnames ? PyObject_Vectorcall((PyObject *)fn, args, nargsf, kwnames) : fg_call_giving(fn, args, nargsf, gift);
    PyObject *result = run(self, entry, fn, flat, n, &inputs, gift);
    fg_inputs_clear(&inputs);
    Py_DECREF(entry);
    return result;
}

#ifdef FG_BLOCK_STACK
/* The list ___rest (see emit/resume.py) among the arguments of a resume function, borrowed, or NULL. */
static PyObject *noted_frames(Compiled *self, PyObject *const *args, Py_ssize_t n)
{
    PyCodeObject *code = (PyCodeObject *)((PyFunctionObject *)self->fn)->func_code;
    if (!self->rest || !n || n != code->co_argcount || !PyList_CheckExact(args[n - 1]) ||
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_varnames, n - 1), "___rest"))
        return NULL;
    return args[n - 1];
}

/* The frame that holds the list must not be held by those in it, which keep their callers. Frames of an error do so for those who
   look at its traceback. */
static void end_cycle(PyObject *frames, bool failed)
{
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(frames); i++)
        if (PyFrame_Check(PyList_GET_ITEM(frames, i)))
            fg_frame_forget_caller((FgFrame *)PyList_GET_ITEM(frames, i));
    if (failed) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        if (PyList_SetSlice(frames, 0, PyList_GET_SIZE(frames), NULL) < 0)
            PyErr_WriteUnraisable(frames);
        PyErr_Restore(type, value, trace);
    }
}
#endif

/* In a frame of its own, so that a call that needs no binding takes little of the C stack. */
__attribute__((noinline)) static PyObject *call_bound(Compiled *self, FgExtra *extra, int mode, Py_ssize_t n, PyObject *const *args,
                                                      size_t nargsf, PyObject *kwnames)
{
    PyObject *bound[MAX_PARAMETERS + 1];
    if (!bind((PyFunctionObject *)self->fn, args, PyVectorcall_NARGS(nargsf), kwnames, bound))
        return PyObject_Vectorcall(self->fn, args, nargsf, kwnames);
    FgGift gift;
    gift.n = 0;
    fg_give(&gift, bound, n, NULL);
    PyObject *result = call_flat(self, extra, mode, bound, n, args, nargsf, kwnames, &gift);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_XDECREF(bound[i]);
    return result;
}

/* Each break in a loop nests one more resume function: before the program runs out of frames by that, the rest runs as it is. */
__attribute__((noinline)) static PyObject *call_as_written(PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    FgThread old = fg_swap_mode(FG_DISABLED, NULL, NULL);
    PyObject *result = PyObject_Vectorcall(fn, args, nargsf, kwnames);
    fg_restore_mode(old);
    return result;
}

static PyObject *call(Compiled *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *fn = self->fn;
    PyCodeObject *code = (PyCodeObject *)((PyFunctionObject *)fn)->func_code;
    int mode = fg_thread()->mode;
    FgExtra *extra = fg_extra(code, false);
    Py_ssize_t n = fg_parameter_count(code);
    if (mode != FG_DISABLED && FG_RECURSION_LOW(PyThreadState_Get()))
        return call_as_written(fn, args, nargsf, kwnames);
    /* Without ctx and miss: garbage that is being collected. */
    if (mode == FG_DISABLED || (extra && extra->skip) || n > MAX_PARAMETERS || (!extra && mode == FG_RUN_ONLY) || !self->ctx ||
        !self->miss)
        return call_plain(self, args, nargsf, kwnames);
    /* Guards, and names of keywords, may run code that replaces the function's code, in which the entries lie. */
    Py_INCREF(code);
    Py_INCREF(self);
    PyObject *result;
    if (kwnames || PyVectorcall_NARGS(nargsf) != n || n != code->co_argcount)
        result = call_bound(self, extra, mode, n, args, nargsf, kwnames);
    else {
        FgGift gift;
        gift.n = 0;
        result = call_flat(self, extra, mode, args, n, args, nargsf, NULL, &gift);
    }
    drop_arguments(self, args, nargsf, kwnames);
    Py_DECREF(self);
    Py_DECREF(code);
    return result;
}

static PyObject *compiled_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Compiled *self = (Compiled *)callable;
#ifdef FG_BLOCK_STACK
    PyObject *frames = noted_frames(self, args, kwnames ? 0 : PyVectorcall_NARGS(nargsf));
    if (frames) {
        Py_INCREF(frames);
        PyObject *result = call(self, args, nargsf, kwnames);
        end_cycle(frames, !result);
        Py_DECREF(frames);
        return result;
    }
#endif
    return call(self, args, nargsf, kwnames);
}

static PyObject *compiled_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *fn, *ctx, *miss;
    int rest = 0;
    if (!PyArg_ParseTuple(args, "O!OO|p", &PyFunction_Type, &fn, &ctx, &miss, &rest))
        return NULL;
    Compiled *self = (Compiled *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = compiled_call;
    self->rest = rest;
    self->fn = Py_NewRef(fn);
    self->ctx = Py_NewRef(ctx);
    self->miss = Py_NewRef(miss);
    self->dict = PyDict_New();
    if (!self->dict || PyDict_SetItemString(self->dict, "__wrapped__", fn) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int compiled_traverse(PyObject *o, visitproc visit, void *arg)
{
    Compiled *self = (Compiled *)o;
    Py_VISIT(self->fn);
    Py_VISIT(self->ctx);
    Py_VISIT(self->miss);
    Py_VISIT(self->dict);
    return 0;
}

static int compiled_clear(PyObject *o)
{
    Compiled *self = (Compiled *)o;
    Py_CLEAR(self->ctx);
    Py_CLEAR(self->miss);
    Py_CLEAR(self->dict);
    return 0;
}

static void compiled_dealloc(PyObject *o)
{
    Compiled *self = (Compiled *)o;
    PyObject_GC_UnTrack(o);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(o);
    compiled_clear(o);
    Py_CLEAR(self->fn);
    Py_TYPE(o)->tp_free(o);
}

static PyObject *compiled_get(PyObject *self, PyObject *obj, PyObject *type)
{
    return obj && obj != Py_None ? PyMethod_New(self, obj) : Py_NewRef(self);
}

static bool of_function(PyObject *name)
{
    static const char *const fields[] = {"__code__", "__defaults__", "__kwdefaults__", "__closure__", "__globals__", "__name__",
                                         "__qualname__", "__doc__", "__annotations__", "__module__", "__builtins__"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (PyUnicode_CompareWithASCIIString(name, fields[i]) == 0)
            return true;
    return false;
}

static PyObject *compiled_getattro(PyObject *o, PyObject *name)
{
    Compiled *self = (Compiled *)o;
    if (of_function(name))
        return PyObject_GetAttr(self->fn, name);
    PyObject *value = PyObject_GenericGetAttr(o, name);
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(self->fn, name);
}

static int compiled_setattro(PyObject *o, PyObject *name, PyObject *value)
{
    return of_function(name) ? PyObject_SetAttr(((Compiled *)o)->fn, name, value) : PyObject_GenericSetAttr(o, name, value);
}

static PyObject *compiled_repr(PyObject *o)
{
    return PyUnicode_FromFormat("<framegraft compiled %U at %p>", ((PyFunctionObject *)((Compiled *)o)->fn)->func_qualname, o);
}

static PyObject *compiled_reduce(PyObject *o, PyObject *unused)
{
    return Py_NewRef(((PyFunctionObject *)((Compiled *)o)->fn)->func_qualname);
}

static PyMethodDef compiled_methods[] = {{"__reduce__", compiled_reduce, METH_NOARGS, "By qualified name, as functions."},
                                         {NULL, NULL, 0, NULL}};
/* __wrapped__ may be set to anything, as functools.update_wrapper does. */
static PyMemberDef compiled_members[] = {{"fn", T_OBJECT, offsetof(Compiled, fn), READONLY, NULL},
                                         {"ctx", T_OBJECT, offsetof(Compiled, ctx), READONLY, NULL},
                                         {"miss", T_OBJECT, offsetof(Compiled, miss), READONLY, NULL},
                                         {NULL, 0, 0, 0, NULL}};
static PyGetSetDef compiled_getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
                                        {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject FgCompiledFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.CompiledFunction",
    .tp_basicsize = sizeof(Compiled),
    .tp_new = compiled_new,
    .tp_dealloc = compiled_dealloc,
    .tp_traverse = compiled_traverse,
    .tp_clear = compiled_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Compiled, vectorcall),
    .tp_dictoffset = offsetof(Compiled, dict),
    .tp_weaklistoffset = offsetof(Compiled, weakrefs),
    .tp_descr_get = compiled_get,
    .tp_getattro = compiled_getattro,
    .tp_setattro = compiled_setattro,
    .tp_repr = compiled_repr,
    .tp_methods = compiled_methods,
    .tp_members = compiled_members,
    .tp_getset = compiled_getset,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc = "CompiledFunction(fn, ctx, miss, rest=False): calls fitting guarded code of fn, asks miss(self, args) for more.\n\n"
              "rest: fn is the rest of an interrupted frame, which owns its arguments.",
};
