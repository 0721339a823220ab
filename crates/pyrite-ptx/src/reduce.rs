//! What phases reduce: accumulators of a thread, joined over the lanes of a warp by shuffles and over the warps of a block
//! through shared memory. The tree depends on the number of threads alone, so results are the same every time.
//!
//! Sums of single precision are kept in double precision, as the tile interpreter does, but for neighbours that a thread takes
//! together, which are added in pairs first, and rows that a block keeps in registers, whose sums are trees. Bool is 0 or 1 in
//! 32 bits.

use pyrite_loops::{Phase, Reduce, Reduction, Type};

use crate::mapping::KeptRow;
use crate::nest::Emitter;
use crate::text::{Body, Class, Reg};

/// The bytes of shared memory for a number of each warp.
const SLOT: usize = 32 * 8;
/// The bytes of shared memory for a number of each thread of a block.
const COLUMN_SLOT: usize = 16 * 32 * 8;
/// All lanes of a warp.
const ALL: &str = "0xffffffff";

/// The registers of a reduction.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    op: Reduction,
    /// What is kept.
    kept: Type,
    /// What is taken in.
    taken: Type,
    value: Reg,
    index: Option<Reg>,
}

impl Accumulator {
    /// The accumulator of a reduction, before it has taken anything in. A row that is kept in registers is summed up as a tree
    /// all through, so that single precision is enough.
    pub(crate) fn start(body: &mut Body, phase: &Phase, reduce: &Reduce, row: Option<KeptRow>) -> Self {
        let taken = phase.code.ty(reduce.value);
        let kept = match (reduce.op, taken) {
            (Reduction::Sum, Type::F32) if row.is_none() || phase.axes.is_empty() => Type::F64,
            (_, Type::Bool) => Type::I32,
            _ => taken,
        };
        let value = body.constant(Class::of(kept), neutral(reduce.op, kept));
        let index = reduce.index.map(|_| body.constant(Class::B64, i64::MAX as u64));
        Self { op: reduce.op, kept, taken, value, index }
    }

    /// The class of the register that holds what comes out; bool is 0 or 1.
    pub(crate) fn class_of_result(phase: &Phase, reduce: &Reduce) -> Class {
        match phase.code.ty(reduce.value) {
            _ if reduce.index.is_some() => Class::B64,
            Type::Bool => Class::B32,
            ty => Class::of(ty),
        }
    }

    /// Whether neighbours are added before they are taken in: sums of single precision.
    pub(crate) fn adds_neighbours(&self) -> bool {
        self.op == Reduction::Sum && self.taken == Type::F32
    }

    /// Takes a value in.
    pub(crate) fn take(&self, body: &mut Body, new: &str, index: Option<&str>) {
        let wide = match self.taken {
            Type::Bool => body.op(Class::B32, "selp.b32", &["1", "0", new]),
            Type::F32 if self.kept == Type::F64 => body.op(Class::B64, "cvt.f64.f32", &[new]),
            _ => new.to_owned(),
        };
        self.join(body, &wide, index);
    }

    /// Joins another accumulator's numbers.
    fn join(&self, body: &mut Body, new: &str, index: Option<&str>) {
        let (old, ty) = (&self.value, name(self.kept));
        match self.op {
            Reduction::Sum if self.kept.is_float() => body.line(&format!("add.rn.{ty} {old}, {old}, {new}")),
            Reduction::Sum => body.line(&format!("add.{ty} {old}, {old}, {new}")),
            Reduction::Prod if self.kept.is_float() => body.line(&format!("mul.rn.{ty} {old}, {old}, {new}")),
            Reduction::Prod => body.line(&format!("mul.lo.{ty} {old}, {old}, {new}")),
            Reduction::Any => body.line(&format!("or.b32 {old}, {old}, {new}")),
            Reduction::All => body.line(&format!("and.b32 {old}, {old}, {new}")),
            // One instruction that gives NaN where there is one; double precision has none.
            Reduction::Max if self.kept == Type::F32 => body.line(&format!("max.NaN.f32 {old}, {old}, {new}")),
            Reduction::Min if self.kept == Type::F32 => body.line(&format!("min.NaN.f32 {old}, {old}, {new}")),
            Reduction::Max | Reduction::Min | Reduction::ArgMax | Reduction::ArgMin => {
                let better = self.better(body, new, index);
                body.line(&format!("@{better} mov.{} {old}, {new}", Class::of(self.kept).bits()));
                if let (Some(kept), Some(index)) = (&self.index, index) {
                    body.line(&format!("@{better} mov.b64 {kept}, {index}"));
                }
            }
        }
    }

