//! Sessions as a library gives them: data, progress, refusals. Their workers are processes of the example.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use pyrite_session::minify::{Reduced, minify};
use pyrite_session::{
    Finding, Host, Invocation, Options, Python, ReadOptions, Reporter, Searching, Session, SessionError, Silent,
    Standing,
};

const BROKEN: &str = "relu_accuracy_error_TESTING_ONLY";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The example, which cargo builds beside the tests.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("a test");
    let path = test.ancestors().nth(2).expect("a target folder").join("examples/debug_a_file");
    assert!(path.exists(), "{} is built by `cargo test` and `cargo nextest run`", path.display());
    path
}

fn host() -> Host {
    let invocation = Invocation { program: example(), arguments: Vec::new(), python: None };
    Host::new(invocation, Python::new(None), ReadOptions::default())
}

fn options(backend: &str, out: &Path) -> Options {
    Options { backend: Some(backend.to_owned()), out: Some(out.to_owned()), ..Options::default() }
}

/// Keeps what it hears.
#[derive(Default)]
struct Heard {
    steps: Mutex<Vec<String>>,
    runs: Mutex<Vec<u32>>,
    passes: Mutex<usize>,
    farewells: Mutex<Vec<String>>,
}

impl Reporter for Heard {
    fn confirming(&self, run: u32, _: u32, _: &str) {
        self.runs.lock().unwrap().push(run);
    }

    fn found(&self, finding: &Finding) {
        self.steps.lock().unwrap().push(finding.step.clone());
    }

    fn searching(&self, _: &Searching<'_>) {
        *self.passes.lock().unwrap() += 1;
    }

    fn standing(&self, standing: Standing) {
        self.farewells.lock().unwrap().push(standing.farewell());
    }
}

#[test]
fn a_session_returns_what_it_found_and_tells_of_every_step() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("found");
    let (host, heard) = (host(), Heard::default());
    let session = Session::open(&host, &examples().join("relu_chain.py"), options(BROKEN, &out), &heard).unwrap();
    let found = session.run().unwrap();
    assert_eq!((found.outcome(), found.is_proven()), ("proven", true));
    assert_eq!((found.confirmed.failed(), found.confirmed.kind.as_str()), (3, "wrong results"));
    let minified = found.minified.expect("a smaller program");
    assert_eq!((minified.nodes_before, minified.nodes_after, minified.inputs_after), (9, 3, 1));
    assert!(minified.program.contains("aten.relu") && minified.proof() == "proven in a fresh process");
    assert_eq!(minified.repro, out.join("repro.py"));
    assert_eq!(found.analysis.expect("an analysis").first().expect("a value").op, "aten.relu.default");
    assert!(found.bisected.is_some());
    let report = fs::read_to_string(found.report.expect("a report")).unwrap();
    assert!(report.contains("aten.relu") && report.contains("options: backend="), "{report}");
    let steps = heard.steps.into_inner().unwrap();
    assert_eq!(steps, found.steps.iter().map(|step| step.step.clone()).collect::<Vec<_>>());
    for step in ["confirm", "bisect", "analyze", "prove", "report"] {
        assert!(steps.iter().any(|known| known == step), "{step}: {steps:?}");
    }
    assert_eq!(heard.runs.into_inner().unwrap(), [1, 2, 3]);
    assert!(heard.passes.into_inner().unwrap() > 0);
    let farewells = heard.farewells.into_inner().unwrap();
    assert!(farewells[0].contains("before the failure was confirmed") && farewells[1].contains("--resume"));
    assert!(farewells[2].contains("proven in a fresh process"), "{farewells:?}");
    // The trace ends with the session, so that its folder is one of another session from here on.
    assert!(out.join("trace.jsonl").exists());
    let again = Session::open(&host, &examples().join("relu_chain.py"), options(BROKEN, &out), &Silent);
    assert!(again.is_err());
}

#[test]
fn a_program_that_does_not_fail_leaves_no_folder() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("found");
    let host = host();
    let session = Session::open(&host, &examples().join("relu_chain.py"), options("native", &out), &Silent).unwrap();
    let found = session.run().unwrap();
    assert_eq!((found.outcome(), found.minified.is_none(), out.exists()), ("pass", true, false));
}

const WITHOUT_DERIVATIVE: &str = "import torch

class Repro(torch.nn.Module):
    def forward(self, x):
        a = torch.ops.aten.relu.default(x)
        q = torch.ops.aten.floor_divide.default(a, 0.5)
        return (q,)

def load_args(reader):
    buf0 = reader.storage(None, 32)
    reader.tensor(buf0, (8,), requires_grad=True, is_leaf=True)
load_args._version = 0
";

#[test]
fn a_program_without_derivative_is_judged_by_its_forward_half() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("program.py");
    fs::write(&file, WITHOUT_DERIVATIVE).unwrap();
    let host = host();
    let options = Options { runs: 1, ..options(BROKEN, &place.path().join("found")) };
    let found = Session::open(&host, &file, options, &Silent).unwrap().run().unwrap();
    assert_eq!(found.outcome(), "proven", "{:?}", found.steps);
    assert!(found.steps.iter().any(|step| step.text.contains("forward graph")), "{:?}", found.steps);
}

#[test]
fn a_folder_that_holds_a_session_is_refused_before_anything_is_touched() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("trace.jsonl"), "kept").unwrap();
    let host = host();
    let opened = Session::open(&host, &examples().join("relu_chain.py"), options(BROKEN, place.path()), &Silent);
    let Err(SessionError::Input(problems)) = opened.map(drop) else { panic!("it is refused") };
    assert!(problems.to_string().contains("another run"), "{problems}");
    assert_eq!(fs::read_to_string(place.path().join("trace.jsonl")).unwrap(), "kept");
}

