//! What a crash of a compiled call leaves behind.
//!
//! From the first compiled program on, a signal that ends the process inside of a compiled call is told on standard error with
//! the kernel or node that ran, and the program of the call is written down with its inputs, unless
//! `pyrite.config.crash_reports` is off. The signal then goes to whoever handled it before.
//!
//! A call says that it runs by two stores to memory of its thread, and holds nothing for that: the graph is its program's, the
//! inputs are its caller's. Writing them down takes memory and locks, which a signal handler must not take, so a copy of
//! the process does it, under a time limit; what goes wrong there ends the copy alone. Memory that cannot be read, which may
//! be why the process dies, is written as zeros.

#![expect(unsafe_code, reason = "a signal handler reads what lies on the stack of a call")]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::prelude::*;
use pyrite_debug::signals::{self, Witness};
use pyrite_debug::{Claim, Folder};
use pyrite_ir::{Graph, Value};
use pyrite_oracle::{Class, Signature, Stage};
use pyrite_reduce::Candidate;
use pyrite_tensor::{Storage, Tensor};

use crate::bridge::Remembered;

/// Whose inputs a call has.
pub enum Given<'a> {
    /// Tensors that the call holds; other arguments are left out.
    Held(&'a [Option<Tensor>]),
    /// Those that short calls remember.
    Remembered(&'a Remembered),
    /// Those that the backward half holds, with their positions; the others are gone.
    Saved(&'a [(usize, Tensor)]),
}

/// A call that runs.
pub struct Call<'a> {
    graph: &'a Graph,
    backend: &'a str,
    stage: Stage,
    given: Given<'a>,
}

thread_local! {
    /// The innermost call that runs on this thread.
    static CURRENT: Cell<*const Call<'static>> = const { Cell::new(ptr::null()) };
}

/// The call that began last, on whatever thread: threads of the pool work for it.
static LATEST: AtomicPtr<Call<'static>> = AtomicPtr::new(ptr::null_mut());

/// The call that runs on this thread, or that it works for.
fn current() -> *const Call<'static> {
    let own = CURRENT.get();
    if own.is_null() && pyrite_threads::is_in_task() { LATEST.load(Ordering::Acquire) } else { own }
}

impl<'a> Call<'a> {
    /// A call of the program that was compiled from a graph.
    pub fn of(graph: &'a Graph, backend: &'a str, stage: Stage, given: Given<'a>) -> Self {
        Self { graph, backend, stage, given }
    }

    /// Runs it; while it does, a signal handler finds it.
    pub fn run<T>(&self, act: impl FnOnce() -> T) -> T {
        struct Outer(*const Call<'static>);
        impl Drop for Outer {
            fn drop(&mut self) {
                CURRENT.set(self.0);
                LATEST.store(self.0.cast_mut(), Ordering::Release);
            }
        }
        let found = ptr::from_ref(self).cast();
        let _outer = Outer(CURRENT.replace(found));
        LATEST.store(found.cast_mut(), Ordering::Release);
        act()
    }

    /// The program with its inputs, as far as they can be read.
    fn program(&self) -> Candidate {
        let mut graph = self.graph.clone();
        graph.map_constants(&readable);
        let held = |index: usize| match &self.given {
            Given::Held(tensors) => tensors.get(index).and_then(Option::as_ref),
            Given::Remembered(remembered) => remembered.tensor(index),
            Given::Saved(tensors) => tensors.iter().find(|(place, _)| *place == index).map(|(_, tensor)| tensor),
        };
        let generated = pyrite_compiler::inputs::generate(&graph, Path::new("repro.py"), 0).ok();
        let mut generated = generated.map(|inputs| inputs.values).unwrap_or_default().into_iter();
        let inputs = (0..graph.placeholders().count()).map(|index| {
            let other = generated.next().unwrap_or(Value::None);
            held(index).map_or(other, |tensor| Value::Tensor(readable(tensor)))
        });
        let inputs = inputs.collect();
        Candidate { graph, inputs, seed: 0 }
    }
}

/// More bytes than this of one tensor are not written while a process waits to die.
const MOST_BYTES: usize = 1 << 28;

/// A tensor whose memory can be read; zeros in place of one whose cannot.
fn readable(tensor: &Tensor) -> Tensor {
    let storage = tensor.storage();
    let (start, length) = (storage.as_ptr() as usize, storage.nbytes());
    if length <= MOST_BYTES && can_be_read(start, length) {
        return tensor.clone();
    }
    let zeros = Storage::zeroed(length.min(MOST_BYTES));
    Tensor::new(zeros, tensor.dtype(), tensor.layout().clone()).unwrap_or_else(|_| tensor.clone())
}

/// Whether the system can read memory, which says no where the processor would fault.
fn can_be_read(start: usize, length: usize) -> bool {
    const PAGE: usize = 4096;
    let ends = (start..start + length).step_by(PAGE).chain(length.checked_sub(1).map(|last| start + last));
    let mut byte = 0u8;
    ends.into_iter().all(|address| {
        let here = libc::iovec { iov_base: ptr::from_mut(&mut byte).cast(), iov_len: 1 };
        let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 1 };
        // SAFETY: one byte is written to a place of one byte; that the other address may be none is what is asked.
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const here, 1, &raw const there, 1, 0) == 1 }
    })
}

