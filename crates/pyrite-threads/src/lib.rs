//! The threads that kernels and matmuls share.
//!
//! Work is a number of tasks: [`each`] runs them, [`map`] keeps their results, [`chunks`] and [`map_chunks`] deal out
//! parts of a slice. The calling thread does its share; the workers of the one pool of the process ([`pool`]) do
//! theirs. Order and share of tasks are not fixed, so a result must not depend on them.
//!
//! - A call returns when all of its tasks are done. A task that panics ends the call with its panic, after the other
//!   threads have let go; the pool goes on.
//! - Inside a task, and while another thread has the pool, work runs on the calling thread: nothing ever waits for a
//!   free worker.
//! - There are no workers before the first call that wants some, and a forked child starts over with none.

mod pool;

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

thread_local! {
    /// Whether this thread is carrying out a task.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// How many threads calls of this one may use; see [`limited`].
    static LIMIT: Cell<usize> = const { Cell::new(MOST) };
}

/// How many threads were chosen; 0 before anyone asked.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);
/// Whether that was somebody's wish rather than the number of cores.
static WISHED: AtomicBool = AtomicBool::new(false);

/// More threads than this are never used.
pub const MOST: usize = 1024;

/// Sets how many threads share work from now on, the calling one included; `None` is one per core.
pub fn choose(count: Option<usize>) {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    WISHED.store(count.is_some(), Ordering::Relaxed);
    CHOSEN.store(count.unwrap_or_else(cores).clamp(1, MOST), Ordering::Relaxed);
}

/// How many threads were chosen: by [`choose`], else by `PYRITE_NUM_THREADS`, else one per core.
pub fn chosen() -> usize {
    if CHOSEN.load(Ordering::Relaxed) == 0 {
        choose(std::env::var("PYRITE_NUM_THREADS").ok().and_then(|text| text.parse().ok()).filter(|count| *count > 0));
    }
    CHOSEN.load(Ordering::Relaxed)
}

/// Whether somebody asked for the number of threads, by [`choose`] or by `PYRITE_NUM_THREADS`; else it is that of the cores.
pub fn is_wished() -> bool {
    chosen();
    WISHED.load(Ordering::Relaxed)
}

/// How many threads may share the work that is started here: one inside a task, else as many as were chosen, or as
/// [`limited`] allows.
pub fn count() -> usize {
    if INSIDE.get() { 1 } else { chosen().min(LIMIT.get()) }
}

/// Runs something whose work is shared by at most so many threads, where this thread starts it.
pub fn limited<R>(most: usize, act: impl FnOnce() -> R) -> R {
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            LIMIT.set(self.0);
        }
    }
    let _before = Before(LIMIT.replace(most.max(1)));
    act()
}

/// Whether this thread is carrying out a task. Signal handlers may ask.
pub fn is_in_task() -> bool {
    INSIDE.get()
}

/// Runs `task` for every number below `tasks`.
///
/// # Panics
/// When a task does.
pub fn each(tasks: usize, task: impl Fn(usize) + Sync) {
    let threads = count().min(tasks);
    if threads < 2 || !pool::run(tasks, threads, &task) {
        (0..tasks).for_each(task);
    }
}

/// What `task` gives for every number below `tasks`, in order.
///
/// # Panics
/// When a task does.
pub fn map<R: Send>(tasks: usize, task: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut results: Vec<R> = Vec::with_capacity(tasks);
    let slots = Part(results.spare_capacity_mut().as_mut_ptr());
    each(tasks, |index| {
        let result = task(index);
        // SAFETY: there is room for every task's result, and no two tasks have the same. Should a task panic, results
        // that were written are leaked, which is safe.
        #[expect(unsafe_code, reason = "tasks fill the slots of one vector")]
        unsafe {
            slots.at(index).write(MaybeUninit::new(result));
        }
    });
    // SAFETY: `each` has returned, so every task has written its result.
    #[expect(unsafe_code, reason = "tasks fill the slots of one vector")]
    unsafe {
        results.set_len(tasks);
    }
    results
}

/// Runs `task` on every part of `size` elements with its number; the last part may be shorter.
///
/// # Panics
/// When `size` is zero, or a task panics.
pub fn chunks<T: Send>(slice: &mut [T], size: usize, task: impl Fn(usize, &mut [T]) + Sync) {
    map_chunks(slice, size, task);
}

