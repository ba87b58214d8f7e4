/* Tensor metadata, read through field offsets that calibrate.py found and verified, and torch's thread-local state. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "guards.h"
#include "tensor.h"
#include <dlfcn.h>
#include <string.h>

FgOffsets fg_at;
static PyObject *slow_spec;  /* callable(tensor) -> comparable facts, where the fields are not known */
static PyObject *slow_state; /* callable() -> comparable facts */

static PyTypeObject *tensor_type;

static bool state_is_native(PyObject *snapshot);

struct FgTensorSpec {
    PyObject_HEAD
    PyTypeObject *type;
    PyObject *text, *facts; /* facts: of the slow path */
    PyObject *any;          /* for each size, then each stride, whether it may be anything; NULL: all are fixed */
    uint64_t keys;
    uint16_t dtype, device;
    char requires_grad;
    int64_t ndim;
    int64_t *sizes; /* ndim sizes, then ndim strides */
};

PyObject *fg_calibrate(PyObject *self, PyObject *args)
{
    PyObject *type;
    unsigned long long plain_meta;
    if (!PyArg_ParseTuple(args, "O!iiiiiiiiiK", &PyType_Type, &type, &fg_at.cdata, &fg_at.keys, &fg_at.dtype, &fg_at.device, &fg_at.ndim, &fg_at.meta, &fg_at.rg,
                          &fg_at.grad_fn, &fg_at.inlined, &plain_meta))
        return NULL;
    fg_at.plain_meta = plain_meta;
    fg_at.ready = fg_at.cdata > 0;
    Py_XSETREF(tensor_type, (PyTypeObject *)Py_NewRef(type));
    Py_RETURN_NONE;
}

/* The TensorImpl of a tensor; NULL with an error for anything else. */
static const char *impl_of(PyObject *t)
{
    if (!fg_at.ready || !tensor_type) {
        PyErr_SetString(PyExc_RuntimeError, "the native core is not calibrated");
        return NULL;
    }
    const char *impl = PyObject_TypeCheck(t, tensor_type) ? FG_READ(const char *, t, fg_at.cdata) : NULL;
    if (!impl)
        PyErr_Format(PyExc_TypeError, "tensor must be a tensor, not %.200s", Py_TYPE(t)->tp_name);
    return impl;
}

/* requires_grad of a tensor of the program's own class, whose __torch_function__ is not to see that somebody asks. */
static PyObject *ask_unseen(PyObject *tensor)
{
    PyObject *facts = PyObject_CallFunctionObjArgs(slow_spec, tensor, NULL);
    PyObject *answer = facts && PyTuple_Check(facts) && PyTuple_GET_SIZE(facts) > 3 ? Py_NewRef(PyTuple_GET_ITEM(facts, 3)) : NULL;
    Py_XDECREF(facts);
    return answer;
}

/* What is in no record of the tensor's own. Nothing else has one without a gradient but plain views and what once had a gradient. */
char fg_ask_grad(PyObject *tensor)
{
    static PyObject *name;
    if (!name)
        name = PyUnicode_InternFromString("requires_grad");
    bool plain = Py_TYPE(tensor) == tensor_type || !slow_spec;
    PyObject *answer = !plain ? ask_unseen(tensor) : name ? PyObject_GetAttr(tensor, name) : NULL;
    if (!answer)
        PyErr_Clear(); /* a tensor class with an attribute of its own: as if it had none, as its records say */
    char late = answer == Py_True ? FG_LATE : FG_NO_GRAD;
    Py_XDECREF(answer);
    return late;
}

PyObject *fg_grad_is_late(PyObject *self, PyObject *t)
{
    if (!fg_at.ready)
        Py_RETURN_FALSE;
    const char *impl = impl_of(t);
    return impl ? PyBool_FromLong(fg_grad_of(t, impl, &fg_at) == FG_LATE) : NULL;
}

PyObject *fg_set_fallbacks(PyObject *self, PyObject *args)
{
    PyObject *spec, *state;
    if (!PyArg_ParseTuple(args, "OO", &spec, &state))
        return NULL;
    Py_XSETREF(slow_spec, Py_NewRef(spec));
    Py_XSETREF(slow_state, state == Py_None ? NULL : Py_NewRef(state));
    Py_RETURN_NONE;
}

/* What the slow path compares; NULL, perhaps without an error. */
static PyObject *slow_facts(const FgTensorSpec *s, PyObject *t)
{
    return slow_spec ? PyObject_CallFunctionObjArgs(slow_spec, t, s->any, NULL) : NULL;
}