#[test]
fn a_reduction_alone_is_data_too_and_says_where_nothing_fails() {
    let place = tempfile::tempdir().unwrap();
    let (host, file) = (host(), examples().join("relu_chain.py"));
    let reduced = minify(&host, &file, &options("eager", &place.path().join("none")), &Silent).unwrap();
    let Reduced::Nothing { reason, .. } = &reduced else { panic!("eager is right") };
    assert_eq!((reason.as_str(), reduced.is_proven()), ("the program does not fail in 5 runs", false));
    let asked = Options {
        check_str: Some("nobody says this".to_owned()),
        ..options("relu_runtime_error_TESTING_ONLY", &place.path().join("other"))
    };
    assert!(!minify(&host, &file, &asked, &Silent).unwrap().is_proven());
}

#[test]
fn options_are_one_definition_for_files_and_callers() {
    let asked = Options { runs: 7, ..options("native", Path::new("there")) };
    let text = serde_json::to_string(&asked).unwrap();
    assert_eq!(serde_json::from_str::<Options>(&text).unwrap(), asked);
    assert_eq!(asked.changed(), r#"backend="native" out="there" runs=7"#);
    assert_eq!(serde_json::from_str::<Options>("{}").unwrap(), Options::default());
    let wrong = serde_json::from_str::<Options>(r#"{"time_buget": 3}"#).unwrap_err().to_string();
    assert!(wrong.contains("time_buget"), "{wrong}");
}

#[test]
fn the_example_debugs_a_file() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(example());
    command.arg(examples().join("relu_chain.py")).arg(BROKEN).arg(place.path().join("found"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("outcome: proven") && said.contains("3 nodes of 9 are left"), "{said}");
    assert!(place.path().join("found/report.md").exists());
}

/// Wants no more from the start.
struct Impatient;

impl Reporter for Impatient {
    fn is_cancelled(&self) -> bool {
        true
    }
}

#[test]
fn a_cancelled_session_ends_after_its_first_question_and_says_how_to_go_on() {
    let place = tempfile::tempdir().unwrap();
    let (host, file, out) = (host(), examples().join("relu_chain.py"), place.path().join("found"));
    let ended = Session::open(&host, &file, options(BROKEN, &out), &Impatient).unwrap().run().map(drop);
    let Err(SessionError::Interrupted(standing)) = ended else { panic!("it ends") };
    assert!(standing.farewell().contains("before the failure was confirmed") && !out.exists());
    let ended = minify(&host, &file, &options(BROKEN, &out), &Impatient).map(drop);
    let Err(SessionError::Interrupted(standing)) = ended else { panic!("it ends") };
    assert!(standing.farewell().contains(&format!("--resume {}", out.display())), "{}", standing.farewell());
}

#[test]
fn inputs_are_drawn_anew_where_their_data_did_not_come_along() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("dump.py");
    let text = "class Repro(torch.nn.Module):\n    def forward(self, x):\n        y = torch.relu(x)\n        return (y,)\n\
                def load_args(reader):\n    buf0 = reader.storage('absent', 24)\n    \
                reader.tensor(buf0, (2, 3), is_leaf=True)  # x\nload_args._version = 0\n";
    fs::write(&file, text).unwrap();
    let (host, out) = (host(), place.path().join("found"));
    let Err(SessionError::Input(problems)) = minify(&host, &file, &options(BROKEN, &out), &Silent).map(drop) else {
        panic!("the data is missing")
    };
    assert!(problems.to_string().contains("absent"), "{problems}");
    let drawn = Options { random_inputs: true, ..options(BROKEN, &out) };
    assert!(minify(&host, &file, &drawn, &Silent).unwrap().is_proven());
}

#[test]
fn the_folders_of_pytorchs_tools_are_read_as_they_lie() {
    let place = tempfile::tempdir().unwrap();
    let program = fs::read_to_string(examples().join("relu_chain.py")).unwrap();
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    // As TORCH_COMPILE_DEBUG=1 leaves it: texts that are no programs lie beside the one that is.
    write("debug/run_1/torchinductor/model__0_inference_0.0/fx_graph_runnable.py", &program);
    write("debug/run_1/torchinductor/model__0_inference_0.0/output_code.py", "async_compile = AsyncCompile()\n");
    write("debug/run_1/torchinductor/model__0_inference_0.0/ir_pre_fusion.txt", "op0: SchedulerNode\n");
    // As tlparse does.
    write("tl_out/-_0_0_0/fx_graph_runnable_31.txt", &program);
    write("tl_out/-_0_0_0/dynamo_output_graph_2.txt", "class GraphModule\n");
    write("tl_out/-_0_0_0/inductor_output_code_32.txt", "import torch\n");
    let host = host();
    for folder in ["debug", "tl_out"] {
        let out = place.path().join(format!("found-{folder}"));
        let reduced = minify(&host, &place.path().join(folder), &options(BROKEN, &out), &Silent).unwrap();
        assert!(reduced.is_proven(), "{folder}");
    }
    write("tl_out/-_0_0_1/fx_graph_runnable_40.txt", &program);
    let out = place.path().join("found");
    let several = minify(&host, &place.path().join("tl_out"), &options(BROKEN, &out), &Silent).map(drop);
    let Err(SessionError::Input(problems)) = several else { panic!("there are two") };
    assert!(problems.to_string().contains("several programs"), "{problems}");
}
