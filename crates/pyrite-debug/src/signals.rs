//! Last words: which node of which graph was running when a signal ended the process.
//!
//! Whoever runs a program says so with [`running`]; the handler that [`install`] sets for SIGSEGV, SIGFPE, SIGILL,
//! SIGABRT and SIGBUS writes it to standard error and hands the signal to whoever handled it before, so that the process
//! still ends, or goes on, as it would have. Where nobody listens any more, the former handlers are put back. A process
//! that is killed from outside, as the kernel does when it is out of memory, cannot speak: for that there is a [`Trail`], a
//! file that holds the same words while the program runs.
//!
//! A [`Witness`] knows without being told what runs, and can write it down: [`watch`] has the handler ask it, for good. It
//! says nothing of signals that come while nothing of Pyrite's runs.
//!
//! Invariants:
//! - The handler calls nothing but functions that handlers may call, and reads nothing but atomics, the memory of its thread
//!   and the former actions, which are written before it is set.
//! - What takes memory or locks runs in a copy of the process, which is made without asking the C library, because its `fork`
//!   takes the allocator's locks. The copy has [`COPY_SECONDS`], and its end is not the process's. A lock that another thread
//!   held when the copy was made is never released there, so one that does not come to its end in time is made once more.

#![expect(unsafe_code, reason = "signal handlers are the C library's")]

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// As much as is kept of what is running.
const LENGTH: usize = 512;

static TEXT: [AtomicU8; LENGTH] = [const { AtomicU8::new(0) }; LENGTH];
static USED: AtomicUsize = AtomicUsize::new(0);
static LISTENERS: AtomicUsize = AtomicUsize::new(0);
/// Those of them that hear of a [`Witness`] alone.
static QUIET: AtomicUsize = AtomicUsize::new(0);
static WITNESS: OnceLock<Witness> = OnceLock::new();
/// The thread that asks a witness, [`NOBODY`], or [`DONE`] when one has been asked: one crash is written down.
static TELLER: AtomicI32 = AtomicI32::new(NOBODY);
const NOBODY: i32 = 0;
const DONE: i32 = -1;

/// How long a copy of a process that dies may take to write down what ran, try by try.
const COPY_SECONDS: [u32; 3] = [3, 6, 20];
/// What a thread that waits for it sleeps at a time, in nanoseconds, and how many times that is in a second.
const PAUSE: libc::c_long = 10_000_000;
const PAUSES: u32 = 100;

/// What writes down what ran, and says where.
pub type Leaving = Box<dyn FnOnce() -> Option<PathBuf> + Send>;

/// Who knows what runs.
#[derive(Clone, Copy)]
pub struct Witness {
    /// Says what runs on this thread, and whether something does. It is called in the handler.
    pub says: fn(&mut dyn FnMut(&str)) -> bool,
    /// How to write down what runs on this thread when this signal comes. It is called in a copy of the process.
    pub leaves: fn(i32) -> Option<Leaving>,
}

/// Sets the handler for good, for what a witness says. The first one stays.
pub fn watch(witness: Witness) {
    if WITNESS.set(witness).is_ok() {
        QUIET.fetch_add(1, Ordering::Relaxed);
        std::mem::forget(install());
    }
}

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
    LISTENERS.load(Ordering::Relaxed) > QUIET.load(Ordering::Relaxed)
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

extern "C" fn last_words(signal: libc::c_int, told: *const libc::siginfo_t, context: *mut libc::c_void) {
    let place = SIGNALS.iter().position(|(number, _)| *number == signal);
    let name = place.map_or("a signal", |place| SIGNALS[place].1);
    let begin = || {
        say(b"pyrite: ");
        say(name.as_bytes());
    };
    let length = USED.load(Ordering::Acquire).min(LENGTH);
    if are_heard() || length > 0 {
        begin();
        if length > 0 {
            say(b" while running ");
            let mut text = [0u8; LENGTH];
            for (byte, place) in text.iter_mut().zip(&TEXT[..length]) {
                *byte = place.load(Ordering::Relaxed);
            }
            say(&text[..length]);
        }
        say(b"\n");
    }
    if let Some(witness) = WITNESS.get()
        && claim()
    {
        let mut first = true;
        let runs = (witness.says)(&mut |text| {
            if std::mem::take(&mut first) {
                begin();
                say(b" in ");
            }
            say(text.as_bytes());
        });
        if runs {
            say(b"\n");
            leave(*witness, signal);
        }
        TELLER.store(if runs { DONE } else { NOBODY }, Ordering::Release);
    }
    hand_on(signal, place, told, context);
}