    /// Whether a number takes the place of the best one so far: it is better, or NaN where that is not, or comes first.
    fn better(&self, body: &mut Body, new: &str, index: Option<&str>) -> Reg {
        let (old, ty) = (&self.value.clone(), name(self.kept));
        let wins = if matches!(self.op, Reduction::Max | Reduction::ArgMax) { "gt" } else { "lt" };
        let mut better = body.op(Class::Pred, &format!("setp.{wins}.{ty}"), &[new, old]);
        let mut equal = index.map(|_| body.op(Class::Pred, &format!("setp.eq.{ty}"), &[new, old]));
        if self.kept.is_float() {
            let nan = body.op(Class::Pred, &format!("setp.nan.{ty}"), &[new, new]);
            let number = body.op(Class::Pred, &format!("setp.num.{ty}"), &[old, old]);
            let first = body.op(Class::Pred, "and.pred", &[&nan, &number]);
            better = body.op(Class::Pred, "or.pred", &[&better, &first]);
            if let Some(known) = equal {
                let none = body.op(Class::Pred, "not.pred", &[&number]);
                let both = body.op(Class::Pred, "and.pred", &[&nan, &none]);
                equal = Some(body.op(Class::Pred, "or.pred", &[&known, &both]));
            }
        }
        if let (Some(equal), Some(kept), Some(index)) = (equal, self.index.clone(), index) {
            let earlier = body.op(Class::Pred, "setp.lt.s64", &[index, &kept]);
            let tie = body.op(Class::Pred, "and.pred", &[&equal, &earlier]);
            better = body.op(Class::Pred, "or.pred", &[&better, &tie]);
        }
        better
    }

    /// What has been reduced so far.
    pub(crate) fn finish(self, body: &mut Body) -> Reg {
        match self.index {
            Some(index) => index,
            None if self.kept != self.taken && self.taken == Type::F32 => {
                body.op(Class::B32, "cvt.rn.f32.f64", &[&self.value])
            }
            None => self.value,
        }
    }

    /// Its registers with their classes.
    fn registers(&self) -> Vec<(Reg, Class)> {
        let value = (self.value.clone(), Class::of(self.kept));
        [value].into_iter().chain(self.index.clone().map(|index| (index, Class::B64))).collect()
    }
}

/// What a reduction of nothing gives, as bits.
fn neutral(op: Reduction, ty: Type) -> u64 {
    let of = |int: i64, float: f64| match ty {
        Type::F64 => float.to_bits(),
        Type::F32 => u64::from((float as f32).to_bits()),
        _ => int as u64,
    };
    let (least, most) = if ty == Type::I32 { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
    match op {
        Reduction::Sum | Reduction::Any => of(0, 0.0),
        Reduction::Prod | Reduction::All => of(1, 1.0),
        Reduction::Max | Reduction::ArgMax => of(least, f64::NEG_INFINITY),
        Reduction::Min | Reduction::ArgMin => of(most, f64::INFINITY),
    }
}

/// The name of a type of numbers with sign.
pub(crate) fn name(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "pred",
        Type::I32 => "s32",
        Type::I64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
    }
}

