//! Workers that misbehave, each in its own way: the verdict says how, in time, and nothing is left running.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pyrite_debug::{Command, Isolated, Limits, Precision, Question};
use pyrite_ir::{Builder, Meta, Value};
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

/// The verdict of a worker whose program is a shell script.
fn verdict(body: &str) -> Verdict {
    let folder = tempfile::tempdir().expect("a folder");
    let question = Question {
        backend: "eager".into(),
        reference: "eager".into(),
        accuracy: Precision::Fp,
        forward_only: false,
        seed: 0,
        rewrites: None,
        refused: Vec::new(),
        switches: pyrite_debug::Switches::default(),
    };
    let limits = Limits { time: Duration::from_millis(1500), memory: None };
    let oracle = Isolated::new(&script(folder.path(), body), Vec::new(), question, limits).expect("workers");
    oracle.judge(&candidate())
}

fn class(body: &str) -> Class {
    match verdict(body) {
        Verdict::Fail(signature) => signature.class,
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn every_kind_of_death_has_its_class() {
    assert_eq!(class("read line; kill -SEGV $$"), Class::Signal(11));
    assert_eq!(class("read line; kill -ABRT $$"), Class::Signal(6));
    assert_eq!(class("read line; kill -FPE $$"), Class::Signal(8));
    assert_eq!(class("read line; kill -ILL $$"), Class::Signal(4));
    assert_eq!(class("read line; kill -KILL $$"), Class::OutOfMemory);
    assert_eq!(class("read line; echo 'memory allocation of 99 bytes failed' >&2; kill -ABRT $$"), Class::OutOfMemory);
    assert_eq!(class("read line; exit 0"), Class::Exit(0));
    assert_eq!(class("read line; exit 7"), Class::Exit(7));
    assert_eq!(class("read line; echo 'what?'; sleep 5"), Class::Garbage);
    assert_eq!(class("exit 3"), Class::Exit(3));
}

#[test]
fn a_hang_is_ended_in_time_with_all_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let start = Instant::now();
    assert_eq!(class(&format!("read line; sleep 60 & echo $! > {}; wait", pid.display())), Class::Hang);
    assert!(start.elapsed() < Duration::from_secs(10));
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
    let Verdict::Fail(signature) = verdict("read line; echo '{\"stage\": \"backward\"}'; kill -SEGV $$") else {
        panic!("the worker died");
    };
    assert_eq!(signature.stage, pyrite_oracle::Stage::Backward);
}

#[test]
fn a_worker_that_ends_while_the_reference_runs_says_nothing_of_the_backend() {
    let before = "read line; echo '{\"reference\": true}'";
    let after = "echo '{\"stage\": \"forward\"}'";
    for ending in ["kill -SEGV $$", "kill -KILL $$", "exit 0", "sleep 60"] {
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
        accuracy: Precision::Fp,
        forward_only: false,
        seed: 0,
        rewrites: None,
        refused: Vec::new(),
        switches: pyrite_debug::Switches::default(),
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
    assert!(matches!(ask("exit 125"), Verdict::Invalid(_)));
    assert!(matches!(ask("kill -SEGV $$"), Verdict::Fail(signature) if signature.class == Class::Signal(11)));
    assert!(matches!(ask("sleep 30"), Verdict::Fail(signature) if signature.class == Class::Hang));
}

#[test]
fn a_worker_that_somebody_kills_is_replaced_and_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("killed");
    let body = format!(
        "read line; test -f {mark} || {{ touch {mark}; kill -KILL $$; }}; echo '{{\"verdict\": \"pass\"}}'; read line",
        mark = mark.display()
    );
    assert_eq!(verdict(&body), Verdict::Pass);
    assert!(mark.exists(), "the first worker was killed");
}
