//! NVIDIA's assembler as a program of its own: whether a text is PTX, and what it needs of a GPU.
//!
//! The program comes with triton's wheel; where it is not installed nothing is assembled.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The assembler.
#[derive(Debug, Clone)]
pub struct Assembler {
    program: PathBuf,
}

/// What an entry needs of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// The name of the entry.
    pub entry: String,
    /// Registers of each thread.
    pub registers: u32,
    /// Bytes of registers that are spilled to memory: stores and loads.
    pub spills: u32,
    /// Bytes of shared memory of each block.
    pub shared: u32,
}

/// Why a text was not assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The program could not be run.
    #[error("cannot run {program}: {error}")]
    Program {
        /// Its path.
        program: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It refuses the text.
    #[error("ptxas refuses the text: {0}")]
    Refused(String),
}

impl Assembler {
    /// The assembler that `PYRITE_PTXAS` names, else one in `PATH`, else the one of triton's wheel in a virtual
    /// environment that tests have made.
    pub fn find() -> Option<Self> {
        let named = std::env::var_os("PYRITE_PTXAS").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).map(|folder| folder.join("ptxas"));
        let environments = environments().into_iter().flat_map(|folder| packages(&folder));
        let of_triton = environments.map(|folder| folder.join("triton/backends/nvidia/bin/ptxas"));
        let program = named.into_iter().chain(in_path).chain(of_triton).find(|program| program.is_file())?;
        Some(Self { program })
    }

    /// Assembles a text for an architecture such as `sm_90`; tells what each entry needs.
    pub fn assemble(&self, text: &str, architecture: &str) -> Result<Vec<Needs>, AssembleError> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let failed = |error| AssembleError::Program { program: self.program.clone(), error };
        let file = std::env::temp_dir().join(format!("pyrite-{}-{number}.ptx", std::process::id()));
        // A file of that name that is there already is none of ours, and may be a link.
        let mut made = std::fs::File::create_new(&file).map_err(failed)?;
        std::io::Write::write_all(&mut made, text.as_bytes()).map_err(failed)?;
        let arguments = ["-v", "--output-file", "/dev/null", "-arch", architecture];
        let output = Command::new(&self.program).args(arguments).arg(&file).output();
        let removed = std::fs::remove_file(&file);
        let output = output.map_err(failed)?;
        removed.map_err(failed)?;
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(needs(&told)) } else { Err(AssembleError::Refused(told)) }
    }
}

/// The virtual environments in the cache folder.
fn environments() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cache")));
    let folder = cache.map(|cache| cache.join("pyrite"));
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("venv-"));
    folder.map(|folder| inside(&folder)).unwrap_or_default().into_iter().filter(named).collect()
}

/// The packages of an environment.
fn packages(environment: &Path) -> Vec<PathBuf> {
    inside(&environment.join("lib")).into_iter().map(|python| python.join("site-packages")).collect()
}

/// What a folder holds, in order.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// What the assembler tells of each entry.
fn needs(told: &str) -> Vec<Needs> {
    let mut found: Vec<Needs> = Vec::new();
    for line in told.lines() {
        let number_before = |word: &str| {
            let before = line.split(word).next().filter(|before| before.len() < line.len())?;
            before.split_whitespace().last()?.parse::<u32>().ok()
        };
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let entry = rest.split('\'').next().unwrap_or_default().to_owned();
            found.push(Needs { entry, registers: 0, spills: 0, shared: 0 });
        }
        let Some(last) = found.last_mut() else { continue };
        if let Some(registers) = number_before(" registers") {
            last.registers = registers;
        }
        if let (Some(stores), Some(loads)) = (number_before(" bytes spill stores"), number_before(" bytes spill loads"))
        {
            last.spills = stores + loads;
        }
        if let Some(shared) = number_before(" bytes smem") {
            last.shared = shared;
        }
    }
    found
}
