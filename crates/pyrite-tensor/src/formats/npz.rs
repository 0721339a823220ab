//! NumPy's npz format: a zip archive of npy files.

use std::io::{Read, Seek, Write};

use zip::ZipWriter;

use super::archive::{self, Archive};
use super::{FormatError, npy};
use crate::{DType, Tensor};

/// Reads all arrays in the order of the archive; their names come without `.npy`.
pub fn read(reader: impl Read + Seek) -> Result<Vec<(String, Tensor)>, FormatError> {
    let mut archive = Archive::open(reader, "npz")?;
    let mut tensors = Vec::new();
    for entry in archive.names().to_vec() {
        if entry.ends_with('/') {
            continue;
        }
        let Some(name) = entry.strip_suffix(".npy") else {
            return Err(FormatError::entry(&entry, "it is not an npy file"));
        };
        tensors.push((name.to_string(), npy::read(archive.read(&entry, u64::MAX)?.as_slice(), &entry)?));
    }
    Ok(tensors)
}

/// Writes arrays under their names, uncompressed. bfloat16, which NumPy does not have, is stored as `f32`: every
/// value of it is exact there.
pub fn write(writer: impl Write + Seek, tensors: &[(String, Tensor)]) -> Result<(), FormatError> {
    let mut zip = ZipWriter::new(writer);
    for (name, tensor) in tensors {
        let entry = format!("{name}.npy");
        let mut bytes = Vec::new();
        match tensor.dtype() {
            narrow if narrow == DType::BF16 || narrow.is_float8() => {
                npy::write(&mut bytes, &entry, &tensor.cast(DType::F32))?;
            }
            _ => npy::write(&mut bytes, &entry, tensor)?,
        }
        archive::store(&mut zip, &entry, &bytes, 64)?;
    }
    archive::finish(zip)
}

/// The names that NumPy gives to arrays without one: `arr_0`, `arr_1`, ….
pub fn numbered(tensors: impl IntoIterator<Item = Tensor>) -> Vec<(String, Tensor)> {
    tensors.into_iter().enumerate().map(|(i, tensor)| (format!("arr_{i}"), tensor)).collect()
}
