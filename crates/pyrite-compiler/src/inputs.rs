//! The inputs of a program: read from its storages, or made up.
//!
//! A repro file says of each input where its bytes are ([`InputSpec`]). Storages are found by a [`StorageSearch`], where
//! PyTorch's writer or ours put them; those whose name is our hash are checked against it. What has no file is generated
//! from the seed, like PyTorch's reader does. Nothing is executed, and a file that is missing, short or altered is an
//! error.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_ir::inputs::{InputSpec, InputValue, StorageSpec};
use pyrite_ir::{Graph, Kind, Meta, StorageSearch, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::formats::{storage_hash, torch_zip};
use pyrite_tensor::random::{TorchGenerator, rand_strided};
use pyrite_tensor::{DType, Layout, Storage, Tensor};

const MISSING: Code = Code::new("inputs::missing-storage");
const UNREADABLE: Code = Code::new("inputs::unreadable-storage");
const WRONG_SIZE: Code = Code::new("inputs::wrong-storage-size");
const WRONG_HASH: Code = Code::new("inputs::wrong-storage-hash");
const BAD_TENSOR: Code = Code::new("inputs::bad-tensor");
/// What to do about an input that cannot be created.
const SIZES: &str = "give the input the sizes of a real run, or dump the program with its data";
const UNKNOWN: Code = Code::new("inputs::unknown-input");

/// Inputs, and how many of their storages were made up because the file names no data.
#[derive(Debug)]
pub struct Inputs {
    /// One value per placeholder.
    pub values: Vec<Value<Tensor>>,
    /// Storages without a file.
    pub generated: usize,
}

/// Loads what a spec describes; `file` is the repro file, beside which its storages lie.
pub fn load(spec: &InputSpec, file: &Path, seed: u64) -> Result<Inputs, Diagnostic> {
    load_from(spec, &StorageSearch::new(file.parent(), None, None), file, seed)
}

/// Loads what the spec of a file describes, from the storages that a search finds.
pub fn load_from(spec: &InputSpec, search: &StorageSearch, file: &Path, seed: u64) -> Result<Inputs, Diagnostic> {
    let mut generator = TorchGenerator::new(seed);
    let mut generated = 0;
    let mut storages = Vec::new();
    for storage in &spec.storages {
        let nbytes = storage.nbytes.hint().and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
            Diagnostic::error(BAD_TENSOR, format!("a storage of {} bytes cannot be created", storage.nbytes))
                .at(Location::in_file(file))
                .hint(SIZES)
        })?;
        storages.push(if let Some(data) = &storage.data {
            Storage::from_slice(&data.storage().to_bytes())
        } else if let Some(name) = &storage.name {
            stored(name, nbytes, search, file)?
        } else {
            generated += 1;
            made_up(storage, nbytes, &mut generator).map_err(|d| d.at(Location::in_file(file)))?
        });
    }
    let mut values = Vec::new();
    for (index, arg) in spec.args.iter().enumerate() {
        values.push(match &arg.value {
            InputValue::Tensor(tensor) => {
                let fail = |cause: String| {
                    Diagnostic::error(BAD_TENSOR, format!("input {index} cannot be created"))
                        .at(Location::in_file(file))
                        .cause(cause)
                        .hint("the file's load_args contradicts its storages; dump it again")
                };
                let ints = |dims: &[SymInt]| dims.iter().map(|d| d.hint().unwrap_or(-1)).collect::<Vec<_>>();
                let storage =
                    storages.get(tensor.storage).ok_or_else(|| fail("its storage is not declared".to_owned()))?;
                let layout =
                    Layout::new(&ints(&tensor.shape), &ints(&tensor.stride), tensor.offset.hint().unwrap_or(-1));
                Value::Tensor(Tensor::new(storage.clone(), tensor.dtype, layout).map_err(|e| fail(e.to_string()))?)
            }
            InputValue::Int { value, .. } => (*value).into(),
            InputValue::Float(value) => (*value).into(),
            InputValue::Bool(value) => (*value).into(),
            InputValue::None => Value::None,
        });
    }
    Ok(Inputs { values, generated })
}

/// Says of placeholders where in memory their inputs lie, and all of those that nothing is known of: a text does not say
/// which inputs share memory.
pub fn describe(graph: &mut Graph, inputs: &[Value<Tensor>]) {
    let placeholders: Vec<_> = graph.placeholders().map(|(id, node)| (id, node.meta.clone())).collect();
    for ((id, known), input) in placeholders.into_iter().zip(inputs) {
        let meta = match (known, input) {
            (Some(Value::Tensor(meta)), Value::Tensor(tensor)) => {
                let own = Meta::of(tensor);
                Value::Tensor(Meta { offset: own.offset, storage: own.storage, ..meta })
            }
            (Some(_), _) => continue,
            (None, input) => input.map(&mut |tensor| Meta::of(tensor)),
        };
        graph.set_meta(id, meta);
    }
}

