//! Files of strangers: nothing that a file names is executed, imported, opened or written unless the command line says so.
//!
//! Every field that a file can carry gets values that would leave a trace if they were acted on: a file `canary` in the
//! folder, or a start of the interpreter.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const HEAD: &str = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[4]\"):\n";
const BODY: &str = "        relu = torch.ops.aten.relu.default(x)\n        return (relu,)\n";

/// A folder with a program, and an interpreter that leaves a trace when it is started.
fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("repro.py"), text).expect("a file");
    let python = folder.path().join("python");
    fs::write(&python, "#!/bin/sh\ntouch started\nexit 1\n").expect("a script");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("a mode");
    folder
}

fn pyrite(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    command.current_dir(folder).args(["--python", "./python"]).args(arguments);
    command.env_remove("PYRITE_PYTHON").output().expect("the command starts")
}

fn debug(text: &str, more: &[&str]) -> (Option<i32>, String, tempfile::TempDir) {
    let folder = folder(text);
    let output = pyrite(folder.path(), &[&["debug", "repro.py", "--runs", "1"], more].concat());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), folder)
}

fn untouched(folder: &Path, what: &str) {
    for trace in ["canary", "started"] {
        assert!(!folder.join(trace).exists(), "{what} was acted on: {trace}");
    }
}

/// Values that do something when they are acted on.
const VALUES: [&str; 8] = [
    "cmd:touch canary",
    "torch:inductor?cpp.cxx=[\"touch canary\"]",
    "torch:inductor?steps=canary",
    "torch:inductor?code=canary",
    "torch:elsewhere",
    "touch canary",
    "canary_module",
    "./canary",
];

/// Every key that Pyrite or PyTorch writes, has written, or a stranger may hope for.
const KEYS: [&str; 19] = [
    "backend",
    "reference",
    "check",
    "import",
    "python",
    "interpreter",
    "compiler",
    "out",
    "trace",
    "storages",
    "save_dir",
    "check_str",
    "command",
    "accuracy",
    "seed",
    "signature",
    "device",
    "tracing_mode",
    "autocast",
];

/// The same thing said in each of the ways that a file has.
fn said(key: &str, value: &str) -> [String; 3] {
    let quoted = format!("{value:?}");
    [
        format!("# pyrite: {key} = {value}\n{HEAD}{BODY}"),
        format!("{HEAD}{BODY}if __name__ == '__main__':\n    run_repro(mod, load_args, {key}={quoted})\n"),
        format!("torch._inductor.config.{key} = {quoted}\ntorch._dynamo.config.{key} = {quoted}\n{HEAD}{BODY}"),
    ]
}

#[test]
fn no_field_of_a_file_is_acted_on() {
    for key in KEYS {
        // A backend can be named in many ways; of the others it is enough that none is listened to.
        let (values, ways) = if key == "backend" { (&VALUES[..], 3) } else { (&VALUES[5..], 2) };
        for value in values {
            for text in said(key, value).into_iter().take(ways) {
                let (code, err, folder) = debug(&text, &["--out", "found"]);
                untouched(folder.path(), &text);
                assert!(matches!(code, Some(0..=2)), "{code:?}\n{text}\n{err}");
            }
        }
    }
}

#[test]
fn a_refusal_names_the_file_the_line_the_cause_and_the_option() {
    for (field, cause, option) in [
        ("backend = cmd:touch canary", "runs the program `touch canary`", "--backend 'cmd:touch canary'"),
        ("backend = torch:inductor?cpp.cxx=[\"a\"]", "`cpp.cxx`", "--backend 'torch:inductor?cpp.cxx=[\"a\"]'"),
        ("backend = torch:inductor?steps=canary", "`steps`", "--backend"),
        ("backend = torch:elsewhere", "does not bring `elsewhere`", "--backend 'torch:elsewhere'"),
        ("check = touch canary", "runs a program", "--check 'touch canary'"),
    ] {
        let (code, err, folder) = debug(&format!("# a comment\n# pyrite: {field}\n{HEAD}{BODY}"), &["--out", "found"]);
        assert_eq!(code, Some(2), "{field}: {err}");
        for part in ["repro.py:2", cause, option, "trust::not-repeated"] {
            assert!(err.contains(part), "{field}: expected {part} in\n{err}");
        }
        untouched(folder.path(), field);
        assert!(!folder.path().join("found").exists(), "{field}: a refused file leaves nothing behind");
    }
    let text = format!("# pyrite: backend = torch:eager\n# pyrite: import = canary_module\n{HEAD}{BODY}");
    let (code, err, folder) = debug(&text, &[]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("repro.py:2") && err.contains("--import 'canary_module'"), "{err}");
    untouched(folder.path(), "import");
}

