//! The environment variables that Pyrite reads, in one table. Unset and empty are the same.

use std::path::PathBuf;

use pyrite_diag::{Code, Diagnostic};

use crate::SessionError;

/// Name and meaning of every variable.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        "PYRITE_CACHE_DIR",
        "the code cache: a folder that only you can access, or `off`; by default pyrite/code in your cache folder",
    ),
    (
        "PYRITE_COMPILE_DEBUG",
        "1 writes a trace of every compilation; \"1,-output_code\" omits an artifact; `pyrite logs` lists them",
    ),
    ("PYRITE_DEBUG_DIR", "where repros and traces are written; by default pyrite_debug in the current folder"),
    ("PYRITE_LOGS", "what is logged, such as \"capture,+aot,graph_code\"; `pyrite logs` lists the names"),
    (
        "PYRITE_CODEGEN",
        "how the native backend runs loops: x86 (the default), avx2 (narrower vectors), tiles (an interpreter) or ptx-interp \
         (PTX for GPUs and its interpreter)",
    ),
    (
        "PYRITE_NUM_THREADS",
        "number of threads for kernels; by default one per core, and from Python no more than torch.get_num_threads()",
    ),
    ("PYRITE_PYTHON", "the Python interpreter with torch, for `torch:NAME` backends; by default python3"),
    (
        "PYRITE_REPRO_AFTER",
        "`capture` or `aot`: which program a failing run writes as a repro; `dynamo` is the same as `capture`",
    ),
    ("PYRITE_REPRO_LEVEL", "1 to 4: when a run writes a repro; by default 2 if PYRITE_REPRO_AFTER is set"),
    (
        "PYRITE_CRASH_REPORTS",
        "Python: 0 disables crash reports, which name the kernel and write the program when a compiled call crashes",
    ),
    ("PYRITE_DEBUG_FUNCTION", "Python: capture only functions with this name"),
    (
        "PYRITE_FALLBACK_RANDOM",
        "Python: 0 lets compiled programs draw random numbers from a fast stream that differs from eager's",
    ),
    (
        "PYRITE_TRITON",
        "folders with other versions of Triton, separated by colons, that bisections of programs on GPUs try: each as \
         `pip install --target FOLDER triton==VERSION` makes it",
    ),
    ("PYRITE_REPLAY_RECORD", "Python: 1 saves frames that cannot be captured, for pyrite.replay"),
    ("PYRITE_VERIFY", "Python: 1 also runs every compiled call in plain Python and compares results and side effects"),
    ("PYRITE_VERBOSE", "Python: 1 shows errors with the stacks of Pyrite and of the user"),
];

/// The value of a variable that is set and not empty.
pub fn value(name: &str) -> Option<String> {
    debug_assert!(VARIABLES.iter().any(|(known, _)| *known == name), "{name} is not in the table");
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where traces and repros go: what `PYRITE_DEBUG_DIR` names, else `pyrite_debug`.
pub fn debug_folder() -> PathBuf {
    value("PYRITE_DEBUG_DIR").map_or_else(|| PathBuf::from("pyrite_debug"), PathBuf::from)
}

/// What a variable stands for, or a failure that names it.
pub fn parsed<T>(name: &str, expected: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, SessionError> {
    let Some(text) = value(name) else { return Ok(None) };
    parse(&text).map(Some).ok_or_else(|| {
        let message = format!("{name} is `{text}`, expected {expected}");
        SessionError::of(Diagnostic::error(Code::new("environment::bad-value"), message).hint("correct it or unset it"))
    })
}

/// Lets compiled code be kept on disk.
pub fn use_cache() -> Result<(), SessionError> {
    pyrite_compiler::cache::use_chosen_folder().map_err(|error| SessionError::of(error.diagnostic()))
}

/// Applies what concerns the whole process.
pub fn apply() -> Result<(), SessionError> {
    if let Some(name) = value("PYRITE_CODEGEN")
        && pyrite_codegen::Generator::named(&name).is_none()
    {
        let known = pyrite_codegen::Generator::NAMES.join(", ");
        let message = format!("PYRITE_CODEGEN is `{name}`, expected one of {known}");
        let problem = Diagnostic::error(Code::new("environment::bad-value"), message);
        return Err(SessionError::of(problem.hint("unset it to use the widest vectors of this machine")));
    }
    let threads = match value("PYRITE_NUM_THREADS") {
        None => None,
        Some(text) => Some(text.parse().ok().filter(|n| (1..=pyrite_threads::MOST).contains(n)).ok_or_else(|| {
            let message = format!("PYRITE_NUM_THREADS is `{text}`, expected a number from 1 to 1024");
            SessionError::of(
                Diagnostic::error(Code::new("environment::bad-value"), message).hint("unset it to use every core"),
            )
        })?),
    };
    pyrite_threads::choose(threads);
    Ok(())
}