/// Where crashes leave programs.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the handler, once, unless the settings say no.
pub fn watch(py: Python<'_>) -> PyResult<()> {
    static WATCHED: OnceLock<()> = OnceLock::new();
    if WATCHED.get().is_some() {
        return Ok(());
    }
    let config = py.import("pyrite.config")?;
    if config.getattr("crash_reports")?.is_truthy()? {
        let folder: PathBuf = config.getattr("debug_dir")?.extract()?;
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        if FOLDER.set(folder).is_ok() {
            signals::watch(Witness { says, leaves });
        }
    }
    let _ = WATCHED.set(());
    Ok(())
}

/// Says what runs on this thread; whether something of Pyrite's does.
fn says(say: &mut dyn FnMut(&str)) -> bool {
    let call = current();
    let runs = pyrite_codegen::describe_running(say);
    // SAFETY: a call is found while it runs, and its thread is in this handler or waits for this one.
    let Some(call) = (unsafe { call.as_ref() }) else { return runs };
    say(if runs { " of a program compiled by " } else { "a program compiled by " });
    say(call.backend);
    true
}

/// Writes the program of the call down; its path. Runs in a copy of the process, on a thread of its own.
fn leaves(signal: i32) -> Option<Box<dyn FnOnce() -> Option<PathBuf> + Send>> {
    let call = current() as usize;
    if call == 0 {
        return None;
    }
    Some(Box::new(move || {
        // SAFETY: the copy has the stack of the call as it was, and nothing in it runs but this.
        let call = unsafe { &*(call as *const Call<'static>) };
        let signature = Signature::new(call.stage, Class::Signal(signal));
        let folder = FOLDER.get()?.join(format!("crash_{}", std::os::unix::process::parent_id()));
        let folder = Folder::open(&folder).ok()?;
        let claim = Claim { signature: Some(&signature), ..Claim::of(call.backend) };
        let metadata: Vec<(String, String)> = [
            ("pyrite", env!("CARGO_PKG_VERSION").to_owned()),
            ("backend", call.backend.to_owned()),
            ("reference", "eager".to_owned()),
            ("seed", "0".to_owned()),
            ("signature", signature.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        folder.write_claiming("repro.py", &call.program(), &metadata, Some(&claim)).ok()
    }))
}

/// Says of the time in which it is entered what runs then, for last words.
#[pyclass(module = "pyrite._native", frozen)]
pub struct CrashesIn {
    what: String,
    heard: parking_lot::Mutex<Option<signals::Heard>>,
}

#[pymethods]
impl CrashesIn {
    fn __enter__(&self) {
        *self.heard.lock() = Some(signals::install());
        signals::running(&self.what);
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        signals::running("");
        *self.heard.lock() = None;
    }
}

/// A context in which a crash of the process is said to be one of this.
#[pyfunction]
pub fn crashes_in(what: String) -> CrashesIn {
    CrashesIn { what, heard: parking_lot::Mutex::default() }
}
