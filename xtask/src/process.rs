//! Running other programs: with their output passed on, and where it is needed also kept.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail};

/// Runs the command to its end, and fails if it does.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", describe(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", describe(command));
    }
    Ok(())
}

/// Whether the command starts and succeeds; what it prints is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// What a program printed, and how it ended.
pub struct Transcript {
    /// How it ended.
    pub status: ExitStatus,
    /// The lines of both streams in the order of their arrival.
    pub text: String,
}

/// Runs the command to its end, passes its output on line by line, and keeps a copy.
pub fn run_and_keep(command: &mut Command) -> Result<Transcript> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", describe(command)))?;
    let stdout = child.stdout.take().context("the child has no stdout")?;
    let stderr = child.stderr.take().context("the child has no stderr")?;

    let text = Mutex::new(String::new());
    thread::scope(|scope| {
        scope.spawn(|| pass_on(stdout, std::io::stdout(), &text));
        scope.spawn(|| pass_on(stderr, std::io::stderr(), &text));
    });
    let status = child.wait().with_context(|| format!("cannot wait for {}", describe(command)))?;
    Ok(Transcript { status, text: text.into_inner().unwrap_or_default() })
}

/// Copies lines until the stream ends. A failing terminal does not stop it: the child must never block on a full pipe.
fn pass_on(from: impl Read, mut to: impl Write, kept: &Mutex<String>) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let _ = to.write_all(&line).and_then(|()| to.flush());
        if let Ok(mut kept) = kept.lock() {
            kept.push_str(&String::from_utf8_lossy(&line));
        }
        line.clear();
    }
}

/// The command as one would type it, without its environment.
fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
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
    fn both_streams_are_kept() {
        let transcript = run_and_keep(&mut shell("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!(transcript.status.code(), Some(3));
        let mut lines: Vec<&str> = transcript.text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["err", "out"]);
    }

    #[test]
    fn a_failure_names_the_command() {
        let error = run(&mut shell("exit 3")).unwrap_err().to_string();
        assert!(error.starts_with("`sh -c exit 3` failed"), "{error}");
        assert!(!succeeds(&mut Command::new("no-such-program-as-this")));
    }
}
