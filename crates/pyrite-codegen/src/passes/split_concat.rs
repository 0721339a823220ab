//! The passes `split-concat` and `split-concat-late`: kernels split along the parts of what they read.
//!
//! A result of `cat` is written part by part, each part by a kernel of its own. A kernel that reads the whole can join
//! none of them. So it is cut along the same borders: a part of it runs over one part of the rows, reads one part of the
//! result, and can join the kernel that writes that part; then the result itself is never put together.
//!
//! While kernels are fused, the parts of a buffer have names of their own, so that fusion need not know which places in
//! a buffer overlap. What uses a buffer by its own name uses all of its parts: it runs behind all that write them.
//! [`Parts::join`] gives every place the name of its buffer again.

use std::collections::{BTreeMap, BTreeSet};

use pyrite_loops::{Access, AxisId, BufferId, Inst, Kernel, Phase};
use pyrite_sym::SymInt;

use super::State;
use super::fuse_kernels::scatters;
use crate::axes::is_counted;
use crate::schedule::{Buffer, Op, Schedule, Statement, places};

/// Into how many parts a kernel is cut at most.
const MOST_PARTS: usize = 4;
/// How many neighbours in memory a part has at least.
const SHORTEST_RUN: i64 = 8;

/// The parts of buffers.
#[derive(Default)]
pub struct Parts {
    of: BTreeMap<BufferId, Vec<BufferId>>,
    whole: BTreeMap<BufferId, BufferId>,
}

/// How a buffer is written in parts: the parts follow each other along one dimension, and are alike in all others.
#[derive(Clone)]
struct Borders {
    /// The element where the first part begins.
    offset: SymInt,
    /// How many elements a step along the dimension is.
    step: i64,
    /// How many positions along it each part has.
    sizes: Vec<i64>,
    /// Extents and steps of the other dimensions.
    others: Vec<(SymInt, SymInt)>,
    /// The kernel that writes each part, by position; none where one kernel writes all.
    writers: Vec<usize>,
}

impl Parts {
    /// Whether every buffer is one.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The parts of a buffer; none where it is one.
    pub fn of(&self, buffer: BufferId) -> &[BufferId] {
        self.of.get(&buffer).map_or(&[], Vec::as_slice)
    }

    /// The buffer that something is a part of, or itself.
    pub fn whole(&self, buffer: BufferId) -> BufferId {
        self.whole.get(&buffer).copied().unwrap_or(buffer)
    }

    /// Lets a kernel name buffers instead of their parts.
    pub fn join(&self, kernel: &mut Kernel) {
        for access in &mut kernel.accesses {
            access.buffer = self.whole(access.buffer);
        }
    }

    /// The names of the parts of a buffer.
    fn named(&mut self, buffer: BufferId, count: usize, buffers: &mut Vec<Buffer>) -> Vec<BufferId> {
        if let Some(known) = self.of.get(&buffer) {
            return known.clone();
        }
        let first = buffers.len() as u32;
        let own = buffers[buffer.0 as usize].clone();
        buffers.extend(std::iter::repeat_n(own, count));
        let names: Vec<BufferId> = (first..).take(count).map(BufferId).collect();
        self.whole.extend(names.iter().map(|name| (*name, buffer)));
        self.of.insert(buffer, names.clone());
        names
    }
}

/// How a kernel is cut.
struct Cut {
    axis: AxisId,
    /// How many positions of the axis each part has.
    sizes: Vec<i64>,
    /// What it reads by parts; of anything else each part reads what it needs of the whole.
    read: Vec<BufferId>,
}