/* Sizes and strides that may be anything are kept as FG_ANY. */
static int forget(FgTensorSpec *s)
{
    if (!s->any)
        return 0;
    if (PyTuple_GET_SIZE(s->any) != 2 * s->ndim) {
        PyErr_Format(PyExc_ValueError, "any must tell of %lld sizes and strides, not of %zd", (long long)(2 * s->ndim), PyTuple_GET_SIZE(s->any));
        return -1;
    }
    for (int64_t i = 0; i < 2 * s->ndim; i++)
        if (PyTuple_GET_ITEM(s->any, i) == Py_True)
            s->sizes[i] = FG_ANY;
    return 0;
}

int fg_tensor_extent(PyObject *value, bool stride, int dim, int64_t *out)
{
    if (fg_at.ready && tensor_type && PyObject_TypeCheck(value, tensor_type)) {
        const char *impl = FG_READ(const char *, value, fg_at.cdata);
        int64_t ndim = impl ? FG_READ(int64_t, impl, fg_at.ndim) : 0;
        if (dim >= ndim)
            return 0;
        const int64_t *strides, *sizes = fg_sizes_of(impl, ndim, &strides, &fg_at);
        *out = stride ? strides[dim] : sizes[dim];
        return 1;
    }
    PyObject *n = PyObject_CallMethod(value, stride ? "stride" : "size", "i", dim);
    int over = 0;
    *out = n && PyLong_Check(n) ? PyLong_AsLongLongAndOverflow(n, &over) : 0;
    int found = n && PyLong_Check(n) && !over;
    Py_XDECREF(n);
    return found || !PyErr_Occurred() ? found : fg_forgive();
}

PyObject *fg_tensor_spec(PyObject *self, PyObject *args)
{
    PyObject *t, *text, *any = NULL;
    if (!PyArg_ParseTuple(args, "OU|O!", &t, &text, &PyTuple_Type, &any))
        return NULL;
    const char *impl = NULL;
    if (fg_at.ready && !(impl = impl_of(t)))
        return NULL;
    FgTensorSpec *s = PyObject_New(FgTensorSpec, &FgTensorSpec_Type);
    if (!s)
        return NULL;
    s->type = (PyTypeObject *)Py_NewRef(Py_TYPE(t));
    s->text = Py_NewRef(text);
    s->facts = NULL;
    s->sizes = NULL;
    s->any = Py_XNewRef(any);
    if (!impl) {
        s->facts = slow_facts(s, t);
        if (!s->facts) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_RuntimeError, "the native core is not calibrated");
            Py_DECREF(s);
            return NULL;
        }
        return (PyObject *)s;
    }
    s->keys = FG_READ(uint64_t, impl, fg_at.keys);
    s->dtype = FG_READ(uint16_t, impl, fg_at.dtype);
    s->device = FG_READ(uint16_t, impl, fg_at.device);
    s->requires_grad = fg_grad_of(t, impl, &fg_at);
    s->ndim = FG_READ(int64_t, impl, fg_at.ndim);
    s->sizes = PyMem_Malloc(sizeof(int64_t) * (size_t)(2 * s->ndim + 1));
    if (!s->sizes) {
        Py_DECREF(s);
        return PyErr_NoMemory();
    }
    const int64_t *strides, *sizes = fg_sizes_of(impl, s->ndim, &strides, &fg_at);
    memcpy(s->sizes, sizes, sizeof(int64_t) * (size_t)s->ndim);
    memcpy(s->sizes + s->ndim, strides, sizeof(int64_t) * (size_t)s->ndim);
    if (forget(s) < 0) {
        Py_DECREF(s);
        return NULL;
    }
    return (PyObject *)s;
}

int fg_tensor_matches(PyObject *spec, PyObject *value)
{
    FgTensorSpec *s = (FgTensorSpec *)spec;
    if (Py_TYPE(value) != s->type)
        return 0;
    if (s->facts) {
        PyObject *facts = slow_facts(s, value);
        if (!facts)
            return PyErr_Occurred() ? -1 : 0;
        int same = PyObject_RichCompareBool(facts, s->facts, Py_EQ);
        Py_DECREF(facts);
        return same;
    }
    const char *impl = FG_READ(const char *, value, fg_at.cdata);
    if (!impl || FG_READ(uint64_t, impl, fg_at.keys) != s->keys || FG_READ(uint16_t, impl, fg_at.dtype) != s->dtype ||
        FG_READ(uint16_t, impl, fg_at.device) != s->device || FG_READ(int64_t, impl, fg_at.ndim) != s->ndim ||
        fg_grad_of(value, impl, &fg_at) != s->requires_grad)
        return 0;
    const int64_t *strides, *sizes = fg_sizes_of(impl, s->ndim, &strides, &fg_at);
    for (int64_t i = 0; i < s->ndim; i++)
        if ((sizes[i] != s->sizes[i] && s->sizes[i] != FG_ANY) || (strides[i] != s->sizes[s->ndim + i] && s->sizes[s->ndim + i] != FG_ANY))
            return 0;
    return 1;
}

