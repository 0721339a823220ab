//! Processes under limits: started in a group of their own, heard by threads, ended as a group.
//!
//! They start as from a shell: what Pyrite holds back of signals for itself is not held back from them.

#![expect(unsafe_code, reason = "a process sets its signals between fork and exec")]

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
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // SAFETY: between fork and exec only functions are called that may be called there.
        let mut child = unsafe { command.pre_exec(unblock_signals) }.spawn()?;
        let (send, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                // Whoever prints bytes that are no text goes on to be heard.
                let mut output = BufReader::new(output);
                let mut line = Vec::new();
                while let Ok(1..) = output.read_until(b'\n', &mut line) {
                    let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                    if send.send(text).is_err() {
                        break;
                    }
                    line.clear();
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

/// Lets all signals through to this process: a program that waits for one that it sends would wait for ever.
fn unblock_signals() -> std::io::Result<()> {
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled before it is read, and both functions may be called between fork and exec.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
    Ok(())
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
    fn bytes_that_are_no_text_do_not_end_a_conversation() {
        let said = asked(&mut shell("printf 'a\\377b\\r\\nsecond\\nthird'"), "", Duration::from_mins(1));
        assert_eq!(said.as_deref(), Some("a\u{fffd}b\nsecond\nthird\n"));
    }

    #[test]
    fn signals_that_are_held_back_here_reach_processes() {
        let mut held = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is filled before it is read; this thread alone holds the signal back, and ends with the test.
        unsafe {
            libc::sigemptyset(held.as_mut_ptr());
            libc::sigaddset(held.as_mut_ptr(), libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, held.as_ptr(), std::ptr::null_mut());
        }
        let mut process = Process::start(&mut shell("kill -TERM $$; echo alive")).expect("a shell");
        let ended = process.wait(Instant::now() + Duration::from_mins(1)).expect("it ends");
        assert_eq!(ended.signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn nobody_waits_for_a_program_longer_than_it_may_take() {
        let begin = Instant::now();
        assert_eq!(asked(&mut shell("echo first; sleep 60"), "", Duration::from_millis(200)), None);
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
