//! Which code is followed beyond, or despite, the rules for libraries: what the user has said.

use parking_lot::RwLock;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

#[derive(Default)]
struct Rules {
    /// Code objects that are followed whatever file they are in, by their address and kept alive.
    allowed: FxHashMap<usize, Py<PyAny>>,
    /// How the names of files begin whose code is not followed.
    skipped: Vec<String>,
}

static RULES: RwLock<Option<Rules>> = RwLock::new(None);

/// Lets calls of a code be followed whatever file it is in.
#[pyfunction]
pub fn allow_code(code: &Bound<'_, PyAny>) {
    let mut rules = RULES.write();
    let rules = rules.get_or_insert_default();
    rules.allowed.insert(code.as_ptr() as usize, code.clone().unbind());
}

/// Lets calls into files whose names begin so not be followed.
#[pyfunction]
pub fn skip_files(prefix: String) {
    RULES.write().get_or_insert_default().skipped.push(prefix);
}

/// What was said of a code; `None` when nothing was.
pub fn rule_of(code: usize, file: &str) -> Option<Rule> {
    let rules = RULES.read();
    let rules = rules.as_ref()?;
    if rules.allowed.contains_key(&code) {
        return Some(Rule::Follow);
    }
    rules.skipped.iter().any(|prefix| file.starts_with(&**prefix)).then_some(Rule::Skip)
}

/// Whether code is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Always.
    Follow,
    /// Never.
    Skip,
}
