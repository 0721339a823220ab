//! `cmd:PROGRAM` as a backend: any program that can say whether a failure is there.
//!
//! The program gets the path of a repro file and answers by its exit code, as [`Command`] has it. Where it answers that
//! all is fine, the results are those of `eager`, so that there is nothing to compare; every other answer is an error of
//! the run that carries its class.

use std::time::Duration;

use pyrite_compiler::backend::{Backend, Executable, Forward, Observer, register_prefix};
use pyrite_compiler::{Options, find};
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_oracle::{Class, Oracle, Signature, Verdict};
use pyrite_reduce::Candidate;
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

use crate::Command;

/// The kind of error with which a program says that it cannot tell.
pub(crate) const CANNOT_TELL: &str = "cannot tell";

/// How the reason of an invalid question begins where Pyrite's own worker failed, and not the backend.
pub(crate) const WORKER_FAILED: &str = "worker: ";

/// Makes `cmd:PROGRAM` a backend for every program; each run may take this long. With a supervisor, as
/// [`Command::supervised_by`] has it, no program outlives this process.
pub fn register(time: Duration, supervisor: Option<Vec<String>>) {
    register_prefix("cmd:", move |line| {
        let (words, supervisor) = (line.to_owned(), supervisor.clone());
        (!line.trim().is_empty()).then(|| {
            Backend::new(&format!("cmd:{line}"), "a program that answers by its exit code", move |graph, options| {
                let supervisor = supervisor.clone();
                Ok(Box::new(Asked { graph, line: words.clone(), time, supervisor, options: options.clone() }))
            })
        })
    });
}

struct Asked {
    graph: Graph,
    line: String,
    time: Duration,
    supervisor: Option<Vec<String>>,
    options: Options,
}

impl Executable for Asked {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        _: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let unwritten = |error: crate::RepoError| outside(CANNOT_TELL, &format!("{WORKER_FAILED}{error}"));
        let command = Command::new(&self.line, crate::torch::limited(self.time)).map_err(unwritten)?;
        let command = match &self.supervisor {
            Some(supervisor) => command.supervised_by(supervisor.clone()),
            None => command,
        };
        let candidate = Candidate { graph: self.graph.clone(), inputs, seed: self.options.seed };
        match command.judge(&candidate) {
            Verdict::Pass | Verdict::Noise => {
                let eager = find("eager").ok_or_else(|| OpError::fault("eager is missing"))?;
                (eager.compile)(self.graph.clone(), &self.options)?.run(candidate.inputs, None, observe)
            }
            Verdict::Fail(signature) | Verdict::Flaky { signature, .. } => Err(ended(&signature).into()),
            Verdict::Invalid(why) => Err(outside(CANNOT_TELL, &why).into()),
        }
    }
}

/// How the program ended, as the error that a judge reads the same class from.
fn ended(signature: &Signature) -> OpError {
    let kind = match signature.class {
        Class::Exit(code) => format!("exit {code}"),
        Class::Signal(signal) => format!("signal {signal}"),
        Class::OutOfMemory => "signal 9".to_owned(),
        Class::Hang => "hang".to_owned(),
        _ => signature.to_string(),
    };
    outside(&kind, &format!("the program was terminated by {kind}"))
}

fn outside(kind: &str, message: &str) -> OpError {
    OpError::Outside { kind: kind.to_owned(), place: None, message: message.to_owned(), stage: "forward".to_owned() }
}
