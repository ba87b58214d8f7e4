/* What memo.c builds and run.c runs. */
#ifndef FRAMEGRAFT_MEMO_H
#define FRAMEGRAFT_MEMO_H
#include "guards.h"
#include "tensor.h"

enum Op { F_GLOBALS, F_BUILTINS, F_ALIVE, F_ARG, F_CELL, F_ITEM, F_TYPE, F_SLOT, F_VERSION, F_LOOKUP, F_CLASS, F_LEN, F_TENSOR, F_TOKEN, F_CHECK };

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

/* A word of memory that must have the value. */
typedef struct {
    const void *at;
    uint64_t value;
} Word;

typedef struct {
    PyObject *obj;
    const FgPacked *packed;
    FgNear near;
} TensorFact;

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
    Word *word;      /* words.c: what most facts come down to, in their order */
    int *first_word; /* of fact i: word[first_word[i]] to word[first_word[i + 1] - 1] */
    int *root;       /* facts about what hangs off the frame */
    TensorFact *tensor;
    int *rest;       /* the other facts that are no words */
    Py_ssize_t words, roots, tensors, rests;
    char *packed; /* of F_TENSOR facts; equal ones are one */
    size_t packed_size;
    PyObject **input; /* the program's inputs that are fixed, NULL for the others; borrowed */
    PyObject **held;  /* plain values: while they live, nothing else has their address */
    Py_ssize_t helds;
    Step *early, *late;
    int *keep;           /* fixed nodes whose objects late steps use */
    Alias *alias;
    int *first, *child;  /* children of node i: child[first[i]] to child[first[i + 1] - 1] */
    bool python;         /* late steps may run Python code */
    bool token;          /* a fact proves that nobody has called ABCMeta.register() since SUBCLASS checks were made */
};

/* words.c. Builds word, first_word, root, tensor and rest for facts that hold; false where memory ran out. */
bool fg_words_build(const Program *p, Memo *m);
/* The fact holds, but not its words: the words as they are now. */
void fg_words_renew(const Program *p, Memo *m, Py_ssize_t fact);
/* The fact does not hold: its words, and those of facts that go on from there, hold no more until they are renewed. The items of a
   list may lie elsewhere now: words of items before this one say where, those of the others still point to where they lay. */
void fg_words_spoil(Memo *m, Py_ssize_t fact);
/* Which fact the word belongs to. */
Py_ssize_t fg_fact_of_word(const Memo *m, Py_ssize_t word);
/* Whether the fact's words are read at places that words of the fact before tell. */
bool fg_words_go_on(const Memo *m, Py_ssize_t fact);

static inline bool fg_word_holds(const Word *w)
{
    return FG_READ(uint64_t, w->at, 0) == w->value;
}

/* A graph's run leaves little of what guards read in the caches. What will be read so many places on is asked for now, so that the
   processor waits for many places at once; asking for what is no memory any more does no harm. */
enum { WORDS_AHEAD = 64, TENSORS_AHEAD = 8 };

/* The first word from `from` on that has another value than it had; `words` for none. */
static inline Py_ssize_t fg_first_wrong(const Memo *m, Py_ssize_t from)
{
    const Word *w = m->word + from, *end = m->word + m->words;
    for (; end - w >= 4; w += 4) { /* each proves that the next one may be read: they cannot be compared at once */
        for (int i = 0; i < 4 && end - w >= 4 + WORDS_AHEAD; i++)
            __builtin_prefetch(w[WORDS_AHEAD + i].at);
        if (!fg_word_holds(w) || !fg_word_holds(w + 1) || !fg_word_holds(w + 2) || !fg_word_holds(w + 3))
            break;
    }
    while (w < end && fg_word_holds(w))
        w++;
    return w - m->word;
}

static inline bool fg_tensors_hold(const Memo *m)
{
    const FgOffsets at = fg_at;
    for (const TensorFact *t = m->tensor, *end = t + m->tensors; t < end; t++) {
        if (end - t > TENSORS_AHEAD)
            fg_ask_ahead(t[TENSORS_AHEAD].obj, t[TENSORS_AHEAD].near, &at);
        if (!fg_packed_matches_at(t->packed, t->obj, &at))
            return false;
    }
    return true;
}

/* A key or a position of a dict: its version proves what is there. */
static inline bool fg_is_key(enum Access a)
{
    return a == A_KEY || a == A_MAPKEYAT;
}
#endif
