/* What memo.c builds and run.c runs. */
#ifndef FRAMEGRAFT_MEMO_H
#define FRAMEGRAFT_MEMO_H
#include "guards.h"
#include "tensor.h"

enum Op { F_GLOBALS, F_BUILTINS, F_ALIVE, F_ARG, F_CELL, F_ITEM, F_TYPE, F_SLOT, F_VERSION, F_LOOKUP, F_CLASS, F_LEN, F_TENSOR, F_CHECK };

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
        FgPacked *packed;
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
    char *packed; /* of F_TENSOR facts, in their order */
    size_t packed_size;
    Step *early, *late;
    int *keep;           /* fixed nodes whose objects late steps use */
    Alias *alias;
    int *first, *child;  /* children of node i: child[first[i]] to child[first[i + 1] - 1] */
    bool python;         /* late steps may run Python code */
};
/* A key or a position of a dict: its version proves what is there. */
static inline bool fg_is_key(enum Access a)
{
    return a == A_KEY || a == A_MAPKEYAT;
}

/* The version of a type as its tag tells it: no other state of any type had it. 0: it has none. */
static inline unsigned int fg_type_version(PyObject *type)
{
    return PyType_HasFeature((PyTypeObject *)type, Py_TPFLAGS_VALID_VERSION_TAG) ? ((PyTypeObject *)type)->tp_version_tag : 0;
}
#endif
