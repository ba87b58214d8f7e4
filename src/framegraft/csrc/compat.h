/* The one place that knows CPython versions. */
#ifndef FRAMEGRAFT_COMPAT_H
#define FRAMEGRAFT_COMPAT_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#error "framegraft supports CPython 3.11"
#endif
/* The frame's layout is not public before 3.14. */
#undef _PyGC_FINALIZED
#define Py_BUILD_CORE
#define Py_BUILD_CORE_MODULE
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

typedef struct _PyInterpreterFrame FgFrame;
#define FG_FRAME_CODE(f) ((f)->f_code)
#define FG_FRAME_FUNC(f) ((f)->f_func)
#define FG_FRAME_LOCALS(f) ((f)->localsplus)
#define FG_FRAME_AT_START(f) ((f)->prev_instr == _PyCode_CODE((f)->f_code) - 1)
#define FG_CODE_NAME_AT(c, i) PyTuple_GET_ITEM((c)->co_localsplusnames, (i))
#define FG_REQUEST_EXTRA _PyEval_RequestCodeExtraIndex
#define FG_GET_EXTRA _PyCode_GetExtra
#define FG_SET_EXTRA _PyCode_SetExtra
/* Half of the frames that may be nested are used up. */
#define FG_RECURSION_LOW(t) ((t)->recursion_remaining < (t)->recursion_limit / 2)
/* A number that no other state of any dict has or had. */
#define FG_DICT_VERSION(d) (((PyDictObject *)(d))->ma_version_tag)
/* What a mappingproxy shows: its only field. */
#define FG_PROXIED(p) (*(PyObject **)((PyObject *)(p) + 1))
/* All keys are plain strings: looking one up runs no code of the user's. */
#define FG_DICT_ALL_STR(d) (((PyDictObject *)(d))->ma_keys->dk_kind != DICT_KEYS_GENERAL)
#endif
