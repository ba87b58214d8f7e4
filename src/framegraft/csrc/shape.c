/* Shape guards: an expression over sizes, strides and ints of the inputs, as a stack program on 64-bit integers.

What overflows, divides by zero or is no int of 64 bits makes the guard fail: nothing is concluded from it. An expression
that the program cannot say (of floats, or with true division) is a Python function of the same numbers. */
#include "guards.h"

enum Op { O_SLOT, O_CONST, O_ADD, O_SUB, O_MUL, O_FLOORDIV, O_MOD, O_MIN, O_MAX, O_EQ, O_NE, O_LT, O_LE, O_AND, O_OR, O_NOT, O_COUNT };
enum What { W_NUMBER, W_SIZE, W_STRIDE, W_COUNT };
enum { DEEP = 64 };

typedef struct {
    enum Op op;
    int64_t arg;
} Step;

struct FgShape {
    Py_ssize_t slots, steps;
    int *what, *dim;
    Step *step;
    PyObject *fn; /* NULL: the steps say it all */
};

void fg_shape_free(FgShape *s)
{
    if (!s)
        return;
    PyMem_Free(s->what);
    PyMem_Free(s->dim);
    PyMem_Free(s->step);
    Py_XDECREF(s->fn);
    PyMem_Free(s);
}

PyObject *fg_shape_function(const FgShape *s)
{
    return s->fn;
}

static bool loads(FgShape *s, PyObject *slots, PyObject *code, Py_ssize_t *depth)
{
    for (Py_ssize_t i = 0; i < s->slots; i++) {
        int position;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(slots, i), "iii", &position, &s->what[i], &s->dim[i]))
            return false;
        if (s->what[i] < 0 || s->what[i] >= W_COUNT || s->dim[i] < 0)
            return false;
    }
    for (Py_ssize_t i = 0; i < s->steps; i++) {
        int op;
        long long arg;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(code, i), "iL", &op, &arg) || op < 0 || op >= O_COUNT)
            return false;
        s->step[i].op = (enum Op)op;
        s->step[i].arg = arg;
        if (op == O_SLOT && (arg < 0 || arg >= s->slots))
            return false;
        int needs = op <= O_CONST ? 0 : op == O_NOT ? 1 : 2;
        if (*depth < needs || *depth >= DEEP)
            return false;
        *depth += 1 - needs;
    }
    return true;
}

static bool all_tuples(PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (!PyTuple_CheckExact(PyTuple_GET_ITEM(tuple, i)))
            return false;
    return true;
}

/* payload: (((position, what, dim), ...), ((op, argument), ...), callable or None) */
FgShape *fg_shape_load(PyObject *payload)
{
    PyObject *slots, *code, *fn;
    if (!PyTuple_Check(payload) || !PyArg_ParseTuple(payload, "O!O!O", &PyTuple_Type, &slots, &PyTuple_Type, &code, &fn)) {
        PyErr_SetString(PyExc_TypeError, "SHAPE takes (slots, code, function)");
        return NULL;
    }
    FgShape *s = PyMem_Calloc(1, sizeof *s);
    if (!s)
        return (FgShape *)PyErr_NoMemory();
    s->slots = PyTuple_GET_SIZE(slots);
    s->steps = PyTuple_GET_SIZE(code);
    s->what = PyMem_Calloc((size_t)s->slots + 1, sizeof *s->what);
    s->dim = PyMem_Calloc((size_t)s->slots + 1, sizeof *s->dim);
    s->step = PyMem_Calloc((size_t)s->steps + 1, sizeof *s->step);
    if (!s->what || !s->dim || !s->step) {
        fg_shape_free(s);
        return (FgShape *)PyErr_NoMemory();
    }
    Py_ssize_t depth = 0;
    bool ok = all_tuples(slots) && all_tuples(code) && loads(s, slots, code, &depth);
    if (!ok || depth != (fn == Py_None ? 1 : 0) || (fn != Py_None && !PyCallable_Check(fn))) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "no shape expression: %.200R", payload);
        fg_shape_free(s);
        return NULL;
    }
    s->fn = fn == Py_None ? NULL : Py_NewRef(fn);
    return s;
}

