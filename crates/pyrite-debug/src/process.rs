//! Processes under limits: started in a group of their own, heard by threads, ended as a group.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pyrite_oracle::Class;

/// A process whose lines are heard as they come.
pub struct Process {
    child: Child,
    /// What it reads.
    pub input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

/// How many times as long as on an idle machine something may take at most, before it is a hang.
pub const MOST_CROWDED: u32 = 4;

/// How many times as long as on an idle machine something may take now: where more work waits than there are processors, a
/// process gets its share of their time, and what is slow for that reason does not hang.
pub fn crowding() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    crowding_of(load, std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

fn crowding_of(load: f64, processors: usize) -> f64 {
    (load / processors as f64).clamp(1.0, f64::from(MOST_CROWDED))
}

/// How much of what a process says on standard error is kept.
const KEPT: usize = 1 << 16;

/// What a process did within its time.
pub enum Heard {
    /// A line, without its end.
    Line(String),
    /// It closed its output or ended.
    Ended,
    /// It said nothing in time.
    TimeIsUp,
}

/// What a program prints that is told something on standard input, until it ends, however it ends; `None` when it cannot
/// be started or takes longer than a time.
pub fn asked(command: &mut Command, said: &str, time: Duration) -> Option<String> {
    let mut process = Process::start(command).ok()?;
    if let Some(mut input) = process.input.take() {
        // A program that does not listen may still have an answer.
        let _ = input.write_all(said.as_bytes());
    }
    let until = Instant::now() + time;
    let mut text = String::new();
    while let Heard::Line(line) = process.hear(until) {
        text.push_str(&line);
        text.push('\n');
    }
    process.wait(until)?;
    Some(text)
}

impl Process {
    /// Starts a program in a group of its own.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
        let (send, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines() {
                    let Ok(line) = line else { break };
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let errors = Arc::new(Mutex::new(Vec::new()));
        let mut listener = None;
        if let Some(mut output) = child.stderr.take() {
            let errors = errors.clone();
            listener = Some(std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = output.read(&mut buffer) {
                    let mut kept = errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    kept.extend_from_slice(&buffer[..count]);
                    let excess = kept.len().saturating_sub(KEPT);
                    kept.drain(..excess);
                }
            }));
        }
        let input = child.stdin.take();
        Ok(Self { child, input, lines, errors, listener })
    }

    /// The next line, if it comes in time.
    pub fn hear(&self, until: Instant) -> Heard {
        match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Disconnected) => Heard::Ended,
            Err(RecvTimeoutError::Timeout) => Heard::TimeIsUp,
        }
    }

    /// Waits for the end, up to a time.
    pub fn wait(&mut self, until: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.wait_for_listener();
                    return Some(status);
                }
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }

    /// Lets the last words of a process that ended be heard. What it started may hold its output open: nobody waits long.
    fn wait_for_listener(&self) {
        let until = Instant::now() + Duration::from_millis(500);
        while self.listener.as_ref().is_some_and(|l| !l.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What it said last on standard error.
    pub fn errors(&self) -> String {
        let kept = self.errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// How a process that ended by itself failed.
    pub(crate) fn class(&self, status: ExitStatus) -> Class {
        let errors = self.errors();
        let out_of_memory = errors.contains("memory allocation of") || errors.contains("Cannot allocate memory");
        match (status.signal(), status.code()) {
            (Some(6), _) if out_of_memory => Class::OutOfMemory,
            // Nobody here sent it: the system does, when memory is short.
            (Some(9), _) => Class::OutOfMemory,
            (Some(signal), _) => Class::Signal(signal),
            (None, code) => Class::Exit(code.unwrap_or(-1)),
        }
    }
}

/// Ends the process and everything it started.
impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_busy_machine_gives_more_time_and_an_idle_one_no_less() {
        let factors = [0.2, 2.0, 5.0, 500.0].map(|load| (crowding_of(load, 2) * 10.0) as u32);
        assert_eq!(factors, [10, 10, 25, 40]);
        assert!(crowding() >= 1.0);
    }

    #[test]
    fn a_program_that_dies_has_said_what_it_said() {
        let said = asked(&mut shell("cat; kill -SEGV $$; echo second"), "first\n", Duration::from_mins(1));
        assert_eq!(said.as_deref(), Some("first\n"));
    }

    #[test]
    fn nobody_waits_for_a_program_longer_than_it_may_take() {
        let begin = Instant::now();
        assert_eq!(asked(&mut shell("echo first; sleep 60"), "", Duration::from_millis(200)), None);
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
