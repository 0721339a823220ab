//! torch's names of element types and memory formats.

use pyrite_tensor::{DType, MemoryFormat};

use crate::bridge::dtype_of;

/// The element types and torch's names for them.
pub const DTYPES: [(DType, &str); 12] = [
    (DType::F64, "float64"),
    (DType::F32, "float32"),
    (DType::F16, "float16"),
    (DType::BF16, "bfloat16"),
    (DType::C64, "complex64"),
    (DType::C128, "complex128"),
    (DType::I64, "int64"),
    (DType::I32, "int32"),
    (DType::I16, "int16"),
    (DType::I8, "int8"),
    (DType::U8, "uint8"),
    (DType::Bool, "bool"),
];

/// The element type of torch's number for it, where frames that compute with it are captured: torch runs those that are
/// hardly more than storage.
pub(super) fn captured_dtype(number: i32) -> Option<DType> {
    dtype_of(number).filter(|dtype| !dtype.is_barebones())
}

/// torch's name of a type.
pub fn dtype_name(dtype: DType) -> &'static str {
    DTYPES.iter().find(|(known, _)| *known == dtype).map_or("float32", |(_, name)| name)
}

/// The type of torch's name for it.
pub fn dtype_named(name: &str) -> Option<DType> {
    DTYPES.iter().find(|(_, known)| *known == name).map(|(dtype, _)| *dtype)
}

/// torch's name of a memory format.
pub fn format_name(format: MemoryFormat) -> &'static str {
    match format {
        MemoryFormat::Contiguous => "contiguous_format",
        MemoryFormat::Preserve => "preserve_format",
        MemoryFormat::ChannelsLast => "channels_last",
        MemoryFormat::ChannelsLast3d => "channels_last_3d",
    }
}