impl Emitter<'_> {
    /// The register of another lane.
    fn shuffled(&mut self, mode: &str, (register, class): &(Reg, Class), lane: &str) -> Reg {
        let mut move_half = |half: &str| {
            let to = self.body.reg(Class::B32);
            self.body.line(&format!("shfl.sync.{mode}.b32 {to}, {half}, {lane}, 31, {ALL}"));
            to
        };
        if *class == Class::B32 {
            return move_half(register);
        }
        let (low, high) = (self.body.reg(Class::B32), self.body.reg(Class::B32));
        self.body.line(&format!("mov.b64 {{{low}, {high}}}, {register}"));
        let mut move_half = |half: &str| {
            let to = self.body.reg(Class::B32);
            self.body.line(&format!("shfl.sync.{mode}.b32 {to}, {half}, {lane}, 31, {ALL}"));
            to
        };
        let (low, high) = (move_half(&low), move_half(&high));
        self.body.op(Class::B64, "mov.b64", &[&format!("{{{low}, {high}}}")])
    }

    /// Joins the accumulators of the first lanes of each warp, so many as a power of two; the first one has the result then, and
    /// all of them where they are all.
    fn join_warp(&mut self, lanes: u32) {
        for distance in [16, 8, 4, 2, 1].into_iter().filter(|distance| *distance < lanes) {
            for accumulator in self.accumulators.clone() {
                let registers = accumulator.registers();
                let others: Vec<Reg> =
                    registers.iter().map(|register| self.shuffled("bfly", register, &distance.to_string())).collect();
                accumulator.join(&mut self.body, &others[0], others.get(1).map(String::as_str));
            }
        }
    }

    /// Joins the accumulators of the warps of the block, lane by lane and in the order of the warps; each of them has the
    /// result then.
    pub(crate) fn join_columns(&mut self, thread: &str) {
        let Some((_, warps)) = self.warp.clone() else { return };
        if self.shared_is_read {
            self.meet();
        }
        let thread = self.body.op(Class::B32, "cvt.u32.u64", &[thread]);
        let warps = self.body.op(Class::B32, "cvt.u32.u64", &[&warps]);
        let lane = self.body.op(Class::B32, "and.b32", &[&thread, "31"]);
        let base = self.body.op(Class::B32, "mov.u32", &["shared"]);
        let own = self.body.op(Class::B32, "mad.lo.s32", &[&thread, "8", &base]);
        let other = self.body.op(Class::B32, "mad.lo.s32", &[&lane, "8", &base]);
        let registers: Vec<(Reg, Class)> = self.accumulators.iter().flat_map(Accumulator::registers).collect();
        self.shared = self.shared.max(registers.len() * COLUMN_SLOT);
        for (number, (register, class)) in registers.iter().enumerate() {
            let place = number * COLUMN_SLOT;
            self.body.line(&format!("st.shared.{} [{own}+{place}], {register}", class.bits()));
        }
        self.meet();
        self.shared_is_read = true;
        for accumulator in self.accumulators.clone() {
            let starts = [neutral(accumulator.op, accumulator.kept), i64::MAX as u64];
            for ((register, class), start) in accumulator.registers().iter().zip(starts) {
                let start = self.body.constant(*class, start);
                self.body.line(&format!("mov.{} {register}, {start}", class.bits()));
            }
        }
        let (warp, next) = (self.body.constant(Class::B32, 0), self.body.label());
        self.body.place(&next);
        let mut place = 0;
        for accumulator in self.accumulators.clone() {
            let mut found = Vec::new();
            for (_, class) in accumulator.registers() {
                found.push(self.body.op(
                    class,
                    &format!("ld.shared.{}", class.bits()),
                    &[&format!("[{other}+{place}]")],
                ));
                place += COLUMN_SLOT;
            }
            accumulator.join(&mut self.body, &found[0], found.get(1).map(String::as_str));
        }
        self.body.line(&format!("add.s32 {other}, {other}, 256"));
        self.body.line(&format!("add.s32 {warp}, {warp}, 1"));
        let more = self.body.op(Class::Pred, "setp.lt.u32", &[&warp, &warps]);
        self.body.line(&format!("@{more} bra {next}"));
    }

    /// Joins the accumulators of all threads of the block; each of them has the result then.
    pub(crate) fn join_block(&mut self, thread: &str, threads: &str) {
        self.join_warp(32);
        let registers: Vec<(Reg, Class)> = self.accumulators.iter().flat_map(Accumulator::registers).collect();
        if self.row.is_some_and(|row| row.threads == 32) {
            return self.take_first(registers);
        }
        let thread = self.body.op(Class::B32, "cvt.u32.u64", &[thread]);
        let threads = self.body.op(Class::B32, "cvt.u32.u64", &[threads]);
        let lane = self.body.op(Class::B32, "and.b32", &[&thread, "31"]);
        let warp = self.body.op(Class::B32, "shr.u32", &[&thread, "5"]);
        let warps = self.body.op(Class::B32, "shr.u32", &[&threads, "5"]);
        let base = self.body.op(Class::B32, "mov.u32", &["shared"]);
        let own = self.body.op(Class::B32, "mad.lo.s32", &[&warp, "8", &base]);
        let other = self.body.op(Class::B32, "mad.lo.s32", &[&lane, "8", &base]);
        let first = self.body.op(Class::Pred, "setp.eq.u32", &[&lane, "0"]);
        let counts = self.body.op(Class::Pred, "setp.lt.u32", &[&lane, &warps]);
        if self.shared_is_read {
            self.meet();
        }
        self.shared = self.shared.max(registers.len() * SLOT);
        for (number, (register, class)) in registers.iter().enumerate() {
            let place = number * SLOT;
            self.body.line(&format!("@{first} st.shared.{} [{own}+{place}], {register}", class.bits()));
        }
        self.meet();
        self.shared_is_read = true;
        let mut place = 0;
        for accumulator in self.accumulators.clone() {
            let starts = [neutral(accumulator.op, accumulator.kept), i64::MAX as u64];
            for ((register, class), start) in accumulator.registers().iter().zip(starts) {
                let start = self.body.constant(*class, start);
                let bits = class.bits();
                self.body.line(&format!("mov.{bits} {register}, {start}"));
                self.body.line(&format!("@{counts} ld.shared.{bits} {register}, [{other}+{place}]"));
                place += SLOT;
            }
        }
        // As many lanes as there are warps have something to join.
        self.join_warp(self.row.map_or(32, |row| (row.threads / 32).next_power_of_two()));
        self.take_first(registers);
    }

    /// The sign of a zero may depend on the order, so all threads take the result of the first lane.
    fn take_first(&mut self, registers: Vec<(Reg, Class)>) {
        for (register, class) in registers {
            let taken = self.shuffled("idx", &(register.clone(), class), "0");
            self.body.line(&format!("mov.{} {register}, {taken}", class.bits()));
        }
    }
}
