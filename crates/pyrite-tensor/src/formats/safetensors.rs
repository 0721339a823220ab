//! The safetensors format, through the crate of its authors.

use std::borrow::Cow;
use std::io::Write;

use ::safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, View};

use super::{FormatError, dense_bytes, over_bytes};
use crate::{DType, Layout, Tensor};

const FORMAT: &str = "safetensors";

/// Every type that both sides have.
const TYPES: [(DType, Dtype); 16] = [
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
    (DType::C64, Dtype::C64),
    (DType::U16, Dtype::U16),
    (DType::U32, Dtype::U32),
    (DType::U64, Dtype::U64),
    (DType::F8E4M3, Dtype::F8_E4M3),
    (DType::F8E5M2, Dtype::F8_E5M2),
];

/// Reads all tensors, sorted by name.
pub fn read(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, FormatError> {
    let file = SafeTensors::deserialize(bytes).map_err(whole)?;
    let mut tensors = Vec::with_capacity(file.len());
    for (name, view) in file.tensors() {
        let dtype = TYPES.iter().find(|(_, theirs)| *theirs == view.dtype());
        let Some((dtype, _)) = dtype else {
            return Err(FormatError::entry(&name, format!("its type {} is not supported", view.dtype())));
        };
        let shape: Option<Vec<i64>> = view.shape().iter().map(|size| i64::try_from(*size).ok()).collect();
        let shape = shape.ok_or_else(|| FormatError::entry(&name, "its shape does not fit 64 bits"))?;
        let tensor = over_bytes(&name, view.data(), *dtype, Layout::contiguous(&shape))?;
        tensors.push((name, tensor));
    }
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tensors)
}

/// Writes tensors, each dense.
pub fn write(mut writer: impl Write, tensors: &[(String, Tensor)]) -> Result<(), FormatError> {
    let mut views = Vec::with_capacity(tensors.len());
    let mut names = std::collections::BTreeSet::new();
    for (name, tensor) in tensors {
        if !names.insert(name) {
            return Err(FormatError::entry(name, "two tensors have this name"));
        }
        let Some((_, dtype)) = TYPES.iter().find(|(ours, _)| *ours == tensor.dtype()) else {
            return Err(FormatError::DType {
                entry: name.clone(),
                format: FORMAT,
                dtype: tensor.dtype(),
                hint: "; write it as npy",
            });
        };
        let shape = tensor.shape().iter().map(|size| *size as usize).collect();
        views.push((name, Dense { dtype: *dtype, shape, bytes: dense_bytes(tensor) }));
    }
    Ok(writer.write_all(&::safetensors::serialize(views, None).map_err(whole)?)?)
}

fn whole(error: SafeTensorError) -> FormatError {
    FormatError::malformed(FORMAT, error.to_string())
}

struct Dense {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for Dense {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_lies_is_an_error() {
        let file =
            |header: &str, data: &[u8]| [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat();
        let ok = file(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4]);
        assert_eq!(read(&ok).unwrap().len(), 1);
        for bad in [
            file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#, &[0; 4]),
            file(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, &[0; 2]),
            file(r#"{"a":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,4]}}"#, &[0; 4]),
            file(r#"{"a":{"dtype":"X9","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4]),
            file("{", &[]),
            u64::MAX.to_le_bytes().to_vec(),
            vec![1, 2],
        ] {
            let message = read(&bad).unwrap_err().to_string();
            assert!(message.starts_with("not a readable safetensors file: "), "{message}");
        }
        for length in 0..ok.len() {
            assert!(read(&ok[..length]).is_err());
        }
    }

    #[test]
    fn a_type_that_we_do_not_have_is_named() {
        let header = r#"{"a":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]}}"#;
        let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 2]].concat();
        assert_eq!(read(&file).unwrap_err().to_string(), "entry `a`: its type F8_E8M0 is not supported");
        let complex = [("z".to_string(), Tensor::zeros(&[1], DType::C128).unwrap())];
        assert_eq!(
            write(Vec::new(), &complex).unwrap_err().to_string(),
            "entry `z`: safetensors cannot hold c128; write it as npy"
        );
    }
}
