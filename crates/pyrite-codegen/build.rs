//! Sums up the sources that decide what code a kernel gets, so that code of another version is never taken for ours.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut sum = 0xcbf2_9ce4_8422_2325;
    let below = ["pyrite-loops", "pyrite-math", "pyrite-ptx"].map(|name| here.join("..").join(name).join("src"));
    for folder in [here.join("src")].into_iter().chain(below) {
        println!("cargo::rerun-if-changed={}", folder.display());
        add(&folder, &mut sum)?;
    }
    println!("cargo::rustc-env=PYRITE_CODE_VERSION={sum:016x}");
    Ok(())
}

/// Adds the files of a folder, in the order of their names.
fn add(folder: &Path, sum: &mut u64) -> io::Result<()> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, sum)?;
            continue;
        }
        for byte in fs::read(&path)? {
            *sum = (*sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(())
}
