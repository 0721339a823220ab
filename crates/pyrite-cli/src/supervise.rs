//! `pyrite supervise PROGRAM…`: runs any program, and ends it when whoever asked is gone.
//!
//! A check command knows nothing of Pyrite and would run on after Pyrite was killed. Its supervisor, which leads the
//! process group, notices that its own parent is gone and ends the group. It ends as the program does: with its code, or
//! by its signal. A program that cannot be started cannot tell.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Signal, getpid, getppid, kill_process, kill_process_group};

use crate::ExitCode;
use crate::Outcome;

/// The code with which a program says that it cannot tell.
const CANNOT_TELL: u8 = 125;

/// The longest time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the process that started this one has ended. It is named by its id, because it may end before it is looked for.
pub fn is_gone(parent: u32) -> bool {
    getppid().is_none_or(|now| now.as_raw_nonzero().get().unsigned_abs() != parent)
}

/// Runs the program of the words.
pub fn supervise(parent: u32, words: &[String]) -> Outcome {
    let (program, args) = words.split_first().context("there is no command to run")?;
    let mut child = match Command::new(program).args(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{program} cannot be started: {error}");
            return Ok(ExitCode::from(CANNOT_TELL));
        }
    };
    let mut pause = Duration::from_micros(200);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if is_gone(parent) {
            kill_process_group(getpid(), Signal::KILL)?;
        }
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(LOOK);
    };
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        kill_process(getpid(), signal)?;
    }
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)))
}