/// What `task` gives for every part of `size` elements, in order; the last part may be shorter.
///
/// # Panics
/// When `size` is zero, or a task panics.
pub fn map_chunks<T: Send, R: Send>(
    slice: &mut [T],
    size: usize,
    task: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    assert!(size > 0, "parts without elements");
    let (len, first) = (slice.len(), Part(slice.as_mut_ptr()));
    map(len.div_ceil(size), |index| {
        let begin = index * size;
        // SAFETY: the part lies within the slice, which is borrowed exclusively, and parts have no element in common.
        #[expect(unsafe_code, reason = "threads write to parts of one slice")]
        let part = unsafe { std::slice::from_raw_parts_mut(first.at(begin), size.min(len - begin)) };
        task(index, part)
    })
}

/// An address that tasks share, each for elements of its own.
struct Part<T>(*mut T);

impl<T> Part<T> {
    fn at(&self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }
}

// SAFETY: an address is only a number until somebody follows it, and those who do say why they may.
#[expect(unsafe_code, reason = "threads write to parts of one slice")]
unsafe impl<T: Send> Sync for Part<T> {}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Chooses, and keeps the pool from other tests until the guard is gone.
    fn with_threads(count: usize) -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        choose(Some(count));
        guard
    }

    #[test]
    fn every_task_runs_once_whatever_the_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let _alone = with_threads(threads);
            for tasks in [0, 1, 2, 7, 100, 10_000] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                each(tasks, |index| {
                    counts[index].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{threads} {tasks}");
            }
        }
    }

    #[test]
    fn results_and_parts_come_in_order() {
        let _alone = with_threads(4);
        assert_eq!(map(1000, |index| index.to_string()), (0..1000).map(|i| i.to_string()).collect::<Vec<_>>());
        let mut numbers = vec![0; 1003];
        let lengths = map_chunks(&mut numbers, 10, |index, part| {
            part.fill(index);
            part.len()
        });
        assert_eq!(lengths.len(), 101);
        assert_eq!(lengths[100], 3);
        assert!(numbers.iter().enumerate().all(|(at, number)| *number == at / 10));
        chunks(&mut numbers[..0], 10, |_, _| panic!("there is no part"));
    }

    #[test]
    fn work_inside_a_task_stays_on_its_thread() {
        let _alone = with_threads(3);
        each(6, |_| {
            let here = std::thread::current().id();
            assert_eq!(count(), 1);
            each(20, |_| assert_eq!(std::thread::current().id(), here));
        });
        assert_eq!(count(), 3);
    }

    #[test]
    fn a_limit_holds_for_its_thread_and_ends_with_its_call() {
        let _alone = with_threads(3);
        assert!(is_wished());
        let here = std::thread::current().id();
        limited(1, || {
            assert_eq!(count(), 1);
            each(6, |_| assert_eq!(std::thread::current().id(), here));
            limited(2, || assert_eq!(count(), 2));
            assert_eq!(count(), 1);
            std::thread::scope(|scope| scope.spawn(|| assert_eq!(count(), 3)).join().unwrap());
        });
        let ended = std::panic::catch_unwind(|| limited(1, || panic!("the limit ends, too")));
        assert!(ended.is_err());
        assert_eq!(limited(0, count), 1);
        assert_eq!(limited(MOST, count), 3);
        assert_eq!(count(), 3);
    }

    #[test]
    fn workers_do_their_share() {
        let _alone = with_threads(3);
        let seen = Mutex::new(Vec::new());
        // Every task waits until three threads have one.
        let barrier = std::sync::Barrier::new(3);
        each(3, |_| {
            seen.lock().unwrap().push(std::thread::current().id());
            barrier.wait();
        });
        let mut seen = seen.into_inner().unwrap();
        seen.dedup();
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn a_panic_in_any_task_reaches_the_caller_and_the_pool_goes_on() {
        let _alone = with_threads(4);
        for guilty in [0, 50, 99] {
            let caught = std::panic::catch_unwind(|| each(100, |index| assert!(index != guilty, "task {index}")));
            let message = *caught.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(message, format!("task {guilty}"));
            assert_eq!(map(100, |index| index).len(), 100);
        }
    }

    #[test]
    fn callers_at_the_same_time_do_not_wait_for_each_other() {
        let _alone = with_threads(2);
        let callers: Vec<_> = (0..4)
            .map(|caller| {
                std::thread::spawn(move || {
                    for round in 0..300 {
                        assert_eq!(map(50, |index| index + round + caller)[49], 49 + round + caller);
                    }
                })
            })
            .collect();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    }

    #[test]
    fn workers_that_sleep_are_woken() {
        let _alone = with_threads(2);
        for _ in 0..3 {
            let barrier = std::sync::Barrier::new(2);
            each(2, |_| {
                barrier.wait();
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
