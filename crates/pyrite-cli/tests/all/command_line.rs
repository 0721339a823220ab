//! The command as a user meets it: output, exit codes, and what bad input gets.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::{Command, Output};

use pyrite_tensor::formats::{storage_hash, torch_zip};
use serde_json::Value as Json;

const GOOD: &str = r#"class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        gelu = torch.ops.aten.gelu.default(x)
        return (gelu,)
"#;

fn pyrite(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pyrite")).args(arguments).output().expect("the command starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command on a file with this content; gives exit code, standard output and standard error.
fn on_file(command: &str, content: &[u8], more: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("repro.py");
    std::fs::write(&path, content).expect("a file");
    let output = pyrite(&[&[command, path.to_str().expect("a path in UTF-8")], more].concat());
    (output.status.code(), stdout(&output), stderr(&output))
}

/// Bad input: exit code 2, nothing on standard output, and a message with the code, the file and the line.
fn refused(content: &[u8], code: &str, line: Option<u32>) {
    for command in ["run", "show"] {
        let (exit, out, err) = on_file(command, content, &[]);
        assert_eq!(exit, Some(2), "{command}: {err}");
        assert!(out.is_empty(), "{command} printed {out}");
        assert!(err.contains(code), "{command}: expected {code} in\n{err}");
        let place = line.map_or("repro.py".to_owned(), |line| format!("repro.py:{line}"));
        assert!(err.contains(&place), "{command}: expected {place} in\n{err}");
    }
}

#[test]
fn a_good_file_runs_and_is_shown() {
    let (exit, out, err) = on_file("run", GOOD.as_bytes(), &[]);
    assert_eq!(exit, Some(0), "{err}");
    assert!(out.starts_with("0: f32[2, 3] stride [3, 1]"), "{out}");
    let (exit, out, err) = on_file("show", GOOD.as_bytes(), &[]);
    assert_eq!(exit, Some(0), "{err}");
    assert!(out.contains("torch.ops.aten.gelu.default(x)"), "{out}");
}

#[test]
fn run_reports_as_json_and_saves_its_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("out.npz");
    let (exit, out, err) = on_file("run", GOOD.as_bytes(), &["--json", "--save-outputs", saved.to_str().unwrap()]);
    assert_eq!(exit, Some(0), "{err}");
    let report: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(report["verdict"], "pass");
    assert_eq!(report["outputs"][0]["shape"], serde_json::json!([2, 3]));
    assert_eq!(report["outputs"][0]["dtype"], "f32");
    let arrays = pyrite_tensor::formats::npz::read(File::open(&saved).unwrap()).unwrap();
    assert_eq!(arrays[0].1.shape(), [2, 3]);
}

