//! Where compiled programs are, for last words after a crash.
//!
//! A running program stands in a [`Position`] on the stack of its thread: its plan, and the statement that runs. Entering it costs
//! a few stores, and each statement one more, so programs always say where they are. Tasks of a statement run on threads of
//! the pool, which stand in no program; the program that was entered last is taken for theirs.
//!
//! Invariant: whoever reads a position in a signal handler finds a whole one. It is filled before it is found, and what it
//! points to outlives it.

#![expect(unsafe_code, reason = "a signal handler reads what lies on the stacks of threads")]

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyrite_ir::{Kind, Node};

use crate::emit::Plan;
use crate::schedule::Op;

thread_local! {
    /// The innermost program that runs on this thread.
    static CURRENT: Cell<*const Position> = const { Cell::new(ptr::null()) };
}

/// The program that was entered last, on whatever thread.
static LATEST: AtomicPtr<Position> = AtomicPtr::new(ptr::null_mut());

/// Where a program is; see the module's text.
pub(crate) struct Position {
    plan: *const Plan,
    statement: AtomicUsize,
    outer: Cell<*const Position>,
}

impl Position {
    /// Before the first statement.
    pub(crate) fn of(plan: &Plan) -> Self {
        Self { plan, statement: AtomicUsize::new(0), outer: Cell::new(ptr::null()) }
    }

    /// Lets the position be found for as long as what is returned lives.
    pub(crate) fn enter(&self) -> Entered<'_> {
        self.outer.set(CURRENT.replace(self));
        LATEST.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        Entered(self)
    }

    /// The statement of this number runs now.
    pub(crate) fn at(&self, statement: usize) {
        self.statement.store(statement, Ordering::Relaxed);
    }

    fn describe(&self, say: &mut dyn FnMut(&str)) {
        // SAFETY: who entered the position holds the plan until it is left.
        let statements = unsafe { &(*self.plan).schedule.statements };
        let Some(statement) = statements.get(self.statement.load(Ordering::Relaxed)) else { return };
        match &statement.op {
            Op::Loop(loops) => {
                say("kernel `");
                say(&loops.kernel.name);
                say("`");
            }
            Op::Gemm(gemm) => describe_node(&gemm.call.node, say),
            Op::Bmm(fused) => fused.bmms().take(1).for_each(|bmm| describe_node(&bmm.node, say)),
            Op::Conv(conv) => describe_node(&conv.call.node, say),
            Op::Call(call) => describe_node(&call.node, say),
        }
    }
}

fn describe_node(node: &Node, say: &mut dyn FnMut(&str)) {
    say("node `");
    say(&node.name);
    if let Kind::Call(target) = &node.kind {
        say("` (");
        say(target.name());
        say(")");
    }
}

/// Lets a position be found.
pub(crate) struct Entered<'a>(&'a Position);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let outer = self.0.outer.get();
        CURRENT.set(outer);
        // Another thread may have entered a program since, which then counts no more: it is found on its own thread.
        LATEST.store(outer.cast_mut(), Ordering::Release);
    }
}

/// Says which kernel or node runs on this thread; whether one does. It allocates nothing and takes no lock, so that signal
/// handlers may call it.
pub fn describe_running(say: &mut dyn FnMut(&str)) -> bool {
    let own = CURRENT.get();
    let found =
        if own.is_null() && pyrite_threads::is_in_task() { LATEST.load(Ordering::Acquire) } else { own.cast_mut() };
    // SAFETY: a position is found from when it is entered until it is left, and this thread, or the one that waits for
    // its tasks, does not go on meanwhile.
    let Some(position) = (unsafe { found.as_ref() }) else { return false };
    position.describe(say);
    true
}