/// Cuts kernels before they are fused: those that read what is written in parts, those that read what these write, and
/// those that write for them alone. None is cut whose result a kernel needs as a whole, since that could join it. All
/// cuts are one decision.
pub fn split_all(program: &mut Schedule, state: &mut State<'_, '_>) {
    let writers = by_buffer(&program.statements, Kernel::written);
    let roots = all_borders(&program.statements, &writers);
    if roots.is_empty() {
        return;
    }
    let call: BTreeSet<BufferId> = program
        .statements
        .iter()
        .filter(|statement| !matches!(statement.op, Op::Loop(_)))
        .flat_map(|statement| statement.op.reads())
        .chain(places(&program.output))
        .collect();
    let readers = by_buffer(&program.statements, Kernel::read);
    let readers_of = |buffer: &BufferId| readers.get(buffer).map_or(&[][..], Vec::as_slice);
    let mut kept_whole: BTreeSet<usize> = BTreeSet::new();
    let (mut cuts, mut borders) = loop {
        let (cuts, borders) = downwards(&program.statements, &writers, &roots, &kept_whole);
        let is_needed = |at: &usize| {
            let by_parts =
                |buffer: &BufferId, reader| cuts.get(reader).is_some_and(|cut: &Cut| cut.read.contains(buffer));
            let needs = |buffer: &BufferId| readers_of(buffer).iter().any(|reader| !by_parts(buffer, reader));
            kernel(&program.statements, *at).is_some_and(|kernel| kernel.written().iter().any(needs))
        };
        let found: Vec<usize> = cuts.keys().copied().filter(is_needed).collect();
        if found.is_empty() {
            break (cuts, borders);
        }
        kept_whole.extend(found);
    };
    upwards(&program.statements, (&writers, &readers), &call, &mut cuts, &mut borders);
    if cuts.is_empty() {
        return;
    }
    let names: Vec<&str> = cuts.keys().filter_map(|at| Some(kernel(&program.statements, *at)?.name.as_str())).collect();
    if state.decisions.allow(&format!("split-concat {}", names.join(", "))) {
        carry_out(program, &mut state.parts, &roots, &cuts);
    }
}

/// Cuts the kernels of a program that still read what is written in parts. Each cut is a decision.
pub fn split_rest(program: &mut Schedule, state: &mut State<'_, '_>) {
    let State { parts, decisions, .. } = state;
    let writers = by_buffer(&program.statements, Kernel::written);
    let borders = all_borders(&program.statements, &writers);
    let mut cuts: BTreeMap<usize, Cut> = BTreeMap::new();
    for (at, statement) in program.statements.iter().enumerate() {
        if let Op::Loop(kernel) = &statement.op
            && kernel.written().iter().all(|buffer| parts.whole(*buffer) == *buffer)
            && let Some(cut) = cut_of(kernel, &writers, &borders)
            && decisions.allow(&format!("split-concat {}", kernel.name))
        {
            cuts.insert(at, cut);
        }
    }
    carry_out(program, parts, &borders, &cuts);
}

fn kernel(statements: &[Statement], at: usize) -> Option<&Kernel> {
    match &statements[at].op {
        Op::Loop(kernel) => Some(kernel),
        _ => None,
    }
}

/// How a kernel is cut where buffers that it reads have borders, if it can be.
fn cut_of(kernel: &Kernel, writers: &Users, borders: &BTreeMap<BufferId, Borders>) -> Option<Cut> {
    if kernel.written().iter().any(|buffer| writers[buffer].len() > 1) {
        return None;
    }
    let axes: Vec<(BufferId, AxisId)> = kernel
        .read()
        .into_iter()
        .filter_map(|buffer| Some((buffer, axis_of(kernel, buffer, borders.get(&buffer)?)?)))
        .collect();
    let (first, axis) = axes.first().copied()?;
    let sizes = borders[&first].sizes.clone();
    let alike = |(buffer, own): &&(BufferId, AxisId)| *own == axis && borders[buffer].sizes == sizes;
    let read = axes.iter().filter(alike).map(|(buffer, _)| *buffer).collect();
    Some(Cut { axis, sizes, read })
}

/// The cuts of all that reads parts, and of all that reads what these write, with the borders that they make.
fn downwards(
    statements: &[Statement],
    writers: &Users,
    roots: &BTreeMap<BufferId, Borders>,
    kept_whole: &BTreeSet<usize>,
) -> (BTreeMap<usize, Cut>, BTreeMap<BufferId, Borders>) {
    let (mut cuts, mut borders) = (BTreeMap::new(), roots.clone());
    for (at, statement) in statements.iter().enumerate() {
        let Op::Loop(kernel) = &statement.op else { continue };
        if kept_whole.contains(&at) {
            continue;
        }
        let Some(cut) = cut_of(kernel, writers, &borders) else { continue };
        let made: Option<Vec<(BufferId, Borders)>> = kernel
            .written()
            .into_iter()
            .map(|buffer| Some((buffer, made_borders(kernel, buffer, cut.axis, &cut.sizes)?)))
            .collect();
        if let Some(made) = made {
            borders.extend(made);
            cuts.insert(at, cut);
        }
    }
    (cuts, borders)
}

/// The borders in what a kernel writes when it is cut.
fn made_borders(kernel: &Kernel, buffer: BufferId, axis: AxisId, sizes: &[i64]) -> Option<Borders> {
    let mut own = uses(kernel, buffer);
    let (Some((phase, Inst::Store { access, .. })), None) = (own.next(), own.next()) else { return None };
    let access = kernel.access(*access);
    let step = access.step(axis).as_int()?;
    let (extent, others) = without(&dimensions(kernel, phase, access), step)?;
    let offset = access.offset.clone();
    let whole = extent == sizes.iter().sum::<i64>();
    whole.then(|| Borders { offset, step, sizes: sizes.to_vec(), others, writers: Vec::new() })
}

