/* The guard program's data: shared by guards.c (loading), walk.c (the full run) and memo.c (the run of what may change). */
#ifndef FRAMEGRAFT_GUARDS_H
#define FRAMEGRAFT_GUARDS_H
#include "core.h"

enum Access {
    A_ARG, A_GLOBALS, A_BUILTINS, A_CELL, A_CELLOBJ, A_FN, A_CONST, A_ATTR, A_DICT, A_KEY, A_ITEM, A_TYPE, A_TYPEATTR,
    A_MAPKEYAT, A_FCODE, A_FDEFAULTS, A_FKWDEFAULTS, A_FCLOSURE, A_FGLOBALS, A_FNOTES, A_FDICT, A_CELLVAL, A_MFUNC,
    A_MSELF, A_GRAD, A_PYCALL, A_PROXIED, A_STATE, A_NONE, A_COUNT
};
enum Kind {
    C_ID, C_TYPE, C_EQ, C_LEN, C_KEYS, C_HASKEY, C_NOKEY, C_ABSENT, C_PRESENT, C_TRUTH, C_TYPEVER, C_TENSOR, C_PY, C_RANGE,
    C_STATE, C_NOALIAS, C_ALIAS, C_MRO, C_SHAPE, C_METHOD, C_SUBCLASS, C_COUNT
};

typedef struct {
    PyObject *name, *found; /* name: NULL for a base; found: the object, or a weakref to it */
    char weak;
} LookUp;

typedef struct FgShape FgShape; /* shape.c */

typedef struct {
    enum Kind kind;
    char weak;            /* ID: payload is a weakref */
    char simple;          /* payload is made of plain immutable values, or stable keys: comparing it runs no code of the user's */
    Py_ssize_t id;        /* the guard's number */
    PyObject *payload;
    Py_ssize_t n;         /* LEN: the length; TYPEVER, MRO, ALIAS, NOALIAS, SHAPE: how many */
    long long low, high;  /* RANGE */
    LookUp *lookups;      /* TYPEVER; MRO: the bases */
    Py_ssize_t *indexes;  /* ALIAS, NOALIAS, SHAPE: positions of nodes */
    FgShape *shape;
    uint64_t token;       /* SUBCLASS: the ABC cache token when it was last asked, where that is known */
    unsigned int version; /* TYPEVER, MRO: the type's version tag when the check last held; 0 for none */
} Check;

typedef struct {
    enum Access access;
    char weak, simple;     /* CONST: arg is a weakref; KEY: arg is a stable key */
    char fixed;            /* memo: `last` is the value whenever the facts hold */
    char early;            /* memo: evaluated before the facts */
    char typed;            /* memo: a fact of its own proves the type */
    char volatility;       /* how often the memo was wrong about it; too often, and it is evaluated each time */
    Py_ssize_t parent, index, count;
    PyObject *arg;
    Check *checks;
    PyObject *last;        /* memo: borrowed; only to be followed after the facts that prove it alive */
    PyTypeObject *type;    /* memo: of `last` */
    Py_ssize_t place;      /* memo: where a value that is not fixed lies in the run's values */
} Node;

typedef struct Memo Memo;

typedef struct {
    PyObject_HEAD
    Py_ssize_t n;
    Node *nodes;
    char dead;        /* an object that the program relies on has died: no run can succeed */
    Memo *memo;       /* NULL: none was built */
    Py_ssize_t *inputs, inputs_n; /* nodes whose objects a run hands out */
    int running;      /* runs in progress that use the memo; it must not be replaced under them */
    Py_ssize_t suspect; /* the node that the memo's last run was wrong about; -1 for none */
} Program;

/* What a run answers: the id of the guard that failed, or one of these. */
enum { RUN_HOLDS = -1, RUN_DEAD = -2, RUN_ERROR = -3, RUN_UNKNOWN = -4 };

typedef struct {
    PyObject *const *args;
    Py_ssize_t n;
    PyFunctionObject *fn;
} FgFrameView;

/* NULL once the object has died. */
static inline PyObject *fg_held(PyObject *obj, char weak)
{
    if (!weak)
        return obj;
    obj = PyWeakref_GET_OBJECT(obj);
    return obj == Py_None ? NULL : obj;
}

/* walk.c. *value: new reference, NULL for missing; -1 with an error that must not be swallowed. */
int fg_access(Node *node, PyObject *base, const FgFrameView *view, PyObject **value);
/* 1 holds, 0 fails, -1 error. values: of all nodes before, NULL where the check is no ALIAS or NOALIAS. */
int fg_holds(Check *check, PyObject *value, PyObject *const *values);
/* Whether the check can be made without running code of the user's. */
bool fg_is_pure(const Check *check, PyObject *value);
/* Whether the answer of looking the key up depends on nothing but the dict's version. */
bool fg_stable_keys(PyObject *dict);
/* An error that means "the guard fails" is cleared: 0. KeyboardInterrupt and its like stay: -1. */
int fg_forgive(void);
/* Whether no two of the objects are the same; missing ones (NULL) are no aliases of each other. */
bool fg_distinct(PyObject *const *found, Py_ssize_t n);

/* guards.c: plain immutable values, whose comparison runs no code of the user's. */
bool fg_is_simple(PyObject *obj);
/* Keys whose look-up runs no code of the user's, and whose hash and equality never change. */
bool fg_is_stable_key(PyObject *obj);

/* walk.c: room for as many inputs as the program names; false with an error. */
bool fg_inputs_reserve(FgInputs *inputs, const Program *p);

/* Whether the check looks at other nodes than its own. */
static inline bool fg_looks_around(const Check *c)
{
    return c->kind == C_ALIAS || c->kind == C_NOALIAS || c->kind == C_SHAPE;
}

/* subclass.c. value: an abstract base class. 1 as it was, 0 not, -1 error. */
int fg_subclass_holds(Check *check, PyObject *value);
/* The word that changes with each ABCMeta.register(); NULL: not known where. */
extern const uint64_t *fg_abc_token;

/* shape.c */
FgShape *fg_shape_load(PyObject *payload);
void fg_shape_free(FgShape *shape);
PyObject *fg_shape_function(const FgShape *shape); /* borrowed; NULL: no Python code runs */
int fg_shape_holds(const FgShape *shape, PyObject *const *values);

/* memo.c */
void fg_memo_build(Program *p, const FgFrameView *view, PyObject *const *values);
Py_ssize_t fg_memo_run(Program *p, const FgFrameView *view, FgInputs *inputs);
void fg_memo_free(Memo *memo);
/* [(phase, node, guard, nanoseconds)]: "first" and "last" are steps, "facts" all facts (node: how many). */
PyObject *fg_memo_costs(Program *p, const FgFrameView *view, int rounds);
#endif
