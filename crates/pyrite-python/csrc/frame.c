/* What needs CPython's own headers: the layout of frames, the evaluator's hook, room for data at code objects.
 *
 * Rust reads a frame through the offsets below, so that the C compiler checks the layout and nothing is called per
 * field. Everything else is in Rust.
 *
 * Frames are captured on CPython 3.11, 3.12 and 3.13, with the global interpreter lock. On others there is no hook:
 * `pyrite_captures` says so, and nothing else here does anything. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000 || defined(Py_GIL_DISABLED)
#define PYRITE_NO_CAPTURE
#endif

#ifdef PYRITE_NO_CAPTURE

const int pyrite_captures = 0;
const size_t pyrite_frame_code = 0;
const size_t pyrite_frame_function = 0;
const size_t pyrite_frame_globals = 0;
const size_t pyrite_frame_builtins = 0;
const size_t pyrite_frame_slots = 0;
const size_t pyrite_code_flags = 0;
const size_t pyrite_code_stack_size = 0;
const size_t pyrite_code_slot_count = 0;

void pyrite_set_evaluator(void *evaluator) { (void)evaluator; }
void *pyrite_evaluator(void) { return NULL; }
void *pyrite_default_evaluator(void) { return NULL; }
PyObject *pyrite_evaluate(PyThreadState *thread, void *frame, int throwing) { return NULL; }
PyObject *pyrite_leave(PyThreadState *thread, void *frame, PyObject *result) { return result; }
Py_ssize_t pyrite_reserve_extra(freefunc drop) { return -1; }
void *pyrite_extra(PyObject *code, Py_ssize_t index) { return NULL; }
int pyrite_set_extra(PyObject *code, Py_ssize_t index, void *extra) { return 0; }

#else

const int pyrite_captures = 1;

/* A macro of the public headers is a function in the internal ones. */
#undef _PyGC_FINALIZED
#define Py_BUILD_CORE
#include "internal/pycore_frame.h"
#include "internal/pycore_pystate.h"
#undef Py_BUILD_CORE
#include <opcode.h>

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_GetExtra _PyCode_GetExtra
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

typedef struct _PyInterpreterFrame Frame;

#if PY_VERSION_HEX >= 0x030D0000
const size_t pyrite_frame_code = offsetof(Frame, f_executable);
#else
const size_t pyrite_frame_code = offsetof(Frame, f_code);
#endif
#if PY_VERSION_HEX >= 0x030C0000
const size_t pyrite_frame_function = offsetof(Frame, f_funcobj);
#else
const size_t pyrite_frame_function = offsetof(Frame, f_func);
#endif
const size_t pyrite_frame_globals = offsetof(Frame, f_globals);
const size_t pyrite_frame_builtins = offsetof(Frame, f_builtins);
const size_t pyrite_frame_slots = offsetof(Frame, localsplus);
const size_t pyrite_code_flags = offsetof(PyCodeObject, co_flags);
const size_t pyrite_code_stack_size = offsetof(PyCodeObject, co_stacksize);
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

/* Leaves a frame that was not evaluated with a result of its own, or with the error that is set. The caller of an
 * evaluator clears the frame in 3.11. Later the evaluator has to, and the functions for that are CPython's own: so it
 * evaluates a return of the result from the otherwise unused frame, or lets the error fly through it. A frame that has
 * not begun leaves no line in the traceback. */
PyObject *pyrite_leave(PyThreadState *thread, Frame *frame, PyObject *result) {
#if PY_VERSION_HEX >= 0x030C0000
    static _Py_CODEUNIT leaving[2] = {{.op = {.code = NOP}}, {.op = {.code = RETURN_VALUE}}};
    if (result == NULL) {
        return _PyEval_EvalFrameDefault(thread, frame, 1);
    }
#if PY_VERSION_HEX >= 0x030D0000
    PyCodeObject *code = (PyCodeObject *)frame->f_executable;
    frame->instr_ptr = &leaving[1];
#else
    PyCodeObject *code = frame->f_code;
    frame->prev_instr = &leaving[0];
#endif
    frame->localsplus[code->co_nlocalsplus] = result;
    frame->stacktop = code->co_nlocalsplus + 1;
    return _PyEval_EvalFrameDefault(thread, frame, 0);
#else
    (void)thread;
    (void)frame;
    return result;
#endif
}

Py_ssize_t pyrite_reserve_extra(freefunc drop) {
    return PyUnstable_Eval_RequestCodeExtraIndex(drop);
}

void *pyrite_extra(PyObject *code, Py_ssize_t index) {
    void *extra = NULL;
    if (PyUnstable_Code_GetExtra(code, index, &extra) != 0) {
        PyErr_Clear();
        return NULL;
    }
    return extra;
}

int pyrite_set_extra(PyObject *code, Py_ssize_t index, void *extra) {
    return PyUnstable_Code_SetExtra(code, index, extra);
}

#endif
