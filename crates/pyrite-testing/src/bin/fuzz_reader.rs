//! Fuzzes the reader: `fuzz-reader --seconds 60 [--start N]`. A panic, or whatever
//! else ends the process, is reported with its case and text; exit code 1. Words it does not know end it with 2.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyrite_testing::fuzz;

const USAGE: &str = "usage: fuzz-reader [--seconds N] [--start N]

Feeds broken files to the reader and the verifier until the time is over.

  --seconds N  how long [default: 60]
  --start N    the number of the first case [default: 0]; a case is the same text every time
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|word| word == "--help" || word == "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match Asked::of(&arguments) {
        Ok(Asked { seconds, start, at_hand: Some(folder) }) => fuzz(seconds, start, &folder),
        Ok(_) => watch(&arguments),
        Err(wrong) => {
            eprintln!("fuzz-reader: {wrong}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// What the command line says.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    seconds: u64,
    start: u64,
    /// Where the process that fuzzes notes the cases at hand.
    at_hand: Option<PathBuf>,
}

impl Asked {
    fn of(arguments: &[String]) -> Result<Self, String> {
        let mut asked = Self { seconds: 60, start: 0, at_hand: None };
        for words in arguments.chunks(2) {
            let value = words.get(1).ok_or_else(|| format!("`{}` wants a value", words[0]))?;
            let number = || value.parse().map_err(|_| format!("`{value}` after `{}` is no number", words[0]));
            match words[0].as_str() {
                "--seconds" => asked.seconds = number()?,
                "--start" => asked.start = number()?,
                "--at-hand" => asked.at_hand = Some(PathBuf::from(value)),
                other => return Err(format!("`{other}` is not an option")),
            }
        }
        Ok(asked)
    }
}

/// Runs the fuzzer in a process of its own: what ends it without a panic (a stack overflow, a kill by the out-of-memory killer)
/// is reported with the cases that were at hand.
fn watch(arguments: &[String]) -> ExitCode {
    let folder = std::env::temp_dir().join(format!("fuzz-reader-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let program = std::env::current_exe().expect("the program knows its path");
    let status = std::process::Command::new(program).args(arguments).arg("--at-hand").arg(&folder).status();
    let status = status.expect("the program can be started again");
    if status.code().is_none() {
        eprintln!("fuzz-reader: ended by {status}, at hand were");
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let number = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let text = number.trim().parse().map(|number| fuzz::case(&seeds(), number)).unwrap_or_default();
            eprintln!("case {}:\n{}\n", number.trim(), String::from_utf8_lossy(&text));
        }
    }
    std::fs::remove_dir_all(&folder).ok();
    ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))
}

fn fuzz(seconds: u64, start: u64, at_hand: &Path) -> ExitCode {
    let seeds = seeds();
    let next = AtomicU64::new(start);
    let failed = AtomicU64::new(0);
    let counts: [AtomicU64; 3] = Default::default();
    let deadline = Instant::now() + Duration::from_secs(seconds);
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for thread in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            // A deep recursion must show as a panic of the reader's own limits, not hide behind a large stack.
            let worker = std::thread::Builder::new().stack_size(2 << 20);
            let note = File::create(at_hand.join(thread.to_string())).expect("the case at hand can be noted");
            let (seeds, next, failed, counts) = (&seeds, &next, &failed, &counts);
            let spawned = worker.spawn_scoped(scope, move || {
                while Instant::now() < deadline {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    note.write_all_at(format!("{number:<20}").as_bytes(), 0).expect("the case at hand can be noted");
                    let text = fuzz::case(seeds, number);
                    match std::panic::catch_unwind(|| fuzz::check(&text)) {
                        Ok(reading) => {
                            counts[reading as usize].fetch_add(1, Ordering::Relaxed);
                        }
                        Err(panic) => {
                            let text_of = panic.downcast_ref::<String>().cloned();
                            let message = text_of
                                .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
                                .unwrap_or_default();
                            eprintln!("case {number}: {message}\n{}\n", String::from_utf8_lossy(&text));
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
            spawned.expect("a thread can be started");
        }
    });
    let cases = next.load(Ordering::Relaxed) - start;
    let failed = failed.load(Ordering::Relaxed);
    let [refused, kept, changed] = counts.map(AtomicU64::into_inner);
    println!(
        "fuzz-reader: {cases} cases in {seconds} s ({refused} refused, {kept} round trips, {changed} changed), {failed} panics"
    );
    ExitCode::from(u8::from(failed > 0))
}

/// The file tests and the reader's fixtures.
fn seeds() -> Vec<Vec<u8>> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut seeds = Vec::new();
    for folder in [here.join("filetests"), here.join("../pyrite-reader/tests/fixtures")] {
        collect(&folder, &mut seeds);
    }
    assert!(!seeds.is_empty(), "there are no seeds");
    seeds
}

fn collect(folder: &std::path::Path, seeds: &mut Vec<Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, seeds);
        } else if path.extension().is_some_and(|e| e == "py") {
            seeds.extend(std::fs::read(&path).ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Asked;

    fn asked(words: &str) -> Result<Asked, String> {
        Asked::of(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn words_that_are_no_options_are_refused_by_name() {
        assert_eq!(asked("--start 7"), Ok(Asked { seconds: 60, start: 7, at_hand: None }));
        assert_eq!(asked("--second 5").unwrap_err(), "`--second` is not an option");
        assert_eq!(asked("--seconds").unwrap_err(), "`--seconds` wants a value");
        assert_eq!(asked("--seconds soon").unwrap_err(), "`soon` after `--seconds` is no number");
    }
}
