//! The debug wrapper at each of its levels, on backends that fail in each way.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use pyrite_compiler::backend::{Backend, Executable, Forward, Observer};
use pyrite_compiler::{Options, find};
use pyrite_debug::{
    Accuracy, Broken, Level, Question, Ran, ReproAfter, Switches, Tracing, WrapConfig, candidate_of, execute, judge,
    wrap_compiler_debug,
};
use pyrite_ir::{Graph, Meta, NodeError, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Stage, Verdict};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

const PROGRAM: &str = "
import torch

class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('weight', torch.tensor([0.25, -4.0, 8.0]))

    def forward(self, x):
        weight = self.weight
        a = torch.ops.aten.sin.default(x)
        b = torch.ops.aten.mul.Tensor(a, weight)
        c = torch.ops.aten.relu.default(b)
        d = torch.ops.aten.cos.default(c)
        written = torch.ops.aten.add_.Tensor(x, 1.0)
        return (d,)
";

fn program() -> (Graph, Vec<Value<Tensor>>) {
    let mut graph = read_text(PROGRAM, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let x = Tensor::from_slice(&[0.5f32, 1.25, 2.75], &[3]);
    let id = graph.placeholders().next().expect("an input").0;
    graph.set_meta(id, Value::Tensor(Meta::of(&x)));
    (graph, vec![Value::Tensor(x)])
}

struct Heard(Arc<Mutex<Vec<String>>>);

fn config(folder: &Path, level: u32, after: ReproAfter) -> (WrapConfig, Heard) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = heard.clone();
    let config = WrapConfig {
        after,
        level: Level::from_number(level).expect("a level"),
        folder: folder.to_owned(),
        only_errors_with: None,
        reference: find("eager").expect("eager"),
        accuracy: Accuracy::Fp,
        switches: Switches::default(),
        tracing: Tracing::Symbolic,
        shrinking: pyrite_debug::Shrinking::AtOnce,
        tell: Arc::new(move |text| ears.lock().expect("no panic").push(text.to_owned())),
    };
    (config, Heard(heard))
}

fn run(backend: &Backend) -> Result<Ran, Broken> {
    let (graph, inputs) = program();
    execute(&graph, &inputs, backend, &Options::default(), &mut |_| {}, &mut |_, _| {})
}

fn wrapped(name: &str, config: &WrapConfig) -> Backend {
    wrap_compiler_debug(&find(name).expect("a backend"), config)
}

/// How a backend does on a repro file.
fn verdict(path: &Path, backend: &str, accuracy: Accuracy) -> Verdict {
    let candidate = candidate_of(path, 0).expect("a repro");
    let question =
        Question { backend: backend.to_owned(), reference: "eager".to_owned(), accuracy, ..Question::default() };
    judge(&candidate.graph, &candidate.inputs, &question, &mut |_| {}, &mut |_, _| {}).verdict
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    let name = |path: PathBuf| path.strip_prefix(folder).expect("inside").display().to_string();
    let mut names: Vec<String> = found.into_iter().map(name).filter(|name| !name.contains("storages")).collect();
    names.sort();
    names
}

#[test]
fn levels_one_and_two_write_real_inputs_on_an_error_of_any_stage() {
    for (level, name) in [(1, "repro.py"), (2, "minifier_launcher.py")] {
        for (backend, stage) in
            [("relu_compile_error_TESTING_ONLY", Stage::Compile), ("relu_runtime_error_TESTING_ONLY", Stage::Forward)]
        {
            let place = tempfile::tempdir().expect("a folder");
            let (config, heard) = config(place.path(), level, ReproAfter::Capture);
            let broken = run(&wrapped(backend, &config)).expect_err("a failure");
            assert_eq!(broken.signature().stage, stage);
            let path = place.path().join("graph_1").join(name);
            let candidate = candidate_of(&path, 0).expect("a repro");
            let x = candidate.inputs[0].as_tensor().expect("a tensor").to_f64s();
            assert_eq!(x, [0.5, 1.25, 2.75], "the inputs are those from before the run");
            let weight: Vec<f64> = candidate.graph.constants().values().next().expect("a constant").to_f64s();
            assert_eq!(weight, [0.25, -4.0, 8.0]);
            let again = verdict(&path, backend, Accuracy::Off);
            assert!(matches!(&again, Verdict::Fail(signature) if broken.signature().holds(signature)), "{again:?}");
            let said = heard.0.lock().expect("no panic").join("\n");
            assert!(said.contains(&path.display().to_string()), "{said}");
        }
    }
}

