//! Last words: which node of which graph was running when a signal ended the process.
//!
//! Whoever runs a program says so with [`running`]; the handler that [`install`] sets for SIGSEGV, SIGFPE, SIGILL,
//! SIGABRT and SIGBUS writes it to standard error and lets the signal take its course, so that the process still ends as
//! it would have. A process that is killed from outside, as for want of memory, cannot speak: for that there is a
//! [`Trail`], a file that holds the same words while the program runs.
//!
//! Invariant: the handler calls nothing but `write`, `signal` and `raise`, and reads nothing but atomics.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

/// As much as is kept of what is running.
const LENGTH: usize = 512;

static TEXT: [AtomicU8; LENGTH] = [const { AtomicU8::new(0) }; LENGTH];
static USED: AtomicUsize = AtomicUsize::new(0);
static SET: AtomicBool = AtomicBool::new(false);

const SIGNALS: [(i32, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
];

/// Says what is running now; an empty text when nothing is.
pub fn running(what: &str) {
    USED.store(0, Ordering::Release);
    let bytes = what.as_bytes();
    let length = bytes.len().min(LENGTH);
    for (place, byte) in TEXT.iter().zip(&bytes[..length]) {
        place.store(*byte, Ordering::Relaxed);
    }
    USED.store(length, Ordering::Release);
}

/// Whether the handler is set, so that somebody hears what is running.
pub fn are_heard() -> bool {
    SET.load(Ordering::Relaxed)
}

/// Sets the handler; doing so again changes nothing.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        SET.store(true, Ordering::Relaxed);
        for (signal, _) in SIGNALS {
            // SAFETY: the structure is zeroed, which is a valid empty one, and `last_words` is async-signal-safe: it
            // allocates nothing and takes no lock.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = last_words as extern "C" fn(libc::c_int) as usize;
                action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
                libc::sigemptyset(&raw mut action.sa_mask);
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    });
}

extern "C" fn last_words(signal: libc::c_int) {
    let name = SIGNALS.iter().find(|(number, _)| *number == signal).map_or("a signal", |(_, name)| name);
    say(b"pyrite: ");
    say(name.as_bytes());
    let length = USED.load(Ordering::Acquire).min(LENGTH);
    if length > 0 {
        say(b" while running ");
        let mut text = [0u8; LENGTH];
        for (byte, place) in text.iter_mut().zip(&TEXT[..length]) {
            *byte = place.load(Ordering::Relaxed);
        }
        say(&text[..length]);
    }
    say(b"\n");
    // SAFETY: both are async-signal-safe; the default action ends the process once this handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn say(bytes: &[u8]) {
    // SAFETY: the pointer and the length are those of a slice. Nothing can be done where it fails.
    unsafe {
        libc::write(2, bytes.as_ptr().cast(), bytes.len());
    }
}

/// A file that says what is running, and is gone when the program has come to an end of its own.
pub struct Trail {
    file: File,
    path: PathBuf,
}

impl Trail {
    /// A new file.
    pub fn begin(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, path: path.to_owned() })
    }

    /// Says what is running now. The words outlive the process, though not the machine.
    pub fn running(&self, what: &str) {
        // A trail that cannot be written is no reason to stop the program it is about.
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(what.as_bytes(), 0));
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
