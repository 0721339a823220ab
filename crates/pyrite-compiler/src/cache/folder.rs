//! Code on disk: a folder with a file for each graph.
//!
//! A file is a line that says what it is, a checksum, and what the sum is of: the key, which its name says too, and the
//! code of each kernel with its key. A file appears whole or not at all: it is written under another name and renamed,
//! so processes that write at the same time do not mix, and the last one stays.
//!
//! Code that is read will run. So the folder has to belong to the user who runs it, with no right for anybody else, and
//! so has every file; else it is refused. The sum tells damage, not malice: who can write to the folder can do all that
//! its owner can.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pyrite_codegen::CodeKey;
use pyrite_diag::{Code, Diagnostic};
use sha2::{Digest, Sha256};

const FIRST_LINE: &[u8] = b"pyrite code 1\n";
/// Larger files are not read.
const LARGEST: u64 = 1 << 28;
/// When there are more files than this, the oldest go.
const MOST: usize = 1024;

/// Why a folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It is not there and cannot be created, or cannot be looked at.
    #[error("cannot open the code cache {path}: {source}", path = .path.display())]
    Absent {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is no folder.
    #[error("{path} is no folder, so compiled code cannot be kept there", path = .0.display())]
    NoFolder(PathBuf),
    /// It belongs to somebody else.
    #[error("the folder for compiled code, {path}, belongs to user {owner}: what is read from it runs, so it has to be yours", path = .path.display())]
    NotOwned {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Others may look into it or write to it.
    #[error("the folder for compiled code, {path}, is open to others (mode {mode:o}): what is read from it runs", path = .path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its rights.
        mode: u32,
    },
}

impl FolderError {
    /// It as a diagnostic, with what to do.
    pub fn diagnostic(&self) -> Diagnostic {
        let (code, remedy) = match self {
            Self::Absent { .. } => ("cache::no-folder", None),
            Self::NoFolder(_) => ("cache::no-folder", None),
            Self::NotOwned { .. } => ("cache::not-owned", None),
            Self::Open { path, .. } => ("cache::open-folder", Some(format!("close it: chmod 700 {}", path.display()))),
        };
        let diagnostic = Diagnostic::error(Code::new(code), self.to_string());
        let diagnostic = remedy.into_iter().fold(diagnostic, Diagnostic::hint);
        diagnostic.hint("or set PYRITE_CACHE_DIR to a folder of your own, or to `off`")
    }
}

/// A folder that is its owner's alone.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

/// The code of the kernels of a graph.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entry {
    codes: BTreeMap<CodeKey, Vec<u8>>,
}

impl Entry {
    /// An entry of some kernels.
    pub fn new(codes: BTreeMap<CodeKey, Vec<u8>>) -> Self {
        Self { codes }
    }

    /// The code of a kernel.
    pub fn get(&self, key: &CodeKey) -> Option<&[u8]> {
        self.codes.get(key).map(Vec::as_slice)
    }

    fn to_bytes(&self, key: &[u8; 32]) -> Vec<u8> {
        let mut content = key.to_vec();
        for (key, code) in &self.codes {
            content.extend_from_slice(&key.0);
            content.extend_from_slice(&(code.len() as u64).to_le_bytes());
            content.extend_from_slice(code);
        }
        let mut bytes = FIRST_LINE.to_vec();
        bytes.extend_from_slice(&Sha256::digest(&content));
        bytes.extend_from_slice(&content);
        bytes
    }

    fn from_bytes(bytes: &[u8], key: &[u8; 32]) -> Option<Self> {
        let (sum, content) = bytes.strip_prefix(FIRST_LINE)?.split_first_chunk::<32>()?;
        if Sha256::digest(content)[..] != sum[..] {
            return None;
        }
        let mut rest = content.strip_prefix(key)?;
        let mut codes = BTreeMap::new();
        while !rest.is_empty() {
            let (key, tail) = rest.split_first_chunk::<32>()?;
            let (length, tail) = tail.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (code, tail) = tail.split_at_checked(length)?;
            codes.insert(CodeKey(*key), code.to_vec());
            rest = tail;
        }
        Some(Self { codes })
    }
}