#[test]
fn the_same_seed_gives_the_same_outputs_and_another_seed_others() {
    let run = |seed: &str| on_file("run", GOOD.as_bytes(), &["--seed", seed]).1;
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn text_that_is_no_program_is_refused_with_file_and_line() {
    refused(&[0x63, 0x6c, 0x61, 0x0a, 0xff, 0xfe], "not-utf8", Some(2));
    refused(b"", "reader::", None);
    refused(&GOOD.as_bytes()[..GOOD.len() - 12], "reader::", None);
    refused(GOOD.replace("(x)\n", "(x\n").as_bytes(), "reader::", None);
    refused("x = 1\n".as_bytes(), "reader::", None);
    refused(&b"(".repeat(100_000), "reader::", None);
}

#[test]
fn a_wrong_call_is_refused_at_its_line() {
    refused(GOOD.replace("(x)\n", "(y)\n").as_bytes(), "reader::", Some(3));
    refused(GOOD.replace("(x)\n", "()\n").as_bytes(), "reader::", Some(3));
    refused(GOOD.replace("(x)\n", "(x, x, x)\n").as_bytes(), "reader::", Some(3));
    refused(GOOD.replace("(x)\n", "(x, approximate = 3)\n").as_bytes(), "reader::", Some(3));
    refused(GOOD.replace("f32[2, 3]", "f99[2, 3]").as_bytes(), "reader::", Some(2));
    refused(GOOD.replace("f32[2, 3]", "f32[99999999999999999999]").as_bytes(), "reader::", Some(2));
}

#[test]
fn a_tensor_too_large_for_any_machine_is_refused_not_allocated() {
    let huge = GOOD.replace("f32[2, 3]", "f32[4611686018427387904, 4611686018427387904]");
    let (exit, _, err) = on_file("run", huge.as_bytes(), &[]);
    assert_eq!(exit, Some(2), "{err}");
    assert!(err.contains("too large"), "{err}");
}

#[test]
fn an_opaque_operator_is_shown_but_cannot_be_run() {
    let opaque = GOOD.replace("aten.gelu.default", "mylib.secret.default");
    assert_eq!(on_file("show", opaque.as_bytes(), &[]).0, Some(0));
    let (exit, _, err) = on_file("run", opaque.as_bytes(), &[]);
    assert_eq!(exit, Some(2));
    assert!(err.contains("mylib.secret") && err.contains("repro.py:3"), "{err}");
}

#[test]
fn missing_files_and_folders_are_refused() {
    let output = pyrite(&["run", "no/such/file.py"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no/such/file.py"), "{}", stderr(&output));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(pyrite(&["show", folder.path().to_str().unwrap()]).status.code(), Some(2));
}

#[test]
fn errors_are_json_when_asked_for() {
    let (exit, out, _) = on_file("run", b"x = 1\n", &["--json"]);
    assert_eq!(exit, Some(2));
    let report: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(report["verdict"], "invalid");
    assert!(report["diagnostics"][0]["message"].is_string());
}

#[test]
fn wrong_usage_is_exit_code_two() {
    for arguments in
        [&["run"][..], &["frobnicate"], &["run", "x.py", "--check", "nothing"], &["run", "x.py", "--repeat", "0"]]
    {
        assert_eq!(pyrite(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let (exit, _, err) = on_file("run", GOOD.as_bytes(), &["--backend", "nobody"]);
    assert_eq!(exit, Some(2));
    assert!(err.contains("nobody") && err.contains("eager"), "{err}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_pyrite")).arg("backends").env("PYRITE_NUM_THREADS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn outputs_that_cannot_be_written_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("missing").join("out.npz");
    let (exit, _, err) = on_file("run", GOOD.as_bytes(), &["--save-outputs", target.to_str().unwrap()]);
    assert_eq!(exit, Some(2));
    assert!(err.contains("out.npz"), "{err}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn listings_are_arrays_of_objects_with_a_name() {
    for arguments in [&["ops", "--core", "--json"][..], &["backends", "--json"], &["doctor", "--json"]] {
        let rows: Json = serde_json::from_str(&stdout(&pyrite(arguments))).unwrap();
        let rows = rows.as_array().unwrap();
        assert!(!rows.is_empty() && rows.iter().all(|row| row["name"].is_string()), "{arguments:?}");
    }
}

#[test]
fn the_demo_finds_the_planted_fusion_and_ends_with_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let output = pyrite(&["demo", "--out", out.to_str().unwrap()]);
    let told = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{told}{}", stderr(&output));
    assert!(told.contains("compare: the results agree"), "{told}");
    assert!(told.contains("values differ, the first is act"), "{told}");
    assert!(told.contains("a guilty step: fuse "), "{told}");
    assert!(told.contains("proven in a fresh process"), "{told}");
    let report = told.trim_end().lines().last().unwrap();
    assert_eq!(Path::new(report), out.join("report.html"));
    let repro = std::fs::read_to_string(out.join("repro.py")).unwrap();
    assert_eq!(repro.matches("torch.ops.aten.").count(), 1, "{repro}");
    assert!(repro.contains("aten.gelu"), "{repro}");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("output_code") && page.contains("aten.gelu"), "the page has the code and the repro");
}

/// A repro whose input lies in a storage of that name.
fn with_storage(folder: &Path, name: &str, nbytes: usize) -> String {
    let text = format!(
        "{GOOD}\ndef load_args(reader):\n    buf0 = reader.storage('{name}', {nbytes})\n    \
         reader.tensor(buf0, (2, 3), is_leaf=True)  # x\nload_args._version = 0\n"
    );
    let path = folder.join("repro.py");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn store(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::create_dir_all(folder.join("storages")).unwrap();
    let file = File::create(folder.join("storages").join(name)).unwrap();
    torch_zip::write_storage(BufWriter::new(file), name, bytes, "cpu").unwrap();
}

#[test]
fn inputs_come_from_storages_and_bad_storages_are_refused() {
    let bytes: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let hash = storage_hash(&bytes);
    let run = |prepare: &dyn Fn(&Path) -> String| {
        let folder = tempfile::tempdir().unwrap();
        let path = prepare(folder.path());
        let output = pyrite(&["run", &path]);
        (output.status.code(), stdout(&output), stderr(&output))
    };
    let (exit, out, err) = run(&|folder| {
        store(folder, &hash, &bytes);
        with_storage(folder, &hash, 24)
    });
    assert_eq!(exit, Some(0), "{err}");
    assert!(out.contains("max 6.0"), "{out}");

    let cases: [(&str, &dyn Fn(&Path) -> String); 5] = [
        ("inputs::missing-storage", &|folder| with_storage(folder, &hash, 24)),
        ("inputs::wrong-storage-size", &|folder| {
            store(folder, &hash, &bytes);
            with_storage(folder, &hash, 48)
        }),
        ("inputs::wrong-storage-hash", &|folder| {
            let mut altered = bytes.clone();
            altered[0] ^= 1;
            store(folder, &hash, &altered);
            with_storage(folder, &hash, 24)
        }),
        ("inputs::unreadable-storage", &|folder| {
            std::fs::create_dir_all(folder.join("storages")).unwrap();
            std::fs::write(folder.join("storages").join(&hash), b"PK\x03\x04 not a zip").unwrap();
            with_storage(folder, &hash, 24)
        }),
        ("reader::load-args", &|folder| with_storage(folder, "../../etc/passwd", 24)),
    ];
    for (code, prepare) in cases {
        let (exit, out, err) = run(prepare);
        assert_eq!(exit, Some(2), "{code}: {err}");
        assert!(out.is_empty() && err.contains(code), "expected {code} in\n{err}");
    }
}

#[test]
fn switches_of_comparing_are_taken_and_checked() {
    let program = GOOD.replace("gelu", "relu");
    let compared = |more: &[&str]| {
        let arguments = [&["--backend", "relu_accuracy_error_TESTING_ONLY"], more].concat();
        on_file("run", program.as_bytes(), &arguments)
    };
    let (exit, out, _) = compared(&[]);
    assert_eq!(exit, Some(1));
    assert!(out.contains("other rounding moves it by"), "the verdict says the bound: {out}");
    assert_eq!(compared(&["--tol", "2"]).0, Some(0));
    assert_eq!(compared(&["--require-fp64"]).0, Some(1));
    assert_eq!(compared(&["--no-fp64", "--cosine-similarity", "0.1"]).0, Some(0));
    for wrong in [&["--tol", "-1"][..], &["--cosine-similarity", "2"], &["--no-fp64", "--require-fp64"]] {
        assert_eq!(compared(wrong).0, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_program_that_answers_by_its_exit_code_is_a_backend_of_run() {
    let (exit, out, _) = on_file("run", GOOD.as_bytes(), &["--backend", "cmd:grep -q aten.gelu"]);
    assert_eq!((exit, out.contains("agrees with eager")), (Some(0), true), "{out}");
    let (exit, out, _) = on_file("run", GOOD.as_bytes(), &["--backend", "cmd:false"]);
    assert_eq!(exit, Some(1), "{out}");
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("cannot_tell.sh");
    std::fs::write(&script, "exit 125\n").expect("a script");
    let backend = format!("cmd:sh {}", script.display());
    let (exit, out, err) = on_file("run", GOOD.as_bytes(), &["--backend", &backend]);
    assert_eq!((exit, out.as_str()), (Some(2), ""), "{err}");
}
