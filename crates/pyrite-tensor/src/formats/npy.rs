//! NumPy's npy format, versions 1 to 3.
//!
//! The header is a Python dict literal; it is read by a parser for exactly its three keys, never evaluated. Arrays in
//! Fortran order are read without a copy, as tensors with the strides of that order. bfloat16 is no type of NumPy: it
//! is refused here, and stored as `f32` by [`super::npz::write`].

use std::io::{Read, Write};

use super::{FormatError, dense_bytes, dense_size, over_bytes};
use crate::{DType, Layout, Tensor};

const FORMAT: &str = "npy";
const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy's own headers have about a hundred bytes.
const HEADER_LIMIT: usize = 1 << 16;

/// Type and its name in the header, of all types that NumPy has.
const TYPES: [(DType, &str); 14] = [
    (DType::Bool, "|b1"),
    (DType::U8, "|u1"),
    (DType::I8, "|i1"),
    (DType::I16, "<i2"),
    (DType::I32, "<i4"),
    (DType::I64, "<i8"),
    (DType::F16, "<f2"),
    (DType::F32, "<f4"),
    (DType::F64, "<f8"),
    (DType::C64, "<c8"),
    (DType::C128, "<c16"),
    (DType::U16, "<u2"),
    (DType::U32, "<u4"),
    (DType::U64, "<u8"),
];

/// Reads one array. `entry` is its name in messages.
pub fn read(mut reader: impl Read, entry: &str) -> Result<Tensor, FormatError> {
    let error = |reason: String| FormatError::entry(entry, reason);
    let short = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => error("it ends inside the npy header".into()),
        _ => FormatError::Io(e),
    };
    let mut start = [0; 8];
    reader.read_exact(&mut start).map_err(short)?;
    if !start.starts_with(MAGIC) {
        return Err(error("it does not begin like an npy file".into()));
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            reader.read_exact(&mut length).map_err(short)?;
            usize::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            reader.read_exact(&mut length).map_err(short)?;
            u32::from_le_bytes(length) as usize
        }
        version => return Err(error(format!("npy version {version} is unknown"))),
    };
    if length > HEADER_LIMIT {
        return Err(error(format!("its header declares {length} bytes; {HEADER_LIMIT} are read")));
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).map_err(short)?;
    let header = Header::parse(&text).map_err(error)?;
    let size = dense_size(&header.shape, header.dtype)
        .ok_or_else(|| error(format!("shape {:?} does not fit 64 bits", header.shape)))?;
    // Memory grows with the bytes that arrive, not with those that are declared.
    let mut bytes = Vec::new();
    reader.take(size.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != size {
        let more = if bytes.len() as u64 > size { "more follow" } else { "fewer follow" };
        return Err(error(format!("shape {:?} of {} needs {size} bytes, {more}", header.shape, header.dtype)));
    }
    over_bytes(entry, &bytes, header.dtype, header.layout())
}

/// Writes one array, dense, last dimension fastest. `entry` is its name in messages.
pub fn write(mut writer: impl Write, entry: &str, tensor: &Tensor) -> Result<(), FormatError> {
    let Some((_, descr)) = TYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype()) else {
        return Err(FormatError::DType {
            entry: entry.to_string(),
            format: FORMAT,
            dtype: tensor.dtype(),
            hint: "; convert it to f32, which holds every value of it",
        });
    };
    let shape = match tensor.shape() {
        [single] => format!("({single},)"),
        sizes => format!("({})", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version and length take ten bytes; the data begins at a multiple of 64.
    let padding = (10 + header.len() + 1).next_multiple_of(64) - (10 + header.len() + 1);
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&(header.len() as u16).to_le_bytes())?;
    writer.write_all(header.as_bytes())?;
    Ok(writer.write_all(&dense_bytes(tensor))?)
}

/// What the header says.
struct Header {
    dtype: DType,
    fortran: bool,
    shape: Vec<i64>,
}