#[test]
fn what_the_command_line_repeats_is_done() {
    let text = format!("# pyrite: backend = cmd:touch canary\n{HEAD}{BODY}");
    let (_, err, folder) = debug(&text, &["--backend", "cmd:touch canary", "--out", "found"]);
    assert!(folder.path().join("canary").exists(), "{err}");
}

#[test]
fn a_file_still_chooses_among_backends_that_are_harmless() {
    let text = format!("# pyrite: backend = relu_accuracy_error_TESTING_ONLY\n{HEAD}{BODY}");
    let (code, err, _folder) = debug(&text, &["--out", "found"]);
    assert_eq!(code, Some(0), "{err}");
}

/// Texts in which every place that can hold code holds some.
fn code_everywhere() -> Vec<String> {
    let evil = "__import__('os').system('touch canary')";
    let mut texts = vec![
        format!("import os\nos.system('touch canary')\n{HEAD}{BODY}"),
        format!("{evil}\n{HEAD}{BODY}"),
        format!("x = {evil}\n{HEAD}{BODY}"),
        format!("@{evil}\n{HEAD}{BODY}"),
        format!("class Repro({evil}):\n    def forward(self, x : \"f32[4]\"):\n{BODY}"),
        format!("class Repro(torch.nn.Module):\n    y = {evil}\n    def forward(self, x : \"f32[4]\"):\n{BODY}"),
        format!("class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[4]\" = {evil}):\n{BODY}"),
        format!("class Repro(torch.nn.Module):\n    def forward(self, x : {evil}):\n{BODY}"),
        format!("{HEAD}{BODY}def load_args(reader):\n    {evil}\n    reader.tensor(reader.storage(None, 16), (4,))\n"),
        format!("{HEAD}{BODY}def load_args(reader):\n    b = reader.storage({evil}, 16)\n    reader.tensor(b, (4,))\n"),
        format!(
            "{HEAD}{BODY}def load_args(reader):\n    b = reader.storage('../canary', 16)\n    reader.tensor(b, (4,))\n"
        ),
        format!("{HEAD}{BODY}if __name__ == '__main__':\n    {evil}\n"),
        format!("# \r{evil}\n{HEAD}{BODY}"),
        format!("{HEAD}        # File: a:1\r        {evil}\n{BODY}"),
    ];
    for init in [
        format!("self.w = {evil}"),
        "self.w = torch.load('canary')".to_owned(),
        "self.w = torch.hub.load('a', 'b')".to_owned(),
        format!("self.register_buffer('w', {evil})"),
        evil.to_string(),
    ] {
        texts.push(format!(
            "class Repro(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n    \
             def forward(self, x : \"f32[4]\"):\n        w = self.w\n        y = x + w\n        return (y,)\n"
        ));
    }
    for call in [
        evil.to_owned(),
        "os.system('touch canary')".to_owned(),
        "eval('1')".to_owned(),
        "torch.load('canary')".to_owned(),
        "torch.save(x, 'canary')".to_owned(),
        "torch.ops.load_library('./canary')".to_owned(),
        "torch.ops.aten.save(x, 'canary')".to_owned(),
        "torch.ops.aten.from_file.default('canary', True, 4)".to_owned(),
        "torch._VF.from_file('canary', True, 4)".to_owned(),
        "torch.compile(x, backend = 'canary')".to_owned(),
        "torch.set_default_tensor_type('os.system')".to_owned(),
        "torch.ops.debugprims.load_tensor.default('canary', [4], [1], dtype = torch.float32, device = 'cpu')"
            .to_owned(),
        "self.compile(backend = 'canary')".to_owned(),
        "getattr(torch, 'load')('canary')".to_owned(),
        "getattr(x, '__reduce_ex__')(2)".to_owned(),
        "x.__class__.__init__.__globals__['os'].system('touch canary')".to_owned(),
        "(lambda: os.system('touch canary'))()".to_owned(),
        "f\"{os.system('touch canary')}\"".to_owned(),
        "[os.system('touch canary') for _ in x]".to_owned(),
    ] {
        texts.push(format!("{HEAD}        y = {call}\n        z = x + y\n        return (z,)\n"));
    }
    texts
}

