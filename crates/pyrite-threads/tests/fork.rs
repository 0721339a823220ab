//! A forked child has none of its parent's workers and must not wait for them.

use pyrite_threads::{choose, map};

#[test]
fn a_forked_child_makes_workers_of_its_own() {
    choose(Some(2));
    assert_eq!(map(100, |index| index).len(), 100);
    // SAFETY: the child computes, and leaves without running what the parent registered for its own end.
    #[expect(unsafe_code, reason = "a child is what this is about")]
    let child = unsafe { libc::fork() };
    if child == 0 {
        let barrier = std::sync::Barrier::new(2);
        let done = map(2, |index| {
            barrier.wait();
            index
        });
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "a child is what this is about")]
        unsafe {
            libc::_exit(if done == [0, 1] { 7 } else { 1 })
        }
    }
    let mut status = 0;
    for _ in 0..500 {
        // SAFETY: the child is this process's, and the status is its own variable.
        #[expect(unsafe_code, reason = "a child is what this is about")]
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended == child {
            assert!(libc::WIFEXITED(status), "the child was killed: {status}");
            assert_eq!(libc::WEXITSTATUS(status), 7);
            assert_eq!(map(100, |index| index).len(), 100);
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // SAFETY: the child is this process's.
    #[expect(unsafe_code, reason = "a child is what this is about")]
    unsafe {
        libc::kill(child, libc::SIGKILL);
    }
    panic!("the child waits for threads that it does not have");
}