size_t fg_packed_size(PyObject *spec)
{
    return sizeof(FgPacked) + sizeof(int64_t) * 2 * (size_t)((FgTensorSpec *)spec)->ndim;
}

void fg_pack(PyObject *spec, FgPacked *out)
{
    const FgTensorSpec *s = (FgTensorSpec *)spec;
    out->type = s->type;
    out->keys = s->keys;
    out->dtype = s->dtype;
    out->device = s->device;
    out->requires_grad = s->requires_grad;
    out->ndim = s->ndim;
    memcpy(out->sizes, s->sizes, sizeof(int64_t) * 2 * (size_t)s->ndim);
}

bool fg_metadata_is_native(PyObject *snapshot)
{
    return Py_TYPE(snapshot) == &FgTensorSpec_Type ? !((FgTensorSpec *)snapshot)->facts : state_is_native(snapshot);
}

/* (dispatch keys, requires_grad, sizes, strides) as the fields give them, to verify the offsets. */
PyObject *fg_tensor_info(PyObject *self, PyObject *t)
{
    const char *impl = impl_of(t);
    if (!impl)
        return NULL;
    int64_t n = FG_READ(int64_t, impl, fg_at.ndim);
    const int64_t *strides, *sizes = fg_sizes_of(impl, n, &strides, &fg_at);
    PyObject *a = PyTuple_New(n), *b = PyTuple_New(n);
    for (int64_t i = 0; a && b && i < n; i++) {
        PyObject *x = PyLong_FromLongLong(sizes[i]), *y = PyLong_FromLongLong(strides[i]);
        if (!x || !y) {
            Py_XDECREF(x);
            Py_XDECREF(y);
            Py_CLEAR(a);
            break;
        }
        PyTuple_SET_ITEM(a, i, x);
        PyTuple_SET_ITEM(b, i, y);
    }
    if (!a || !b) {
        Py_XDECREF(a);
        Py_XDECREF(b);
        return NULL;
    }
    return Py_BuildValue("KiiNNN", (unsigned long long)FG_READ(uint64_t, impl, fg_at.keys), (int)FG_READ(uint16_t, impl, fg_at.dtype),
                         (int)FG_READ(uint16_t, impl, fg_at.device), PyBool_FromLong(fg_grad_of(t, impl, &fg_at) != FG_NO_GRAD), a, b);
}

static void spec_dealloc(PyObject *self)
{
    FgTensorSpec *s = (FgTensorSpec *)self;
    Py_XDECREF(s->type);
    Py_XDECREF(s->text);
    Py_XDECREF(s->facts);
    Py_XDECREF(s->any);
    PyMem_Free(s->sizes);
    PyObject_Free(self);
}

static PyObject *spec_repr(PyObject *self)
{
    return Py_NewRef(((FgTensorSpec *)self)->text);
}

PyTypeObject FgTensorSpec_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.TensorSpec",
    .tp_basicsize = sizeof(FgTensorSpec),
    .tp_dealloc = spec_dealloc,
    .tp_repr = spec_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Metadata of a tensor that a guard compares.",
};

/* -- global state: functions of libtorch that return scalars, found by symbol */

static struct {
    int looked_up; /* 1 all found, -1 not */
    bool (*grad)(void), (*inference)(void), (*det)(void *), (*det_warn)(void *), (*autocast_cache)(void);
    void *(*context)(void);
    int8_t (*default_dtype)(void), (*autocast_dtype)(int8_t);
    int (*tf_state)(void);
    int64_t (*tf_modes)(void);
} fn;
static const int8_t autocast_devices[] = {0, 1, 12, 13}; /* c10::DeviceType: CPU, CUDA, XPU, MPS; calibrate.py has their names */
static __thread const uint64_t *tls;
static void *context;

