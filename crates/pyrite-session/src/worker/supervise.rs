//! A supervisor: runs any program, and ends it when whoever asked is gone (`pyrite supervise PROGRAM…`).
//!
//! A check command knows nothing of Pyrite and would run on after Pyrite was killed. Its supervisor, which leads the
//! process group, notices that its own parent is gone and ends the group. It ends as the program does: with its code, or
//! by its signal. A program that cannot be started cannot tell.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, getpid, getppid, kill_process, kill_process_group};

use crate::SessionError;

/// The code with which a program says that it cannot tell.
const CANNOT_TELL: u8 = 125;

/// The longest time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the process that started this one has ended. It is named by its id, because it may end before it is looked for.
pub fn is_gone(parent: u32) -> bool {
    getppid().is_none_or(|now| now.as_raw_nonzero().get().unsigned_abs() != parent)
}

/// Runs the program of the words, and gives its exit code.
pub fn supervise(parent: u32, words: &[String]) -> Result<u8, SessionError> {
    let failed = |what: &str| SessionError::system(what.to_owned());
    let Some((program, args)) = words.split_first() else { return Ok(CANNOT_TELL) };
    let mut child = match Command::new(program).args(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{program} cannot be started: {error}");
            return Ok(CANNOT_TELL);
        }
    };
    let mut pause = Duration::from_micros(200);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed("waiting for the command"))? {
            break status;
        }
        if is_gone(parent) {
            kill_process_group(getpid(), Signal::KILL).map_err(|error| failed("ending the command")(error.into()))?;
        }
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(LOOK);
    };
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        kill_process(getpid(), signal).map_err(|error| failed("ending as the command did")(error.into()))?;
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}
