//! The pool: workers that wait for a job, first awake, then asleep.
//!
//! One word says everything that workers have to agree on: the number of the last job, how many workers it wants,
//! whether it is open, and how many workers are at it. A worker joins by raising that count while the job is open; the
//! caller, when no task is left, closes the job and waits until the count is zero. So
//!
//! - what a job borrows is never touched after the call has returned: nobody joins a closed job, and who has joined
//!   keeps the caller waiting;
//! - a worker that wakes too late misses the job and costs nobody time.
//!
//! Tasks are dealt out by a counter, several at a time where there are many. A worker that has nothing to do looks for
//! the next job for [`AWAKE`], because kernels follow each other within microseconds and waking a thread takes fifty;
//! then it sleeps.
//!
//! A fork copies the pool but not its threads. The pool knows its process, and another one makes a pool of its own.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::INSIDE;

/// How long a worker looks for the next job before it sleeps.
const AWAKE: Duration = Duration::from_millis(1);
/// How often it looks between two looks at the clock.
const LOOKS: usize = 64;
/// How many times the tasks of a job are dealt out per thread, at most.
const DEALS: usize = 8;

/// A pool; see the module's text.
struct Pool {
    process: u32,
    state: AtomicU64,
    /// The first task that nobody has taken.
    next: AtomicUsize,
    /// Written by who holds `seats` while nobody is at a job.
    job: UnsafeCell<Option<Job>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// The workers. Who holds the lock has the pool.
    seats: Mutex<Vec<Arc<Seat>>>,
}

/// What workers have to do; it borrows from the call that waits for them.
#[derive(Clone, Copy)]
struct Job {
    task: &'static (dyn Fn(usize) + Sync),
    tasks: usize,
    /// How many are taken at a time.
    grain: usize,
}

/// A worker as others see it.
struct Seat {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

// SAFETY: `job` is the only part that is not shared by itself. It is written while no worker is at a job, and read only
// by workers that are at one, which the state's exchange orders.
#[expect(unsafe_code, reason = "a job is handed over through the state")]
unsafe impl Sync for Pool {}

/// The word that workers agree on: 32 bits of number, 15 of wanted workers, 1 open, 16 of workers at it.
#[derive(Clone, Copy)]
struct State(u64);

impl State {
    const OPEN: u64 = 1 << 16;

    fn opened(number: u32, wanted: usize) -> Self {
        Self(u64::from(number) << 32 | (wanted as u64) << 17 | Self::OPEN)
    }

    fn number(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn wants(self, seat: usize) -> bool {
        self.0 & Self::OPEN != 0 && seat < (self.0 >> 17 & 0x7fff) as usize
    }

    fn busy(self) -> bool {
        self.0 & 0xffff != 0
    }
}

/// The pool of this process.
fn pool() -> &'static Pool {
    static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());
    let process = std::process::id();
    loop {
        let known = POOL.load(Ordering::Acquire);
        // SAFETY: pools are made by `Box` and never freed.
        #[expect(unsafe_code, reason = "pools live as long as the process")]
        if let Some(pool) = unsafe { known.as_ref() }
            && pool.process == process
        {
            return pool;
        }
        let fresh = Box::into_raw(Box::new(Pool {
            process,
            state: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            panic: Mutex::new(None),
            seats: Mutex::new(Vec::new()),
        }));
        // The pool of the parent, if there is one, is left as it is: its locks may be held by threads that are no more.
        // One that loses a race against another thread has no workers yet and is left, too.
        let _ = POOL.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Runs tasks on so many threads, the calling one included; says no, and runs nothing, while another thread has the
/// pool.
pub fn run(tasks: usize, threads: usize, task: &(dyn Fn(usize) + Sync)) -> bool {
    let pool = pool();
    let mut seats = match pool.seats.try_lock() {
        Ok(seats) => seats,
        Err(TryLockError::Poisoned(seats)) => seats.into_inner(),
        Err(TryLockError::WouldBlock) => return false,
    };
    while seats.len() + 1 < threads && pool.hire(&mut seats) {}
    let wanted = seats.len().min(threads - 1);
    if wanted == 0 {
        return false;
    }
    let grain = (tasks / ((wanted + 1) * DEALS)).max(1);
    // SAFETY: this call waits until nobody is at the job any more, and nobody can join it afterwards.
    #[expect(unsafe_code, reason = "workers borrow from the call that waits for them")]
    let task = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task) };
    let job = Job { task, tasks, grain };
    // SAFETY: this thread has the pool, and the job before is closed and left.
    #[expect(unsafe_code, reason = "a job is handed over through the state")]
    unsafe {
        *pool.job.get() = Some(job);
    }
    pool.next.store(0, Ordering::Relaxed);
    let number = State(pool.state.load(Ordering::Relaxed)).number().wrapping_add(1);
    // Either a worker that is about to sleep sees this job, or this thread sees that it sleeps: both are in one order.
    pool.state.store(State::opened(number, wanted).0, Ordering::SeqCst);
    for seat in &seats[..wanted] {
        if seat.asleep.load(Ordering::SeqCst) {
            seat.asleep.store(false, Ordering::SeqCst);
            if let Some(thread) = seat.thread.get() {
                thread.unpark();
            }
        }
    }
    INSIDE.set(true);
    pool.work(job);
    INSIDE.set(false);
    pool.close();
    let panic = pool.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(seats);
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    true
}

