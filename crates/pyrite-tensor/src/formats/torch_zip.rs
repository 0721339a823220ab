//! What `torch.save` writes, read without unpickling.
//!
//! Two kinds of files: a *storage*, as PyTorch's repro writer lays it out in `storages/<name>` ([`read_storage`],
//! [`write_storage`]), and *saved data*: a tensor, a state dict, or plain containers of them ([`read_saved`]).
//! Tensors that shared a storage when they were saved share it after reading. Devices are ignored: everything is read
//! into the memory of the CPU.

use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};

use zip::ZipWriter;

use super::FormatError;
use super::archive::{self, Archive};
use super::pickle::{self, Global, Id, Node, Pickle};
use crate::{DType, Layout, Storage, Tensor};

const FORMAT: &str = "torch.save";
/// Containers may nest this deep.
const DEPTH_LIMIT: usize = 100;
/// A file may hold this many values; shared containers count each time they are met.
const VALUE_LIMIT: usize = 1 << 20;
/// PyTorch's own limit.
const RANK_LIMIT: usize = 64;
/// PyTorch numbers storages; this is room for any number.
const KEY_LIMIT: usize = 64;
/// A pickle only describes; this is room for the names of half a million tensors.
const PICKLE_LIMIT: usize = 64 << 20;

/// What a file holds.
#[derive(Clone, Debug)]
pub enum Saved {
    /// Python's `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A string.
    Text(String),
    /// A data type.
    DType(DType),
    /// A list, tuple or size.
    List(Vec<Saved>),
    /// A dict in its order; integer keys are written in decimal.
    Dict(Vec<(String, Saved)>),
    /// A tensor or a parameter.
    Tensor {
        /// Its value.
        tensor: Tensor,
        /// Whether a gradient is wanted for it.
        requires_grad: bool,
    },
    /// A storage.
    Storage(Storage),
}

impl Saved {
    /// All tensors with their paths, keys and positions joined by dots.
    pub fn tensors(&self) -> Vec<(String, Tensor)> {
        let mut found = Vec::new();
        self.collect(&mut String::new(), &mut found);
        found
    }

    fn collect(&self, path: &mut String, found: &mut Vec<(String, Tensor)>) {
        let mut inside = |key: &str, value: &Self| {
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(key);
            value.collect(path, found);
            path.truncate(length);
        };
        match self {
            Self::Tensor { tensor, .. } => found.push((path.clone(), tensor.clone())),
            Self::List(items) => items.iter().enumerate().for_each(|(i, item)| inside(&i.to_string(), item)),
            Self::Dict(items) => items.iter().for_each(|(key, item)| inside(key, item)),
            _ => {}
        }
    }
}

/// Reads a file that holds one storage.
pub fn read_storage(reader: impl Read + Seek) -> Result<Storage, FormatError> {
    let mut file = File::open(reader)?;
    let root = file.pickle.root;
    let Node::Persistent(description) = *file.pickle.node(root) else {
        return Err(FormatError::malformed(FORMAT, "it holds a value that is not a storage"));
    };
    Ok(file.storage(description)?.0)
}

/// Reads a file that holds tensors in plain containers.
pub fn read_saved(reader: impl Read + Seek) -> Result<Saved, FormatError> {
    let mut file = File::open(reader)?;
    let root = file.pickle.root;
    file.value(root, 0)
}

struct File<R> {
    archive: Archive<R>,
    /// The folder that all entries are in.
    folder: String,
    pickle: Pickle,
    storages: BTreeMap<String, Storage>,
    /// Values met so far.
    values: usize,
    /// Bytes of text copied out so far: a string can be met many times.
    text: usize,
}

impl<R: Read + Seek> File<R> {
    fn open(mut reader: R) -> Result<Self, FormatError> {
        let mut magic = [0; 4];
        let length = reader.read(&mut magic)?;
        reader.rewind()?;
        if magic[..length].starts_with(b"\x80\x02\x8a\x0a") {
            let reason = "it is in the format from before PyTorch 1.6; load it in PyTorch and save it again";
            return Err(FormatError::malformed(FORMAT, reason));
        }
        let mut archive = Archive::open(reader, FORMAT)?;
        // As PyTorch does: the first entry says the folder.
        let first = archive.names().first().and_then(|name| name.split_once('/'));
        let Some((folder, _)) = first else {
            return Err(FormatError::malformed(FORMAT, "its entries are not in a folder"));
        };
        let folder = folder.to_string();
        let byteorder = format!("{folder}/byteorder");
        // Files from before PyTorch 2.1 do not say it; they come from little-endian machines.
        if archive.names().contains(&byteorder) && archive.read(&byteorder, 16)? != b"little" {
            return Err(FormatError::entry(&byteorder, "only little-endian files are read"));
        }
        let name = format!("{folder}/data.pkl");
        let pickle = pickle::parse(&archive.read(&name, PICKLE_LIMIT as u64)?)?;
        Ok(Self { archive, folder, pickle, storages: BTreeMap::new(), values: 0, text: 0 })
    }

