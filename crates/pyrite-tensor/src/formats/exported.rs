//! What `torch.export.save` writes, a `.pt2` archive, read without unpickling.
//!
//! The archive holds the program as JSON (`models/model.json`) and the bytes of every weight and constant beside a table
//! of their layouts. Sample inputs are a pickle and are not read. Tensors of one entry share its storage.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use serde_json::Value;

use super::FormatError;
use super::archive::Archive;
use crate::{DType, Layout, Storage, Tensor};

const FORMAT: &str = "pt2";
/// A program is text; this is room for a million nodes with their stacks.
const JSON_LIMIT: u64 = 1 << 30;

/// An exported program.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The program, as `torch.export` serialises it.
    pub model: Value,
    /// Parameters, buffers and constants by the names they have in the module.
    pub tensors: BTreeMap<String, Tensor>,
}

/// Reads an archive.
pub fn read(reader: impl Read + Seek) -> Result<Exported, FormatError> {
    let mut archive = Archive::open(reader, FORMAT)?;
    let entries = archive.names().to_vec();
    let model = entries
        .iter()
        .find(|entry| entry.ends_with("/models/model.json"))
        .ok_or_else(|| FormatError::malformed(FORMAT, "it holds no `models/model.json`"))?
        .clone();
    let root = model.trim_end_matches("models/model.json").to_owned();
    let mut tensors = BTreeMap::new();
    for kind in ["weights", "constants"] {
        let table = format!("{root}data/{kind}/model_{kind}_config.json");
        if !entries.contains(&table) {
            continue;
        }
        let parsed = json(&mut archive, &table)?;
        let mut storages: BTreeMap<String, Storage> = BTreeMap::new();
        for (name, entry) in parsed["config"].as_object().into_iter().flatten() {
            let path = entry["path_name"].as_str().unwrap_or_default();
            let path = format!("{root}data/{kind}/{path}");
            if entry["use_pickle"].as_bool() != Some(false) {
                return Err(FormatError::entry(&path, format!("`{name}` is pickled, which is not read")));
            }
            let storage = if let Some(storage) = storages.get(&path) {
                storage.clone()
            } else {
                let bytes = archive.read(&path, u64::MAX)?;
                let storage = Storage::recycled(bytes.len());
                storage.write::<u8>().copy_from_slice(&bytes);
                storages.insert(path.clone(), storage.clone());
                storage
            };
            let tensor = tensor(&entry["tensor_meta"], storage);
            tensors.insert(name.clone(), tensor.map_err(|reason| FormatError::entry(&path, reason))?);
        }
    }
    Ok(Exported { model: json(&mut archive, &model)?, tensors })
}

fn json<R: Read + Seek>(archive: &mut Archive<R>, entry: &str) -> Result<Value, FormatError> {
    let bytes = archive.read(entry, JSON_LIMIT)?;
    serde_json::from_slice(&bytes).map_err(|error| FormatError::entry(entry, error.to_string()))
}

fn tensor(meta: &Value, storage: Storage) -> Result<Tensor, String> {
    let number = meta["dtype"].as_i64().unwrap_or_default();
    let dtype = dtype(number).ok_or_else(|| format!("unknown dtype number {number}"))?;
    let dims = |key: &str| -> Result<Vec<i64>, String> {
        let dims = meta[key].as_array().ok_or_else(|| format!("it has no {key}"))?;
        dims.iter().map(|dim| dim["as_int"].as_i64().ok_or_else(|| format!("its {key} are no numbers"))).collect()
    };
    let offset = meta["storage_offset"]["as_int"].as_i64().unwrap_or(0);
    let layout = Layout::new(&dims("sizes")?, &dims("strides")?, offset);
    Tensor::new(storage, dtype, layout).map_err(|error| error.to_string())
}

/// The element type of a number in an exported program.
pub fn dtype(number: i64) -> Option<DType> {
    Some(match number {
        1 => DType::U8,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::F16,
        7 => DType::F32,
        8 => DType::F64,
        10 => DType::C64,
        11 => DType::C128,
        12 => DType::Bool,
        13 => DType::BF16,
        28 => DType::U16,
        29 => DType::F8E4M3,
        30 => DType::F8E5M2,
        31 => DType::F8E4M3Fnuz,
        32 => DType::F8E5M2Fnuz,
        34 => DType::U32,
        35 => DType::U64,
        _ => return None,
    })
}
