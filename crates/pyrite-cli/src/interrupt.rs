//! Ctrl-C and SIGTERM during a long search.
//!
//! The signals are held back from all threads, and one thread waits for them: it says how to go on and ends the process.
//! Workers notice that their parent is gone. Threads that ran before [`hold`] still end the process at once, which loses
//! the message and nothing else.

use nix::sys::signal::{SigSet, Signal};

fn signals() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set
}

/// Holds the signals back from this thread and from those it starts.
pub fn hold() {
    let _ = signals().thread_block();
}

/// Ends the process at a signal, after a last word.
pub fn watch(farewell: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        if let Ok(signal) = signals().wait() {
            farewell();
            std::process::exit(128 + signal as i32);
        }
    });
}