impl Pool {
    /// Starts a worker; the system may refuse.
    fn hire(&'static self, seats: &mut Vec<Arc<Seat>>) -> bool {
        let seat = Arc::new(Seat { asleep: AtomicBool::new(false), thread: OnceLock::new() });
        let (own, index) = (seat.clone(), seats.len());
        let started = std::thread::Builder::new().name(format!("pyrite-{}", index + 1)).spawn(move || {
            self.serve(&own, index);
        });
        match started {
            Ok(handle) => {
                let _ = seat.thread.set(handle.thread().clone());
                seats.push(seat);
                true
            }
            Err(_) => false,
        }
    }

    /// The life of a worker.
    fn serve(&self, seat: &Seat, index: usize) {
        INSIDE.set(true);
        let mut last = 0;
        loop {
            last = self.wait(seat, index, last);
            if let Some(job) = self.join(last, index) {
                self.work(job);
                self.state.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Waits for a job after the last one, and says its number.
    fn wait(&self, seat: &Seat, index: usize, last: u32) -> u32 {
        let found = || {
            let state = State(self.state.load(Ordering::SeqCst));
            (state.number() != last && state.wants(index)).then(|| state.number())
        };
        let mut since = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if let Some(number) = found() {
                    return number;
                }
                std::hint::spin_loop();
            }
            if since.elapsed() < AWAKE {
                continue;
            }
            seat.asleep.store(true, Ordering::SeqCst);
            if let Some(number) = found() {
                seat.asleep.store(false, Ordering::SeqCst);
                return number;
            }
            while seat.asleep.load(Ordering::SeqCst) {
                std::thread::park();
            }
            // Even if that job is over: where there was one, the next is near.
            since = Instant::now();
        }
    }

    /// Takes part in a job, if it is still open.
    fn join(&self, number: u32, index: usize) -> Option<Job> {
        let mut state = self.state.load(Ordering::Acquire);
        while State(state).number() == number && State(state).wants(index) {
            match self.state.compare_exchange_weak(state, state + 1, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: this worker is at the job, so it is not written.
                #[expect(unsafe_code, reason = "a job is handed over through the state")]
                Ok(_) => return unsafe { *self.job.get() },
                Err(now) => state = now,
            }
        }
        None
    }

    /// Carries out tasks until none is left.
    fn work(&self, job: Job) {
        loop {
            let begin = self.next.fetch_add(job.grain, Ordering::Relaxed);
            if begin >= job.tasks {
                return;
            }
            let tasks = begin..(begin + job.grain).min(job.tasks);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| tasks.for_each(job.task))) {
                self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
                self.next.store(job.tasks, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Lets nobody join any more, and waits for those who have.
    fn close(&self) {
        self.state.fetch_and(!State::OPEN, Ordering::AcqRel);
        let since = Instant::now();
        let mut looks = 0;
        while State(self.state.load(Ordering::Acquire)).busy() {
            looks += 1;
            // A worker that lost its core comes back the sooner if this one is free.
            if looks % LOOKS == 0 && since.elapsed() > AWAKE / 10 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}
