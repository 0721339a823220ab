//! An oracle that asks any program.
//!
//! The program gets the path of a repro file as its last argument. Exit code 0: the failure is not there; 1: it is; 125
//! and every other code, such as the 127 of a shell that does not find a command: cannot tell. A signal and the time limit
//! are failures of their own class. The words of a command are split as a shell splits them, and nothing is expanded.

use std::process::Command as Program;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyrite_oracle::{Class, Oracle, Signature, Stage, Verdict};
use pyrite_reduce::Candidate;

use crate::process::{Heard, Process};
use crate::repro::{Folder, RepoError};

/// Asks a program; see the module's text.
pub struct Command {
    words: Vec<String>,
    time: Duration,
    scratch: Mutex<Folder>,
    place: tempfile::TempDir,
    asked: AtomicU64,
    failed: Mutex<Option<String>>,
}

impl Command {
    /// A program with its arguments, as a shell reads them.
    pub fn new(line: &str, time: Duration) -> Result<Self, RepoError> {
        let place =
            tempfile::tempdir().map_err(|e| RepoError::Io { path: std::env::temp_dir(), cause: e.to_string() })?;
        Ok(Self {
            words: split(line),
            time,
            scratch: Mutex::new(Folder::scratch(place.path())?),
            place,
            asked: AtomicU64::new(0),
            failed: Mutex::default(),
        })
    }

    /// Why a candidate could not be written, if one could not.
    pub fn failed(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Where candidates are written.
    pub fn scratch(&self) -> &std::path::Path {
        self.place.path()
    }

    /// With a program that runs the command as its own arguments say, and ends it when this process is gone.
    #[must_use]
    pub fn supervised_by(mut self, program: Vec<String>) -> Self {
        let parent = std::process::id().to_string();
        let supervise = ["supervise".to_owned(), "--parent".to_owned(), parent, "--".to_owned()];
        self.words.splice(..0, program.into_iter().chain(supervise));
        self
    }

    /// What the program says of a file.
    pub fn ask(&self, path: &std::path::Path) -> Verdict {
        let Some((program, args)) = self.words.split_first() else {
            return Verdict::Invalid("the check command is empty".to_owned());
        };
        let mut process = match Process::start(Program::new(program).args(args).arg(path)) {
            Ok(process) => process,
            Err(error) => {
                return Verdict::Invalid(format!(
                    "{program} cannot be started: {error}; is it spelled so, and executable?"
                ));
            }
        };
        drop(process.input.take());
        let until = Instant::now() + self.time;
        while let Heard::Line(_) = process.hear(until) {}
        let Some(status) = process.wait(until) else {
            return Verdict::Fail(Signature::new(Stage::Forward, Class::Hang));
        };
        match status.code() {
            Some(0) => Verdict::Pass,
            Some(1) => Verdict::Fail(Signature::new(Stage::Forward, Class::Exit(1))),
            Some(code) => {
                let said = process.errors();
                let why = said.trim().lines().last().map(|last| format!(": {last}")).unwrap_or_default();
                let ended = if code == 125 { String::new() } else { format!(" (exit code {code})") };
                Verdict::Invalid(format!("the command could not decide{ended}{why}"))
            }
            None => Verdict::Fail(Signature::new(Stage::Forward, process.class(status))),
        }
    }
}

/// The program of a command line, where this machine has none of that name that can be started.
pub fn missing_program(line: &str) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let program = split(line).into_iter().next().unwrap_or_default();
    let starts = |path: &std::path::Path| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let known = if program.contains('/') {
        starts(program.as_ref())
    } else {
        let places = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&places).any(|place| starts(&place.join(&program)))
    };
    (!known).then_some(program)
}

/// The words of a command line, as a shell splits them: at blanks that are not quoted. Quotes that are not closed end with
/// the line.
pub(crate) fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = line.chars().peekable();
    while let Some(letter) = rest.next() {
        match (letter, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            ('\\', None) => word.get_or_insert_default().extend(rest.next()),
            ('\\', Some('"')) if rest.peek().is_some_and(|next| "\"\\$`".contains(*next)) => {
                word.get_or_insert_default().extend(rest.next());
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

impl Oracle<Candidate> for Command {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let written = {
            let folder = self.scratch.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            folder.write(&format!("candidate_{number}.py"), candidate, &[])
        };
        match written {
            Ok(path) => self.ask(&path),
            Err(error) => {
                let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failed.get_or_insert(error.to_string());
                Verdict::Invalid(error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{missing_program, split};

    #[test]
    fn a_program_is_missing_where_none_of_its_name_can_be_started() {
        for line in ["sh -c true", "/bin/sh", "'sh' x"] {
            assert_eq!(missing_program(line), None, "{line}");
        }
        for line in ["no-such-program x", "/bin", "/etc/passwd", "./no-such-program", ""] {
            assert!(missing_program(line).is_some(), "{line}");
        }
    }

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        let check = r#"sh -c "! grep -q relu $0""#;
        assert_eq!(split(check), ["sh", "-c", "! grep -q relu $0"]);
        assert_eq!(split(r#"a\ b 'c d'\''e' \"f"#), ["a b", "c d'e", "\"f"]);
        assert_eq!(split(r#"  "a \" \n" '' "#), [r#"a " \n"#, ""]);
        assert!(split("  ").is_empty());
    }
}
