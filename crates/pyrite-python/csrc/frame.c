/* What needs CPython's own headers: the layout of frames, the evaluator's hook, room for data at code objects.
 *
 * Rust reads a frame through the offsets below, so that the C compiler checks the layout and nothing is called per
 * field. Everything else is in Rust. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#error "frames are captured on CPython 3.11"
#endif

#define Py_BUILD_CORE
#include "internal/pycore_frame.h"
#include "internal/pycore_pystate.h"
#undef Py_BUILD_CORE

typedef struct _PyInterpreterFrame Frame;

const size_t pyrite_frame_code = offsetof(Frame, f_code);
const size_t pyrite_frame_function = offsetof(Frame, f_func);
const size_t pyrite_frame_globals = offsetof(Frame, f_globals);
const size_t pyrite_frame_builtins = offsetof(Frame, f_builtins);
const size_t pyrite_frame_slots = offsetof(Frame, localsplus);
const size_t pyrite_code_flags = offsetof(PyCodeObject, co_flags);
const size_t pyrite_code_slot_count = offsetof(PyCodeObject, co_nlocalsplus);

void pyrite_set_evaluator(void *evaluator) {
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), (_PyFrameEvalFunction)evaluator);
}

void *pyrite_evaluator(void) {
    return (void *)_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
}

void *pyrite_default_evaluator(void) {
    return (void *)&_PyEval_EvalFrameDefault;
}

PyObject *pyrite_evaluate(PyThreadState *thread, Frame *frame, int throwing) {
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
}

Py_ssize_t pyrite_reserve_extra(freefunc drop) {
    return _PyEval_RequestCodeExtraIndex(drop);
}

void *pyrite_extra(PyObject *code, Py_ssize_t index) {
    void *extra = NULL;
    if (_PyCode_GetExtra(code, index, &extra) != 0) {
        PyErr_Clear();
        return NULL;
    }
    return extra;
}

int pyrite_set_extra(PyObject *code, Py_ssize_t index, void *extra) {
    return _PyCode_SetExtra(code, index, extra);
}
