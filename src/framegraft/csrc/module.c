/* framegraft._native: the module. */
#include "core.h"

PyObject *fg_missing;

static PyObject *generic_getattr(PyObject *self, PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_Format(PyExc_TypeError, "type must be a class, not %.200s", Py_TYPE(type)->tp_name);
        return NULL;
    }
    return PyBool_FromLong(((PyTypeObject *)type)->tp_getattro == PyObject_GenericGetAttr);
}

/* 1: what the class has under the name __dict__ is C's; 0: it is the program's own; -1: nothing is there. */
static int shows(PyTypeObject *type, PyObject *name)
{
    PyObject *found = _PyType_Lookup(type, name);
    return found ? Py_IS_TYPE(found, &PyGetSetDescr_Type) || Py_IS_TYPE(found, &PyMemberDescr_Type) : -1;
}

static PyObject *shows_namespace(PyObject *self, PyObject *obj)
{
    PyObject *name = PyUnicode_InternFromString("__dict__");
    if (!name)
        return NULL;
    int shown = shows(Py_TYPE(obj), name);
    Py_DECREF(name);
    return PyBool_FromLong(shown != 0);
}

static PyObject *namespace_of(PyObject *self, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    PyObject *name = PyUnicode_InternFromString("__dict__"), *found = NULL;
    if (!name)
        return NULL;
    if (PyType_Check(obj))
        found = PyType_Type.tp_getattro(obj, name);
    else if (type->tp_dictoffset)
        found = PyObject_GenericGetDict(obj, NULL);
    else if (shows(type, name) == 1)
        found = PyObject_GenericGetAttr(obj, name);
    else
        found = Py_NewRef(Py_None);
    Py_DECREF(name);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = Py_NewRef(Py_None);
    }
    return found;
}

static PyObject *type_name(PyObject *self, PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_Format(PyExc_TypeError, "type must be a class, not %.200s", Py_TYPE(type)->tp_name);
        return NULL;
    }
    return PyUnicode_FromString(((PyTypeObject *)type)->tp_name);
}

/* No matter for PyInit__native: that may run in the main interpreter for another one, or not again. */
static PyObject *in_main_interpreter(PyObject *self, PyObject *unused)
{
    return PyBool_FromLong(PyInterpreterState_Get() == PyInterpreterState_Main());
}

