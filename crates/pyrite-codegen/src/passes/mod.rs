//! The passes of the native compiler, in order.
//!
//! [`lower`](lower::lower) translates a graph to a [`Schedule`], the passes of [`PASSES`] rewrite it, and
//! [`emit`](crate::emit) generates code for the result. A pass asks a gate before every change ([`Decisions`]), which
//! makes the change bisectable. Debug builds verify the schedule after every pass and check the memory plan at the end.
//!
//! To add a pass: write `fn(&mut Schedule, &mut State)` in a file of its own here, add it to [`PASSES`], name its
//! decisions in [`decisions`](crate::decisions), and add filetests with `# test: after:PASS` (docs/extend/pass.md).

mod elide_copy;
mod finish;
mod fuse;
mod fuse_column_sums;
mod fuse_epilogue;
pub(crate) mod fuse_kernels;
mod fuse_prologue;
mod lower;
mod recompute;
mod reorder_bmm;
pub(crate) mod reuse;
mod split_concat;
mod split_reductions;

use pyrite_ir::{Graph, NodeError, OpError, Registry};

use crate::decisions::Decisions;
use crate::schedule::{Schedule, memory, trace, verify};
use elide_copy::Copied;
use split_concat::Parts;

/// What a program is scheduled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Cores with vectors and caches.
    Cpu,
    /// Blocks of threads.
    Gpu,
}

/// What passes hand on beside the program.
pub struct State<'a, 'd> {
    /// What the program is for.
    machine: Machine,
    /// Permission for each rewrite.
    pub(crate) decisions: &'a mut Decisions<'d>,
    /// The copies that the graph asks for.
    copies: Vec<Copied>,
    /// The parts of concatenations that have names of their own until kernels are finished.
    parts: Parts,
}

/// A pass.
pub struct Pass {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The only machine that it is for, if it is not for all.
    pub only: Option<Machine>,
    run: fn(&mut Schedule, &mut State<'_, '_>),
}

/// The name of the pass that makes a schedule of a graph. It comes first.
pub const LOWER: &str = "lower";

/// The passes behind [`LOWER`], in the order they run.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "elide-copy",
        what: "bmms access the source or destination of a copy directly; unused copies are dropped",
        only: None,
        run: elide_copy::elide_copies,
    },
    Pass {
        name: "split-concat",
        what: "kernels that read a concatenation are split along its parts",
        only: None,
        run: split_concat::split_all,
    },
    Pass {
        name: "recompute-constants",
        what: "constants are recomputed at their uses",
        only: Some(Machine::Gpu),
        run: recompute::constants,
    },
    Pass { name: "fuse", what: "kernels that share memory are fused", only: None, run: fuse::fuse_all },
    Pass {
        name: "split-concat-late",
        what: "fused kernels that still read a concatenation are split",
        only: None,
        run: split_concat::split_rest,
    },
    Pass { name: "fuse-late", what: "split kernels are fused again", only: None, run: fuse::fuse_split },
    Pass {
        name: "recompute",
        what: "cheap values are recomputed at their uses instead of being stored",
        only: Some(Machine::Gpu),
        run: recompute::cheap,
    },
    Pass {
        name: "finish-kernels",
        what: "values used by one kernel stay in registers or scratch memory; kernels are vectorized",
        only: None,
        run: finish::finish_all,
    },
    Pass {
        name: "fuse-column-sums",
        what: "sums over the columns of what another kernel reads by rows become a part of it",
        only: Some(Machine::Gpu),
        run: fuse_column_sums::fuse_column_sums,
    },
    Pass {
        name: "split-reductions",
        what: "a long reduction over few rows is split into partial reductions",
        only: Some(Machine::Gpu),
        run: split_reductions::split_reductions,
    },
    Pass {
        name: "reorder-bmm",
        what: "a bmm is moved directly after the kernel that computes its left operand",
        only: Some(Machine::Cpu),
        run: reorder_bmm::reorder,
    },
    Pass {
        name: "fuse-epilogue",
        what: "a kernel that reads the result of a matmul runs on its rows as they are completed",
        only: Some(Machine::Cpu),
        run: fuse_epilogue::fuse_epilogues,
    },
    Pass {
        name: "fuse-prologue",
        what: "a kernel or fused bmm that computes the left operand of a bmm passes it on row by row",
        only: Some(Machine::Cpu),
        run: fuse_prologue::fuse_prologues,
    },
    Pass {
        name: "reuse-buffers",
        what: "lifetimes end at the last use; results reuse the memory of buffers that die in their statement",
        only: None,
        run: reuse::reuse_buffers,
    },
];