fn is_ours(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

impl Folder {
    /// A folder, made if it is absent, and refused unless it is this user's alone.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let absent = |source| FolderError::Absent { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(absent(error)),
        })?;
        let found = fs::metadata(path).map_err(absent)?;
        let path = path.to_owned();
        if !found.is_dir() {
            return Err(FolderError::NoFolder(path));
        }
        if !is_ours(&found) {
            return Err(FolderError::NotOwned { path, owner: found.uid() });
        }
        if found.mode() & 0o077 != 0 {
            return Err(FolderError::Open { path, mode: found.mode() & 0o7777 });
        }
        Ok(Self { path })
    }

    /// Where the code of a graph is.
    pub fn file(&self, key: &[u8; 32]) -> PathBuf {
        let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        self.path.join(name)
    }

    /// The code of a graph; `None` if there is none, or nothing that could be trusted.
    pub fn read(&self, key: &[u8; 32]) -> Option<Entry> {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(self.file(key)).ok()?;
        let found = file.metadata().ok()?;
        if !found.is_file() || !is_ours(&found) || found.mode() & 0o022 != 0 || found.len() > LARGEST {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).ok()?);
        file.read_to_end(&mut bytes).ok()?;
        Entry::from_bytes(&bytes, key)
    }

    /// Keeps the code of a graph, in place of what was there.
    pub fn write(&self, key: &[u8; 32], entry: &Entry) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::with_prefix_in("new-", &self.path)?;
        file.write_all(&entry.to_bytes(key))?;
        file.persist(self.file(key))?;
        // Looking at all files is not worth it each time.
        if key[0] < 16 { self.prune(MOST) } else { Ok(()) }
    }

    /// Removes the oldest files if there are more than so many.
    fn prune(&self, most: usize) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // Another process may have removed it meanwhile.
            if let Ok(found) = entry.metadata() {
                files.push((found.modified()?, entry.path()));
            }
        }
        files.sort();
        let surplus = if files.len() > most { files.len() - most / 4 * 3 } else { 0 };
        for (_, path) in &files[..surplus] {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(&place.path().join("code")).unwrap();
        (place, folder)
    }

    fn entry() -> Entry {
        Entry::new([(CodeKey([1; 32]), vec![1, 2, 3]), (CodeKey([2; 32]), Vec::new())].into())
    }

    #[test]
    fn what_is_written_is_read_and_nobody_else_may() {
        let (_place, folder) = folder();
        assert_eq!(folder.read(&[7; 32]), None);
        folder.write(&[7; 32], &entry()).unwrap();
        assert_eq!(folder.read(&[7; 32]), Some(entry()));
        assert_eq!(folder.read(&[8; 32]), None);
        assert_eq!(fs::metadata(&folder.path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(folder.file(&[7; 32])).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_with_any_bit_turned_over_or_any_end_cut_off_counts_as_absent() {
        let (_place, folder) = folder();
        folder.write(&[7; 32], &entry()).unwrap();
        let (path, whole) = (folder.file(&[7; 32]), fs::read(folder.file(&[7; 32])).unwrap());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(folder.read(&[7; 32]), None, "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(folder.read(&[7; 32]), None, "cut at {at}");
        }
        folder.write(&[7; 32], &entry()).unwrap();
        assert_eq!(folder.read(&[7; 32]), Some(entry()));
    }

    #[test]
    fn a_file_under_another_name_a_link_and_one_that_others_write_count_as_absent() {
        let (_place, folder) = folder();
        folder.write(&[7; 32], &entry()).unwrap();
        fs::copy(folder.file(&[7; 32]), folder.file(&[8; 32])).unwrap();
        assert_eq!(folder.read(&[8; 32]), None);
        std::os::unix::fs::symlink(folder.file(&[7; 32]), folder.file(&[9; 32])).unwrap();
        assert_eq!(folder.read(&[9; 32]), None);
        fs::set_permissions(folder.file(&[7; 32]), fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(folder.read(&[7; 32]), None);
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused_with_a_remedy() {
        let (_place, folder) = folder();
        for mode in [0o701, 0o750, 0o777] {
            fs::set_permissions(&folder.path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Folder::open(&folder.path).unwrap_err();
            assert!(matches!(error, FolderError::Open { mode: found, .. } if found == mode));
            let text = format!("{:?}", error.diagnostic());
            assert!(text.contains("chmod 700") && text.contains("PYRITE_CACHE_DIR"), "{text}");
        }
        let file = folder.path.join("file");
        fs::File::create(&file).unwrap();
        assert!(matches!(Folder::open(&file), Err(FolderError::NoFolder(_))));
        assert!(matches!(Folder::open(&file.join("code")), Err(FolderError::Absent { .. })));
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused() {
        // The root of the file system belongs to root, and to nobody else's process.
        let root = fs::metadata("/").unwrap();
        if is_ours(&root) {
            let (_place, folder) = folder();
            let Ok(()) = std::os::unix::fs::chown(&folder.path, Some(12345), None) else { return };
            assert!(matches!(Folder::open(&folder.path), Err(FolderError::NotOwned { owner: 12345, .. })));
        } else {
            assert!(matches!(Folder::open(Path::new("/")), Err(FolderError::NotOwned { .. })));
        }
    }

    #[test]
    fn the_oldest_files_go_when_there_are_too_many() {
        let (_place, folder) = folder();
        for number in 20..40 {
            folder.write(&[number; 32], &entry()).unwrap();
        }
        folder.prune(8).unwrap();
        assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 6);
        folder.prune(8).unwrap();
        assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 6);
    }
}