impl Header {
    fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "its header is not text")?;
        let mut rest = Cursor { rest: text.trim_ascii_end() };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        rest.expect('{')?;
        while !rest.accept('}') {
            let key = rest.string()?;
            rest.expect(':')?;
            let known = match key {
                "descr" if rest.accept('[') => return Err("structured types are not supported".into()),
                "descr" => descr.replace(rest.string()?).is_none(),
                "fortran_order" => fortran.replace(rest.as_bool()?).is_none(),
                "shape" => shape.replace(rest.tuple()?).is_none(),
                other => return Err(format!("its header has the key `{}`", other.escape_debug())),
            };
            if !known {
                return Err(format!("its header has the key `{key}` twice"));
            }
            if !rest.accept(',') {
                rest.expect('}')?;
                break;
            }
        }
        if !rest.rest.is_empty() {
            return Err("something follows its header".into());
        }
        let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else {
            return Err("its header lacks descr, fortran_order or shape".into());
        };
        Ok(Self { dtype: element_type(descr)?, fortran, shape })
    }

    fn layout(&self) -> Layout {
        if !self.fortran {
            return Layout::contiguous(&self.shape);
        }
        let reversed: Vec<i64> = self.shape.iter().rev().copied().collect();
        let mut stride = Layout::contiguous(&reversed).stride;
        stride.reverse();
        Layout::new(&self.shape, &stride, 0)
    }
}

fn element_type(descr: &str) -> Result<DType, String> {
    // A single byte has no order; NumPy writes a bar, others write any of the signs.
    let matches = |name: &str| {
        descr == name || (name.starts_with('|') && descr.strip_prefix(['<', '>', '=']) == name.strip_prefix('|'))
    };
    match TYPES.iter().find(|(_, name)| matches(name)) {
        Some((dtype, _)) => Ok(*dtype),
        None if descr.starts_with('>') => Err(format!("its type `{}` is big-endian", descr.escape_debug())),
        None => Err(format!("its type `{}` is not supported", descr.escape_debug())),
    }
}

/// Reads the few Python literals that a header has.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn accept(&mut self, token: char) -> bool {
        let found = self.rest.trim_ascii_start().strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn expect(&mut self, token: char) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(format!("its header lacks a `{token}`")) }
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept('\'') { '\'' } else { '"' };
        if quote == '"' {
            self.expect('"')?;
        }
        let (text, rest) = self.rest.split_once(quote).ok_or("a string in its header does not end")?;
        self.rest = rest;
        Ok(text)
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_ascii_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    fn as_bool(&mut self) -> Result<bool, String> {
        match self.word() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err("fortran_order is neither True nor False".into()),
        }
    }

    fn tuple(&mut self) -> Result<Vec<i64>, String> {
        self.expect('(')?;
        let mut sizes = Vec::new();
        while !self.accept(')') {
            // Python 2 wrote long integers with an L.
            let size = self.word().trim_end_matches('L').parse::<i64>();
            sizes.push(size.map_err(|_| "a size in its shape is not a number")?);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn message(bytes: &[u8]) -> String {
        read(bytes, "x").unwrap_err().to_string()
    }

    #[test]
    fn fortran_order_becomes_strides() {
        let bytes =
            file("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", &[0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0]);
        let tensor = read(bytes.as_slice(), "x").unwrap();
        assert_eq!(tensor.stride(), [1, 2]);
        assert_eq!(tensor.to_i64s(), [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn headers_that_are_not_headers_are_refused() {
        for (header, expected) in [
            ("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "big-endian"),
            ("{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", "not supported"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured"),
            ("{'descr': '<f4', 'fortran_order': __import__('os'), 'shape': (1,)}", "neither True nor False"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}", "not a number"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "not a number"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9)}", "64 bits"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}", "fewer follow"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "fewer follow"),
            ("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "twice"),
            ("{'descr': '<f4', 'fortran_order': False}", "lacks"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': ()} + 1", "follows"),
            ("{'descr': '<f4", "does not end"),
            ("", "lacks a `{`"),
        ] {
            let text = message(&file(header, &[0; 3]));
            assert!(text.contains(expected), "{header}: {text}");
        }
        assert!(message(b"PK\x03\x04....").contains("does not begin"));
        assert!(message(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("declares 4294967295 bytes"));
        assert!(message(b"\x93NUMPY\x09\x00").contains("version 9"));
    }

    #[test]
    fn data_of_another_length_is_refused() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
        assert!(read(file(header, &[0; 8]).as_slice(), "x").is_ok());
        assert!(message(&file(header, &[0; 9])).contains("more follow"));
        let whole = file(header, &[0; 8]);
        for length in 0..whole.len() {
            assert!(read(&whole[..length], "x").is_err());
        }
    }

    #[test]
    fn bfloat16_is_refused_with_advice() {
        let tensor = Tensor::zeros(&[1], DType::BF16).unwrap();
        let text = write(Vec::new(), "y", &tensor).unwrap_err().to_string();
        assert_eq!(text, "entry `y`: npy cannot hold bf16; convert it to f32, which holds every value of it");
    }
}