    fn malformed(&self, reason: impl std::fmt::Display) -> FormatError {
        FormatError::entry(&format!("{}/data.pkl", self.folder), reason.to_string())
    }

    fn value(&mut self, id: Id, depth: usize) -> Result<Saved, FormatError> {
        self.values += 1;
        if depth > DEPTH_LIMIT || self.values > VALUE_LIMIT {
            let reason = format!("containers nest deeper than {DEPTH_LIMIT} or hold more than {VALUE_LIMIT} values");
            return Err(self.malformed(reason));
        }
        if let Node::Text(text) = self.pickle.node(id) {
            self.text += text.len();
            if self.text > PICKLE_LIMIT {
                return Err(self.malformed("its strings are repeated too often"));
            }
        }
        Ok(match self.pickle.node(id).clone() {
            Node::None => Saved::None,
            Node::Bool(value) => Saved::Bool(value),
            Node::Int(value) => Saved::Int(value),
            Node::Float(value) => Saved::Float(value),
            Node::Text(value) => Saved::Text(value),
            Node::Global(Global::DType(dtype)) => Saved::DType(dtype),
            Node::Global(other) => return Err(self.malformed(format!("{other:?} stands where a value should"))),
            Node::Tuple(items) | Node::List(items) => {
                Saved::List(items.into_iter().map(|item| self.value(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Node::Dict(items) => Saved::Dict(
                items
                    .into_iter()
                    .map(|(key, value)| Ok((self.key(key)?, self.value(value, depth + 1)?)))
                    .collect::<Result<_, FormatError>>()?,
            ),
            Node::Persistent(description) => Saved::Storage(self.storage(description)?.0),
            Node::Tensor(arguments) => {
                let (tensor, requires_grad) = self.tensor(&arguments)?;
                Saved::Tensor { tensor, requires_grad }
            }
            Node::Parameter(arguments) => {
                let [data, requires_grad, _hooks] = arguments.as_slice() else {
                    return Err(self.malformed("a parameter has three arguments"));
                };
                let (Node::Tensor(data), Node::Bool(requires_grad)) =
                    (self.pickle.node(*data), self.pickle.node(*requires_grad))
                else {
                    return Err(self.malformed("a parameter has a tensor and a bool"));
                };
                let (data, requires_grad) = (data.clone(), *requires_grad);
                Saved::Tensor { tensor: self.tensor(&data)?.0, requires_grad }
            }
        })
    }

    fn key(&mut self, id: Id) -> Result<String, FormatError> {
        match self.pickle.node(id) {
            Node::Text(_) | Node::Int(_) => {}
            _ => return Err(self.malformed("a dict has a key that is neither a string nor an integer")),
        }
        match self.value(id, 0)? {
            Saved::Text(text) => Ok(text),
            Saved::Int(value) => Ok(value.to_string()),
            _ => Err(self.malformed("a dict has a key that is neither a string nor an integer")),
        }
    }

    /// A storage and its element type, from `('storage', class, key, location, elements)`.
    fn storage(&mut self, description: Id) -> Result<(Storage, Option<DType>), FormatError> {
        let unknown = || self.malformed("a storage is not described as PyTorch does");
        let Node::Tuple(parts) = self.pickle.node(description) else { return Err(unknown()) };
        let [tag, class, key, _location, elements] = parts.as_slice() else { return Err(unknown()) };
        let parts =
            (self.pickle.node(*tag), self.pickle.node(*class), self.pickle.node(*key), self.pickle.node(*elements));
        let (Node::Text(tag), Node::Global(class), Node::Text(key), Node::Int(elements)) = parts else {
            return Err(unknown());
        };
        let dtype = match class {
            Global::TypedStorage(dtype) => Some(*dtype),
            Global::UntypedStorage => None,
            _ => return Err(unknown()),
        };
        if tag != "storage" || key.len() > KEY_LIMIT || !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(unknown());
        }
        let bytes = u64::try_from(*elements).ok().and_then(|n| n.checked_mul(dtype.map_or(1, DType::size) as u64));
        let Some(bytes) = bytes else { return Err(unknown()) };
        let name = format!("{}/data/{key}", self.folder);
        let storage = match self.storages.get(key) {
            Some(storage) if storage.nbytes() as u64 == bytes => storage.clone(),
            Some(_) => return Err(FormatError::entry(&name, "it is described with two sizes")),
            None => {
                let key = key.clone();
                let storage = self.archive.read_stored(&name, bytes)?;
                self.storages.insert(key, storage.clone());
                storage
            }
        };
        Ok((storage, dtype))
    }

    /// A tensor, from `(storage, offset, size, stride, requires_grad, hooks[, dtype][, metadata])`.
    fn tensor(&mut self, arguments: &[Id]) -> Result<(Tensor, bool), FormatError> {
        let unknown = |file: &Self| file.malformed("a tensor is not described as PyTorch does");
        let (fixed, more) = arguments.split_at_checked(6).ok_or_else(|| unknown(self))?;
        let (named, metadata) = match more {
            [first, rest @ ..] => match self.pickle.node(*first) {
                Node::Global(Global::DType(dtype)) => (Some(*dtype), rest),
                _ => (None, more),
            },
            [] => (None, more),
        };
        let metadata = match metadata {
            [] => None,
            [metadata] => Some(*metadata),
            _ => return Err(unknown(self)),
        };
        let [storage, offset, size, stride, requires_grad, _hooks] = fixed else { return Err(unknown(self)) };
        if let Some(metadata) = metadata
            && !matches!(self.pickle.node(metadata), Node::Dict(items) if items.is_empty())
        {
            return Err(self.malformed("a tensor has the conjugate or negative bit set; resolve it before saving"));
        }
        let (Node::Persistent(storage), Node::Int(offset), Node::Bool(requires_grad)) =
            (self.pickle.node(*storage), self.pickle.node(*offset), self.pickle.node(*requires_grad))
        else {
            return Err(unknown(self));
        };
        let (storage, offset, requires_grad) = (*storage, *offset, *requires_grad);
        let (Some(size), Some(stride)) = (self.integers(*size), self.integers(*stride)) else {
            return Err(unknown(self));
        };
        let (storage, dtype) = self.storage(storage)?;
        let dtype = named.or(dtype).ok_or_else(|| self.malformed("a tensor lies in a storage without a type"))?;
        let tensor = Tensor::new(storage, dtype, Layout::new(&size, &stride, offset))
            .map_err(|source| FormatError::Tensor { entry: format!("{}/data.pkl", self.folder), source })?;
        Ok((tensor, requires_grad))
    }

    fn integers(&self, id: Id) -> Option<Vec<i64>> {
        let Node::Tuple(items) = self.pickle.node(id) else { return None };
        if items.len() > RANK_LIMIT {
            return None;
        }
        let int = |id: &Id| if let Node::Int(value) = self.pickle.node(*id) { Some(*value) } else { None };
        items.iter().map(int).collect()
    }
}

/// Writes a storage as `torch.save(untyped_storage)` does. PyTorch calls the folder inside the archive like the file,
/// so `name` should be the file's name. Torch loads it to the device.
pub fn write_storage(writer: impl Write + Seek, name: &str, bytes: &[u8], device: &str) -> Result<(), FormatError> {
    let folder = if name.is_empty() || name.contains(['/', '\\', '\0']) { "archive" } else { name };
    let mut zip = ZipWriter::new(writer);
    for (entry, content) in [
        ("data.pkl", storage_pickle(bytes.len() as u64, device).as_slice()),
        (".format_version", b"1"),
        (".storage_alignment", b"64"),
        ("byteorder", b"little"),
        ("data/0", bytes),
        ("version", b"3\n"),
    ] {
        archive::store(&mut zip, &format!("{folder}/{entry}"), content, 64)?;
    }
    archive::finish(zip)
}

/// The pickle of `('storage', torch.storage.UntypedStorage, '0', device, nbytes)` as a persistent object.
fn storage_pickle(nbytes: u64, device: &str) -> Vec<u8> {
    let text = |text: &str| [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let size = match nbytes {
        0..=0xff => vec![b'K', nbytes as u8],
        0x100..=0xffff => [b"M", &nbytes.to_le_bytes()[..2]].concat(),
        0x1_0000..=0x7fff_ffff => [b"J", &nbytes.to_le_bytes()[..4]].concat(),
        // Nine bytes leave room for the sign.
        _ => [b"\x8a\x09", &nbytes.to_le_bytes()[..], b"\0"].concat(),
    };
    [
        &b"\x80\x02("[..],
        &text("storage"),
        b"q\x00ctorch.storage\nUntypedStorage\nq\x01",
        &text("0"),
        b"q\x02",
        &text(device),
        b"q\x03",
        &size,
        b"tq\x04Q.",
    ]
    .concat()
}