#[test]
fn no_code_in_a_file_runs_and_none_reaches_an_interpreter() {
    for text in code_everywhere() {
        let folder = folder(&text);
        for words in [
            &["show", "repro.py"][..],
            &["get-args", "repro.py"],
            &["compile", "repro.py"],
            &["run", "repro.py"],
            &["run", "repro.py", "--backend", "native"],
            &["compare", "repro.py", "repro.py"],
            &["analyze", "repro.py", "--backend", "native"],
        ] {
            let output = pyrite(folder.path(), words);
            assert!(matches!(output.status.code(), Some(0..=2)), "{words:?}: {output:?}\n{text}");
            untouched(folder.path(), &text);
            let shown = String::from_utf8_lossy(&output.stdout);
            let code = |line: &&str| line.contains("canary") && !line.trim_start().starts_with('#');
            assert!(words[0] != "show" || !shown.lines().any(|line| code(&line)), "it is printed as code:\n{shown}");
        }
    }
}

/// A command that ends by itself, within a time in which nothing is waited for.
fn ends(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("timeout");
    command.arg("30").arg(env!("CARGO_BIN_EXE_pyrite")).args(words).current_dir(folder);
    let output = command.output().expect("the command starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_folder_with_links_in_a_circle_and_a_pipe_is_read_to_its_end() {
    let place = folder(&format!("{HEAD}{BODY}"));
    let below = place.path().join("dump");
    fs::create_dir(&below).expect("a folder");
    for name in ["a", "b"] {
        std::os::unix::fs::symlink(".", below.join(name)).expect("a link");
    }
    let pipe = Command::new("mkfifo").arg(below.join("repro_1.py")).status().expect("mkfifo");
    assert!(pipe.success());
    std::os::unix::fs::symlink("/etc/passwd", below.join("repro_2.py")).expect("a link");
    let (code, err) = ends(place.path(), &["show", "dump"]);
    assert!(code == Some(2) && err.contains("contains no program"), "{code:?}: {err}");
    fs::copy(place.path().join("repro.py"), below.join("repro.py")).expect("a file");
    let (code, err) = ends(place.path(), &["show", "dump"]);
    assert_eq!(code, Some(0), "{err}");
    let (code, err) = ends(place.path(), &["show", "dump/repro_1.py"]);
    assert!(code == Some(2) && err.contains("named pipe") && err.contains("dump/repro_1.py"), "{code:?}: {err}");
}

#[test]
fn a_program_that_no_machine_has_room_for_is_refused_at_the_value_that_has_none() {
    let full = "        y = torch.ops.aten.full.default([200000000000], 1.0)\n        return (y,)\n";
    let expand = "        e = torch.ops.aten.expand.default(x, [90000000000, 4])\n        y = torch.ops.aten.mul.Tensor(e, 2)\n        \
                  return (y,)\n";
    let input = "def load_args(reader):\n    b = reader.storage(None, 4)\n    reader.tensor(b, (90000000000,), (0,))\n";
    for (text, line, command) in [
        (format!("{HEAD}{full}"), 3, "run"),
        (format!("{HEAD}{expand}"), 4, "run"),
        (format!("{HEAD}{expand}"), 4, "debug"),
        (format!("{HEAD}{BODY}{input}"), 2, "get-args"),
    ] {
        let place = folder(&text);
        let backend: &[&str] = if command == "get-args" { &[] } else { &["--backend", "native"] };
        let (code, err) = ends(place.path(), &[&[command, "repro.py"], backend].concat());
        assert_eq!(code, Some(2), "{text}: {err}");
        for part in ["program::too-large", &format!("repro.py:{line}"), "GB"] {
            assert!(err.contains(part), "expected {part} in\n{err}");
        }
    }
}