/// Lets this thread tell what runs, once for the process. Threads that fault beside it wait until it has told: whichever comes
/// first to the former handler ends the process.
fn claim() -> bool {
    // SAFETY: both are system calls that handlers may make.
    let (own, pause) = unsafe { (libc::gettid(), libc::timespec { tv_sec: 0, tv_nsec: PAUSE }) };
    for _ in 0..(COPY_SECONDS.iter().sum::<u32>() + 5) * PAUSES {
        match TELLER.compare_exchange(NOBODY, own, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => return true,
            // A fault while it is told ends it.
            Err(teller) if teller == DONE || teller == own => return false,
            // SAFETY: as above.
            Err(_) => unsafe {
                libc::nanosleep(&raw const pause, std::ptr::null_mut());
            },
        }
    }
    false
}

/// Gives a signal to whoever handled it before.
fn hand_on(signal: libc::c_int, place: Option<usize>, told: *const libc::siginfo_t, context: *mut libc::c_void) {
    let Some(place) = place else { return };
    // SAFETY: the former actions were written before this handler was set and are only read since, so the lock, which a
    // handler must not wait for, is not needed. A former handler is a function of the kind that its flags say, and gets what
    // it would have got.
    unsafe {
        let former = (*FORMER.0.get())[place].assume_init_ref();
        let handler = former.sa_sigaction;
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            libc::sigaction(signal, former, std::ptr::null_mut());
            // What the processor raised is raised again by the same instruction, with what it says of the place.
            let by_processor = !told.is_null() && (*told).si_code > 0 && signal != libc::SIGABRT;
            if !by_processor {
                libc::raise(signal);
            }
        } else if former.sa_flags & libc::SA_SIGINFO != 0 {
            type Informed = extern "C" fn(libc::c_int, *const libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Informed>(handler)(signal, told, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
        }
    }
}

/// Has a copy of this process write down what runs, and waits for it.
fn leave(witness: Witness, signal: libc::c_int) {
    let _ = COPY_SECONDS.iter().any(|seconds| leave_within(*seconds, witness, signal));
}

/// The same, within so many seconds; whether it came to an end.
fn leave_within(seconds: u32, witness: Witness, signal: libc::c_int) -> bool {
    // SAFETY: the system call copies the process, as `fork` does; in the copy this thread alone goes on. Both sides go on
    // with functions that handlers may call, but for `leave_in_copy`, which does not come back.
    unsafe {
        let copy = libc::syscall(libc::SYS_clone, libc::c_long::from(libc::SIGCHLD), 0, 0, 0, 0);
        match libc::pid_t::try_from(copy) {
            Ok(0) => leave_in_copy(seconds, witness, signal),
            Ok(copy) if copy > 0 => {
                let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE };
                for _ in 0..(seconds + 1) * PAUSES {
                    let mut status = 0;
                    if libc::waitpid(copy, &raw mut status, libc::WNOHANG) != 0 {
                        return !libc::WIFSIGNALED(status) || libc::WTERMSIG(status) != libc::SIGALRM;
                    }
                    libc::nanosleep(&raw const pause, std::ptr::null_mut());
                }
                libc::kill(copy, libc::SIGKILL);
                libc::waitpid(copy, std::ptr::null_mut(), 0);
                false
            }
            _ => true,
        }
    }
}

/// Writes down what runs, in a copy of the process, and ends it. A thread of its own has a whole stack.
fn leave_in_copy(seconds: u32, witness: Witness, signal: libc::c_int) -> ! {
    // SAFETY: the copy has one thread, this one. Signals do what they do in a fresh process, so that it ends in time.
    unsafe {
        for number in SIGNALS.iter().map(|(number, _)| *number).chain([libc::SIGALRM]) {
            libc::signal(number, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::alarm(seconds);
    }
    if let Some(write) = (witness.leaves)(signal) {
        let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(write);
        let written = thread.ok().and_then(|thread| thread.join().ok()).flatten();
        let text = match written {
            Some(path) => {
                format!("pyrite: the program is in {0}; `pyrite debug {0}` goes on from there\n", path.display())
            }
            None => "pyrite: the program could not be written down\n".to_owned(),
        };
        say(text.as_bytes());
    }
    // SAFETY: nothing of the copy is to be undone.
    unsafe { libc::_exit(0) }
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
