//! Emission: machine code for every kernel of a schedule.
//!
//! It comes last and sees a finished schedule. Nothing is decided here but whether a kernel becomes machine code.

use std::fmt;

use pyrite_ir::{Contract, Graph, NodeError, OpError, Registry};
use pyrite_trace::Stage;

use crate::decisions::Decisions;
use crate::loops::Loops;
use crate::passes;
use crate::schedule::{Schedule, trace};
use crate::{CodeStore, Generator};

/// A schedule with the code of its kernels: what programs of equal graphs share.
pub struct Plan {
    /// What is assumed of the inputs together.
    pub(crate) contract: Contract,
    pub(crate) schedule: Schedule<Loops>,
}

impl Plan {
    /// Compiles a functional graph. Decisions ask their gate; code comes from the store where it has some.
    pub fn of(
        graph: &Graph,
        registry: &Registry,
        generator: Generator,
        decisions: &mut Decisions<'_>,
        store: &dyn CodeStore,
    ) -> Result<Self, NodeError> {
        let _stage = pyrite_trace::stage(Stage::Native);
        trace::tell_graph(graph);
        let schedule = passes::schedule(graph, registry, decisions, &mut |_, _| ())?;
        let emitting = pyrite_trace::step("emit");
        let schedule = emit(schedule, generator, decisions, store)?;
        let plan = Self { contract: Contract::of_sizes(graph), schedule };
        drop(emitting);
        trace::tell_schedule(|| plan.to_string());
        trace::tell_kernels(&plan.schedule.buffers, plan.schedule.kernels());
        Ok(plan)
    }
}

/// Puts code in the place of each kernel; each is a decision.
fn emit(
    schedule: Schedule,
    generator: Generator,
    decisions: &mut Decisions<'_>,
    store: &dyn CodeStore,
) -> Result<Schedule<Loops>, OpError> {
    schedule.try_map(&mut |mut kernel| {
        let decision = format!("emit {}", kernel.name);
        let allowed = decisions.allow(&decision);
        if allowed {
            decisions.made(&decision, &mut kernel);
        }
        Loops::new(kernel, if allowed { generator } else { Generator::Tiles }, store)
    })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&trace::listing(&self.schedule))
    }
}
