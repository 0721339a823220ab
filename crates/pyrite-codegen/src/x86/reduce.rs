//! What phases reduce: where accumulators start, how copies and lanes are joined.
//!
//! The totals of a phase are in the frame, one vector for each accumulator. Regions join what they accumulated into
//! them; when a phase has ended and its lanes are of one row, the lanes are joined and each of them holds the result.
//! Sums of floats keep what the roundings of their totals lost, and get it back in the end: so a sum is as accurate as
//! the short sums that regions make. A phase whose positions are those of one short sum has nothing to lose.

use pyrite_loops::{Reduction, Type};

use super::Width;
use super::emitter::{Done, Emitter};
use super::layout::LOST;
use super::region::{LoopForm, Start, Traversal};
use super::vector::{Alu, Cond, Kind, Logic, Moves, Region, Shift, V, VectorOp};

impl Emitter<'_> {
    /// The neutral value of each accumulator of a phase, as bits.
    pub(super) fn neutral_bits(&self, number: usize) -> Vec<u64> {
        let mut region = Region::default();
        let values = self.neutrals(number, &mut region);
        let bits = |v: V| match region.ops[v.0 as usize] {
            VectorOp::Const(bits, _) => bits,
            _ => unreachable!("neutral values are constants"),
        };
        values.into_iter().map(bits).collect()
    }

    fn neutrals(&self, number: usize, region: &mut Region) -> Vec<V> {
        let phase = &self.kernel.phases[number];
        let mut values = Vec::new();
        for reduce in &phase.reduces {
            values.push(neutral(region, reduce.op, reduced_type(phase.code.ty(reduce.value))));
            if reduce.index.is_some() {
                values.push(region.int(i64::MAX, Kind::W64));
            }
        }
        values
    }

    /// Makes the totals of a phase neutral.
    pub(super) fn start_totals(&mut self, number: usize) -> Done {
        let mut region = Region::default();
        let neutrals = self.neutrals(number, &mut region);
        for ((slot, _), value) in self.layout.totals[number].iter().zip(neutrals) {
            region.add(VectorOp::SetSlot(*slot, value), Kind::Mask, Moves::Always);
        }
        for (first, ty) in self.sums(number) {
            let zero = region.float(0.0, ty);
            let slot = self.layout.totals[number][first].0 + LOST;
            region.add(VectorOp::SetSlot(slot, zero), Kind::Mask, Moves::Always);
        }
        self.straight(&region)
    }

    /// The accumulators of a phase that are sums of floats and may lose digits in their totals, with their types.
    fn sums(&self, number: usize) -> Vec<(usize, Type)> {
        let phase = &self.kernel.phases[number];
        if self.is_short(number) {
            return Vec::new();
        }
        let firsts = phase.reduces.iter().zip(&self.layout.accumulators[number]);
        firsts
            .filter(|(reduce, _)| reduce.op == Reduction::Sum && phase.code.ty(reduce.value).is_float())
            .map(|(reduce, first)| (*first as usize, phase.code.ty(reduce.value)))
            .collect()
    }

    /// Gives sums back what they lost.
    pub(super) fn compensate_sums(&mut self, number: usize) -> Done {
        let mut region = Region::default();
        for (first, ty) in self.sums(number) {
            let (total, _) = self.total(&mut region, number, first, ty, false);
            let slot = self.layout.totals[number][first].0;
            let lost = region.pure(VectorOp::Slot(slot + LOST, Kind::of(ty)), Kind::of(ty));
            let sum = region.alu(Alu::Add, ty, total, lost);
            self.set_totals(&mut region, number, first, (sum, None));
        }
        self.straight(&region)
    }

    /// Adds a part to a total and what that loses to what was lost.
    fn add_up(&self, region: &mut Region, number: usize, first: usize, ty: Type, part: V) {
        let kind = Kind::of(ty);
        let (total, _) = self.total(region, number, first, ty, false);
        let slot = self.layout.totals[number][first].0;
        let lost = region.pure(VectorOp::Slot(slot + LOST, kind), kind);
        let sum = region.alu(Alu::Add, ty, total, part);
        let taken = region.alu(Alu::Sub, ty, sum, total);
        let rest = region.alu(Alu::Sub, ty, part, taken);
        let back = region.alu(Alu::Sub, ty, sum, taken);
        let old = region.alu(Alu::Sub, ty, total, back);
        let error = region.alu(Alu::Add, ty, rest, old);
        // An infinite sum loses nothing.
        let undefined = region.cmp(Cond::Unordered, ty, error, error);
        let zero = region.float(0.0, ty);
        let error = region.select(undefined, zero, error);
        let lost = region.alu(Alu::Add, ty, lost, error);
        region.add(VectorOp::SetSlot(slot, sum), Kind::Mask, Moves::Always);
        region.add(VectorOp::SetSlot(slot + LOST, lost), Kind::Mask, Moves::Always);
    }

    /// Joins the accumulators of a region into the totals of a phase: all copies, or each copy into those of its block.
    pub(super) fn join_copies(&mut self, number: usize, plan: &LoopForm<'_>, held: &[Vec<Option<u8>>]) -> Done {
        if plan.run != Traversal::Blocks {
            return self.collect(number, plan, held, 0..plan.copies);
        }
        for block in 0..plan.copies {
            self.layout.select_block(block);
            self.collect(number, plan, held, block..block + 1)?;
        }
        self.layout.select_block(0);
        Ok(())
    }

    fn collect(
        &mut self,
        number: usize,
        plan: &LoopForm<'_>,
        held: &[Vec<Option<u8>>],
        copies: std::ops::Range<usize>,
    ) -> Done {
        let phase = &self.kernel.phases[number];
        let mut region = Region::default();
        let mut accumulators = Vec::new();
        let mut part = |region: &mut Region, accumulator: usize, copy: usize| {
            let (kind, slots) = &plan.accumulators[accumulator];
            let op = match held[accumulator][copy] {
                Some(register) => {
                    accumulators.push(Some(register));
                    VectorOp::Acc(accumulators.len() as u32 - 1, *kind)
                }
                None => VectorOp::Slot(slots[copy], *kind),
            };
            region.add(op, *kind, Moves::Always)
        };
        for (index, reduce) in phase.reduces.iter().enumerate() {
            let first = self.layout.accumulators[number][index] as usize;
            let ty = reduced_type(phase.code.ty(reduce.value));
            let mut parts: Vec<(V, Option<V>)> = copies
                .clone()
                .map(|copy| {
                    let value = part(&mut region, first, copy);
                    (value, reduce.index.map(|_| part(&mut region, first + 1, copy)))
                })
                .collect();
            let adds = reduce.op == Reduction::Sum && ty.is_float() && !self.is_short(number);
            if !adds && plan.start == Start::Begun {
                parts.push(self.total(&mut region, number, first, ty, reduce.index.is_some()));
            }
            // Pairs are joined with pairs, so that no chain gets longer than it must.
            while parts.len() > 1 {
                parts = parts
                    .chunks(2)
                    .map(|pair| match pair {
                        [a, b] => join(&mut region, self.shape.width, reduce.op, ty, *a, *b),
                        _ => pair[0],
                    })
                    .collect();
            }
            if adds {
                self.add_up(&mut region, number, first, ty, parts[0].0);
            } else {
                self.set_totals(&mut region, number, first, parts[0]);
            }
        }
        self.straight_after(&region, accumulators, held)
    }

    fn total(&self, region: &mut Region, number: usize, first: usize, ty: Type, picks: bool) -> (V, Option<V>) {
        let totals = &self.layout.totals[number];
        let value = region.pure(VectorOp::Slot(totals[first].0, Kind::of(ty)), Kind::of(ty));
        (value, picks.then(|| region.pure(VectorOp::Slot(totals[first + 1].0, Kind::W64), Kind::W64)))
    }

    /// Joins the lanes of what a phase reduced; every lane then has the result.
    pub(super) fn join_lanes(&mut self, number: usize) -> Done {
        let phase = &self.kernel.phases[number];
        let mut region = Region::default();
        for (index, reduce) in phase.reduces.iter().enumerate() {
            let first = self.layout.accumulators[number][index] as usize;
            let ty = reduced_type(phase.code.ty(reduce.value));
            let mut total = self.total(&mut region, number, first, ty, reduce.index.is_some());
            let mut distance = self.shape.lanes as u32 / 2;
            while distance > 0 {
                let other = region.pure(VectorOp::Swap(total.0, distance), Kind::of(ty));
                let index = total.1.map(|i| region.pure(VectorOp::Swap(i, distance), Kind::W64));
                total = join(&mut region, self.shape.width, reduce.op, ty, total, (other, index));
                distance /= 2;
            }
            self.set_totals(&mut region, number, first, total);
        }
        self.straight(&region)
    }

    fn set_totals(&self, region: &mut Region, number: usize, first: usize, total: (V, Option<V>)) {
        let slot = self.layout.totals[number][first].0;
        region.add(VectorOp::SetSlot(slot, total.0), Kind::Mask, Moves::Always);
        if let Some(index) = total.1 {
            let slot = self.layout.totals[number][first + 1].0;
            region.add(VectorOp::SetSlot(slot, index), Kind::Mask, Moves::Always);
        }
    }
}