/// Adds the cuts of what is read by cut kernels alone.
fn upwards(
    statements: &[Statement],
    (writers, readers): (&Users, &Users),
    call: &BTreeSet<BufferId>,
    cuts: &mut BTreeMap<usize, Cut>,
    borders: &mut BTreeMap<BufferId, Borders>,
) {
    for (at, statement) in statements.iter().enumerate().rev() {
        let Op::Loop(own) = &statement.op else { continue };
        let [buffer] = own.written()[..] else { continue };
        if cuts.contains_key(&at) || call.contains(&buffer) || writers[&buffer].len() > 1 {
            continue;
        }
        let Some(readers) = readers.get(&buffer) else { continue };
        let Some(first) = readers.first().and_then(|reader| cuts.get(reader)) else { continue };
        let sizes = first.sizes.clone();
        let fits = |axis: &AxisId| {
            let made = made_borders(own, buffer, *axis, &sizes)?;
            let read_so = readers.iter().all(|reader| {
                let (Some(later), Some(cut)) = (kernel(statements, *reader), cuts.get(reader)) else { return false };
                cut.sizes == sizes && axis_of(later, buffer, &made) == Some(cut.axis)
            });
            (read_so && can_be_cut(own, *axis)).then_some((*axis, made))
        };
        let Some((axis, made)) = own.rows.iter().find_map(fits) else { continue };
        for reader in readers {
            if let Some(cut) = cuts.get_mut(reader) {
                cut.read.push(buffer);
            }
        }
        borders.insert(buffer, made);
        cuts.insert(at, Cut { axis, sizes, read: Vec::new() });
    }
}

/// Puts the parts of kernels in their places, and names what they read and write.
fn carry_out(
    program: &mut Schedule,
    parts: &mut Parts,
    roots: &BTreeMap<BufferId, Borders>,
    cuts: &BTreeMap<usize, Cut>,
) {
    for buffer in cuts.values().flat_map(|cut| &cut.read) {
        let Some(borders) = roots.get(buffer) else { continue };
        let names = parts.named(*buffer, borders.writers.len(), &mut program.buffers);
        for (writer, name) in borders.writers.iter().zip(names) {
            if let Op::Loop(kernel) = &mut program.statements[*writer].op {
                kernel.accesses.iter_mut().filter(|access| access.buffer == *buffer).for_each(|a| a.buffer = name);
            }
        }
    }
    for (at, statement) in std::mem::take(&mut program.statements).into_iter().enumerate() {
        match (statement.op, cuts.get(&at)) {
            (Op::Loop(kernel), Some(Cut { axis, sizes, read })) => {
                for buffer in kernel.written() {
                    parts.named(buffer, sizes.len(), &mut program.buffers);
                }
                let renamed = [kernel.written(), read.clone()].concat();
                let mut begin = 0;
                for (number, size) in sizes.iter().enumerate() {
                    let mut part = kernel.clone();
                    part.axes[axis.0 as usize].extent = SymInt::Int(*size);
                    for access in &mut part.accesses {
                        access.offset = access.offset.clone() + access.step(*axis).clone() * SymInt::Int(begin);
                        if renamed.contains(&access.buffer) {
                            access.buffer = parts.of(access.buffer)[number];
                        }
                    }
                    begin += size;
                    program.statements.push(Op::Loop(part).into());
                }
            }
            (op, _) => program.statements.push(op.into()),
        }
    }
}

fn all_borders(statements: &[Statement], writers: &Users) -> BTreeMap<BufferId, Borders> {
    writers.iter().filter_map(|(buffer, at)| Some((*buffer, borders(statements, *buffer, at)?))).collect()
}

/// The kernels that use each buffer in some way, by position.
type Users = BTreeMap<BufferId, Vec<usize>>;

fn by_buffer(statements: &[Statement], used: fn(&Kernel) -> Vec<BufferId>) -> Users {
    let mut users = Users::new();
    for (at, statement) in statements.iter().enumerate() {
        if let Op::Loop(kernel) = &statement.op {
            used(kernel).into_iter().for_each(|buffer| users.entry(buffer).or_default().push(at));
        }
    }
    users
}