/* 1, 0 where there is no such number, -1 with an error. */
static int read_slot(const FgShape *s, Py_ssize_t i, PyObject *value, int64_t *out)
{
    int over = 0;
    if (s->what[i] != W_NUMBER)
        return fg_tensor_extent(value, s->what[i] == W_STRIDE, s->dim[i], out);
    if (!PyLong_CheckExact(value))
        return 0;
    *out = PyLong_AsLongLongAndOverflow(value, &over);
    return !over;
}

static PyObject *slot_object(const FgShape *s, Py_ssize_t i, PyObject *value)
{
    int64_t n = 0;
    if (s->what[i] == W_NUMBER)
        return Py_NewRef(value);
    int found = fg_tensor_extent(value, s->what[i] == W_STRIDE, s->dim[i], &n);
    if (found == 0)
        PyErr_SetString(PyExc_IndexError, "a tensor of fewer dimensions");
    return found == 1 ? PyLong_FromLongLong(n) : NULL;
}

static int call(const FgShape *s, PyObject *const *values)
{
    PyObject *args = PyTuple_New(s->slots);
    for (Py_ssize_t i = 0; args && i < s->slots; i++) {
        PyObject *arg = slot_object(s, i, values[i]);
        if (!arg)
            Py_CLEAR(args);
        else
            PyTuple_SET_ITEM(args, i, arg);
    }
    PyObject *answer = args ? PyObject_Call(s->fn, args, NULL) : NULL;
    int r = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(args);
    Py_XDECREF(answer);
    return r < 0 ? fg_forgive() : r;
}

/* As Python divides: towards minus infinity, the remainder with the divisor's sign. */
static bool divide(int64_t a, int64_t b, int64_t *quotient, int64_t *rest)
{
    if (b == 0 || (b == -1 && a == INT64_MIN))
        return false;
    int64_t q = a / b, r = a % b;
    if (r && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    *quotient = q;
    *rest = r;
    return true;
}

static bool combine(enum Op op, int64_t a, int64_t b, int64_t *r)
{
    int64_t other;
    switch (op) {
    case O_ADD:
        return !__builtin_add_overflow(a, b, r);
    case O_SUB:
        return !__builtin_sub_overflow(a, b, r);
    case O_MUL:
        return !__builtin_mul_overflow(a, b, r);
    case O_FLOORDIV:
        return divide(a, b, r, &other);
    case O_MOD:
        return divide(a, b, &other, r);
    case O_MIN:
        *r = a < b ? a : b;
        return true;
    case O_MAX:
        *r = a > b ? a : b;
        return true;
    case O_EQ:
        *r = a == b;
        return true;
    case O_NE:
        *r = a != b;
        return true;
    case O_LT:
        *r = a < b;
        return true;
    case O_LE:
        *r = a <= b;
        return true;
    case O_AND:
        *r = a && b;
        return true;
    default: /* O_OR */
        *r = a || b;
        return true;
    }
}

/* values: the slots' objects, in their order; none of them NULL. 1 holds, 0 fails, -1 error. */
int fg_shape_holds(const FgShape *s, PyObject *const *values)
{
    if (s->fn)
        return call(s, values);
    int64_t stack[DEEP];
    int top = 0;
    for (const Step *at = s->step, *end = at + s->steps; at < end; at++) {
        int found;
        switch (at->op) {
        case O_SLOT:
            found = read_slot(s, at->arg, values[at->arg], &stack[top++]);
            if (found != 1)
                return found;
            break;
        case O_CONST:
            stack[top++] = at->arg;
            break;
        case O_NOT:
            stack[top - 1] = !stack[top - 1];
            break;
        default:
            top--;
            if (!combine(at->op, stack[top - 1], stack[top], &stack[top - 1]))
                return 0;
        }
    }
    return stack[0] != 0;
}