/// The type that values are reduced in.
pub(super) fn reduced_type(ty: Type) -> Type {
    if ty == Type::Bool { Type::I32 } else { ty }
}

/// What changes no result of a reduction.
pub(super) fn neutral(region: &mut Region, op: Reduction, ty: Type) -> V {
    let float = match op {
        Reduction::Sum | Reduction::Any => 0.0,
        Reduction::Prod | Reduction::All => 1.0,
        Reduction::Max | Reduction::ArgMax => f64::NEG_INFINITY,
        Reduction::Min | Reduction::ArgMin => f64::INFINITY,
    };
    if ty.is_float() {
        return region.float(float, ty);
    }
    let limits = if ty == Type::I32 { (i64::from(i32::MIN), i64::from(i32::MAX)) } else { (i64::MIN, i64::MAX) };
    let int = match op {
        Reduction::Max | Reduction::ArgMax => limits.0,
        Reduction::Min | Reduction::ArgMin => limits.1,
        _ => float as i64,
    };
    region.int(int, Kind::of(ty))
}

/// Two reduced values, or values with their indices, as one.
pub(super) fn join(
    r: &mut Region,
    width: Width,
    op: Reduction,
    ty: Type,
    old: (V, Option<V>),
    new: (V, Option<V>),
) -> (V, Option<V>) {
    let best = |r: &mut Region, alu: Alu| {
        if ty.is_float() {
            let best = r.alu(alu, ty, new.0, old.0);
            let nan = r.cmp(Cond::Unordered, ty, new.0, new.0);
            r.select(nan, new.0, best)
        } else if ty == Type::I64 && width == Width::Avx2 {
            let cond = if alu == Alu::Max { Cond::Gt } else { Cond::Lt };
            let wins = r.cmp(cond, ty, new.0, old.0);
            r.select(wins, new.0, old.0)
        } else {
            r.alu(alu, ty, new.0, old.0)
        }
    };
    let value = match op {
        Reduction::Sum => r.alu(Alu::Add, ty, old.0, new.0),
        Reduction::Prod if ty == Type::I64 && width == Width::Avx2 => {
            let (high_a, high_b) = (r.shift(Shift::Right, old.0, 32), r.shift(Shift::Right, new.0, 32));
            let low = r.alu(Alu::MulLow, ty, old.0, new.0);
            let (x, y) = (r.alu(Alu::MulLow, ty, high_a, new.0), r.alu(Alu::MulLow, ty, old.0, high_b));
            let high = r.alu(Alu::Add, ty, x, y);
            let high = r.shift(Shift::Left, high, 32);
            r.alu(Alu::Add, ty, low, high)
        }
        Reduction::Prod => r.alu(Alu::Mul, ty, old.0, new.0),
        Reduction::Max => best(r, Alu::Max),
        Reduction::Min => best(r, Alu::Min),
        Reduction::Any => r.logic(Logic::Or, old.0, new.0),
        Reduction::All => r.logic(Logic::And, old.0, new.0),
        Reduction::ArgMax | Reduction::ArgMin => {
            let (Some(old_index), Some(new_index)) = (old.1, new.1) else { return (new.0, new.1) };
            let cond = if op == Reduction::ArgMax { Cond::Gt } else { Cond::Lt };
            let wins = r.cmp(cond, ty, new.0, old.0);
            let mut even = r.cmp(Cond::Eq, ty, new.0, old.0);
            let earlier = r.cmp(Cond::Lt, Type::I64, new_index, old_index);
            let mut beats = wins;
            if ty.is_float() {
                let new_nan = r.cmp(Cond::Unordered, ty, new.0, new.0);
                let old_nan = r.cmp(Cond::Unordered, ty, old.0, old.0);
                let both = r.logic(Logic::And, new_nan, old_nan);
                even = r.logic(Logic::Or, even, both);
                let only = r.logic(Logic::AndNot, old_nan, new_nan);
                beats = r.logic(Logic::Or, wins, only);
            }
            let first = r.logic(Logic::And, even, earlier);
            let takes = r.logic(Logic::Or, beats, first);
            return (r.select(takes, new.0, old.0), Some(r.select(takes, new_index, old_index)));
        }
    };
    (value, None)
}