/// The borders in a buffer, if it is written in parts.
fn borders(statements: &[Statement], buffer: BufferId, writers: &[usize]) -> Option<Borders> {
    if !(2..=MOST_PARTS).contains(&writers.len()) {
        return None;
    }
    let mut found = Vec::new();
    for at in writers {
        let Op::Loop(kernel) = &statements[*at].op else { return None };
        let mut own = uses(kernel, buffer);
        let (Some((phase, Inst::Store { access, .. })), None) = (own.next(), own.next()) else { return None };
        let access = kernel.access(*access);
        found.push((access.offset.as_int()?, *at, dimensions(kernel, phase, access)));
    }
    found.sort_by_key(|(offset, ..)| *offset);
    let (first, _, shape) = &found[0];
    let along = |step: i64| {
        let mut sizes = Vec::new();
        let mut offset = *first;
        let others = without(shape, step)?.1;
        for (own, _, shape) in &found {
            let (size, own_others) = without(shape, step)?;
            if *own != offset || !same(&others, &own_others) {
                return None;
            }
            sizes.push(size);
            offset += step * size;
        }
        let apart = others.iter().all(|(extent, other)| match (extent.as_int(), other.as_int()) {
            (Some(extent), Some(other)) if other < step => other > 0 && other * extent <= step,
            (_, Some(other)) => other >= offset - first,
            _ => true,
        });
        let long = step > 1 || step == 1 && sizes.iter().all(|size| *size >= SHORTEST_RUN);
        let writers = found.iter().map(|(_, at, _)| *at).collect();
        (apart && long).then_some(Borders { offset: SymInt::Int(*first), step, sizes, others, writers })
    };
    shape.iter().filter_map(|(_, step)| step.as_int()).find_map(along)
}

/// The places of a kernel that use a buffer.
fn uses(kernel: &Kernel, buffer: BufferId) -> impl Iterator<Item = (&Phase, &Inst)> {
    kernel.phases.iter().flat_map(move |phase| {
        let here = move |inst: &&Inst| inst.access().is_some_and(|id| kernel.access(id).buffer == buffer);
        phase.code.insts().iter().filter(here).map(move |inst| (phase, inst))
    })
}

/// Extents and steps of the axes along which an access moves.
fn dimensions(kernel: &Kernel, phase: &Phase, access: &Access) -> Vec<(SymInt, SymInt)> {
    let axes =
        kernel.rows.iter().chain(&phase.axes).map(|axis| (kernel.extent(*axis).clone(), access.step(*axis).clone()));
    axes.filter(|(_, step)| step.as_int() != Some(0)).collect()
}

/// The extent of the dimension with a step, and all the others.
fn without(shape: &[(SymInt, SymInt)], step: i64) -> Option<(i64, Vec<(SymInt, SymInt)>)> {
    let at = shape.iter().position(|(_, own)| own.as_int() == Some(step))?;
    let mut others = shape.to_vec();
    let (extent, _) = others.remove(at);
    Some((extent.as_int()?, others))
}

/// Whether dimensions are the same but for their order.
fn same(a: &[(SymInt, SymInt)], b: &[(SymInt, SymInt)]) -> bool {
    a.len() == b.len() && a.iter().all(|dimension| b.contains(dimension))
}

/// The axis along which a kernel can be cut where a buffer has borders: one of its rows, along which it reads all parts
/// of the buffer and writes all that it writes.
fn axis_of(kernel: &Kernel, buffer: BufferId, borders: &Borders) -> Option<AxisId> {
    let size: i64 = borders.sizes.iter().sum();
    let mut found = None;
    for (phase, inst) in uses(kernel, buffer) {
        let Inst::Load(id) = inst else { return None };
        let access = kernel.access(*id);
        let (extent, others) = without(&dimensions(kernel, phase, access), borders.step)?;
        let along = |axis: &&AxisId| access.step(**axis).as_int() == Some(borders.step);
        let axis = *kernel.rows.iter().find(along)?;
        let whole = extent == size && same(&others, &borders.others) && access.offset == borders.offset;
        if !whole || found.is_some_and(|known| known != axis) {
            return None;
        }
        found = Some(axis);
    }
    found.filter(|axis| can_be_cut(kernel, *axis))
}

/// Whether a kernel can be cut along one of its rows: it writes all that it writes along it, and reduces nothing.
fn can_be_cut(kernel: &Kernel, axis: AxisId) -> bool {
    let mut written = true;
    kernel.each_access(|id, direction| {
        let moves = kernel.access(id).step(axis).as_int() != Some(0);
        written &= direction == pyrite_loops::Direction::Read || moves;
    });
    written && kernel.results.is_empty() && !scatters(kernel) && !is_counted(kernel, axis)
}
