//! A region as machine code: what is invariant first, then the loop.
//!
//! `r11` counts positions of the loop's axis and stays below `r10`. A region is entered only if its loop runs at least
//! once, so that invariant loads and checks happen only where a position needs them. When a region has ended, `r11` is
//! at the first position that it left, and its accumulators are in the frame.

use iced_x86::code_asm::{
    CodeLabel, ptr, qword_ptr,
    registers::gpr64::{r10, r11, rax, rcx},
};
use pyrite_loops::{AccessId, AxisId};

use super::emitter::{Done, Emitter, POINTERS, frame};
use super::lower::Count;
use super::registers::{Home, Registers};
use super::tile::{self, Tiling, Transpose};
use super::vector::{Kind, Region, V, VectorOp};

/// Where an access is kept during a region.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pointer {
    /// In one of [`POINTERS`].
    Register(usize),
    Frame(u32),
}

/// What an operation is emitted for.
pub(super) struct Context {
    pub(super) count: Count,
    /// Which copy of the loop's body it is.
    pub(super) copy: usize,
    /// How many positions of the loop a copy is for.
    pub(super) stride: usize,
    /// Whether rows of lanes are found with the help of `r11`.
    pub(super) indexed: bool,
    /// Whether copies are for neighbouring vectors of rows at one position.
    pub(super) blocks: bool,
    pub(super) stores: Stores,
    pub(super) lane: Option<AxisId>,
    pub(super) pointers: Vec<Pointer>,
    /// The vector in the frame of each accumulator, for each copy.
    pub(super) accumulators: Vec<Vec<u32>>,
    /// The accumulator that an operation may write to directly.
    pub(super) hints: Vec<Option<u32>>,
}

/// How a region runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traversal {
    /// Along the lanes: each copy takes as many positions as there are lanes.
    Lanes,
    /// One position for each copy; the lanes are rows.
    Steps,
    /// One position for all copies; each copy is for a vector of rows of its own.
    Blocks,
    /// Along the lanes, one vector at a time; each copy is for a position of its own of the axis around them.
    Tile,
    /// No loop.
    Once,
}

/// What a region is emitted as.
pub(super) struct LoopForm<'a> {
    pub(super) run: Traversal,
    pub(super) count: Count,
    /// How many copies of the body the loop has.
    pub(super) copies: usize,
    pub(super) lane: Option<AxisId>,
    /// The kinds of the accumulators and the vector in the frame of each, for each copy.
    pub(super) accumulators: &'a [(Kind, Vec<u32>)],
    /// The phase whose totals the accumulators are joined into; they start neutral then. Without one they start from
    /// the frame and go back there.
    pub(super) totals: Option<usize>,
    pub(super) stores: Stores,
    /// The squares of a [`Traversal::Tile`].
    pub(super) tiling: Option<&'a Tiling>,
    pub(super) rounds: Rounds,
    pub(super) start: Start,
}

/// How often a loop goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    /// As often as whole rounds lie between `r11` and `r10`, which may be never.
    Counted,
    /// So often, at least once.
    Known(i64),
    /// Once, for so many lanes.
    Last(i64),
}

/// What the totals of a phase are when accumulators are joined into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Neutral, or what other positions gave.
    Begun,
    /// Not set yet: what is joined first is the total.
    Unset,
}

/// How results go to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stores {
    /// By way of the caches.
    Cached,
    /// Past the caches.
    Streamed,
}

/// Which operations anything depends on.
fn needed(region: &Region) -> Vec<bool> {
    let mut needed: Vec<bool> = region.ops.iter().map(VectorOp::is_effect).collect();
    for index in (0..region.ops.len()).rev() {
        if needed[index] {
            region.ops[index].each_operand(|v| needed[v.0 as usize] = true);
        }
    }
    needed
}

/// How many operations the body of a region has.
pub(super) fn weight(region: &Region) -> usize {
    let needed = needed(region);
    (0..region.ops.len()).filter(|i| needed[*i] && !region.invariant[*i]).count()
}

/// How many vector registers the body needs at most for values of its own.
fn pressure(region: &Region, needed: &[bool], wide: bool) -> usize {
    let own = |i: usize| needed[i] && !region.invariant[i] && !(wide && region.kinds[i] == Kind::Mask);
    let mut last = vec![0; region.ops.len()];
    for (index, op) in region.ops.iter().enumerate() {
        if needed[index] && !region.invariant[index] {
            op.each_operand(|v| last[v.0 as usize] = index);
        }
    }
    let (mut live, mut most) = (0usize, 0);
    for (index, op) in region.ops.iter().enumerate() {
        if !needed[index] || region.invariant[index] {
            continue;
        }
        if own(index) && !op.is_effect() && !matches!(op, VectorOp::Acc(..)) {
            live += 1;
            most = most.max(live);
        }
        let mut ended = Vec::new();
        op.each_operand(|v| {
            let i = v.0 as usize;
            if own(i) && last[i] == index && !matches!(region.ops[i], VectorOp::Acc(..)) && !ended.contains(&i) {
                ended.push(i);
            }
        });
        live -= ended.len().min(live);
    }
    most
}

