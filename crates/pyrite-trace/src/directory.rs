//! Writing a trace down, and reading one again.
//!
//! A trace is a folder with `trace.jsonl`, one [`Record`] a line, and the line is on disk when it is written. The other files are made from the records as they come ([`Chronicle`]); [`rebuild`] makes them
//! later.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::event::Record;
use crate::files::{Chronicle, Edit, How};

/// What cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file or folder cannot be written.
    #[error("the trace cannot be written: {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A file cannot be read.
    #[error("the trace cannot be read: {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A line is no record.
    #[error("{}, line {line}: not a trace event: {cause}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        cause: serde_json::Error,
    },
}

/// The file with all records.
pub const TRACE_FILE: &str = "trace.jsonl";

/// Which files a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// `trace.jsonl` and all that its records make.
    All,
    /// `trace.jsonl` alone.
    TraceOnly,
}

/// A folder for a run that is traced, below another: `run_<time>-pid_<pid>`.
pub fn run_folder(base: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    base.join(format!("run_{}-pid_{}", timestamp(now.as_secs(), now.subsec_micros()), std::process::id()))
}

/// A time (UTC) as a name that sorts: year, month, day, hour, minute, second, microseconds.
fn timestamp(seconds: u64, micros: u32) -> String {
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Years that begin in March have their leap day at their end.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}_{month:02}_{date:02}_{hour:02}_{minute:02}_{second:02}_{micros:06}")
}

/// Writes a folder as records come.
#[derive(Debug)]
pub(crate) struct Directory {
    folder: PathBuf,
    records: File,
    files: Option<Writer>,
}

impl Directory {
    /// A trace in a folder, which is made.
    pub(crate) fn create(folder: &Path, files: Files) -> Result<Self, TraceError> {
        let path = folder.join(TRACE_FILE);
        let opened = create_dir_all(folder).and_then(|()| File::create(&path));
        let records = opened.map_err(|cause| TraceError::Write { path, cause })?;
        let files = (files == Files::All).then(|| Writer::new(folder));
        Ok(Self { folder: folder.to_owned(), records, files })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn write(&mut self, record: &Record) -> Result<(), TraceError> {
        let failed = |cause| TraceError::Write { path: self.folder.join(TRACE_FILE), cause };
        let mut line = serde_json::to_vec(record).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        self.records.write_all(&line).map_err(failed)?;
        self.files.as_mut().map_or(Ok(()), |files| files.write(record))
    }
}

/// What a file ends with that is extended; the next elements take its place.
const ARRAY_END: &str = "\n]\n";

/// How many files stay open for what is appended to them: a kernel adds a line here and a text there, and the next one
/// does the same.
const OPEN_FILES: usize = 8;

/// Writes the files that records make.
#[derive(Debug)]
struct Writer {
    folder: PathBuf,
    chronicle: Chronicle,
    known: HashSet<PathBuf>,
    /// The files that were appended to last, the latest at the end.
    open: Vec<(PathBuf, File)>,
}

impl Writer {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), chronicle: Chronicle::default(), known: HashSet::new(), open: Vec::new() }
    }

    fn write(&mut self, record: &Record) -> Result<(), TraceError> {
        for edit in self.chronicle.edits(record) {
            let path = self.folder.join(&edit.path);
            self.apply(&path, &edit).map_err(|cause| TraceError::Write { path, cause })?;
        }
        Ok(())
    }

    fn apply(&mut self, path: &Path, edit: &Edit) -> io::Result<()> {
        let new = self.known.insert(edit.path.clone());
        let mut options = OpenOptions::new();
        if new || edit.how == How::Replace {
            if let Some(parent) = path.parent() {
                create_dir_all(parent)?;
            }
            let text = match edit.how {
                How::Extend => format!("[\n{}{ARRAY_END}", edit.text),
                How::Replace | How::Append => format!("{}{}", self.chronicle.header(edit), edit.text),
            };
            let mut file = options.write(true).create(true).truncate(true).open(path)?;
            return file.write_all(text.as_bytes());
        }
        if edit.how == How::Extend {
            let mut file = options.write(true).open(path)?;
            file.seek(SeekFrom::End(-(ARRAY_END.len() as i64)))?;
            return file.write_all(format!(",\n{}{ARRAY_END}", edit.text).as_bytes());
        }
        self.appended(edit)?.write_all(edit.text.as_bytes())
    }

    /// A file that exists, open at its end.
    fn appended(&mut self, edit: &Edit) -> io::Result<&mut File> {
        if let Some(place) = self.open.iter().position(|(path, _)| *path == edit.path) {
            self.open[place..].rotate_left(1);
        } else {
            let file = OpenOptions::new().append(true).open(self.folder.join(&edit.path))?;
            if self.open.len() == OPEN_FILES {
                self.open.remove(0);
            }
            self.open.push((edit.path.clone(), file));
        }
        self.open.last_mut().map(|(_, file)| file).ok_or_else(|| io::Error::other("no file is open"))
    }
}

/// The records of a trace: a `trace.jsonl`, or the folder that holds it. A last line that was cut off, as a crash leaves
/// it, is left out.
pub fn read(path: &Path) -> Result<Vec<Record>, TraceError> {
    let path = if path.is_dir() { path.join(TRACE_FILE) } else { path.to_owned() };
    let text = std::fs::read_to_string(&path).map_err(|cause| TraceError::Read { path: path.clone(), cause })?;
    let whole = text.ends_with('\n');
    let lines: Vec<&str> = text.lines().collect();
    let mut records = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            Err(_) if !whole && index + 1 == lines.len() => {}
            Err(cause) => return Err(TraceError::Record { path, line: index + 1, cause }),
        }
    }
    Ok(records)
}

/// Makes the files of a trace again, in a folder, from its records.
pub fn rebuild(records: &[Record], folder: &Path) -> Result<(), TraceError> {
    let mut writer = Writer::new(folder);
    records.iter().try_for_each(|record| writer.write(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_runs_sort_by_time() {
        assert_eq!(timestamp(0, 0), "1970_01_01_00_00_00_000000");
        assert_eq!(timestamp(951_782_400, 5), "2000_02_29_00_00_00_000005");
        assert_eq!(timestamp(1_700_000_000, 999_999), "2023_11_14_22_13_20_999999");
        assert_eq!(timestamp(4_107_542_399, 0), "2100_02_28_23_59_59_000000");
        assert_eq!(timestamp(4_107_542_400, 0), "2100_03_01_00_00_00_000000");
    }
}
