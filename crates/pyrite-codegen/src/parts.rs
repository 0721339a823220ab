//! Kernels cut along the parts of what they read.
//!
//! A result of `cat` is written part by part, each part by a kernel of its own. A kernel that reads the whole can join
//! none of them. So it is cut along the same borders: a part of it runs over one part of the rows, reads one part of the
//! result, and can join the kernel that writes that part; then the result itself is never put together.
//!
//! While kernels are fused, the parts of a buffer have names of their own, so that fusion need not know which places in
//! a buffer overlap. What uses a buffer by its own name uses all of its parts: it runs behind all that write them.
//! [`Parts::join`] gives every place the name of its buffer again.

use std::collections::BTreeMap;

use pyrite_loops::{Access, AxisId, BufferId, Inst, Kernel, Phase};
use pyrite_sym::SymInt;

use crate::axes::is_counted;
use crate::decisions::Decisions;
use crate::fuse::scatters;
use crate::pieces::{Buffer, Piece, Pieces};

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
struct Borders {
    /// The element where the first part begins.
    offset: SymInt,
    /// How many elements a step along the dimension is.
    step: i64,
    /// How many positions along it each part has.
    sizes: Vec<i64>,
    /// Extents and steps of the other dimensions.
    others: Vec<(SymInt, SymInt)>,
    /// The kernel that writes each part, by position.
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

/// Cuts the kernels of a program that read what is written in parts. Each cut is a decision.
pub fn cut(program: &mut Pieces, decisions: &mut Decisions<'_>) -> Parts {
    let mut parts = Parts::default();
    let writers = writers(&program.pieces);
    let borders: BTreeMap<BufferId, Borders> =
        writers.iter().filter_map(|(buffer, at)| Some((*buffer, borders(&program.pieces, *buffer, at)?))).collect();
    let mut cuts: BTreeMap<usize, (AxisId, Vec<BufferId>)> = BTreeMap::new();
    for (at, piece) in program.pieces.iter().enumerate() {
        let Piece::Loops(kernel) = piece else { continue };
        if kernel.written().iter().any(|buffer| writers[buffer].len() > 1) {
            continue;
        }
        let axes: Vec<(BufferId, AxisId)> = kernel
            .read()
            .into_iter()
            .filter_map(|buffer| Some((buffer, axis_of(kernel, buffer, borders.get(&buffer)?)?)))
            .collect();
        let Some((first, axis)) = axes.first().copied() else { continue };
        // What is cut at the same places goes along; of anything else all is read.
        let alike = |(buffer, own): &(BufferId, AxisId)| *own == axis && borders[buffer].sizes == borders[&first].sizes;
        if decisions.allow(&format!("part {}", kernel.name)) {
            cuts.insert(at, (axis, axes.iter().copied().filter(alike).map(|(buffer, _)| buffer).collect()));
        }
    }
    if cuts.is_empty() {
        return parts;
    }
    for buffer in cuts.values().flat_map(|(_, buffers)| buffers) {
        let borders = &borders[buffer];
        let names = parts.named(*buffer, borders.writers.len(), &mut program.buffers);
        for (writer, name) in borders.writers.iter().zip(names) {
            if let Piece::Loops(kernel) = &mut program.pieces[*writer] {
                kernel.accesses.iter_mut().filter(|access| access.buffer == *buffer).for_each(|a| a.buffer = name);
            }
        }
    }
    for (at, piece) in std::mem::take(&mut program.pieces).into_iter().enumerate() {
        match (piece, cuts.get(&at)) {
            (Piece::Loops(kernel), Some((axis, read))) => {
                let sizes = &borders[&read[0]].sizes;
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
                    program.pieces.push(Piece::Loops(part));
                }
            }
            (piece, _) => program.pieces.push(piece),
        }
    }
    parts
}

/// The kernels that write each buffer, by position.
fn writers(pieces: &[Piece]) -> BTreeMap<BufferId, Vec<usize>> {
    let mut writers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    for (at, piece) in pieces.iter().enumerate() {
        if let Piece::Loops(kernel) = piece {
            kernel.written().into_iter().for_each(|buffer| writers.entry(buffer).or_default().push(at));
        }
    }
    writers
}

/// The borders in a buffer, if it is written in parts.
fn borders(pieces: &[Piece], buffer: BufferId, writers: &[usize]) -> Option<Borders> {
    if !(2..=MOST_PARTS).contains(&writers.len()) {
        return None;
    }
    let mut found = Vec::new();
    for at in writers {
        let Piece::Loops(kernel) = &pieces[*at] else { return None };
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
    if !kernel.results.is_empty() || scatters(kernel) {
        return None;
    }
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
    let axis = found?;
    let mut written = true;
    kernel.each_access(|id, direction| {
        let moves = kernel.access(id).step(axis).as_int() != Some(0);
        written &= direction == pyrite_loops::Direction::Read || moves;
    });
    (written && !is_counted(kernel, axis)).then_some(axis)
}