/// Inputs for a graph whose text says nothing of them: random ones of the placeholders' annotated types.
pub fn generate(graph: &Graph, file: &Path, seed: u64) -> Result<Inputs, Diagnostic> {
    let mut generator = TorchGenerator::new(seed);
    let mut values = Vec::new();
    for (_, node) in graph.placeholders() {
        let value = match &node.meta {
            Some(Value::Tensor(meta)) => {
                random(meta, &mut generator).map_err(|d| d.at(Location::in_file(file)))?.into()
            }
            Some(Value::Int(size)) if size.hint().is_some() => size.hint().unwrap_or_default().into(),
            _ => {
                let mut location = Location::in_file(file);
                if let Some(span) = node.span {
                    location = location.line(span.line).column(span.column);
                }
                return Err(Diagnostic::error(UNKNOWN, format!("nothing is known of the input `{}`", node.name))
                    .at(location)
                    .hint("annotate it like `x : \"f32[2, 3]\"`, or give the file a load_args function"));
            }
        };
        values.push(value);
    }
    let generated = values.len();
    debug_assert!(graph.nodes().any(|(_, node)| node.kind == Kind::Output));
    Ok(Inputs { values, generated })
}

fn random(meta: &Meta, generator: &mut TorchGenerator) -> Result<Tensor, Diagnostic> {
    let ints = |dims: &[SymInt]| dims.iter().map(|d| d.hint().unwrap_or(-1)).collect::<Vec<_>>();
    rand_strided(&ints(&meta.shape), &ints(&meta.stride), meta.dtype, generator)
        .map_err(|e| Diagnostic::error(BAD_TENSOR, format!("an input {meta} cannot be created")).cause(e).hint(SIZES))
}

fn made_up(spec: &StorageSpec, nbytes: usize, generator: &mut TorchGenerator) -> Result<Storage, Diagnostic> {
    let count = (nbytes / spec.dtype_hint.size()) as i64;
    let fail = |cause: String| {
        Diagnostic::error(BAD_TENSOR, format!("a storage of {nbytes} bytes cannot be created")).cause(cause).hint(SIZES)
    };
    let tensor = rand_strided(&[count], &[1], spec.dtype_hint, generator).map_err(|e| fail(e.to_string()))?;
    if tensor.storage().nbytes() == nbytes {
        return Ok(tensor.storage().clone());
    }
    // The size is no multiple of the element's: the rest is zero.
    let whole = Tensor::zeros(&[nbytes as i64], DType::U8).map_err(|e| fail(e.to_string()))?;
    whole.storage().write::<u8>()[..tensor.storage().nbytes()].copy_from_slice(&tensor.storage().to_bytes());
    Ok(whole.storage().clone())
}

fn stored(name: &str, nbytes: usize, search: &StorageSearch, file: &Path) -> Result<Storage, Diagnostic> {
    let path = search.find(name).map_err(|reason| {
        Diagnostic::error(MISSING, format!("the storage `{name}` of an input cannot be opened"))
            .at(Location::in_file(file))
            .cause(&reason)
            .hint(reason.remedy())
    })?;
    let at = |diagnostic: Diagnostic| diagnostic.at(Location::in_file(&path));
    let opened = File::open(&path).map_err(|error| {
        at(Diagnostic::error(MISSING, "the storage of an input cannot be opened").cause(error))
            .hint("check its permissions")
    })?;
    let storage = torch_zip::read_storage(BufReader::new(opened)).map_err(|error| {
        at(Diagnostic::error(UNREADABLE, "the storage cannot be read").cause(error)).hint("dump it again")
    })?;
    if storage.nbytes() != nbytes {
        let message = format!("the storage has {} bytes, the file declares {nbytes}", storage.nbytes());
        return Err(at(Diagnostic::error(WRONG_SIZE, message)).hint("file and storages belong to different dumps"));
    }
    // Our names are the hash of the bytes, and a number where several storages have the same; PyTorch's are shorter and
    // cannot be checked.
    let hash = name.split_once('_').map_or(name, |(hash, _)| hash);
    let is_ours = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    if is_ours && storage_hash(&storage.to_bytes()) != hash {
        return Err(at(Diagnostic::error(WRONG_HASH, "the storage's bytes do not have the hash that is its name"))
            .hint("the file was altered or damaged; dump it again"));
    }
    Ok(storage)
}
