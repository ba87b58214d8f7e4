/* Facts as words of memory: most say no more than "this word still has the value that it had", which takes two loads and a
   comparison. They keep the order of the facts: an address is followed only after the words before it have proven that what
   lies there is still the same object. What is no word is checked beside them: what hangs off the frame before, tensors and
   the rest after them, since nothing is reached through these. */
#include "memo.h"
#include <string.h>

static int word(Word *out, int n, const void *at)
{
    if (out) {
        out[n].at = at;
        memcpy(&out[n].value, at, sizeof out[n].value);
    }
    return n + 1;
}

/* The tag is 0, or another one, after any change of the type or of a base; the flags tell whether it counts. */
static int version_words(PyObject *type, Word *out)
{
    PyTypeObject *t = (PyTypeObject *)type;
    return fg_type_version(type) ? word(out, word(out, 0, &t->tp_flags), &t->tp_version_tag) : 0;
}

static int length_words(PyObject *obj, Word *out)
{
    int n = word(out, 0, &obj->ob_type);
    if (PyList_Check(obj) || PyTuple_Check(obj))
        return word(out, n, &((PyVarObject *)obj)->ob_size);
    return PyAnySet_Check(obj) ? word(out, n, &((PySetObject *)obj)->used) : 0;
}

/* next: the words before are those of another item of the same sequence. */
static int item_words(const Fact *f, bool next, Word *out)
{
    int n = 0;
    if (!next) {
        n = word(out, n, &f->obj->ob_type);
        n = word(out, n, &((PyVarObject *)f->obj)->ob_size);
    }
    if (PyTuple_CheckExact(f->obj))
        return word(out, n, &((PyTupleObject *)f->obj)->ob_item[f->as.n]);
    if (!next)
        n = word(out, n, &((PyListObject *)f->obj)->ob_item);
    return word(out, n, &((PyListObject *)f->obj)->ob_item[f->as.n]);
}

static int check_words(const Check *c, PyObject *obj, Word *out)
{
    switch (c->kind) {
    case C_ID:
        return c->weak ? word(out, 0, &((PyWeakReference *)c->payload)->wr_object) : 0;
    case C_LEN:
        return length_words(obj, out);
    case C_TYPEVER:
    case C_MRO:
        return c->version && c->version == fg_type_version(obj) ? version_words(obj, out) : 0;
    default:
        return 0;
    }
}

/* How many words the fact, which holds, is worth; they are written where out is given. 0: it is checked by itself. */
static int words_of(const Program *p, const Fact *f, bool next, Word *out)
{
    switch (f->op) {
    case F_ALIVE:
        return word(out, 0, &((PyWeakReference *)p->nodes[f->node].arg)->wr_object);
    case F_ITEM:
        return item_words(f, next, out);
    case F_TYPE:
        return word(out, 0, &f->obj->ob_type);
    case F_SLOT:
        return word(out, 0, f->as.slot);
    case F_VERSION:
        return word(out, 0, &FG_DICT_VERSION(f->obj));
    case F_LOOKUP:
    case F_CLASS:
        return version_words(f->obj, out);
    case F_LEN:
        return word(out, 0, &((PyDictObject *)f->obj)->ma_used);
    case F_TOKEN:
        return word(out, 0, fg_abc_token);
    case F_CHECK:
        return check_words(f->as.check, f->obj, out);
    default:
        return 0;
    }
}

/* Items of the same sequence: where they lie is told by words of the first of them. */
bool fg_words_go_on(const Memo *m, Py_ssize_t i)
{
    return i > 0 && m->fact[i].op == F_ITEM && m->fact[i - 1].op == F_ITEM && m->fact[i].obj == m->fact[i - 1].obj;
}

static bool hangs_off_frame(const Fact *f)
{
    return f->op == F_GLOBALS || f->op == F_BUILTINS || f->op == F_ARG || f->op == F_CELL;
}

/* Whatever the facts' numbers, there are no more than so many words: a list's item has four. */
enum { MOST_WORDS = 4 };

bool fg_words_build(const Program *p, Memo *m)
{
    size_t n = (size_t)m->facts + 1;
    m->word = PyMem_Malloc(sizeof *m->word * n * MOST_WORDS);
    m->first_word = PyMem_Malloc(sizeof *m->first_word * n);
    m->root = PyMem_Malloc(sizeof *m->root * n);
    m->rest = PyMem_Malloc(sizeof *m->rest * n);
    m->tensor = PyMem_Malloc(sizeof *m->tensor * n);
    if (!m->word || !m->first_word || !m->root || !m->rest || !m->tensor)
        return false;
    for (Py_ssize_t i = 0; i < m->facts; i++) {
        const Fact *f = &m->fact[i];
        int count = words_of(p, f, fg_words_go_on(m, i), m->word + m->words);
        m->first_word[i] = (int)m->words;
        m->words += count;
        if (hangs_off_frame(f))
            m->root[m->roots++] = (int)i;
        else if (f->op == F_TENSOR)
            m->tensor[m->tensors++] = (TensorFact){f->obj, f->as.packed, fg_near_of(f->obj)};
        else if (!count)
            m->rest[m->rests++] = (int)i;
    }
    m->first_word[m->facts] = (int)m->words;
    Word *fitting = PyMem_Realloc(m->word, sizeof *m->word * (size_t)(m->words + 1));
    m->word = fitting ? fitting : m->word;
    return true;
}

void fg_words_renew(const Program *p, Memo *m, Py_ssize_t i)
{
    Word made[MOST_WORDS];
    int count = m->first_word[i + 1] - m->first_word[i];
    if (count && words_of(p, &m->fact[i], fg_words_go_on(m, i), made) == count)
        memcpy(m->word + m->first_word[i], made, sizeof *made * (size_t)count);
}

void fg_words_spoil(Memo *m, Py_ssize_t i)
{
    static const uint64_t nothing;
    do
        for (int k = m->first_word[i]; k < m->first_word[i + 1]; k++)
            m->word[k] = (Word){&nothing, 1};
    while (++i < m->facts && fg_words_go_on(m, i));
}

Py_ssize_t fg_fact_of_word(const Memo *m, Py_ssize_t word)
{
    Py_ssize_t low = 0, high = m->facts; /* first_word[low] <= word < first_word[high] */
    while (high - low > 1) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (m->first_word[middle] <= word)
            low = middle;
        else
            high = middle;
    }
    return low;
}
