//! Fuzzes the reader: `fuzz-reader --seconds 60 [--start N]`. A panic is reported with its case and text; exit code 1.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyrite_testing::fuzz;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)).and_then(|v| v.parse::<u64>().ok())
    };
    let seconds = option("--seconds").unwrap_or(60);
    let start = option("--start").unwrap_or(0);
    let seeds = seeds();
    let next = AtomicU64::new(start);
    let failed = AtomicU64::new(0);
    let counts: [AtomicU64; 3] = Default::default();
    let deadline = Instant::now() + Duration::from_secs(seconds);
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            // A deep recursion must show as a panic of the reader's own limits, not hide behind a large stack.
            let worker = std::thread::Builder::new().stack_size(2 << 20);
            let spawned = worker.spawn_scoped(scope, || {
                while Instant::now() < deadline {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let text = fuzz::case(&seeds, number);
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
    std::process::exit(i32::from(failed > 0));
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