static void *symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static void look_up(void)
{
#define FIND(field, name) (*(void **)&fn.field = symbol(name))
    bool ok = FIND(grad, "_ZN3c108GradMode10is_enabledEv") && FIND(inference, "_ZN3c1013InferenceMode10is_enabledEv") &&
              FIND(context, "_ZN2at13globalContextEv") && FIND(det, "_ZNK2at7Context23deterministicAlgorithmsEv") &&
              FIND(det_warn, "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv") &&
              FIND(default_dtype, "_ZN3c1031get_default_dtype_as_scalartypeEv") &&
              FIND(tf_state, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv") &&
              FIND(tf_modes, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv") &&
              FIND(autocast_dtype, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE") &&
              FIND(autocast_cache, "_ZN2at8autocast25is_autocast_cache_enabledEv") &&
              symbol("_ZN3c104impl26raw_local_dispatch_key_setE");
#undef FIND
    if (ok)
        context = fn.context();
    fn.looked_up = ok ? 1 : -1;
}

typedef struct {
    uint64_t include, exclude;
    int64_t tf_modes;
    int32_t grad, inference, det, det_warn, default_dtype, tf_state, autocast_dtype, autocast_cache;
} State;

typedef struct {
    PyObject_HEAD
    State now;
    PyObject *facts; /* of the slow path */
} FgGlobalState;

static void read_state(State *s)
{
    if (!tls) /* the address of a thread-local: looked up once in each thread */
        tls = symbol("_ZN3c104impl26raw_local_dispatch_key_setE");
    memset(s, 0, sizeof *s);
    s->include = tls[0];
    s->exclude = tls[1];
    s->tf_modes = fn.tf_modes();
    s->grad = fn.grad();
    s->inference = fn.inference();
    s->det = fn.det(context);
    s->det_warn = fn.det_warn(context);
    s->default_dtype = fn.default_dtype();
    s->tf_state = fn.tf_state();
    for (size_t i = 0; i < sizeof autocast_devices; i++)
        s->autocast_dtype |= (int32_t)((uint32_t)(uint8_t)fn.autocast_dtype(autocast_devices[i]) << 8 * i);
    s->autocast_cache = fn.autocast_cache();
}

PyObject *fg_global_state(PyObject *self, PyObject *unused)
{
    if (!fn.looked_up)
        look_up();
    FgGlobalState *s = PyObject_New(FgGlobalState, &FgGlobalState_Type);
    if (!s)
        return NULL;
    s->facts = NULL;
    memset(&s->now, 0, sizeof s->now);
    if (fn.looked_up > 0 && !slow_state)
        read_state(&s->now);
    else if (!slow_state || !(s->facts = PyObject_CallNoArgs(slow_state))) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "torch's state functions were not found");
        Py_DECREF(s);
        return NULL;
    }
    return (PyObject *)s;
}

static bool state_is_native(PyObject *snapshot)
{
    return Py_TYPE(snapshot) == &FgGlobalState_Type && !((FgGlobalState *)snapshot)->facts;
}

int fg_state_matches(PyObject *snapshot)
{
    FgGlobalState *s = (FgGlobalState *)snapshot;
    if (s->facts) {
        PyObject *facts = slow_state ? PyObject_CallNoArgs(slow_state) : NULL;
        if (!facts)
            return PyErr_Occurred() ? -1 : 0;
        int same = PyObject_RichCompareBool(facts, s->facts, Py_EQ);
        Py_DECREF(facts);
        return same;
    }
    State now;
    read_state(&now);
    return memcmp(&now, &s->now, sizeof now) == 0;
}

static PyObject *state_diff(PyObject *self, PyObject *other)
{
    if (Py_TYPE(other) != &FgGlobalState_Type) {
        PyErr_SetString(PyExc_TypeError, "other must be a GlobalState");
        return NULL;
    }
    FgGlobalState *one = (FgGlobalState *)self, *two = (FgGlobalState *)other;
    State *a = &one->now, *b = &two->now;
    PyObject *out = PyList_New(0);
    int same = !one->facts == !two->facts;
    if (out && same && one->facts)
        same = PyObject_RichCompareBool(one->facts, two->facts, Py_EQ);
    if (out && same != 1) { /* read through Python: the parts have no names */
        PyObject *name = same < 0 ? NULL : PyUnicode_FromString("state");
        if (!name || PyList_Append(out, name) < 0)
            Py_CLEAR(out);
        Py_XDECREF(name);
        return out;
    }
#define DIFF(field)                                                                                                    \
    if (out && a->field != b->field) {                                                                                 \
        PyObject *name = PyUnicode_FromString(#field);                                                                 \
        if (!name || PyList_Append(out, name) < 0)                                                                     \
            Py_CLEAR(out);                                                                                             \
        Py_XDECREF(name);                                                                                              \
    }
    DIFF(include) DIFF(exclude) DIFF(tf_modes) DIFF(grad) DIFF(inference) DIFF(det) DIFF(det_warn) DIFF(default_dtype)
    DIFF(tf_state) DIFF(autocast_dtype) DIFF(autocast_cache)
#undef DIFF
    return out;
}

static void state_dealloc(PyObject *self)
{
    Py_XDECREF(((FgGlobalState *)self)->facts);
    PyObject_Free(self);
}

static PyMethodDef state_methods[] = {{"diff", state_diff, METH_O, "Names of the parts that differ."}, {NULL, NULL, 0, NULL}};

PyTypeObject FgGlobalState_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegraft._native.GlobalState",
    .tp_basicsize = sizeof(FgGlobalState),
    .tp_dealloc = state_dealloc,
    .tp_methods = state_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A snapshot of torch's global and thread-local state.",
};
