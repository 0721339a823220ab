//! What was decided and made when a graph was compiled: steps with their code, and which memory each takes and leaves.

use std::fmt;

use pyrite_ir::lower::Place;
use pyrite_ir::{Contract, Graph, NodeError, Registry, Value};
use pyrite_loops::{BufferId, Kernel};
use pyrite_trace::Stage;
use rustc_hash::FxHashSet;

use crate::chain::{Batch, Chain, Link};
use crate::convolutions::Convolution;
use crate::decisions::Decisions;
use crate::heirs::{Heir, heirs};
use crate::listing;
use crate::loops::Loops;
use crate::order::bring_together;
use crate::pieces::{Buffer, Outside, Piece, Pieces, pieces};
use crate::products::Product;
use crate::schedule::{inputs_of, outputs_of, places, schedule};
use crate::through::look_through;
use crate::{CodeStore, Generator};

/// What programs of equal graphs share.
pub struct Plan {
    /// What is done, one thing after the other.
    pub(crate) steps: Vec<Step>,
    /// All buffers, by [`BufferId`].
    pub(crate) buffers: Vec<Buffer>,
    /// What is assumed of the inputs together.
    pub(crate) contract: Contract,
    /// Where pieces look beyond an input, in its storage.
    pub(crate) reaches: Vec<Place>,
    /// What each input must look like.
    pub(crate) inputs: Vec<Value<Place>>,
    /// What is returned.
    pub(crate) output: Value<Place>,
    /// The operators that run through their reference kernels without being meant to.
    pub(crate) fallbacks: Vec<String>,
}

/// A step of a plan.
pub struct Step {
    /// What is done.
    pub action: Action,
    /// Results that are written over what the step is the last to read.
    pub heirs: Vec<Heir>,
    /// Buffers that nothing uses afterwards.
    pub frees: Vec<BufferId>,
}

/// What a step does.
pub enum Action {
    /// A kernel.
    Loops(Box<Loops>),
    /// A call.
    Outside(Box<Outside>),
    /// A product of matrices.
    Product(Box<Product>),
    /// Products of batches, and the kernels around them.
    Chain(Box<Chain>),
    /// A convolution.
    Convolution(Box<Convolution>),
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
        listing::tell_graph(graph);
        let mut cut = {
            let _step = pyrite_trace::step("lower");
            pieces(graph, registry, decisions)?
        };
        listing::tell_pieces(&cut);
        {
            let _step = pyrite_trace::step("schedule");
            look_through(&mut cut, decisions);
            schedule(&mut cut, decisions);
            bring_together(&mut cut.pieces);
        }
        let emitting = pyrite_trace::step("emit");
        let Pieces { buffers, pieces, inputs, reaches, output, fallbacks, .. } = cut;
        let frees = last_uses(&pieces, &output);
        let mut steps: Vec<Step> = Vec::with_capacity(pieces.len());
        for (piece, frees) in pieces.into_iter().zip(frees) {
            let mut heirs = Vec::new();
            let action = match piece {
                Piece::Outside(call) => match Batch::of(call) {
                    Ok(batch) => match joined(batch, &frees, &mut steps, &buffers, decisions) {
                        Some(chain) => Action::Chain(chain),
                        None => continue,
                    },
                    Err(call) => match Product::of(call, &buffers) {
                        Ok(product) => Action::Product(Box::new(product)),
                        Err(call) => match Convolution::of(call, &buffers, decisions) {
                            Ok(convolution) => Action::Convolution(Box::new(convolution)),
                            Err(call) => Action::Outside(call),
                        },
                    },
                },
                Piece::Loops(mut kernel) => {
                    let decision = format!("emit {}", kernel.name);
                    let allowed = decisions.allow(&decision);
                    if allowed {
                        decisions.made(&decision, &mut kernel);
                    }
                    let generator = if allowed { generator } else { Generator::Tiles };
                    let loops = Box::new(Loops::new(kernel, generator, store)?);
                    if let Some(Step { action: Action::Product(product), heirs, frees: earlier }) = steps.last_mut()
                        && product.follower.is_none()
                        && let Some(how) = product.followed_by(&loops)
                        && decisions.allow(&format!("follow {} with {}", product.outside.node.name, loops.kernel.name))
                    {
                        // What the product reads is still read when the first rows are followed.
                        let dying: Vec<BufferId> = frees.iter().copied().filter(|id| *id == product.out()).collect();
                        heirs.extend(allowed_heirs(&loops.kernel, &dying, &buffers, decisions));
                        product.follow(loops, how);
                        earlier.extend(frees);
                        continue;
                    }
                    if let Some(Step { action: Action::Chain(chain), frees: earlier, .. }) = steps.last_mut()
                        && let Some(how) = chain.followed_by(&loops)
                        && decisions.allow(&format!("follow {} with {}", chain.last_name(), loops.kernel.name))
                    {
                        chain.follow(loops, how, &buffers);
                        earlier.extend(frees);
                        continue;
                    }
                    heirs = allowed_heirs(&loops.kernel, &frees, &buffers, decisions);
                    Action::Loops(loops)
                }
            };
            steps.push(Step { action, heirs, frees });
        }
        settle_chains(&mut steps, &buffers, decisions);
        drop(emitting);
        let plan = Self { steps, buffers, contract: Contract::of_sizes(graph), reaches, inputs, output, fallbacks };
        listing::tell_schedule(|| plan.to_string());
        listing::tell_kernels(&plan.buffers, plan.loops());
        Ok(plan)
    }

    /// The kernels in the order they run.
    pub(crate) fn loops(&self) -> impl Iterator<Item = &Loops> {
        self.steps.iter().flat_map(|step| match &step.action {
            Action::Loops(loops) => vec![&**loops],
            Action::Product(product) => product.follower.iter().map(|follower| &*follower.loops).collect(),
            Action::Outside(_) | Action::Convolution(_) => Vec::new(),
            Action::Chain(chain) => chain.kernels().collect(),
        })
    }
}

