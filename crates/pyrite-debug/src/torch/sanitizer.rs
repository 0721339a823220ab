//! What NVIDIA's compute-sanitizer says of a kernel, read and mapped to the buffers and the source of `kernel.py`.
//!
//! The tool names a machine address and a line of a temporary file. `kernel.py` prints where its buffers are, and holds the
//! text of that file, so an access becomes a buffer, an element and a statement.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{IMPORT, Python};
use crate::process::MOST_CROWDED;
use crate::proof::run_program;

/// The first access that compute-sanitizer refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// What kind, such as `Invalid __global__ write of size 4 bytes`.
    pub what: String,
    /// The kernel.
    pub kernel: String,
    /// The thread and the block, as they are printed.
    pub thread: String,
    /// The address.
    pub address: u64,
    /// The line of the kernel's source, where the tool knows it.
    pub line: Option<usize>,
    /// The statement on that line.
    pub statement: Option<String>,
    /// The buffer that is nearest, the element, and how many elements it has.
    pub element: Option<(String, i128, u64)>,
}

impl Access {
    /// It in a sentence.
    pub fn sentence(&self) -> String {
        let mut text = format!("compute-sanitizer: {} in {}", self.what, self.kernel);
        if !self.thread.is_empty() {
            text += &format!(" by {}", self.thread);
        }
        if let Some((buffer, element, elements)) = &self.element {
            text += &format!(", element {element} of {buffer}, which has {elements}");
        }
        if let Some(statement) = &self.statement {
            text += &format!(": `{statement}`");
        }
        text
    }

    /// The same as data.
    pub fn data(&self) -> Json {
        let element = self.element.as_ref();
        json!({
            "what": self.what, "kernel": self.kernel, "thread": self.thread, "address": format!("{:#x}", self.address),
            "line": self.line, "statement": self.statement, "buffer": element.map(|(buffer, ..)| buffer),
            "element": element.map(|(_, element, _)| element.to_string()), "elements": element.map(|(.., count)| count),
        })
    }
}

/// Where compute-sanitizer is, if it is installed: on the search path, else where CUDA's toolkit is.
pub fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let homes = homes.chain([PathBuf::from("/usr/local/cuda")]).map(|home| home.join("bin"));
    std::env::split_paths(&path).chain(homes).map(|place| place.join("compute-sanitizer")).find(|file| file.is_file())
}

/// Runs a kernel's file under compute-sanitizer; nothing where that is not installed or says nothing.
pub(super) fn examine(file: &Path, python: &Python, time: Duration) -> Option<Access> {
    let tool = installed()?;
    let mut words: Vec<OsString> = ["--tool", "memcheck", "--print-limit", "1"].map(OsString::from).into();
    words.extend([python.interpreter.clone().into(), file.into(), "--addresses".into()]);
    // Each tensor is an allocation of its own, so that the tool sees where it ends.
    let environment = [("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")];
    let ran = run_program(&tool, &words, python, &environment, time * 8 * MOST_CROWDED + IMPORT * 2).ok()?;
    let source = std::fs::read_to_string(file).unwrap_or_default();
    let said: Vec<&str> = ran.lines.iter().map(String::as_str).chain(ran.errors.lines()).collect();
    read(&said, &source)
}

/// The first access in what the tool and the file print.
fn read(lines: &[&str], source: &str) -> Option<Access> {
    let told: Vec<&str> = lines.iter().filter_map(|line| line.trim_start().strip_prefix("=========")).collect();
    let start = told.iter().position(|line| is_access(line.trim()))?;
    let mut access = Access {
        what: told[start].trim().to_owned(),
        kernel: String::new(),
        thread: String::new(),
        address: 0,
        line: None,
        statement: None,
        element: None,
    };
    for line in told[start + 1..].iter().map(|line| line.trim()).take_while(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("at ").filter(|_| access.kernel.is_empty()) {
            // `kernel(float *)+0x1b0 in /tmp/x.py:16`
            let (name, place) = rest.split_once(" in ").map_or((rest, None), |(name, place)| (name, Some(place)));
            let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
            access.kernel = name.split('(').next().unwrap_or(name).to_owned();
            access.line = place.and_then(|place| place.rsplit_once(':')?.1.trim().parse().ok());
        } else if let Some(rest) = line.strip_prefix("by ") {
            rest.clone_into(&mut access.thread);
        } else if let Some(address) = ["Address ", "Access at ", "Access to "].iter().find_map(|begin| {
            let word = line.strip_prefix(begin)?.split_whitespace().next()?;
            u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
        }) {
            access.address = address;
        }
    }
    access.statement = access.line.and_then(|line| statement(source, &access.kernel, line));
    access.element = element(lines, access.address);
    Some(access)
}

