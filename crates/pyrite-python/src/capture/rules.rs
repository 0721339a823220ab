//! Which functions are called by graphs as they are, and which code is not followed: what the user has said.

use std::sync::Arc;

use parking_lot::RwLock;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyrite_capture::Check;
use rustc_hash::FxHashMap;

#[derive(Default)]
struct Rules {
    /// Functions whose calls are single nodes, by their addresses, with their names; kept alive.
    allowed: FxHashMap<usize, (Py<PyAny>, Arc<str>)>,
    /// How the names of files begin whose code is not followed.
    skipped: Vec<String>,
}

static RULES: RwLock<Option<Rules>> = RwLock::new(None);

/// Lets calls of a function written in Python be single nodes of graphs, under a dotted name.
#[pyfunction]
pub fn allow_function(function: &Bound<'_, PyAny>, name: &str) {
    let address = function.as_ptr() as usize;
    let mut rules = RULES.write();
    let allowed = &mut rules.get_or_insert_default().allowed;
    let is_taken = |name: &str| allowed.iter().any(|(known, (_, taken))| *known != address && &**taken == name);
    let names = std::iter::once(name.to_owned()).chain((1..).map(|number| format!("{name}_{number}")));
    if let Some(name) = names.take(allowed.len() + 1).find(|name| !is_taken(name)) {
        allowed.insert(address, (function.clone().unbind(), name.into()));
    }
}

/// The name of a function whose calls are single nodes, by its address.
pub fn allowed_name(function: usize) -> Option<Arc<str>> {
    RULES.read().as_ref()?.allowed.get(&function).map(|(_, name)| name.clone())
}

/// The function of that name whose calls are single nodes.
pub fn allowed_function(py: Python<'_>, name: &str) -> Option<Py<PyAny>> {
    let rules = RULES.read();
    let found = rules.as_ref()?.allowed.values().find(|(_, known)| &**known == name);
    found.map(|(function, _)| function.clone_ref(py))
}

/// Lets calls into files whose names begin so not be followed.
#[pyfunction]
pub fn skip_files(prefix: String) {
    RULES.write().get_or_insert_default().skipped.push(prefix);
}

/// Whether the user has said that code of a file is not followed.
pub fn is_skipped(file: &str) -> bool {
    RULES.read().as_ref().is_some_and(|rules| rules.skipped.iter().any(|prefix| file.starts_with(&**prefix)))
}

/// The kind of guards that are left out, for tests of the tests.
static DROPPED: RwLock<Option<&'static str>> = RwLock::new(None);

/// Leaves all guards of a kind out of what is captured from now on, so that a test can show that it would notice; `None`
/// puts them back. Returns the kinds.
#[pyfunction]
#[pyo3(signature = (kind))]
pub fn drop_guards(kind: Option<&str>) -> PyResult<Vec<&'static str>> {
    let known = kind.map(|kind| Check::KINDS.into_iter().find(|known| *known == kind));
    if known == Some(None) {
        let kinds = Check::KINDS.join(", ");
        return Err(PyValueError::new_err(format!("there is no guard of that kind; there are {kinds}")));
    }
    *DROPPED.write() = known.flatten();
    Ok(Check::KINDS.to_vec())
}

/// Whether a guard is left out.
pub fn is_dropped(check: &Check) -> bool {
    DROPPED.read().is_some_and(|kind| kind == check.kind())
}
