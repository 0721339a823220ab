//! Programs as files: `repro.py` and the storages beside it.
//!
//! A file is the same program in PyTorch and in Pyrite. Storages have names of their own, even where their bytes are
//! equal: PyTorch's reader gives what has one name one memory. Small ones stand in the text, so that it runs where it is
//! pasted.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pyrite_compiler::inputs;
use pyrite_ir::inputs::{InputArg, InputSpec, InputValue, StorageSpec, TensorSpec};
use pyrite_ir::print::{Constants, INLINE_ELEMENTS, PrintOptions, ReproInfo, print_repro};
use pyrite_ir::verify::verify;
use pyrite_ir::{Device, Meta, Value};
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, read_path};
use pyrite_reduce::Candidate;
use pyrite_tensor::formats::{storage_hash, torch_zip};
use pyrite_tensor::{DType, Layout, Storage, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::script::Claim;

/// Why a program cannot be written down.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// The disk says no.
    #[error("{path} cannot be written: {cause}")]
    Io {
        /// What was to be written.
        path: PathBuf,
        /// Why it was not.
        cause: String,
    },
}

/// A folder of repro files that share their storages. A file appears under its name only when it is whole.
pub struct Folder {
    path: PathBuf,
    lasting: Lasting,
    /// The names of storages that were written, with the storage: while it is held, its address is its own.
    known: RefCell<FxHashMap<(usize, Device), (Storage, String)>>,
    /// The names that a program's file has used: each stands for one storage.
    used: RefCell<FxHashSet<String>>,
}

/// Whether files have to outlive the machine's next crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasting {
    /// Each is on disk before it appears.
    Synced,
    /// They are read once, by another process, and thrown away.
    Scratch,
}

impl Folder {
    /// A folder, made if it is not there. What is written there is on disk when it appears.
    pub fn open(path: &Path) -> Result<Self, RepoError> {
        Self::made(path, Lasting::Synced)
    }

    /// A folder for files that are thrown away soon.
    pub fn scratch(path: &Path) -> Result<Self, RepoError> {
        Self::made(path, Lasting::Scratch)
    }

