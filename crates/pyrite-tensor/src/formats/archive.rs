//! Zip archives from strangers.
//!
//! Invariants after opening: names are UTF-8, relative, without `..`, and unique; entries do not overlap, so stored
//! entries together are no larger than the file. Compressed entries may expand to [`INFLATED_LIMIT`] bytes in total.
//! Reading an entry checks its declared size and its checksum.

use std::io::{Read, Seek, Write};

use zip::read::{ArchiveOffset, Config};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

use super::FormatError;
use crate::Storage;

/// All compressed entries of an archive together may become this large.
pub(super) const INFLATED_LIMIT: u64 = 1 << 30;

/// An archive whose directory has been checked.
pub(super) struct Archive<R> {
    zip: ZipArchive<R>,
    /// Names in the order of the directory.
    names: Vec<String>,
    inflated: u64,
}

impl<R: Read + Seek> Archive<R> {
    /// Reads and checks the directory.
    pub(super) fn open(reader: R, format: &'static str) -> Result<Self, FormatError> {
        let whole = |error: ZipError| match error {
            ZipError::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => FormatError::Io(error),
            error => FormatError::malformed(format, error.to_string()),
        };
        // An archive begins where its file does. Looked for, it may be taken for one of those that it holds.
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let mut zip = ZipArchive::with_config(config, reader).map_err(whole)?;
        let mut names = Vec::with_capacity(zip.len());
        for raw in zip.file_names_raw() {
            let name = std::str::from_utf8(raw)
                .map_err(|_| FormatError::entry(&raw.escape_ascii().to_string(), "its name is not UTF-8"))?;
            if name.starts_with('/') || name.contains(['\\', '\0']) || name.split('/').any(|part| part == "..") {
                return Err(FormatError::entry(&name.escape_debug().to_string(), "its name leaves the archive"));
            }
            names.push(name.to_string());
        }
        if zip.has_duplicate_names() {
            return Err(FormatError::malformed(format, "two entries have the same name"));
        }
        if zip.has_overlapping_entries().map_err(whole)? {
            return Err(FormatError::malformed(format, "its entries overlap"));
        }
        Ok(Self { zip, names, inflated: 0 })
    }

    /// The names of the entries, in the order of the directory.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The bytes of an entry that may be compressed, if there are no more than `limit`.
    pub(super) fn read(&mut self, name: &str, limit: u64) -> Result<Vec<u8>, FormatError> {
        let budget = INFLATED_LIMIT - self.inflated;
        let mut entry = self.zip.by_name(name).map_err(|error| entry_error(name, error))?;
        let size = entry.size();
        if size > limit {
            return Err(FormatError::entry(name, format!("it has {size} bytes; {limit} are the most")));
        }
        if entry.compression() != CompressionMethod::Stored {
            if size > budget {
                let reason = format!("it expands to {size} bytes; compressed entries may expand to {INFLATED_LIMIT}");
                return Err(FormatError::entry(name, reason));
            }
            self.inflated += size;
        }
        // Memory grows with the bytes that arrive, not with those that are declared; the last read meets the end of
        // the entry, where the checksum is compared.
        let mut bytes = Vec::new();
        (&mut entry)
            .take(size.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| entry_error(name, error.into()))?;
        if bytes.len() as u64 != size {
            return Err(FormatError::entry(name, format!("it declares {size} bytes and has {}", bytes.len())));
        }
        Ok(bytes)
    }

    /// The bytes of an entry that is not compressed, without a second copy in memory.
    pub(super) fn read_stored(&mut self, name: &str, expected: u64) -> Result<Storage, FormatError> {
        let mut entry = self.zip.by_name(name).map_err(|error| entry_error(name, error))?;
        if entry.compression() != CompressionMethod::Stored || entry.compressed_size() != entry.size() {
            return Err(FormatError::entry(name, "it is compressed; PyTorch stores tensors as they are"));
        }
        if entry.size() != expected {
            let reason = format!("it has {} bytes where {expected} are described", entry.size());
            return Err(FormatError::entry(name, reason));
        }
        let storage = Storage::recycled(expected as usize);
        entry
            .read_exact(&mut storage.write::<u8>())
            .and_then(|()| entry.read(&mut [0]))
            .map_err(|error| entry_error(name, error.into()))?;
        Ok(storage)
    }
}

fn entry_error(name: &str, error: ZipError) -> FormatError {
    match error {
        ZipError::FileNotFound => FormatError::entry(name, "the archive does not have it"),
        error => FormatError::entry(name, error.to_string()),
    }
}

/// Writes an entry as it is, its content aligned to `alignment` bytes.
pub(super) fn store<W: Write + Seek>(
    zip: &mut ZipWriter<W>,
    name: &str,
    bytes: &[u8],
    alignment: u16,
) -> Result<(), FormatError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::default())
        .with_alignment(alignment)
        .large_file(bytes.len() as u64 >= u64::from(u32::MAX));
    zip.start_file(name, options).map_err(|error| entry_error(name, error))?;
    Ok(zip.write_all(bytes)?)
}

/// Writes the directory.
pub(super) fn finish<W: Write + Seek>(zip: ZipWriter<W>) -> Result<(), FormatError> {
    zip.finish().map(|_| ()).map_err(|error| match error {
        ZipError::Io(error) => FormatError::Io(error),
        error => FormatError::malformed("zip", error.to_string()),
    })
}
