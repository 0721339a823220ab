//! Workers that misbehave, each in its own way: the verdict says how, in time, and nothing is left running. What a worker
//! does while it is not the backend that works is never a failure of the backend.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pyrite_debug::{Accuracy, Command, Isolated, Limits, Question};
use pyrite_ir::{Builder, Device, Meta, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Class, Oracle, Verdict};
use pyrite_reduce::Candidate;
use pyrite_tensor::Tensor;

fn candidate() -> Candidate {
    let input = Tensor::from_slice(&[1.0f32, -2.0], &[2]);
    let mut builder = Builder::new();
    let x = builder.placeholder("x", Some(Value::Tensor(Meta::of(&input))));
    let op = registry().get("aten.relu.default").expect("relu");
    let y = builder.call(op, vec![x.into()]);
    builder.output(vec![y].into());
    Candidate { graph: builder.finish(), inputs: vec![Value::Tensor(input)], seed: 0 }
}

fn script(folder: &Path, body: &str) -> PathBuf {
    let path = folder.join("worker.sh");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("an executable script");
    path
}

/// Reads a question, and answers it where it is about a trivial program.
const READ: &str = "read line; case \"$line\" in *trivial_*) echo '{\"verdict\": \"pass\"}'; read line; exit;; esac";

/// Says that the backend works now.
const BACKEND: &str = "echo '{\"stage\": \"forward\"}'";

/// The verdict of a worker whose program is a shell script, on a backend in the worker itself.
fn verdict(body: &str) -> Verdict {
    verdict_on("eager", body)
}

fn verdict_on(backend: &str, body: &str) -> Verdict {
    verdict_about(&candidate(), backend, body)
}

fn verdict_about(candidate: &Candidate, backend: &str, body: &str) -> Verdict {
    let folder = tempfile::tempdir().expect("a folder");
    let question = Question {
        backend: backend.into(),
        reference: "eager".into(),
        accuracy: Accuracy::Fp,
        forward_only: false,
        seed: 0,
        rewrites: None,
        refused: Vec::new(),
        switches: pyrite_debug::Switches::default(),
        thorough: false,
    };
    let limits = Limits { time: Duration::from_millis(1500), memory: None };
    let oracle = Isolated::new(&script(folder.path(), body), Vec::new(), question, limits).expect("workers");
    oracle.judge(candidate)
}

fn class(body: &str) -> Class {
    match verdict(&format!("{READ}; {BACKEND}; {body}")) {
        Verdict::Fail(signature) => signature.class,
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn every_kind_of_death_has_its_class() {
    assert_eq!(class("kill -SEGV $$"), Class::Signal(11));
    assert_eq!(class("kill -ABRT $$"), Class::Signal(6));
    assert_eq!(class("kill -FPE $$"), Class::Signal(8));
    assert_eq!(class("kill -ILL $$"), Class::Signal(4));
    assert_eq!(class("kill -KILL $$"), Class::OutOfMemory);
    assert_eq!(class("echo 'memory allocation of 99 bytes failed' >&2; kill -ABRT $$"), Class::OutOfMemory);
}

/// Faults of the worker itself: how it starts, what it says, how it ends.
fn faults() -> Vec<String> {
    let ends = ["exit 0", "exit 1", "exit 2", "exit 3", "exit 125", "exit 127", "kill -SEGV $$", "kill -ABRT $$"];
    let more = ["kill -KILL $$", "kill -ILL $$", "kill -BUS $$", "echo 'memory allocation failed' >&2; kill -ABRT $$"];
    let mut faults: Vec<String> = ends.iter().chain(&more).map(|end| (*end).to_owned()).collect();
    // The same after the question was read, and after it was prepared.
    faults.extend(ends.iter().chain(&more).map(|end| format!("{READ}; {end}")));
    faults.extend(ends.iter().map(|end| format!("echo '{{\"prepared\": true}}'; {READ}; {end}")));
    // Answers that are none, before and while the backend works.
    for said in ["what?", "", "{", "[]", "{\"verdict\": 7}", "{\"verdict\": {\"fail\": {}}}", "null", "\\0\\377"] {
        faults.push(format!("{READ}; printf '{said}\\n'; sleep 5"));
        faults.push(format!("{READ}; {BACKEND}; printf '{said}\\n'; sleep 5"));
    }
    // It ends on its own account, as no backend in it can make it.
    faults.extend(["exit 0", "exit 3"].iter().map(|end| format!("{READ}; {BACKEND}; {end}")));
    faults
}

#[test]
fn no_fault_of_a_worker_is_a_failure_of_the_backend() {
    let faults = faults();
    assert!(faults.len() >= 50, "{}", faults.len());
    for fault in faults {
        let verdict = verdict(&fault);
        assert!(matches!(&verdict, Verdict::Invalid(why) if why.starts_with("worker: ")), "{fault}: {verdict:?}");
    }
}

#[test]
fn a_worker_that_asks_other_processes_is_not_the_backend() {
    for ending in ["kill -SEGV $$", "kill -KILL $$", "exit 7", "echo what; sleep 5"] {
        let verdict = verdict_on("torch:inductor", &format!("{READ}; {BACKEND}; {ending}"));
        assert!(matches!(&verdict, Verdict::Invalid(why) if why.starts_with("worker: ")), "{ending}: {verdict:?}");
    }
}

#[test]
fn a_backend_that_fails_on_everything_is_not_judged() {
    let fail = r#"echo '{"verdict": {"fail": {"stage": "forward", "class": "value"}}}'"#;
    let always = format!("while read line; do {fail}; done");
    let verdict = verdict(&always);
    let Verdict::Invalid(why) = &verdict else { panic!("{verdict:?}") };
    assert!(why.starts_with("worker: ") && why.contains("aten.clone"), "{why}");
}

#[test]
fn a_hang_is_ended_in_time_with_all_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let start = Instant::now();
    assert_eq!(class(&format!("sleep 60 & echo $! > {}; wait", pid.display())), Class::Hang);
    assert!(start.elapsed() < Duration::from_secs(50), "it was not ended, however busy the machine is");
    let pid: u32 = fs::read_to_string(pid).expect("a pid").trim().parse().expect("a number");
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A zombie waits only for its parent to notice.
        status.is_empty() || status.contains(") Z ")
    });
    assert!(gone, "process {pid} was left behind");
}