/* Append the frame of the Python code that calls this to a list. */
static PyObject *note_frame(PyObject *self, PyObject *list)
{
    if (!PyList_CheckExact(list))
        return PyErr_Format(PyExc_TypeError, "note_frame(): a list, not %.200s", Py_TYPE(list)->tp_name);
    PyObject *frame = (PyObject *)PyEval_GetFrame(); /* borrowed */
    if (!frame)
        return PyErr_Occurred() ? NULL : (Py_INCREF(Py_None), Py_None);
    if (PyList_Append(list, frame) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"in_main_interpreter", in_main_interpreter, METH_NOARGS, "Whether it is not a subinterpreter that runs."},
    {"generic_getattr", generic_getattr, METH_O, "Whether a class's own slot for attributes is PyObject_GenericGetAttr."},
    {"shows_namespace", shows_namespace, METH_O, "Whether __dict__ of an object gives what it keeps its attributes in."},
    {"namespace_of", namespace_of, METH_O, "The real __dict__, without running code of the program; None where there is none."},
    {"type_name", type_name, METH_O, "A class's name as the interpreter's own errors tell it: some in C with their module."},
    {"calibrate", fg_calibrate, METH_VARARGS, "Field offsets of tensors; see native/calibrate.py."},
    {"set_fallbacks", fg_set_fallbacks, METH_VARARGS, "Python callables that read metadata and state instead."},
    {"set_abc_token", fg_set_abc_token, METH_O, "set_abc_token(address): where the ABC cache token is counted; 0: not known."},
    {"grad_is_late", fg_grad_is_late, METH_O, "Whether a view has no grad_fn yet because its base came to require a gradient later."},
    {"tensor_info", fg_tensor_info, METH_O, "Metadata of a tensor as the calibrated fields give it."},
    {"new_tensor_spec", fg_tensor_spec, METH_VARARGS, "new_tensor_spec(tensor, text, any=): any tells for each size, then each stride, whether it may be anything."},
    {"global_state", fg_global_state, METH_NOARGS, "A snapshot of torch's global state."},
    {"note_frame", note_frame, METH_O, "Append the frame of the Python code that calls this to a list."},
    {"cache_entries", fg_cache_entries, METH_O, "Entries of a code object, most recent first."},
    {"add_entry", fg_add_entry, METH_VARARGS, "add_entry(code, entry)"},
    {"remove_entry", fg_remove_entry, METH_VARARGS, "remove_entry(code, entry) -> bool"},
    {"clear_cache", fg_clear_cache, METH_O, "Drop the entries of a code object."},
    {"set_skip", fg_set_skip, METH_VARARGS, "set_skip(code, on): never capture this code object; with 2, nor what it calls."},
    {"is_skipped", fg_is_skipped, METH_O, "Whether a code object is never captured."},
    {"set_mode", fg_set_mode, METH_VARARGS, "set_mode(mode, ctx, miss) -> the old three; of this thread."},
    {"set_quiet", fg_set_quiet, METH_O, "set_quiet(fn): fn(filename) tells files of which debuggers see nothing while a frame is captured."},
    {"get_mode", fg_get_mode, METH_NOARGS, "(mode, ctx, miss) of this thread."},
#ifdef FG_BLOCK_STACK
    {"handle", fg_handle, METH_O, "The exception is being handled from now on; gives what was before."},
    {"unhandle", fg_unhandle, METH_O, "Back to what handle() gave."},
    {"as_three", fg_as_three, METH_O, "(type, value, traceback) of an exception."},
    {"as_handled", fg_as_handled, METH_O, "The same of the exception being handled, with the traceback that its handler got."},
    {"set_handled_traceback", fg_set_handled_traceback, METH_O, "The exception being handled goes on with it if it is raised again."},
    {"load_cell", fg_load_cell, METH_VARARGS, "load_cell(cell, name): what is in it, or an UnboundLocalError."},
#endif
    {NULL, NULL, 0, NULL}};

static PyTypeObject missing_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.MissingType",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The type of MISSING.",
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "framegraft._native", "The native core of Framegraft.", -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void)
{
    PyTypeObject *types[] = {&missing_type, &FgPath_Type, &FgTensorSpec_Type, &FgGlobalState_Type, &FgGuardProgram_Type, &FgEntry_Type,
                             &FgCompiledFunction_Type, &FgShielded_Type, &FgModuleCall_Type,
                             &FgDelegate_Type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyType_Ready(types[i]) < 0)
            return NULL;
    if (fg_cache_init() < 0)
        return NULL;
    fg_keep_chunks();
    fg_missing = (PyObject *)PyObject_New(PyObject, &missing_type);
    PyObject *m = PyModule_Create(&definition);
    if (!m || !fg_missing || PyModule_AddObjectRef(m, "MISSING", fg_missing) < 0 || PyModule_AddType(m, &FgGuardProgram_Type) < 0 ||
        PyModule_AddType(m, &FgEntry_Type) < 0 || PyModule_AddType(m, &FgCompiledFunction_Type) < 0 ||
        PyModule_AddType(m, &FgTensorSpec_Type) < 0 || PyModule_AddType(m, &FgGlobalState_Type) < 0 ||
        PyModule_AddType(m, &FgShielded_Type) < 0 || PyModule_AddType(m, &FgPath_Type) < 0 || PyModule_AddType(m, &FgModuleCall_Type) < 0 ||
        PyModule_AddType(m, &FgDelegate_Type) < 0) {
        Py_XDECREF(m);
        return NULL;
    }
    return m;
}
