//! Faults of the machine during a search: nothing is lost, and the message says what to do.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = r#"
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 6]"):
        a = torch.sin(x)
        b = torch.relu(a)
        c = torch.cos(b)
        d = torch.tanh(c)
        return (d,)
"#;

fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("program.py"), text).expect("a file");
    fs::write(
        folder.path().join("check.sh"),
        "grep -q aten.relu \"$1\" && grep -q aten.tanh \"$1\" && exit 1\nexit 0\n",
    )
    .expect("a script");
    folder
}

fn pyrite(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pyrite")).current_dir(folder).args(args).output().expect("pyrite runs")
}

/// Runs pyrite where no file may become larger than some blocks of 512 bytes, as on a disk that is full.
fn cramped(folder: &Path, blocks: u32, args: &str) -> Output {
    let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec {} {args}", env!("CARGO_BIN_EXE_pyrite"));
    Command::new("sh").current_dir(folder).args(["-c", &line]).output().expect("sh runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_full_disk_leaves_the_best_so_far_whole() {
    let folder = folder(PROGRAM);
    let args = "minify program.py --check 'sh check.sh' --out found";
    let output = cramped(folder.path(), 6, args);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("verdicts.jsonl") && said(&output).contains("--resume"), "{}", said(&output));
    let best = folder.path().join("found/repro.py");
    if best.exists() {
        assert_eq!(pyrite(folder.path(), &["show", "found/repro.py"]).status.code(), Some(0), "half a file was left");
    }
    let names: Vec<String> = fs::read_dir(folder.path().join("found"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().all(|name| !name.starts_with('.')), "scratch files were left: {names:?}");
    // With room again, the search goes on from what is known.
    let resumed = pyrite(folder.path(), &["minify", "program.py", "--check", "sh check.sh", "--resume", "found"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", said(&resumed));
}

#[test]
fn a_disk_without_room_for_candidates_is_told() {
    let folder = folder(PROGRAM);
    let output = cramped(folder.path(), 1, "minify program.py --check 'sh check.sh' --out found");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("cannot be"), "{}", said(&output));
    // Where the search cannot begin, nothing looks as if it had.
    let output = cramped(folder.path(), 0, "minify program.py --check 'sh check.sh' --out nothing");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(!folder.path().join("nothing").exists(), "{}", said(&output));
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = folder(PROGRAM);
    // Nobody, not even root, makes folders there.
    let output =
        pyrite(folder.path(), &["minify", "program.py", "--check", "sh check.sh", "--out", "/proc/pyrite-found"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("/proc/pyrite-found") && said(&output).contains("--out"), "{}", said(&output));
}

#[test]
fn a_missing_storage_is_named_and_nothing_is_written() {
    let loading = "\ndef load_args(reader):\n    buf0 = reader.storage('00c0ffee', 96)\n    reader.tensor(buf0, (4, 6))\n\
                   load_args._version = 0\n";
    let folder = folder(&format!("import torch\n{PROGRAM}{loading}"));
    for command in ["minify", "run"] {
        let output = pyrite(folder.path(), &[command, "program.py", "--backend", "relu_compile_error_TESTING_ONLY"]);
        assert_eq!(output.status.code(), Some(2), "{command}: {}", said(&output));
        assert!(said(&output).contains("00c0ffee"), "{command}: {}", said(&output));
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "something was written");
}