impl Emitter<'_> {
    /// Emits operations that run once, with nothing but the frame around them.
    pub(super) fn straight(&mut self, region: &Region) -> Done {
        let plan = LoopForm {
            run: Traversal::Once,
            count: Count::Full,
            copies: 1,
            lane: None,
            accumulators: &[],
            totals: None,
            stores: Stores::Cached,
            tiling: None,
            rounds: Rounds::Counted,
            start: Start::Begun,
        };
        self.region(region, &plan)
    }

    /// Emits operations that run once, with accumulators in registers; those of `held` keep what they hold.
    pub(super) fn straight_after(
        &mut self,
        region: &Region,
        accumulators: Vec<Option<u8>>,
        held: &[Vec<Option<u8>>],
    ) -> Done {
        let mut regs = Registers::new(region, self.is_wide());
        held.iter().flatten().flatten().for_each(|register| regs.reserve(*register));
        regs.accumulators = accumulators;
        let cx = Context {
            count: Count::Full,
            copy: 0,
            stride: 1,
            indexed: false,
            blocks: false,
            stores: Stores::Cached,
            lane: None,
            pointers: Vec::new(),
            accumulators: Vec::new(),
            hints: vec![None; region.ops.len()],
        };
        for index in 0..region.ops.len() {
            self.operate(&mut regs, region, index, &cx)?;
        }
        Ok(())
    }

    /// Emits a region.
    pub(super) fn region(&mut self, region: &Region, plan: &LoopForm<'_>) -> Done {
        self.regions(&vec![region; plan.copies], plan)
    }

    /// Emits a region whose copies differ in the vectors of the frame that they read.
    pub(super) fn regions(&mut self, regions: &[&Region], plan: &LoopForm<'_>) -> Done {
        let size = self.layout.size();
        let outcome = self.region_in_frame(regions, plan);
        self.deepest = self.deepest.max(self.layout.size());
        self.layout.truncate(size);
        outcome
    }

    fn region_in_frame(&mut self, regions: &[&Region], plan: &LoopForm<'_>) -> Done {
        let region = regions[0];
        let needed = needed(region);
        let mut regs = Registers::new(region, self.is_wide());
        let stride = self.stride(plan);
        let mut cx = self.context(region, plan, stride);
        let ahead = match plan.run {
            Traversal::Blocks => 1,
            Traversal::Tile => self.shape.lanes as i32,
            Traversal::Lanes | Traversal::Steps | Traversal::Once => (plan.copies * stride) as i32,
        };
        let mut skip = self.asm.create_label();
        self.leave_unless_enough(plan, ahead, skip)?;
        let advancing = self.place_pointers(region, plan, &mut cx)?;
        let wanted = self.hoist_invariants(&mut regs, region, plan, &needed, &mut cx)?;
        let accumulators = self.fetch_accumulators(&mut regs, plan)?;
        let count = if plan.tiling.is_some() { tile::REGISTERS } else { 0 };
        let transposing =
            (0..count).map(|_| regs.pin().ok_or(super::EmitError::Registers)).collect::<Result<Vec<_>, _>>()?;
        if plan.run != Traversal::Once {
            self.pin_invariants(&mut regs, region, &wanted, &needed)?;
        }
        hint(region, &regs, &mut cx.hints);

        let mut again = self.asm.create_label();
        if plan.run != Traversal::Once {
            self.asm.set_label(&mut again)?;
        }
        if plan.run == Traversal::Lanes && plan.count == Count::Rest {
            if let Rounds::Last(lanes) = plan.rounds {
                self.set_known_count(lanes)?;
            } else {
                self.asm.mov(rax, r10)?;
                self.asm.sub(rax, r11)?;
                self.set_count()?;
            }
        }
        if let (Some(tiling), Some(lane)) = (plan.tiling, plan.lane) {
            for (access, slot) in &tiling.loads {
                self.transpose(Transpose::In, *access, lane, *slot, &transposing)?;
            }
        }
        for (copy, region) in regions.iter().enumerate().take(plan.copies) {
            cx.copy = copy;
            regs.accumulators = accumulators.iter().map(|own| own[copy]).collect();
            regs.forget(region);
            for (index, needed) in needed.iter().enumerate() {
                if *needed && !hoisted(plan, regions[0], index) {
                    self.operate(&mut regs, region, index, &cx)?;
                }
            }
            regs.forget(regions[0]);
            if let Some(tiling) = plan.tiling {
                self.step_across(regions[0], tiling, 1, &cx)?;
            } else if plan.run != Traversal::Blocks || copy + 1 == plan.copies {
                let ahead = if plan.run == Traversal::Blocks { ahead } else { stride as i32 };
                self.advance_all(&advancing, ahead, &cx)?;
            }
        }
        if let (Some(tiling), Some(lane)) = (plan.tiling, plan.lane) {
            for (access, slot) in &tiling.stores {
                self.transpose(Transpose::Out, *access, lane, *slot, &transposing)?;
            }
            self.step_across(region, tiling, -(plan.copies as i32), &cx)?;
            self.advance_all(&advancing, ahead, &cx)?;
        }
        if plan.run != Traversal::Once {
            self.repeat_while_enough(plan, ahead, again)?;
        }
        self.keep_accumulators(plan, &accumulators)?;
        if plan.run != Traversal::Once && plan.rounds == Rounds::Counted {
            self.asm.set_label(&mut skip)?;
            self.asm.nop()?;
        }
        Ok(())
    }

    /// How many positions of the loop a copy of its body is for.
    fn stride(&self, plan: &LoopForm<'_>) -> usize {
        match plan.run {
            Traversal::Lanes => self.shape.lanes,
            // Copies are at the same position of the loop.
            Traversal::Tile | Traversal::Blocks => 0,
            Traversal::Steps | Traversal::Once => 1,
        }
    }

    /// What the first copy of the loop's body is emitted for.
    fn context(&self, region: &Region, plan: &LoopForm<'_>, stride: usize) -> Context {
        Context {
            count: plan.count,
            copy: 0,
            stride,
            indexed: matches!(plan.run, Traversal::Lanes | Traversal::Tile),
            blocks: plan.run == Traversal::Blocks,
            stores: plan.stores,
            lane: plan.lane,
            pointers: self.layout.cursors.iter().map(|offset| Pointer::Frame(*offset)).collect(),
            accumulators: plan.accumulators.iter().map(|(_, slots)| slots.clone()).collect(),
            hints: vec![None; region.ops.len()],
        }
    }

    fn advance_all(&mut self, advancing: &[(AccessId, AxisId)], ahead: i32, cx: &Context) -> Done {
        for (access, axis) in advancing {
            self.advance(*access, *axis, ahead, cx)?;
        }
        Ok(())
    }

    /// Goes to `skip` where fewer than one round of the loop is left.
    fn leave_unless_enough(&mut self, plan: &LoopForm<'_>, ahead: i32, skip: CodeLabel) -> Done {
        if plan.run == Traversal::Once || plan.rounds != Rounds::Counted {
            return Ok(());
        }
        if plan.run == Traversal::Lanes && plan.count == Count::Rest {
            self.asm.cmp(r11, r10)?;
            self.asm.jge(skip)?;
        } else {
            self.asm.lea(rax, ptr(r11 + ahead))?;
            self.asm.cmp(rax, r10)?;
            self.asm.jg(skip)?;
        }
        Ok(())
    }

    /// Moves the loop on by `ahead` and goes to `again` while a whole round is left.
    fn repeat_while_enough(&mut self, plan: &LoopForm<'_>, ahead: i32, again: CodeLabel) -> Done {
        self.asm.add(r11, ahead)?;
        if matches!(plan.rounds, Rounds::Known(1) | Rounds::Last(_)) {
            return Ok(());
        }
        if plan.run == Traversal::Lanes && plan.count == Count::Rest {
            self.asm.cmp(r11, r10)?;
            self.asm.jl(again)?;
        } else {
            self.asm.lea(rax, ptr(r11 + ahead))?;
            self.asm.cmp(rax, r10)?;
            self.asm.jle(again)?;
        }
        Ok(())
    }

    /// Computes what is the same in every round before the first, and keeps it in the frame. Returns how often the loop
    /// uses each value.
    fn hoist_invariants(
        &mut self,
        regs: &mut Registers,
        region: &Region,
        plan: &LoopForm<'_>,
        needed: &[bool],
        cx: &mut Context,
    ) -> Result<Vec<usize>, super::EmitError> {
        let mut wanted = vec![0usize; region.ops.len()];
        for (index, op) in region.ops.iter().enumerate() {
            if needed[index] && !hoisted(plan, region, index) {
                op.each_operand(|v| wanted[v.0 as usize] += 1);
            }
        }
        for index in (0..region.ops.len()).filter(|index| needed[*index] && hoisted(plan, region, *index)) {
            // Along the lanes, what is invariant is the same in all of them.
            let count = if matches!(plan.run, Traversal::Lanes | Traversal::Tile) { Count::Full } else { plan.count };
            let around = std::mem::replace(&mut cx.count, count);
            self.operate(regs, region, index, cx)?;
            cx.count = around;
            if wanted[index] > 0 && regs.home[index] == Home::None && !region.ops[index].is_effect() {
                let slot = self.layout.vector();
                let register = self.source(regs, region, V(index as u32), index as u32)?;
                self.put(region.kinds[index], frame(slot), register)?;
                regs.home[index] = Home::Frame(slot);
                self.release(regs, region, index as u32);
            }
        }
        regs.forget(region);
        Ok(wanted)
    }

    /// Gives accumulators the registers that can be spared, with what they begin with; those without stay in the frame.
    fn fetch_accumulators(
        &mut self,
        regs: &mut Registers,
        plan: &LoopForm<'_>,
    ) -> Result<Vec<Vec<Option<u8>>>, super::EmitError> {
        let neutral = plan.totals.map(|number| self.neutral_bits(number));
        let mut held = Vec::with_capacity(plan.accumulators.len());
        for (number, (kind, slots)) in plan.accumulators.iter().enumerate() {
            let mut own = Vec::with_capacity(slots.len());
            for slot in slots {
                let register = if regs.free_vectors() > 6 { regs.pin() } else { None };
                // The emitter's own register 0 is the way to those that stay in the frame.
                let d = register.map_or(0, usize::from);
                match &neutral {
                    Some(bits) => self.constant(bits[number], *kind, d)?,
                    None => self.fetch(*kind, d, frame(*slot))?,
                }
                if register.is_none() {
                    self.put(*kind, frame(*slot), d)?;
                }
                own.push(register);
            }
            held.push(own);
        }
        Ok(held)
    }

    /// Joins the copies of totals, or puts accumulators back into the frame.
    fn keep_accumulators(&mut self, plan: &LoopForm<'_>, held: &[Vec<Option<u8>>]) -> Done {
        if let Some(number) = plan.totals {
            return self.join_copies(number, plan, held);
        }
        for ((kind, slots), own) in plan.accumulators.iter().zip(held) {
            for (slot, register) in slots.iter().zip(own) {
                if let Some(register) = register {
                    self.put(*kind, frame(*slot), *register as usize)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps the invariant values that are used most in registers.
    fn pin_invariants(&mut self, regs: &mut Registers, region: &Region, wanted: &[usize], needed: &[bool]) -> Done {
        let spare = pressure(region, needed, self.is_wide()).max(3) + 1;
        let mut candidates: Vec<usize> = (0..region.ops.len())
            .filter(|i| {
                let in_vector = !(self.is_wide() && region.kinds[*i] == Kind::Mask);
                region.invariant[*i] && wanted[*i] > 0 && in_vector && !region.ops[*i].is_effect()
            })
            .collect();
        candidates.sort_by_key(|i| std::cmp::Reverse(wanted[*i]));
        for index in candidates {
            if regs.free_vectors() <= spare {
                break;
            }
            let Some(register) = regs.pin() else { break };
            let v = V(index as u32);
            self.load_home(regs, region, v, register as usize)?;
            regs.hold(v, register);
        }
        Ok(())
    }

    /// Puts the accesses of a region in registers, at the present position; tells which move from copy to copy.
    fn place_pointers(
        &mut self,
        region: &Region,
        plan: &LoopForm<'_>,
        cx: &mut Context,
    ) -> Result<Vec<(AccessId, AxisId)>, super::EmitError> {
        let mut advancing = Vec::new();
        let mut used: Vec<AccessId> = Vec::new();
        for access in region.ops.iter().filter_map(VectorOp::access) {
            let transposed = plan.tiling.is_some_and(|tiling| tiling.slot(access).is_some());
            if !transposed && !used.contains(&access) {
                used.push(access);
            }
        }
        for (number, access) in used.into_iter().enumerate() {
            let index = access.0 as usize;
            let cursor = frame(self.layout.cursors[index]);
            let moves = match (plan.run, region.axis) {
                (Traversal::Once, _) | (_, None) => None,
                (Traversal::Lanes | Traversal::Tile, Some(axis)) => {
                    let known = self.kernel.access(access).step(axis).as_int();
                    (!matches!(known, Some(0 | 1))).then_some(axis)
                }
                (Traversal::Steps | Traversal::Blocks, Some(axis)) => {
                    (self.kernel.access(access).step(axis).as_int() != Some(0)).then_some(axis)
                }
            };
            let crosses = plan.tiling.is_some_and(|tiling| self.crosses(access, tiling));
            if number >= POINTERS.len() && moves.is_none() && !crosses {
                continue;
            }
            self.asm.mov(rax, cursor)?;
            if let Some(axis) = moves {
                self.step_bytes(access, axis)?;
                self.asm.imul_2(rcx, r11)?;
                self.asm.add(rax, rcx)?;
                advancing.push((access, axis));
            }
            if number < POINTERS.len() {
                self.asm.mov(POINTERS[number], rax)?;
                cx.pointers[index] = Pointer::Register(number);
            } else {
                let slot = self.layout.vector();
                let place = frame(slot);
                self.asm.mov(place, rax)?;
                cx.pointers[index] = Pointer::Frame(slot);
            }
        }
        Ok(advancing)
    }

    /// Whether an access moves along the axis around the lanes.
    fn crosses(&self, access: AccessId, tiling: &Tiling) -> bool {
        self.kernel.access(access).step(tiling.across).as_int() != Some(0)
    }

    /// Moves everything along the axis around the lanes, but for what is transposed.
    fn step_across(&mut self, region: &Region, tiling: &Tiling, times: i32, cx: &Context) -> Done {
        let mut moved: Vec<AccessId> = Vec::new();
        for access in region.ops.iter().filter_map(VectorOp::access) {
            if tiling.slot(access).is_none() && self.crosses(access, tiling) && !moved.contains(&access) {
                moved.push(access);
                self.advance(access, tiling.across, times, cx)?;
            }
        }
        if region.ops.contains(&VectorOp::Index(tiling.across)) {
            let counter = frame(self.layout.counters[tiling.across.0 as usize]);
            self.asm.add(qword_ptr(counter), times)?;
        }
        Ok(())
    }

    /// The step of an access along an axis in bytes, in `rcx`.
    pub(super) fn step_bytes(&mut self, access: AccessId, axis: AxisId) -> Done {
        if let Some(offset) = self.layout.steps[access.0 as usize][axis.0 as usize] {
            self.asm.mov(rcx, frame(offset))?;
        } else {
            let access = self.kernel.access(access);
            let step = access.step(axis).as_int().unwrap_or(0) * access.dtype.size() as i64;
            self.asm.mov(rcx, step)?;
        }
        Ok(())
    }

    /// Moves an access along an axis.
    fn advance(&mut self, access: AccessId, axis: AxisId, times: i32, cx: &Context) -> Done {
        let known = self.layout.steps[access.0 as usize][axis.0 as usize].is_none();
        if known && let Pointer::Register(number) = cx.pointers[access.0 as usize] {
            let access = self.kernel.access(access);
            let step = access.step(axis).as_int().unwrap_or(0) as i32 * access.dtype.size() as i32;
            self.asm.add(POINTERS[number], step * times)?;
            return Ok(());
        }
        self.step_bytes(access, axis)?;
        if times != 1 {
            self.asm.imul_3(rcx, rcx, times)?;
        }
        match cx.pointers[access.0 as usize] {
            Pointer::Register(number) => self.asm.add(POINTERS[number], rcx)?,
            Pointer::Frame(offset) => {
                let place = frame(offset);
                self.asm.add(place, rcx)?;
            }
        }
        Ok(())
    }
}

/// Finds operations whose value only becomes an accumulator that nothing reads any more.
fn hint(region: &Region, regs: &Registers, hints: &mut [Option<u32>]) {
    for (position, op) in region.ops.iter().enumerate() {
        let VectorOp::SetAcc(number, value) = *op else { continue };
        let index = value.0 as usize;
        let direct = !matches!(
            region.ops[index],
            VectorOp::Load(..)
                | VectorOp::Call { .. }
                | VectorOp::Patch { .. }
                | VectorOp::Acc(..)
                | VectorOp::Const(..)
                | VectorOp::Lanes(_)
                | VectorOp::Slot(..)
        );
        let old = region.ops.iter().position(|o| matches!(o, VectorOp::Acc(n, _) if *n == number));
        let over = old.is_none_or(|old| regs.dies(V(old as u32), index as u32));
        if direct && over && !region.invariant[index] && regs.only_use(value) == Some(position as u32) {
            hints[index] = Some(number);
        }
    }
}

/// Whether a value is computed before the loop.
fn hoisted(plan: &LoopForm<'_>, region: &Region, index: usize) -> bool {
    plan.run != Traversal::Once && region.invariant[index]
}