#[test]
fn a_crash_knows_the_stage_it_happened_in() {
    let body = format!("{READ}; echo '{{\"stage\": \"backward\"}}'; kill -SEGV $$");
    let Verdict::Fail(signature) = verdict(&body) else {
        panic!("the worker died");
    };
    assert_eq!(signature.stage, pyrite_oracle::Stage::Backward);
}

#[test]
fn a_worker_that_ends_while_the_reference_runs_says_nothing_of_the_backend() {
    let before = format!("{READ}; echo '{{\"reference\": true}}'");
    let after = BACKEND;
    for ending in ["kill -SEGV $$", "kill -KILL $$", "sleep 60"] {
        let Verdict::Invalid(why) = verdict(&format!("{before}; {ending}")) else { panic!("{ending}: an answer") };
        assert!(why.contains("the reference eager"), "{ending}: {why}");
        assert!(matches!(verdict(&format!("{before}; {after}; {ending}")), Verdict::Fail(_)), "{ending}");
        let again = format!("{before}; {after}; echo '{{\"reference\": true}}'; {ending}");
        assert!(matches!(verdict(&again), Verdict::Invalid(_)), "{ending}: the reference was asked once more");
    }
}

#[test]
fn a_worker_that_cannot_be_started_makes_the_question_invalid() {
    let question = Question {
        backend: "eager".into(),
        reference: "eager".into(),
        accuracy: Accuracy::Fp,
        forward_only: false,
        seed: 0,
        rewrites: None,
        refused: Vec::new(),
        switches: pyrite_debug::Switches::default(),
        thorough: false,
    };
    let limits = Limits { time: Duration::from_secs(1), memory: None };
    let oracle = Isolated::new(Path::new("/no/such/program"), Vec::new(), question, limits).expect("a folder");
    assert!(matches!(oracle.judge(&candidate()), Verdict::Invalid(_)));
}

#[test]
fn a_command_answers_by_its_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let ask = |body: &str| {
        let command = format!("sh {}", script(folder.path(), body).display());
        Command::new(&command, Duration::from_millis(1500)).expect("a command").judge(&candidate())
    };
    assert_eq!(ask("test -f \"$1\" && grep -q relu \"$1\" && exit 0; exit 9"), Verdict::Pass);
    assert!(matches!(ask("exit 1"), Verdict::Fail(signature) if signature.class == Class::Exit(1)));
    for code in [2, 3, 125, 126, 127] {
        assert!(matches!(ask(&format!("exit {code}")), Verdict::Invalid(_)), "{code}");
    }
    assert!(matches!(ask("kill -SEGV $$"), Verdict::Fail(signature) if signature.class == Class::Signal(11)));
    assert!(matches!(ask("sleep 30"), Verdict::Fail(signature) if signature.class == Class::Hang));
}

#[test]
fn a_worker_that_somebody_kills_is_replaced_and_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("killed");
    let body = format!(
        "{READ}; test -f {mark} || {{ touch {mark}; kill -KILL $$; }}; echo '{{\"verdict\": \"pass\"}}'; read line",
        mark = mark.display()
    );
    assert_eq!(verdict(&body), Verdict::Pass);
    assert!(mark.exists(), "the first worker was killed");
}

#[test]
fn the_trivial_program_is_on_the_device_of_the_one_that_failed() {
    // A compiler for which the device of the trivial program is the only one that works.
    let body = |device: &str| {
        format!(
            "read line; case \"$line\" in *trivial_*) f=$(echo \"$line\" | sed 's/.*\"file\":\"\\([^\"]*\\)\".*/\\1/'); \
             {device} && {{ echo '{{\"verdict\": \"pass\"}}'; read line; exit; }};; esac; {BACKEND}; kill -SEGV $$"
        )
    };
    let mut elsewhere = candidate();
    elsewhere.graph.put_on(&Device::from_name("cuda:0"));
    let crashes =
        |verdict: Verdict| matches!(verdict, Verdict::Fail(signature) if signature.class == Class::Signal(11));
    assert!(crashes(verdict_about(&elsewhere, "eager", &body("grep -q cuda \"$f\""))));
    assert!(crashes(verdict_about(&candidate(), "eager", &body("! grep -q cuda \"$f\""))));
    assert!(matches!(verdict_about(&candidate(), "eager", &body("grep -q cuda \"$f\"")), Verdict::Invalid(_)));
}

#[test]
fn a_trivial_program_is_not_called_again_with_its_results_kept() {
    let fail = r#"echo '{"verdict": {"fail": {"stage": "forward", "class": "value"}}}'"#;
    let body = format!(
        r#"while read line; do case "$line" in *trivial_*calls=* | *calls=*trivial_*) {fail};; *trivial_*mode=* | *mode=*trivial_*)
        echo '{{"verdict": "pass"}}';; *) {fail};; esac; done"#
    );
    let found = verdict_on("torch:inductor?mode=reduce-overhead&calls=3", &body);
    assert!(matches!(&found, Verdict::Fail(signature) if signature.class == Class::Value), "{found:?}");
}