#[test]
fn what_does_not_fail_leaves_nothing_behind_below_level_three() {
    for level in [1, 2, 4] {
        let place = tempfile::tempdir().expect("a folder");
        let (config, _) = config(place.path(), level, ReproAfter::Capture);
        let ran = run(&wrapped("aot_eager", &config)).expect("it runs");
        assert_eq!(ran.results.inputs[0].as_tensor().expect("a tensor").to_f64s(), [1.5, 2.25, 3.75]);
        assert!(files(place.path()).is_empty(), "{:?}", files(place.path()));
    }
}

#[test]
fn an_error_whose_text_is_not_looked_for_is_not_written() {
    let place = tempfile::tempdir().expect("a folder");
    let (base, _) = config(place.path(), 1, ReproAfter::Capture);
    let config = WrapConfig { only_errors_with: Some("something else".to_owned()), ..base.clone() };
    assert!(run(&wrapped("relu_runtime_error_TESTING_ONLY", &config)).is_err());
    assert!(files(place.path()).is_empty());
    let config = WrapConfig { only_errors_with: Some("relu is refused".to_owned()), ..base };
    assert!(run(&wrapped("relu_runtime_error_TESTING_ONLY", &config)).is_err());
    assert_eq!(files(place.path()), ["graph_1/repro.py"]);
}

#[test]
fn level_three_writes_before_every_run_and_overwrites_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let (config, _) = config(place.path(), 3, ReproAfter::Capture);
    for _ in 0..2 {
        run(&wrapped("aot_eager", &config)).expect("it runs");
    }
    let written = ["graph_1/repro.py", "graph_1/trace/forward.py", "graph_2/repro.py", "graph_2/trace/forward.py"];
    assert_eq!(files(place.path()), written);
    let texts =
        [1, 2].map(|n| std::fs::read_to_string(place.path().join(format!("graph_{n}/repro.py"))).expect("text"));
    assert_eq!(texts[0], texts[1], "the same run is written in the same words");
}

#[test]
fn level_four_minifies_a_difference_and_ends_its_message_with_the_path() {
    let place = tempfile::tempdir().expect("a folder");
    let (config, _) = config(place.path(), 4, ReproAfter::Capture);
    let broken = run(&wrapped("relu_accuracy_error_TESTING_ONLY", &config)).expect_err("a difference");
    let message = broken.error.to_string();
    assert!(message.contains("AccuracyError"), "{message}");
    let path = PathBuf::from(message.lines().last().expect("a line"));
    let candidate = candidate_of(&path, 0).expect("a repro");
    assert_eq!(candidate.graph.len(), 3, "input, relu, output");
    assert!(matches!(verdict(&path, "relu_accuracy_error_TESTING_ONLY", Accuracy::Fp), Verdict::Fail(_)));
}

#[test]
fn after_aot_each_half_is_a_program_of_its_own() {
    let place = tempfile::tempdir().expect("a folder");
    let (config, _) = config(place.path(), 3, ReproAfter::Aot);
    let (mut graph, inputs) = program();
    let id = graph.placeholders().next().expect("an input").0;
    let meta = Meta { requires_grad: true, is_leaf: false, ..Meta::of(inputs[0].as_tensor().expect("a tensor")) };
    graph.set_meta(id, Value::Tensor(meta));
    let backend = wrapped("eager", &config);
    let ran = execute(&graph, &inputs, &backend, &Options::default(), &mut |_| {}, &mut |_, _| {}).expect("it runs");
    let plain =
        execute(&graph, &inputs, &find("eager").expect("eager"), &Options::default(), &mut |_| {}, &mut |_, _| {})
            .expect("it runs");
    let gradient = |ran: &Ran| ran.results.input_gradients[0].as_ref().expect("a gradient").to_f64s();
    assert_eq!(gradient(&ran), gradient(&plain));
    let backward = std::fs::read_to_string(place.path().join("graph_2/repro.py")).expect("the backward half");
    assert!(backward.contains("tangents"), "{backward}");
}

