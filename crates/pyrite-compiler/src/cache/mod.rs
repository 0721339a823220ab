//! The code cache: what the native compiler made is made once.
//!
//! Three things are kept, each by what decides it:
//!
//! - in memory, the plans of graphs, by [`GraphKey::plan`]: graph, shapes, strides, shared inputs, the user's places that
//!   errors name, decisions that are allowed, instructions and version. Graphs with symbolic sizes are not among them,
//!   because compiling them also finds out what has to hold of the sizes.
//! - in memory, the machine code of kernels, by [`CodeKey`], which kernels of repeated layers share;
//! - on disk, where a [`Folder`] was chosen, the machine code of all kernels of a graph, one file for each
//!   [`GraphKey::code`].
//!
//! Memory is bounded: what was added first goes first. The disk holds code that will run, so the folder must be its
//! owner's alone; a file that is damaged, or is not what its name says, counts as absent and is written anew.

mod folder;
mod key;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyrite_codegen::decisions::Decisions;
use pyrite_codegen::program::Plan;
use pyrite_codegen::{Code, CodeKey, CodeStore, Generator, Program};
use pyrite_ir::{Graph, NodeError};
use pyrite_ops::registry;

pub use self::folder::{Entry, Folder, FolderError};
pub use self::key::GraphKey;
use crate::backend::Options;

/// How many plans are kept in memory.
const PLANS: usize = 256;
/// How many kernels' code is kept in memory.
const CODES: usize = 4096;

/// A cache; [`shared`] is the one of the process.
#[derive(Default)]
pub struct Cache {
    plans: Mutex<Bounded<[u8; 32], (Arc<Plan>, Arc<[String]>)>>,
    codes: Mutex<Bounded<CodeKey, Arc<dyn Code>>>,
    folder: Mutex<Option<Arc<Folder>>>,
}

/// The cache of this process.
pub fn shared() -> &'static Cache {
    static SHARED: OnceLock<Cache> = OnceLock::new();
    SHARED.get_or_init(Cache::default)
}

/// The folder that `PYRITE_CACHE_DIR` names, else one in the user's cache folder; `None` for `off`, and where there is no
/// such folder to be had.
pub fn chosen_folder() -> Result<Option<Folder>, FolderError> {
    let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match value("PYRITE_CACHE_DIR") {
        Some(off) if off == "off" => Ok(None),
        Some(path) => Folder::open(Path::new(&path)).map(Some),
        None => {
            let caches = value("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
            let caches = caches.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
            let Some(caches) = caches else { return Ok(None) };
            match Folder::open(&caches.join("pyrite").join("code")) {
                // Nobody asked for it, and without it everything works.
                Err(FolderError::Absent { .. }) => Ok(None),
                other => other.map(Some),
            }
        }
    }
}

/// Lets the cache of this process use the chosen folder.
pub fn use_chosen_folder() -> Result<(), FolderError> {
    shared().use_folder(chosen_folder()?);
    Ok(())
}

impl Cache {
    /// Keeps code in a folder too, or no longer.
    pub fn use_folder(&self, folder: Option<Folder>) {
        *lock(&self.folder) = folder.map(Arc::new);
    }

    /// The folder that code is kept in, if one was chosen.
    pub fn folder(&self) -> Option<Arc<Folder>> {
        lock(&self.folder).clone()
    }

    /// The program of a functional graph, compiled now or before, and the decisions that were made for it.
    pub fn program(
        &self,
        graph: &Graph,
        options: &Options,
        generator: Generator,
    ) -> Result<(Program, Arc<[String]>), NodeError> {
        let key = GraphKey::of(graph, options, generator);
        // Whoever follows a compilation wants to see one.
        if let Some(plan) = key.plan.filter(|_| !pyrite_trace::is_on())
            && let Some((plan, decisions)) = lock(&self.plans).get(&plan)
        {
            return Ok((Program::new(plan, graph), decisions));
        }
        let folder = self.folder();
        let entry = folder.as_ref().and_then(|folder| folder.read(&key.code)).unwrap_or_default();
        let session = Session { cache: self, entry, used: RefCell::default() };
        let mut gate = options.gate().logged();
        let plan = Arc::new(Plan::of(graph, registry(), generator, &mut Decisions::new(&mut gate), &session)?);
        let decisions: Arc<[String]> = gate.into_log().into();
        if let Some(folder) = folder {
            session.write(&folder, &key.code);
        }
        if let Some(key) = key.plan {
            lock(&self.plans).add(key, (plan.clone(), decisions.clone()), PLANS);
        }
        Ok((Program::new(plan, graph), decisions))
    }
}

/// What one compilation finds and makes.
struct Session<'a> {
    cache: &'a Cache,
    entry: Entry,
    used: RefCell<BTreeMap<CodeKey, Arc<dyn Code>>>,
}

// SAFETY: maps are filled by `keep` alone. What is on disk has the key and the version in its sum, and lies in a folder
// that nobody but the user can write to; see `Folder`.
#[expect(unsafe_code, reason = "a promise about code that runs")]
unsafe impl CodeStore for Session<'_> {
    fn ready(&self, key: &CodeKey) -> Option<Arc<dyn Code>> {
        let code = lock(&self.cache.codes).get(key)?;
        self.used.borrow_mut().insert(*key, code.clone());
        Some(code)
    }

    fn written(&self, key: &CodeKey) -> Option<&[u8]> {
        self.entry.get(key)
    }

    fn keep(&self, key: CodeKey, code: &Arc<dyn Code>) {
        lock(&self.cache.codes).add(key, code.clone(), CODES);
        self.used.borrow_mut().insert(key, code.clone());
    }
}

impl Session<'_> {
    /// Writes the code of the graph to the folder, unless it is there.
    fn write(self, folder: &Folder, key: &[u8; 32]) {
        let used = self.used.into_inner();
        let mut missing = used.iter().filter(|(key, _)| self.entry.get(key).is_none());
        if !missing.any(|(_, code)| code.written().is_some()) {
            return;
        }
        let codes = used.iter().filter_map(|(key, code)| Some((*key, code.written()?))).collect();
        // A disk that is full, or a folder that is gone, costs the next process some milliseconds and nothing else.
        let _ = folder.write(key, &Entry::new(codes));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A map of which what was added first goes first.
struct Bounded<K, V> {
    values: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self { values: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Copy + Eq + Hash, V: Clone> Bounded<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.values.get(key).cloned()
    }

    fn add(&mut self, key: K, value: V, most: usize) {
        if self.values.insert(key, value).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > most {
            if let Some(first) = self.order.pop_front() {
                self.values.remove(&first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bounded;

    #[test]
    fn what_was_added_first_goes_first() {
        let mut map = Bounded::default();
        for key in [1, 2, 1, 3] {
            map.add(key, key * 10, 2);
        }
        assert_eq!([map.get(&1), map.get(&2), map.get(&3)], [None, Some(20), Some(30)]);
    }
}
