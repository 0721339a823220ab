//! Last words: which node of which graph was running when a signal ended the process.
//!
//! Whoever runs a program says so with [`running`]; the handler that [`install`] sets for SIGSEGV, SIGFPE, SIGILL,
//! SIGABRT and SIGBUS writes it to standard error and hands the signal to whoever handled it before, so that the process
//! still ends, or goes on, as it would have. Where nobody listens any more, the former handlers are put back. A process
//! that is killed from outside, as the kernel does when it is out of memory, cannot speak: for that there is a [`Trail`], a
//! file that holds the same words while the program runs.
//!
//! Invariant: the handler calls nothing but `write`, `sigaction` and `raise`, and reads nothing but atomics and the former
//! actions, which are written before it is set.

#![expect(unsafe_code, reason = "signal handlers are the C library's")]

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// As much as is kept of what is running.
const LENGTH: usize = 512;

static TEXT: [AtomicU8; LENGTH] = [const { AtomicU8::new(0) }; LENGTH];
static USED: AtomicUsize = AtomicUsize::new(0);
static LISTENERS: AtomicUsize = AtomicUsize::new(0);

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
    LISTENERS.load(Ordering::Relaxed) > 0
}

/// Lets last words be said for as long as it lives.
#[must_use = "nobody listens once it is gone"]
pub struct Heard(());

/// The actions that were there before, one for each signal. They are written by who holds [`SETTING`], while the handler
/// is not set.
struct Former(UnsafeCell<[MaybeUninit<libc::sigaction>; SIGNALS.len()]>);

// SAFETY: it is written while nobody can read it, as said above.
unsafe impl Sync for Former {}

static FORMER: Former = Former(UnsafeCell::new([const { MaybeUninit::uninit() }; SIGNALS.len()]));
/// Held by who sets the handler or puts the former ones back.
static SETTING: Mutex<()> = Mutex::new(());

/// Sets the handler, unless it is.
pub fn install() -> Heard {
    let _setting = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    if LISTENERS.load(Ordering::Relaxed) == 0 {
        // SAFETY: the handler is not set, and the lock is held.
        let former = unsafe { &mut *FORMER.0.get() };
        for ((signal, _), place) in SIGNALS.iter().zip(former) {
            // SAFETY: the structure is zeroed, which is a valid empty one, and `last_words` is async-signal-safe: it
            // allocates nothing and takes no lock. The former action is there before the handler can run.
            unsafe {
                libc::sigaction(*signal, std::ptr::null(), place.as_mut_ptr());
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler();
                action.sa_flags = libc::SA_ONSTACK | libc::SA_SIGINFO;
                libc::sigemptyset(&raw mut action.sa_mask);
                libc::sigaction(*signal, &raw const action, std::ptr::null_mut());
            }
        }
    }
    LISTENERS.fetch_add(1, Ordering::Relaxed);
    Heard(())
}

impl Drop for Heard {
    fn drop(&mut self) {
        let _setting = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
        if LISTENERS.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        // SAFETY: the lock is held, so nobody writes.
        let former = unsafe { &*FORMER.0.get() };
        for ((signal, _), place) in SIGNALS.iter().zip(former) {
            // SAFETY: the former action was read when the handler was set. Who has put another handler before ours since
            // keeps it.
            unsafe {
                let mut now: libc::sigaction = std::mem::zeroed();
                libc::sigaction(*signal, std::ptr::null(), &raw mut now);
                if now.sa_sigaction == handler() {
                    libc::sigaction(*signal, place.as_ptr(), std::ptr::null_mut());
                }
            }
        }
    }
}

fn handler() -> usize {
    last_words as extern "C" fn(libc::c_int, *const libc::siginfo_t, *mut libc::c_void) as usize
}

extern "C" fn last_words(signal: libc::c_int, told: *const libc::siginfo_t, _: *mut libc::c_void) {
    let place = SIGNALS.iter().position(|(number, _)| *number == signal);
    say(b"pyrite: ");
    say(place.map_or("a signal", |place| SIGNALS[place].1).as_bytes());
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
    // SAFETY: both functions are async-signal-safe. The former actions were written before this handler was set and are
    // only read since, so the lock, which a handler must not wait for, is not needed.
    unsafe {
        let former = &*FORMER.0.get();
        if let Some(place) = place {
            libc::sigaction(signal, former[place].as_ptr(), std::ptr::null_mut());
        }
        // What the processor raised is raised again by the same instruction, with what it says of the place.
        let by_processor = !told.is_null() && (*told).si_code > 0 && signal != libc::SIGABRT;
        if !by_processor {
            libc::raise(signal);
        }
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