    fn made(path: &Path, lasting: Lasting) -> Result<Self, RepoError> {
        let storages = path.join("storages");
        fs::create_dir_all(&storages).map_err(|e| RepoError::Io { path: storages, cause: e.to_string() })?;
        Ok(Self { path: path.to_owned(), lasting, known: RefCell::default(), used: RefCell::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a program under a name and returns the path.
    pub fn write(
        &self,
        name: &str,
        candidate: &Candidate,
        metadata: &[(String, String)],
    ) -> Result<PathBuf, RepoError> {
        let said = |wanted: &str| metadata.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
        let imports: Vec<String> =
            metadata.iter().filter(|(key, _)| key == "import").map(|(_, module)| module.clone()).collect();
        let claim = said("backend").map(|backend| Claim { imports: &imports, ..Claim::of(backend) });
        self.write_claiming(name, candidate, metadata, claim.as_ref())
    }

    /// The same for a file that says how a backend fails on the program, and shows it when it is run.
    pub fn write_claiming(
        &self,
        name: &str,
        candidate: &Candidate,
        metadata: &[(String, String)],
        claim: Option<&Claim<'_>>,
    ) -> Result<PathBuf, RepoError> {
        self.used.borrow_mut().clear();
        let inputs = self.inputs(candidate)?;
        let mut constants: FxHashMap<usize, String> = FxHashMap::default();
        for tensor in candidate.graph.constants().values() {
            constants.insert(tensor.storage().id(), self.store(tensor.storage(), &Device::Cpu)?);
        }
        let stored = |tensor: &Tensor| constants.get(&tensor.storage().id()).cloned().unwrap_or_default();
        let mut metadata = metadata.to_vec();
        if self.lasting == Lasting::Synced && !metadata.iter().any(|(key, _)| key == "pyrite") {
            metadata.insert(0, ("pyrite".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        }
        if self.lasting == Lasting::Synced && !metadata.iter().any(|(key, _)| key == "seed") {
            metadata.push(("seed".to_owned(), candidate.seed.to_string()));
        }
        let claim = claim.map(|claim| Claim {
            seed: candidate.seed,
            draws: crate::torch::draws(&candidate.graph),
            elsewhere: candidate.graph.is_elsewhere(),
            ..claim.clone()
        });
        let info = ReproInfo { metadata, inputs: Some(inputs), main: claim.and_then(|claim| claim.script()) };
        let options = PrintOptions { constants: Constants::Stored(&stored), ..PrintOptions::default() };
        let path = self.path.join(name);
        self.write_whole(&path, print_repro(&candidate.graph, &info, &options).as_bytes())?;
        Ok(path)
    }

    /// Writes a storage and returns its name: the hash of its bytes, its device where that is not the CPU, and a number where
    /// another storage of the program has the same. Torch loads a storage to the device that its file names.
    fn store(&self, storage: &Storage, device: &Device) -> Result<String, RepoError> {
        let known = self.known.borrow().get(&(storage.id(), device.clone())).map(|(_, name)| name.clone());
        if let Some(name) = known.filter(|name| self.used.borrow_mut().insert(name.clone())) {
            return Ok(name);
        }
        let bytes = storage.to_bytes();
        let mut hash = storage_hash(&bytes);
        if *device != Device::Cpu {
            let place = device.to_string();
            let _ = write!(hash, "_{}", place.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
        }
        let numbered = (2..).map(|number| format!("{hash}_{number}"));
        let mut names = std::iter::once(hash.clone()).chain(numbered);
        let name = names.find(|name| self.used.borrow_mut().insert(name.clone())).unwrap_or(hash);
        let path = self.path.join("storages").join(&name);
        if !path.exists() {
            let mut file = std::io::Cursor::new(Vec::new());
            torch_zip::write_storage(&mut file, &name, &bytes, &device.to_string())
                .map_err(|e| RepoError::Io { path: path.clone(), cause: e.to_string() })?;
            self.write_whole(&path, &file.into_inner())?;
        }
        self.known.borrow_mut().insert((storage.id(), device.clone()), (storage.clone(), name.clone()));
        Ok(name)
    }

    /// Writes beside the place and moves it there, so that nobody sees half a file.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), RepoError> {
        let fail = |e: std::io::Error| RepoError::Io { path: path.to_owned(), cause: e.to_string() };
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new();
        // Whoever may see the folder may read what is in it; the process's mask takes away what it takes away.
        let mut file = file.permissions(Permissions::from_mode(0o666)).tempfile_in(folder).map_err(fail)?;
        std::io::Write::write_all(&mut file, bytes).map_err(fail)?;
        if self.lasting == Lasting::Synced {
            file.as_file().sync_data().map_err(fail)?;
        }
        file.persist(path).map_err(|e| fail(e.error))?;
        Ok(())
    }

    /// What `load_args` says.
    fn inputs(&self, candidate: &Candidate) -> Result<InputSpec, RepoError> {
        let mut spec = InputSpec::default();
        // What the seed gives need not be stored where the file says which seed that is. Other devices than the CPU draw
        // other numbers.
        let drawn = match self.lasting {
            Lasting::Synced if !candidate.graph.is_elsewhere() => pyrite_reduce::drawn(candidate),
            Lasting::Synced | Lasting::Scratch => FxHashSet::default(),
        };
        let mut places: FxHashMap<usize, usize> = FxHashMap::default();
        for ((_, node), value) in candidate.graph.placeholders().zip(&candidate.inputs) {
            let meta = node.meta.as_ref();
            let value = match value {
                Value::Tensor(tensor) => {
                    let is_drawn = drawn.contains(&tensor.storage().id());
                    let device = meta.and_then(Value::as_tensor).map(|m| m.device.clone()).unwrap_or_default();
                    let storage = if let Some(place) = places.get(&tensor.storage().id()) {
                        *place
                    } else {
                        let data = if is_drawn { None } else { written_out(tensor) };
                        let is_stored = data.is_none() && !is_drawn;
                        spec.storages.push(StorageSpec {
                            name: if is_stored { Some(self.store(tensor.storage(), &device)?) } else { None },
                            data,
                            nbytes: (tensor.storage().nbytes() as i64).into(),
                            device,
                            dtype_hint: tensor.dtype(),
                        });
                        places.insert(tensor.storage().id(), spec.storages.len() - 1);
                        spec.storages.len() - 1
                    };
                    let known = meta.and_then(Value::as_tensor);
                    let own = Meta::of(tensor);
                    InputValue::Tensor(TensorSpec {
                        storage,
                        shape: own.shape,
                        stride: own.stride,
                        offset: own.offset,
                        dtype: own.dtype,
                        requires_grad: known.is_some_and(|m| m.requires_grad),
                        is_leaf: known.is_none_or(|m| m.is_leaf),
                    })
                }
                Value::Int(size) => InputValue::Int {
                    value: size.hint().unwrap_or_default(),
                    expr: match meta {
                        Some(Value::Int(symbol)) if symbol.as_int().is_none() => Some(symbol.to_string()),
                        _ => None,
                    },
                },
                Value::Float(number) => InputValue::Float(*number),
                Value::Bool(value) => InputValue::Bool(*value),
                _ => InputValue::None,
            };
            spec.args.push(InputArg { name: Some(node.name.clone()), value });
        }
        Ok(spec)
    }
}

/// A storage's elements, where they are few and the text gives them back bit for bit.
fn written_out(tensor: &Tensor) -> Option<Tensor> {
    let storage = tensor.storage();
    let count = storage.nbytes() / tensor.dtype().size();
    let whole = count * tensor.dtype().size() == storage.nbytes();
    if !whole || !(1..=INLINE_ELEMENTS).contains(&count) {
        return None;
    }
    let data = Tensor::new(storage.clone(), tensor.dtype(), Layout::contiguous(&[count as i64])).ok()?;
    let has_nan = !data.dtype().is_integral() && data.to_c128s().iter().any(|z| z.re.is_nan() || z.im.is_nan());
    let is_too_large = data.dtype() == DType::U64 && data.to_i64s().iter().any(|value| *value < 0);
    (!has_nan && !is_too_large).then_some(data)
}

/// The program of a repro file with its inputs: loaded, or generated from the seed where there is no data.
pub fn candidate_of(path: &Path, seed: u64) -> Result<Candidate, String> {
    let read = read_path(path, registry(), &ReadOptions::default()).map_err(|problems| problems.to_string())?;
    if let Some(problem) = verify(&read.graph, Some(path)).first() {
        return Err(problem.to_string());
    }
    let inputs = match &read.inputs {
        Some(spec) => inputs::load_from(spec, &read.storages, path, seed),
        None => inputs::generate(&read.graph, path, seed),
    }
    .map_err(|problem| problem.to_string())?;
    let mut graph = read.graph;
    inputs::describe(&mut graph, &inputs.values);
    Ok(Candidate { graph, inputs: inputs.values, seed })
}
