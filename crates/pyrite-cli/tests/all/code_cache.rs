//! Compiled code on disk, as processes share it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = r#"class Repro(torch.nn.Module):
    def forward(self, x : "f32[20, 30]"):
        gelu = torch.ops.aten.gelu.default(x)
        sum_1 = torch.ops.aten.sum.dim_IntList(gelu, [1])
        return (gelu, sum_1)
"#;

fn run(program: &Path, cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    command.args(["run", program.to_str().expect("a path in UTF-8"), "--backend", "native", "--json"]);
    command.env("PYRITE_CACHE_DIR", cache).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finished(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn processes_that_compile_at_the_same_time_leave_whole_files() {
    let place = tempfile::tempdir().expect("a folder");
    let (program, cache) = (place.path().join("repro.py"), place.path().join("code"));
    fs::write(&program, PROGRAM).expect("a file");
    let children: Vec<_> = (0..4).map(|_| run(&program, &cache).spawn().expect("the command starts")).collect();
    for child in children {
        finished(&child.wait_with_output().expect("it ends"));
    }
    let names = || {
        let files = fs::read_dir(&cache).expect("the folder").map(|entry| entry.expect("an entry").path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        files
    };
    let files = names();
    assert!(files.iter().all(|path| !path.to_string_lossy().contains("new-")), "{files:?}");
    let contents: Vec<_> = files.iter().map(|path| fs::read(path).expect("a file")).collect();
    for path in &files {
        fs::write(path, b"something else").expect("a file");
    }
    finished(&run(&program, &cache).output().expect("the command runs"));
    assert_eq!(names(), files);
    assert_eq!(files.iter().map(|path| fs::read(path).expect("a file")).collect::<Vec<_>>(), contents);
}

#[test]
fn a_folder_that_is_open_to_others_is_refused_with_a_remedy() {
    let place = tempfile::tempdir().expect("a folder");
    let (program, cache) = (place.path().join("repro.py"), place.path().join("code"));
    fs::write(&program, PROGRAM).expect("a file");
    fs::create_dir(&cache).expect("a folder");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).expect("other rights");
    let output = run(&program, &cache).output().expect("the command runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("cache::open-folder") && text.contains("chmod 700") && text.contains("PYRITE_CACHE_DIR"),
        "{text}"
    );
    assert_eq!(fs::read_dir(&cache).expect("the folder").count(), 0);
    finished(&run(&program, Path::new("off")).output().expect("the command runs"));
}