/// The kernels with their memory dependencies, and the calls, in the order they run.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = |kernel: &Kernel| listing::kernel(&self.buffers, kernel);
        let call = |outside: &Outside| listing::call(&self.buffers, outside);
        for step in &self.steps {
            match &step.action {
                Action::Loops(loops) => writeln!(f, "{}", kernel(&loops.kernel))?,
                Action::Outside(outside) => writeln!(f, "{}\n", call(outside))?,
                Action::Convolution(convolution) => {
                    writeln!(f, "{}, in transformed tiles\n", call(&convolution.outside))?;
                }
                Action::Product(product) => match &product.follower {
                    Some(follower) => {
                        let name = &follower.loops.kernel.name;
                        writeln!(f, "{}, row by row followed by {name}", call(&product.outside))?;
                        writeln!(f, "{}", kernel(&follower.loops.kernel))?;
                    }
                    None => writeln!(f, "{}\n", call(&product.outside))?,
                },
                Action::Chain(chain) => {
                    for (at, link) in chain.links.iter().enumerate() {
                        let next = chain.links.get(at + 1).map_or(String::new(), |next| match next {
                            Link::Kernel(loops, _) => format!(", row by row followed by {}", loops.kernel.name),
                            Link::Product(batch) => format!(", row by row leading {}", batch.outside.node.name),
                        });
                        match link {
                            Link::Kernel(loops, _) if next.is_empty() => writeln!(f, "{}", kernel(&loops.kernel))?,
                            Link::Kernel(loops, _) => {
                                writeln!(f, "{}{}{next}\n", kernel(&loops.kernel), loops.kernel.name)?;
                            }
                            Link::Product(batch) => writeln!(f, "{}{next}\n", call(&batch.outside))?,
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// The results of a kernel that may be written over what dies in it; each is a decision.
fn allowed_heirs(kernel: &Kernel, dying: &[BufferId], buffers: &[Buffer], decisions: &mut Decisions<'_>) -> Vec<Heir> {
    let mut found = heirs(kernel, dying, buffers);
    found.retain(|Heir { of, heir }| {
        let name = |id: &BufferId| listing::buffer_name(buffers, *id);
        decisions.allow(&format!("reuse {} for {} in {}", name(of), name(heir), kernel.name))
    });
    found
}

/// Lets a product of batches take what the last step fills, if that is a decision; else it is a chain of its own.
fn joined(
    batch: Batch,
    frees: &[BufferId],
    steps: &mut Vec<Step>,
    buffers: &[Buffer],
    decisions: &mut Decisions<'_>,
) -> Option<Box<Chain>> {
    let decision = |kernel: &str, batch: &Batch| format!("lead {} with {kernel}", batch.outside.node.name);
    match steps.last_mut() {
        Some(Step { action: Action::Chain(chain), frees: earlier, .. })
            if chain.leads(&batch) && decisions.allow(&decision(chain.last_name(), &batch)) =>
        {
            chain.lead(batch);
            earlier.extend(frees);
            return None;
        }
        _ => {}
    }
    let name = batch.outside.node.name.clone();
    let mut chain = Box::new(Chain::new(batch));
    if let Some(Step { action: Action::Loops(loops), .. }) = steps.last()
        && let Some(how) = chain.led_by(loops)
        && decisions.allow(&format!("lead {name} with {}", loops.kernel.name))
        && let Some(Step { action: Action::Loops(loops), heirs, frees: earlier }) = steps.pop()
    {
        chain.put_before(loops, how, buffers);
        let frees = [earlier, frees.to_vec()].concat();
        steps.push(Step { action: Action::Chain(chain), heirs, frees });
        return None;
    }
    Some(chain)
}

/// Decides what chains keep in blocks, now that their links are known, and which results are written over others.
fn settle_chains(steps: &mut [Step], buffers: &[Buffer], decisions: &mut Decisions<'_>) {
    let mut written: FxHashSet<BufferId> = FxHashSet::default();
    for Step { action, heirs, frees } in steps {
        match action {
            Action::Chain(chain) => {
                chain.find_blocks(|buffer| frees.contains(&buffer) && !written.contains(&buffer), buffers);
                let mut found = std::mem::take(heirs);
                for (loops, dying) in chain.last_reads(frees) {
                    found.extend(allowed_heirs(&loops.kernel, &dying, buffers, decisions));
                }
                *heirs = chain.settle_heirs(found);
                written.extend(chain.filled());
            }
            Action::Loops(loops) => written.extend(loops.kernel.written()),
            Action::Product(product) => {
                written.insert(product.out());
                written.extend(product.follower.iter().flat_map(|follower| follower.loops.kernel.written()));
            }
            Action::Outside(outside) => written.extend(places(&outside.results)),
            Action::Convolution(convolution) => written.extend(places(&convolution.outside.results)),
        }
    }
}

/// For each piece the buffers that nothing uses afterwards.
fn last_uses(pieces: &[Piece], output: &Value<Place>) -> Vec<Vec<BufferId>> {
    let mut seen: FxHashSet<BufferId> = places(output).into_iter().collect();
    let mut frees = vec![Vec::new(); pieces.len()];
    for (piece, frees) in pieces.iter().zip(&mut frees).rev() {
        for buffer in inputs_of(piece).into_iter().chain(outputs_of(piece)) {
            if seen.insert(buffer) {
                frees.push(buffer);
            }
        }
    }
    frees
}