/// The name of every pass, the first one included, with what it does and the only machine that it is for, in order.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str, Option<Machine>)> {
    let first = (LOWER, "operators are lowered to loop nests, matmuls, convolutions and calls over buffers", None);
    std::iter::once(first).chain(PASSES.iter().map(|pass| (pass.name, pass.what, pass.only)))
}

/// Which side of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The schedule that the pass gets.
    Before,
    /// The schedule that it leaves.
    After,
}

/// The text of the schedule of a functional graph before or after a pass, for the machine that the pass is for. Nothing
/// is scheduled before [`LOWER`], and the text is empty.
pub fn schedule_at(
    graph: &Graph,
    registry: &Registry,
    decisions: &mut Decisions<'_>,
    side: Side,
    pass: &str,
) -> Result<String, NodeError> {
    let (mut last, mut found) = (String::new(), None);
    let only = PASSES.iter().find(|known| known.name == pass).and_then(|pass| pass.only);
    schedule_for(only.unwrap_or(Machine::Cpu), graph, registry, decisions, &mut |name, schedule| {
        if found.is_none() {
            let before = std::mem::replace(&mut last, schedule.to_string());
            if name == pass {
                found = Some(match side {
                    Side::Before => before,
                    Side::After => last.clone(),
                });
            }
        }
    })?;
    Ok(found.unwrap_or_default())
}

/// Schedules a functional graph for a CPU: lowers it and runs all passes. `observe` sees the program after each.
pub fn schedule(
    graph: &Graph,
    registry: &Registry,
    decisions: &mut Decisions<'_>,
    observe: &mut dyn FnMut(&'static str, &Schedule),
) -> Result<Schedule, NodeError> {
    schedule_for(Machine::Cpu, graph, registry, decisions, observe)
}

/// The same for a machine.
pub fn schedule_for(
    machine: Machine,
    graph: &Graph,
    registry: &Registry,
    decisions: &mut Decisions<'_>,
    observe: &mut dyn FnMut(&'static str, &Schedule),
) -> Result<Schedule, NodeError> {
    let (mut schedule, copies) = {
        let _step = pyrite_trace::step(LOWER);
        lower::lower(graph, registry, decisions)?
    };
    trace::tell_lowered(&schedule);
    check(&schedule, LOWER)?;
    observe(LOWER, &schedule);
    let mut state = State { machine, decisions, copies, parts: Parts::default() };
    let _step = pyrite_trace::step("schedule");
    for pass in PASSES.iter().filter(|pass| pass.only.is_none_or(|only| only == machine)) {
        (pass.run)(&mut schedule, &mut state);
        check(&schedule, pass.name)?;
        observe(pass.name, &schedule);
    }
    if cfg!(debug_assertions)
        && let Some(problem) = memory::check(&schedule).first()
    {
        return Err(OpError::fault(format!("the memory plan is wrong: {problem}")).into());
    }
    Ok(schedule)
}

/// Verifies a schedule in debug builds.
fn check(schedule: &Schedule, pass: &str) -> Result<(), OpError> {
    match cfg!(debug_assertions).then(|| verify::verify(schedule)).unwrap_or_default().first() {
        Some(problem) => Err(OpError::fault(format!("the schedule is wrong after {pass}: {problem}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    //! The pass of docs/extend/pass.md: its code is that of the page.

    use super::{Pass, State};

    mod drop_empty {
        use super::State;
        use crate::schedule::{Op, Schedule};

        /// Removes the kernels that write nothing; each is a decision.
        pub fn drop_empty(schedule: &mut Schedule, state: &mut State<'_, '_>) {
            schedule.statements.retain(|statement| {
                let Op::Loop(kernel) = &statement.op else { return true };
                let empty = kernel.written().is_empty();
                !(empty && state.decisions.allow(&format!("drop-empty {}", kernel.name)))
            });
        }
    }

    #[rustfmt::skip]
    const EXAMPLE: &[Pass] = &[
        Pass { name: "drop-empty", what: "kernels that write nothing are removed", only: None, run: drop_empty::drop_empty },
    ];

    #[test]
    fn the_pass_of_the_documentation_is_the_one_here() {
        let bare = |text: &str| -> String {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//!"));
            code.flat_map(str::chars).filter(|letter| !letter.is_whitespace()).collect()
        };
        let own = bare(include_str!("mod.rs"));
        let page = include_str!("../../../../docs/extend/pass.md");
        let blocks: Vec<&str> =
            page.split("```rust,ignore").skip(1).filter_map(|block| block.split("```").next()).collect();
        assert_eq!((blocks.len(), EXAMPLE.len()), (2, 1));
        for block in blocks {
            assert!(own.contains(&bare(block)), "the page has other code than this test:\n{block}");
        }
    }
}