fn is_access(line: &str) -> bool {
    (line.starts_with("Invalid ") || line.starts_with("Misaligned ") || line.starts_with("Uninitialized "))
        && line.contains(" of size ")
}

/// A line of the source of a kernel, which stands in the file as a text that begins behind three quotes.
fn statement(file: &str, kernel: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = file.lines().collect();
    let start = lines.iter().position(|text| text.starts_with(&format!("{kernel} = async_compile.")))?;
    // The text's first line is the rest of the one with the quotes.
    let found = lines.get(start + line - 1)?.trim();
    (!found.is_empty()).then(|| found.to_owned())
}

/// The buffer that an address lies in or behind, and the element.
fn element(lines: &[&str], address: u64) -> Option<(String, i128, u64)> {
    let mut best: Option<(u64, String, u64, u64)> = None;
    for line in lines.iter().filter_map(|line| line.strip_prefix("address: ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, base, size, bytes] = words[..] else { continue };
        let (Ok(base), Ok(size), Ok(bytes)) =
            (u64::from_str_radix(base.trim_start_matches("0x"), 16), size.parse::<u64>(), bytes.parse::<u64>())
        else {
            continue;
        };
        let away = address.abs_diff(base);
        if best.as_ref().is_none_or(|(nearest, ..)| away < *nearest) {
            best = Some((away, format!("{name} {base}"), size.max(1), bytes));
        }
    }
    let (_, found, size, bytes) = best?;
    let (name, base) = found.rsplit_once(' ')?;
    let distance = i128::from(address) - base.parse::<i128>().ok()?;
    Some((name.to_owned(), distance.div_euclid(i128::from(size)), bytes / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "import torch\ntriton_poi_fused_relu_0 = async_compile.triton('triton_poi_fused_relu_0', '''\nimport triton\n\n    tl.store(out_ptr0 + (x0 + 4096), tmp1, xmask)\n''')\n";

    #[test]
    fn an_access_is_mapped_to_buffer_element_and_statement() {
        let said = [
            "address: arg0_1 0x7f0000001000 4 256",
            "address: buf0 0x7f0000002000 4 256",
            "========= COMPUTE-SANITIZER",
            "========= Invalid __global__ write of size 4 bytes",
            "=========     at triton_poi_fused_relu_0+0x1b0 in /tmp/x/ca/cabc.py:4",
            "=========     by thread (3,0,0) in block (0,0,0)",
            "=========     Access to 0x7f000000600c is out of bounds",
            "=========     and is 15,885 bytes after the nearest allocation at 0x7f0000002000 of size 256 bytes",
            "=========",
            "========= ERROR SUMMARY: 1 error",
        ];
        let access = read(&said, SOURCE).expect("an access");
        assert_eq!((access.kernel.as_str(), access.line), ("triton_poi_fused_relu_0", Some(4)));
        assert_eq!(access.statement.as_deref(), Some("tl.store(out_ptr0 + (x0 + 4096), tmp1, xmask)"));
        assert_eq!(access.element, Some(("buf0".to_owned(), 4099, 64)));
        assert_eq!(
            access.sentence(),
            "compute-sanitizer: Invalid __global__ write of size 4 bytes in triton_poi_fused_relu_0 by thread (3,0,0) in block \
             (0,0,0), element 4099 of buf0, which has 64: `tl.store(out_ptr0 + (x0 + 4096), tmp1, xmask)`"
        );
    }

    #[test]
    fn older_words_and_c_plus_plus_names_are_read_and_silence_is_no_access() {
        let said = [
            "========= Misaligned __global__ read of size 4 bytes",
            "=========     at void f<float>(const float *, float *)+0x90",
            "=========     by thread (0,0,0) in block (7,0,0)",
            "=========     Address 0x7f0000000002 is misaligned",
        ];
        let access = read(&said, SOURCE).expect("an access");
        assert_eq!((access.kernel.as_str(), access.address), ("void f<float>", 0x7f00_0000_0002));
        assert_eq!((access.line, access.element), (None, None));
        assert_eq!(read(&["========= ERROR SUMMARY: 0 errors", "no bug"], SOURCE), None);
    }
}
