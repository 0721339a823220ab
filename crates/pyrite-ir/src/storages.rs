//! Where the storages of a repro file lie on disk.
//!
//! A storage is named in the text and lies in a folder `storages`: beside the file, where Pyrite puts it, or in the folder
//! that PyTorch's `save_dir=` names, which for its debugger is `checkpoints` below the file. A dump that was moved still
//! names the folder of the machine it comes from, so the end of that path is looked for below the file.
//!
//! Invariant: the file is a stranger's, so what [`StorageSearch::find`] returns lies, with all symbolic links followed, in
//! the file's own folder or in the one that the user named.

use std::path::{Component, Path, PathBuf};

/// The folders that storages are looked for in, in order.
#[derive(Clone, Debug, Default)]
pub struct StorageSearch {
    places: Vec<SearchFolder>,
    /// The folder that the text names and that is not looked into, because it is not below the file.
    elsewhere: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct SearchFolder {
    folder: PathBuf,
    /// What the file must lie in.
    within: PathBuf,
}

/// Why a storage was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// Its name could leave a folder.
    #[error("`{0}` is not the name of a storage: letters, digits and underscores")]
    Name(String),
    /// It is not there.
    #[error("there is no {name} in {}", list(.looked))]
    Missing {
        /// The storage.
        name: String,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
        /// The folder that the text names, where that was not looked into.
        elsewhere: Option<PathBuf>,
    },
    /// It is a link to somewhere else.
    #[error("{path} leads to {target}, which is outside of the file's folder")]
    Outside {
        /// The storage.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
}

impl NotFound {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Name(_) => "use the name of a file in the folder `storages`".to_owned(),
            Self::Missing { elsewhere: Some(folder), .. } => {
                format!(
                    "the file names a folder that is not below its own; to read it: --storages {}",
                    folder.display()
                )
            }
            Self::Missing { .. } => {
                "copy the folder `storages` together with the file, or name where it is: --storages FOLDER".to_owned()
            }
            Self::Outside { target, .. } => {
                let folder = target.parent().unwrap_or(target);
                format!("to read it all the same: --storages {}", folder.display())
            }
        }
    }
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl StorageSearch {
    /// For a file in a folder, which may say where its storages are (`save_dir`), and the user may (`named`).
    pub fn new(folder: Option<&Path>, save_dir: Option<&Path>, named: Option<&Path>) -> Self {
        let own = match folder {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let mut places: Vec<SearchFolder> = Vec::new();
        let mut add = |folder: PathBuf, within: &Path| {
            if !places.iter().any(|place| place.folder == folder) {
                places.push(SearchFolder { folder, within: within.to_owned() });
            }
        };
        if let Some(named) = named {
            add(named.join("storages"), named);
            add(named.to_owned(), named);
        }
        // The end of the path, as long as possible: a dump that was moved keeps the folders below it.
        let parts: Vec<&Path> = save_dir
            .into_iter()
            .flat_map(Path::components)
            .filter_map(|part| if let Component::Normal(part) = part { Some(Path::new(part)) } else { None })
            .collect();
        for start in 0..parts.len() {
            let end: PathBuf = parts[start..].iter().collect();
            let below = own.join(end).join("storages");
            if below.is_dir() {
                add(below, &own);
            }
        }
        for usual in ["storages", "checkpoints/storages"] {
            add(own.join(usual), &own);
        }
        let elsewhere = save_dir.filter(|folder| folder.join("storages").is_dir() && !is_within(folder, &own));
        Self { places, elsewhere: elsewhere.map(Path::to_owned) }
    }

    /// The file of a storage.
    pub fn find(&self, name: &str) -> Result<PathBuf, NotFound> {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(NotFound::Name(name.to_owned()));
        }
        for SearchFolder { folder, within } in &self.places {
            let path = folder.join(name);
            // A pipe or a device is no storage, and reading it might never end.
            if !path.is_file() {
                continue;
            }
            if is_within(&path, within) {
                return Ok(path);
            }
            let target = path.canonicalize().unwrap_or_else(|_| path.clone());
            return Err(NotFound::Outside { path, target });
        }
        let looked = self.places.iter().map(|place| place.folder.clone()).collect();
        Err(NotFound::Missing { name: name.to_owned(), looked, elsewhere: self.elsewhere.clone() })
    }
}

/// Whether a path lies in a folder once all links are followed.
fn is_within(path: &Path, folder: &Path) -> bool {
    matches!((path.canonicalize(), folder.canonicalize()), (Ok(path), Ok(folder)) if path.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn dump(at: &Path) -> PathBuf {
        let storages = at.join("checkpoints").join("storages");
        fs::create_dir_all(&storages).unwrap();
        fs::write(storages.join("abc"), b"").unwrap();
        storages.join("abc")
    }

    #[test]
    fn storages_are_found_beside_the_file_and_where_save_dir_says() {
        let place = tempfile::tempdir().unwrap();
        let file = dump(place.path());
        let said = place.path().join("checkpoints");
        for save_dir in [None, Some(said.as_path())] {
            assert_eq!(StorageSearch::new(Some(place.path()), save_dir, None).find("abc"), Ok(file.clone()));
        }
    }

    #[test]
    fn a_dump_that_was_moved_keeps_the_end_of_its_path() {
        let place = tempfile::tempdir().unwrap();
        let file = dump(&place.path().join("run_1").join("minifier"));
        let said = Path::new("/nowhere/torch_compile_debug/run_1/minifier/checkpoints");
        assert_eq!(StorageSearch::new(Some(place.path()), Some(said), None).find("abc"), Ok(file));
    }

    #[test]
    fn a_folder_outside_is_read_only_if_the_user_names_it() {
        let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = dump(other.path());
        let said = other.path().join("checkpoints");
        let refused = StorageSearch::new(Some(place.path()), Some(&said), None).find("abc").unwrap_err();
        assert!(refused.remedy().contains(&format!("--storages {}", said.display())), "{}", refused.remedy());
        assert_eq!(StorageSearch::new(Some(place.path()), None, Some(&said)).find("abc"), Ok(file));
    }

    #[test]
    fn neither_a_link_nor_a_name_leads_outside() {
        let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("secret"), b"").unwrap();
        fs::create_dir(place.path().join("storages")).unwrap();
        std::os::unix::fs::symlink(other.path().join("secret"), place.path().join("storages").join("abc")).unwrap();
        std::os::unix::fs::symlink(other.path(), place.path().join("checkpoints")).unwrap();
        let search = StorageSearch::new(Some(place.path()), Some(Path::new("../..")), None);
        assert!(matches!(search.find("abc"), Err(NotFound::Outside { .. })));
        for name in ["..", "a/b", "", "../secret"] {
            assert_eq!(search.find(name), Err(NotFound::Name(name.to_owned())));
        }
        fs::create_dir(other.path().join("storages")).unwrap();
        fs::write(other.path().join("storages").join("def"), b"").unwrap();
        assert!(matches!(search.find("def"), Err(NotFound::Outside { .. })));
    }
}