/// A backend that dies where the program has a relu.
fn deadly() -> Backend {
    struct Deadly(Box<dyn Executable>);
    impl Executable for Deadly {
        fn run(
            &self,
            inputs: Vec<Value<Tensor>>,
            random: Option<&mut TorchGenerator>,
            observe: &mut Observer<'_>,
        ) -> Result<Forward, NodeError> {
            self.0.run(inputs, random, &mut |node, value| {
                observe(node, value);
                if node.name == "b" {
                    // SAFETY: none: the backend is to die by a fault of its own.
                    #[expect(unsafe_code, reason = "a backend that crashes")]
                    unsafe {
                        std::ptr::without_provenance_mut::<u8>(16).write_volatile(1);
                    }
                }
            })
        }

        fn graphs(&self) -> Vec<(String, Graph)> {
            self.0.graphs()
        }
    }
    Backend::new("deadly", "for tests: dies at relu", |graph, options| {
        Ok(Box::new(Deadly((find("eager").expect("eager").compile)(graph, options)?)))
    })
}

#[test]
fn a_segfault_leaves_its_repro_and_the_name_of_the_node() {
    const PLACE: &str = "PYRITE_TEST_WRAPPER_PLACE";
    if let Ok(place) = std::env::var(PLACE) {
        let (config, _) = config(Path::new(&place), 3, ReproAfter::Capture);
        let _ = run(&wrap_compiler_debug(&deadly(), &config));
        unreachable!("the backend has died");
    }
    let place = tempfile::tempdir().expect("a folder");
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "wrapper::a_segfault_leaves_its_repro_and_the_name_of_the_node", "--nocapture"])
        .env(PLACE, place.path())
        .output()
        .expect("this program runs");
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.status), Some(11), "{said}");
    assert!(said.contains("SIGSEGV while running node `c` (aten.relu.default)"), "{said}");
    let folder = place.path().join("graph_1");
    assert_eq!(verdict(&folder.join("repro.py"), "eager", Accuracy::Fp), Verdict::Pass);
    let trail = std::fs::read_to_string(folder.join("running")).expect("the trail stays");
    assert!(trail.contains("node `c`"), "{trail}");
}

#[test]
fn a_process_that_is_heard_names_the_node_without_a_wrapper() {
    const CHILD: &str = "PYRITE_TEST_WRAPPER_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let _heard = pyrite_debug::signals::install();
        let _ = run(&deadly());
        unreachable!("the backend has died");
    }
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "wrapper::a_process_that_is_heard_names_the_node_without_a_wrapper", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("this program runs");
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(said.contains("SIGSEGV while running node `c` (aten.relu.default)"), "{said}");
}

#[test]
fn a_repro_has_the_sizes_of_the_program_or_of_the_call() {
    let text = "class Repro(torch.nn.Module):\n    def forward(self, s0: \"Sym(s0)\", x: \"f32[s0, 4]\"):\n        \
                y = torch.ops.aten.view.default(x, [4, s0])\n        z = torch.ops.aten.relu.default(y)\n        \
                return (z,)\n";
    let graph = read_text(text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let inputs = vec![3i64.into(), Value::Tensor(Tensor::from_slice(&[0.5f32; 12], &[3, 4]))];
    for (tracing, sizes) in [(Tracing::Symbolic, "[4, s0]"), (Tracing::Real, "[4, 3]")] {
        let folder = tempfile::tempdir().expect("a folder");
        let (base, _) = config(folder.path(), 2, ReproAfter::Capture);
        let backend = wrapped("relu_runtime_error_TESTING_ONLY", &WrapConfig { tracing, ..base });
        assert!(execute(&graph, &inputs, &backend, &Options::default(), &mut |_| {}, &mut |_, _| {}).is_err());
        let written = files(folder.path()).into_iter().find(|name| name.contains("launcher")).expect("a repro");
        let path = folder.path().join(written);
        let printed = std::fs::read_to_string(&path).expect("a repro");
        assert!(printed.contains(sizes), "{tracing:?}: {printed}");
        assert!(matches!(verdict(&path, "relu_runtime_error_TESTING_ONLY", Accuracy::Fp), Verdict::Fail(_)));
    }
}
