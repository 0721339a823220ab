//! Last words leave the signals of a process to whoever handles them.

#![expect(unsafe_code, reason = "signal handlers are the C library's")]

use std::process::Command;

use pyrite_debug::signals;

extern "C" fn before(_: libc::c_int) {
    // SAFETY: it ends the process at once, and may be called from a handler.
    unsafe { libc::_exit(7) }
}

fn action(signal: i32) -> libc::sigaction {
    // SAFETY: the structure is zeroed, which is a valid empty one, and only asked for.
    unsafe {
        let mut found: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut found);
        found
    }
}

#[test]
fn a_signal_is_handed_on_to_who_handled_it_before() {
    const CHILD: &str = "PYRITE_TEST_SIGNALS_CHILD";
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: the handler may run at any time.
        unsafe { libc::signal(libc::SIGSEGV, before as extern "C" fn(libc::c_int) as usize) };
        let _heard = signals::install();
        // SAFETY: the process ends by it.
        unsafe { libc::raise(libc::SIGSEGV) };
        unreachable!("a handler has ended the process");
    }
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "signals::a_signal_is_handed_on_to_who_handled_it_before", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("this program runs");
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), Some(7), "{said}");
    assert!(said.contains("pyrite: SIGSEGV"), "{said}");
}

#[test]
fn former_handlers_are_back_when_nobody_listens() {
    let former = action(libc::SIGBUS).sa_sigaction;
    let heard = [signals::install(), signals::install()];
    assert_ne!(action(libc::SIGBUS).sa_sigaction, former);
    drop(heard);
    assert_eq!(action(libc::SIGBUS).sa_sigaction, former);
}
