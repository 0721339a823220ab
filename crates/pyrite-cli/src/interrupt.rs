//! Ctrl-C and SIGTERM during a long search.
//!
//! The signals are held back from all threads, and one thread waits for them: it says how to go on and ends the process.
//! Workers notice that their parent is gone. Threads that ran before [`hold`] still end the process at once, which loses
//! the message and nothing else.

use std::sync::{Mutex, Once, PoisonError};

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

/// What is said when a signal comes.
type Farewell = Box<dyn FnOnce() + Send>;

static FAREWELL: Mutex<Option<Farewell>> = Mutex::new(None);

/// Ends the process at a signal, after a last word: the one that was given last.
pub fn watch(farewell: impl FnOnce() + Send + 'static) {
    static WAITING: Once = Once::new();
    *FAREWELL.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(farewell));
    WAITING.call_once(|| {
        std::thread::spawn(|| {
            if let Ok(signal) = signals().wait() {
                let farewell = FAREWELL.lock().unwrap_or_else(PoisonError::into_inner).take();
                farewell.into_iter().for_each(|farewell| farewell());
                std::process::exit(128 + signal as i32);
            }
        });
    });
}
