//! From the code of a phase to the vector code of a region.
//!
//! Values that are the same in all lanes (*uniform*) may be wider than their share of a register: a kernel of 32-bit
//! values keeps all lanes of the widest registers even if it computes with 64-bit sizes and indices on the side. Such a
//! value holds its number in every 64-bit lane that fits, and [`Op::Splat`] follows where it becomes narrow.

use pyrite_loops::{AccessId, AxisId, Binary, Compare, Inst, Kernel, Number, Phase, Reduce, Type, Unary, Val, Write};
use pyrite_tensor::DType;

use super::Width;
use super::layout::Layout;
use super::reduce::{join, neutral, reduced_type};
use super::shape::{Shape, stays, uniform};
use super::tile::Tiling;
use super::vector::{
    Addressing, Alu, Cond, Element, Kind, Logic, Moves, Region, Rounding, Routine, Shift, V, VectorOp,
};

/// Which lanes of a region count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// All.
    Full,
    /// As many as are left.
    Rest,
}

/// How rows that lie side by side are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowGrouping<'a> {
    /// A vector of them at a time.
    Single,
    /// Several vectors at each position: what is not the same for all of them is not invariant.
    Blocks,
    /// As many positions of the axis around the lanes as there are lanes.
    Tile(&'a Tiling),
}

/// Builds the region of a phase.
pub(super) fn region(
    kernel: &Kernel,
    number: usize,
    shape: &Shape,
    layout: &Layout,
    count: Count,
    rows: RowGrouping<'_>,
) -> Region {
    let phase = &kernel.phases[number];
    let lane = shape.rows.or(phase.axes.last().copied());
    let axis = phase.axes.last().copied();
    let across = match rows {
        RowGrouping::Tile(tiling) => Some(tiling.across),
        RowGrouping::Single | RowGrouping::Blocks => None,
    };
    let mut lower = Lower {
        kernel,
        number,
        phase,
        shape,
        layout,
        lane,
        axis,
        rows,
        uniform: uniform(kernel, phase, lane, shape.rows.is_some()),
        region: Region { axis, across, ..Region::default() },
        values: Vec::new(),
    };
    for (value, inst) in phase.code.iter() {
        let v = lower.inst(value, inst);
        lower.values.push(v);
    }
    for (index, reduce) in phase.reduces.iter().enumerate() {
        lower.reduce(index, reduce, count);
    }
    lower.region
}

/// Whether a region can be emitted for several vectors of rows at each position.
pub(super) fn takes_blocks(region: &Region, kernel: &Kernel, lane: AxisId) -> bool {
    let by_row = |access: AccessId| matches!(kernel.access(access).step(lane).as_int(), Some(0 | 1));
    region.ops.iter().all(|op| match *op {
        VectorOp::Load(access, _, Addressing::Row | Addressing::Same)
        | VectorOp::Store(access, _, Addressing::Row, _) => by_row(access),
        VectorOp::Load(..)
        | VectorOp::Store(..)
        | VectorOp::AddAt { .. }
        | VectorOp::Call { .. }
        | VectorOp::Patch { .. } => false,
        VectorOp::Index(axis) => axis != lane,
        _ => true,
    })
}

struct Lower<'a> {
    kernel: &'a Kernel,
    /// Which phase it is.
    number: usize,
    phase: &'a Phase,
    shape: &'a Shape,
    layout: &'a Layout,
    lane: Option<AxisId>,
    axis: Option<AxisId>,
    rows: RowGrouping<'a>,
    uniform: Vec<bool>,
    region: Region,
    values: Vec<V>,
}

impl Lower<'_> {
    fn v(&self, value: Val) -> V {
        self.values[value.0 as usize]
    }

    fn is_uniform(&self, value: Val) -> bool {
        self.uniform[value.0 as usize]
    }

    /// The step along the lanes, where it is known.
    fn lane_step(&self, access: AccessId) -> Option<i64> {
        self.lane.map_or(Some(0), |axis| self.kernel.access(access).step(axis).as_int())
    }

    /// Where an access is transposed to, or from.
    fn transposed(&self, access: AccessId) -> Option<u32> {
        match self.rows {
            RowGrouping::Tile(tiling) => tiling.slot(access),
            RowGrouping::Single | RowGrouping::Blocks => None,
        }
    }

    /// Whether what an access reads changes within the loop.
    fn moves(&self, access: AccessId) -> Moves {
        let buffer = self.kernel.access(access).buffer;
        let written = self
            .phase
            .code
            .insts()
            .iter()
            .any(|inst| inst.writes() && inst.access().is_some_and(|a| self.kernel.access(a).buffer == buffer));
        let differs = match self.rows {
            RowGrouping::Single => false,
            RowGrouping::Blocks => !stays(self.kernel, access, self.lane),
            RowGrouping::Tile(tiling) => !stays(self.kernel, access, Some(tiling.across)),
        };
        if written || differs || !stays(self.kernel, access, self.axis) { Moves::Always } else { Moves::Never }
    }

    fn inst(&mut self, value: Val, inst: &Inst) -> V {
        let ty = self.phase.code.ty(value);
        let of = |v: Val| self.phase.code.ty(v);
        match *inst {
            Inst::Const(number, _) => self.number(number, ty),
            Inst::Load(access) => {
                let element = element(self.kernel.access(access).dtype);
                let place = match (self.lane_step(access), self.transposed(access)) {
                    (_, Some(slot)) => Addressing::Transposed(slot),
                    (Some(0), _) => Addressing::Same,
                    (Some(1), _) => Addressing::Row,
                    _ if element.size() >= 4 => Addressing::Steps(self.steps(access)),
                    _ => Addressing::OneByOne,
                };
                self.load(access, place)
            }
            Inst::Gather { access, at } => {
                let element = element(self.kernel.access(access).dtype);
                let place = match (self.is_uniform(at), self.lane_step(access)) {
                    (true, Some(0)) => Addressing::SameAt(self.v(at)),
                    (true, Some(1)) => Addressing::RowAt(self.v(at)),
                    (_, step) if element.size() >= 4 => {
                        let mut further = self.v(at);
                        if step != Some(0) {
                            let by = self.region.pure(VectorOp::LaneStepWide(access), Kind::W64);
                            let lanes = self.region.pure(VectorOp::Lanes(Kind::W64), Kind::W64);
                            let by = self.mul64(by, lanes);
                            further = self.region.alu(Alu::Add, Type::I64, further, by);
                        }
                        Addressing::At(further)
                    }
                    _ => Addressing::OneByOneAt(self.v(at)),
                };
                self.load(access, place)
            }
            Inst::Store { access, value } => self.store(access, value),
            Inst::Scatter { access, at, value, write } => {
                let place = match (self.is_uniform(at), self.lane_step(access)) {
                    (true, Some(1)) => Addressing::RowAt(self.v(at)),
                    _ => Addressing::OneByOneAt(self.v(at)),
                };
                let (ty, dtype) = (of(value), self.kernel.access(access).dtype);
                match (write, place) {
                    (Write::Set, _) => {
                        let v = self.stored(access, value);
                        self.region.add(VectorOp::Store(access, element(dtype), place, v), Kind::Mask, Moves::Always)
                    }
                    (Write::Add, Addressing::RowAt(_)) if ty != Type::Bool => {
                        let old = self.load(access, place);
                        let sum = self.region.alu(Alu::Add, ty, old, self.v(value));
                        let v = self.narrowed(dtype, sum);
                        self.region.add(VectorOp::Store(access, element(dtype), place, v), Kind::Mask, Moves::Always)
                    }
                    _ => {
                        let value = self.as_number(self.v(value), ty);
                        self.region.add(VectorOp::AddAt { access, at: self.v(at), value }, Kind::Mask, Moves::Always)
                    }
                }
            }
            Inst::Index(axis) => {
                let first = self.region.pure(VectorOp::Index(axis), Kind::W64);
                if self.lane == Some(axis) {
                    let lanes = self.region.pure(VectorOp::Lanes(Kind::W64), Kind::W64);
                    self.region.alu(Alu::Add, Type::I64, first, lanes)
                } else {
                    first
                }
            }
            Inst::Offset(_) => unreachable!("a finished kernel counts by its axes"),
            Inst::Size(number) => self.region.pure(VectorOp::Number(number), Kind::W64),
            Inst::Result(result) => {
                let slot = self.layout.results[result.0 as usize];
                let kind = if ty == Type::Bool { Kind::W32 } else { Kind::of(ty) };
                let moves = if self.rows == RowGrouping::Blocks { Moves::Always } else { Moves::Never };
                let v = self.region.add(VectorOp::Slot(slot, kind), kind, moves);
                self.as_bool_if(ty == Type::Bool, v)
            }
            Inst::Before(result) => {
                let of_phase = self.phase.reduces.iter().zip(&self.layout.accumulators[self.number]);
                let mut own = of_phase.filter(|(reduce, _)| reduce.result == result);
                let (_, accumulator) = own.next().expect("a phase reduces what it uses so far");
                self.region.add(VectorOp::Acc(*accumulator, Kind::of(ty)), Kind::of(ty), Moves::Always)
            }
            Inst::Unary(op, a) => self.unary(op, ty, self.v(a)),
            Inst::Binary(op, a, b) => self.binary(op, ty, (a, self.v(a)), self.v(b)),
            Inst::Fma(a, b, c) => {
                let (a, b, c) = (self.v(a), self.v(b), self.v(c));
                self.region.fma(ty, a, b, c)
            }
            Inst::Fnma(a, b, c) => {
                let (a, b, c) = (self.v(a), self.v(b), self.v(c));
                self.region.fnma(ty, a, b, c)
            }
            Inst::Shift(shift, a, by) => {
                let a = self.v(a);
                self.region.shift(shift, a, by)
            }
            // A register holds the bits of either type.
            Inst::Bits(_, a) => self.v(a),
            Inst::Table(..) => unreachable!("kernels that look words up are refused"),
            Inst::Patch { op, a, mask, value } => {
                let (a, mask, value) = (self.v(a), self.v(mask), self.v(value));
                let routine = Routine::SlowPath(op, ty);
                self.region.pure(VectorOp::Patch { routine, a, b: a, mask, value }, Kind::of(ty))
            }
            Inst::Compare(op, a, b) => self.compare(op, of(a), self.v(a), self.v(b)),
            Inst::Select(c, a, b) => {
                let (c, a, b) = (self.v(c), self.v(a), self.v(b));
                self.region.select(c, a, b)
            }
            Inst::Cast(to, a) => self.cast(of(a), to, self.v(a)),
            Inst::Wrap(to, a) => self.wrap(to, self.v(a)),
            Inst::Bounded { index, extent } => {
                let (index, extent) = (self.v(index), self.v(extent));
                let zero = self.region.int(0, Kind::W64);
                let from_end = self.region.alu(Alu::Add, Type::I64, index, extent);
                let negative = self.cmp(Cond::Lt, Type::I64, index, zero);
                let index = self.region.select(negative, from_end, index);
                let below = self.cmp(Cond::Lt, Type::I64, index, zero);
                let above = self.cmp(Cond::Ge, Type::I64, index, extent);
                let outside = self.region.logic(Logic::Or, below, above);
                self.region.add(VectorOp::Check(outside), Kind::Mask, Moves::Never);
                index
            }
        }
    }

    fn number(&mut self, number: Number, ty: Type) -> V {
        let (int, float) = match number {
            Number::Int(n) => (n, n as f64),
            Number::Float(x) => (x as i64, x),
        };
        match ty {
            Type::Bool => self.region.int(i64::from(float != 0.0), Kind::Mask),
            Type::I32 | Type::I64 => self.region.int(int, Kind::of(ty)),
            Type::F32 | Type::F64 => self.region.float(float, ty),
        }
    }

    /// How many elements away from the first each lane is, in 32 bits.
    fn steps(&mut self, access: AccessId) -> V {
        let lanes = self.region.pure(VectorOp::Lanes(Kind::W32), Kind::W32);
        let step = self.region.pure(VectorOp::LaneStep(access), Kind::W32);
        self.region.alu(Alu::Mul, Type::I32, lanes, step)
    }

    fn load(&mut self, access: AccessId, place: Addressing) -> V {
        let dtype = self.kernel.access(access).dtype;
        let element = element(dtype);
        let loaded = self.region.add(VectorOp::Load(access, element, place), element.kind(), self.moves(access));
        match dtype {
            DType::BF16 => self.region.shift(Shift::Left, loaded, 16),
            _ => self.as_bool_if(dtype == DType::Bool, loaded),
        }
    }

    /// A value as the lanes of a store hold it.
    fn stored(&mut self, access: AccessId, value: Val) -> V {
        let v = self.as_number(self.v(value), self.phase.code.ty(value));
        match self.kernel.access(access).dtype {
            DType::BF16 if matches!(self.phase.code.inst(value), Inst::Wrap(DType::BF16, _)) => {
                self.region.shift(Shift::Right, v, 16)
            }
            dtype => self.narrowed(dtype, v),
        }
    }

    /// A number as the lanes of a store hold it.
    fn narrowed(&mut self, dtype: DType, v: V) -> V {
        if dtype != DType::BF16 {
            return v;
        }
        let rounded = self.wrap(DType::BF16, v);
        self.region.shift(Shift::Right, rounded, 16)
    }

    fn store(&mut self, access: AccessId, value: Val) -> V {
        let element = element(self.kernel.access(access).dtype);
        let v = self.stored(access, value);
        let place = match (self.lane_step(access), self.transposed(access)) {
            (_, Some(slot)) => Addressing::Transposed(slot),
            (Some(1), _) => Addressing::Row,
            (Some(0), _) if self.is_uniform(value) => Addressing::Same,
            (Some(0), _) => Addressing::OneByOne,
            _ if element.size() >= 4 && self.shape.width == Width::Avx512 => Addressing::Steps(self.steps(access)),
            _ => Addressing::OneByOne,
        };
        self.region.add(VectorOp::Store(access, element, place, v), Kind::Mask, Moves::Always)
    }

    /// Bool as 0 or 1.
    fn as_number(&mut self, v: V, ty: Type) -> V {
        if ty != Type::Bool {
            return v;
        }
        let (one, zero) = (self.region.int(1, Kind::W32), self.region.int(0, Kind::W32));
        self.region.select(v, one, zero)
    }

    fn as_bool_if(&mut self, is_bool: bool, v: V) -> V {
        if !is_bool {
            return v;
        }
        let zero = self.region.int(0, Kind::W32);
        self.region.cmp(Cond::Ne, Type::I32, v, zero)
    }

    /// A comparison; that of a narrow value holds for all lanes.
    fn cmp(&mut self, cond: Cond, ty: Type, a: V, b: V) -> V {
        let mask = self.region.cmp(cond, ty, a, b);
        if self.shape.is_narrow(Kind::of(ty)) { self.region.pure(VectorOp::Splat(mask), Kind::Mask) } else { mask }
    }

    fn compare(&mut self, op: Compare, ty: Type, a: V, b: V) -> V {
        if ty == Type::Bool {
            let r = &mut self.region;
            return match op {
                Compare::Ne => r.logic(Logic::Xor, a, b),
                Compare::Eq => {
                    let differ = r.logic(Logic::Xor, a, b);
                    r.not(differ)
                }
                Compare::Lt => r.logic(Logic::AndNot, a, b),
                Compare::Gt => r.logic(Logic::AndNot, b, a),
                Compare::Le => {
                    let above = r.logic(Logic::AndNot, b, a);
                    r.not(above)
                }
                Compare::Ge => {
                    let below = r.logic(Logic::AndNot, a, b);
                    r.not(below)
                }
            };
        }
        let cond = match op {
            Compare::Eq => Cond::Eq,
            Compare::Ne => Cond::Ne,
            Compare::Lt => Cond::Lt,
            Compare::Le => Cond::Le,
            Compare::Gt => Cond::Gt,
            Compare::Ge => Cond::Ge,
        };
        self.cmp(cond, ty, a, b)
    }

    fn mul64(&mut self, a: V, b: V) -> V {
        let r = &mut self.region;
        if self.shape.width == Width::Avx512 {
            return r.alu(Alu::Mul, Type::I64, a, b);
        }
        let (high_a, high_b) = (r.shift(Shift::Right, a, 32), r.shift(Shift::Right, b, 32));
        let low = r.alu(Alu::MulLow, Type::I64, a, b);
        let (x, y) = (r.alu(Alu::MulLow, Type::I64, high_a, b), r.alu(Alu::MulLow, Type::I64, a, high_b));
        let high = r.alu(Alu::Add, Type::I64, x, y);
        let high = r.shift(Shift::Left, high, 32);
        r.alu(Alu::Add, Type::I64, low, high)
    }

    fn unary(&mut self, op: Unary, ty: Type, a: V) -> V {
        let kind = Kind::of(ty);
        match op {
            Unary::Not => self.region.not(a),
            Unary::Neg if ty.is_float() => {
                let sign = sign_bit(&mut self.region, ty);
                self.region.logic(Logic::Xor, a, sign)
            }
            Unary::Abs if ty.is_float() => {
                let sign = sign_bit(&mut self.region, ty);
                self.region.logic(Logic::AndNot, sign, a)
            }
            Unary::Neg => {
                let zero = self.region.int(0, kind);
                self.region.alu(Alu::Sub, ty, zero, a)
            }
            Unary::Abs => {
                let zero = self.region.int(0, kind);
                let negated = self.region.alu(Alu::Sub, ty, zero, a);
                let negative = self.cmp(Cond::Lt, ty, a, zero);
                self.region.select(negative, negated, a)
            }
            Unary::Sign => {
                let zero = self.region.int(0, kind);
                let (one, less) = if ty.is_float() {
                    (self.region.float(1.0, ty), self.region.float(-1.0, ty))
                } else {
                    (self.region.int(1, kind), self.region.int(-1, kind))
                };
                let (above, below) = (self.cmp(Cond::Gt, ty, a, zero), self.cmp(Cond::Lt, ty, a, zero));
                let rest = self.region.select(below, less, zero);
                self.region.select(above, one, rest)
            }
            Unary::Sqrt => self.region.pure(VectorOp::Sqrt(ty, a), kind),
            Unary::Rsqrt => {
                let one = self.region.float(1.0, ty);
                let root = self.region.pure(VectorOp::Sqrt(ty, a), kind);
                self.region.alu(Alu::Div, ty, one, root)
            }
            Unary::Floor => self.region.pure(VectorOp::Round(ty, Rounding::Down, a), kind),
            Unary::Ceil => self.region.pure(VectorOp::Round(ty, Rounding::Up, a), kind),
            Unary::Trunc => self.region.pure(VectorOp::Round(ty, Rounding::Zero, a), kind),
            Unary::Round => self.region.pure(VectorOp::Round(ty, Rounding::Nearest, a), kind),
            _ => unreachable!("functions are written out before"),
        }
    }

    fn binary(&mut self, op: Binary, ty: Type, (x, a): (Val, V), b: V) -> V {
        let kind = Kind::of(ty);
        let alu = match op {
            Binary::Add => Alu::Add,
            Binary::Sub => Alu::Sub,
            Binary::Mul if ty == Type::I64 => return self.mul64(a, b),
            Binary::Mul => Alu::Mul,
            Binary::Div => Alu::Div,
            Binary::Max => return self.best(Alu::Max, ty, (x, a), b),
            Binary::Min => return self.best(Alu::Min, ty, (x, a), b),
            Binary::And => return self.region.logic(Logic::And, a, b),
            Binary::Or => return self.region.logic(Logic::Or, a, b),
            Binary::Xor => return self.region.logic(Logic::Xor, a, b),
            Binary::MulLow => Alu::MulLow,
            Binary::Shl => Alu::ShiftLeft,
            Binary::Shr => Alu::ShiftRight,
            Binary::Scale => return self.scale(ty, a, b),
            Binary::Fmod => return self.region.pure(VectorOp::Call { routine: Routine::Binary(op, ty), a, b }, kind),
            Binary::Pow | Binary::Atan2 | Binary::Draw => unreachable!("functions are written out before"),
        };
        self.region.alu(alu, ty, a, b)
    }

    /// `y · 2ⁿ` for a whole `n`. Where there is no instruction for it two powers of two are multiplied with: the first
    /// product is exact.
    fn scale(&mut self, ty: Type, y: V, n: V) -> V {
        let (r, kind) = (&mut self.region, Kind::of(ty));
        if self.shape.width == Width::Avx512 {
            return r.pure(VectorOp::Scale(ty, y, n), kind);
        }
        if ty == Type::F32 {
            let n = r.convert(Type::F32, Type::I32, n);
            let half = r.shift(Shift::RightSigned, n, 1);
            let rest = r.alu(Alu::Sub, Type::I32, n, half);
            let mut power_of_two = |n: V| {
                let bias = r.int(127, Kind::W32);
                let n = r.alu(Alu::Add, Type::I32, n, bias);
                r.shift(Shift::Left, n, 23)
            };
            let (half, rest) = (power_of_two(half), power_of_two(rest));
            let y = r.alu(Alu::Mul, ty, y, half);
            return r.alu(Alu::Mul, ty, y, rest);
        }
        let half = r.float(0.5, ty);
        let first = r.alu(Alu::Mul, ty, n, half);
        let first = r.pure(VectorOp::Round(ty, Rounding::Nearest, first), kind);
        let second = r.alu(Alu::Sub, ty, n, first);
        let mut y = y;
        for part in [first, second] {
            // The sum with one and a half times 2⁵² has the whole number in its low bits.
            let whole = r.float(6_755_399_441_055_744.0, ty);
            let bits = r.alu(Alu::Add, ty, part, whole);
            let bias = r.int(1023, Kind::W64);
            let bits = r.alu(Alu::Add, Type::I64, bits, bias);
            let power = r.shift(Shift::Left, bits, 52);
            y = r.alu(Alu::Mul, ty, y, power);
        }
        y
    }

    /// The larger or the smaller, or NaN if one is. The instruction gives its second value if one of them is NaN.
    fn best(&mut self, alu: Alu, ty: Type, (x, a): (Val, V), b: V) -> V {
        let is_number = matches!(self.phase.code.inst(x), Inst::Const(Number::Float(x), _) if !x.is_nan());
        if ty.is_float() && !is_number {
            let best = self.region.alu(alu, ty, a, b);
            let nan = self.cmp(Cond::Unordered, ty, a, a);
            self.region.select(nan, a, best)
        } else if ty == Type::I64 && self.shape.width == Width::Avx2 {
            let above = self.cmp(Cond::Gt, ty, a, b);
            let (first, second) = if alu == Alu::Max { (a, b) } else { (b, a) };
            self.region.select(above, first, second)
        } else {
            self.region.alu(alu, ty, a, b)
        }
    }

    fn cast(&mut self, from: Type, to: Type, a: V) -> V {
        if from == to {
            return a;
        }
        match (from, to) {
            (_, Type::Bool) => {
                let zero = self.region.int(0, Kind::of(from));
                self.cmp(Cond::Ne, from, a, zero)
            }
            (Type::Bool, _) => {
                let zero = self.region.int(0, Kind::of(to));
                let one = if to.is_float() { self.region.float(1.0, to) } else { self.region.int(1, Kind::of(to)) };
                self.region.select(a, one, zero)
            }
            _ => {
                let (wide, other) = if Kind::of(from) == Kind::W64 { (from, to) } else { (to, from) };
                let lacking = self.shape.width == Width::Avx2 && wide == Type::I64 && other.is_float()
                    || self.shape.width == Width::Avx2 && (from, to) == (Type::F64, Type::I64);
                let cast = if lacking {
                    self.region.pure(VectorOp::Call { routine: Routine::Cast(from, to), a, b: a }, Kind::of(to))
                } else {
                    self.region.convert(from, to, a)
                };
                let narrows = self.shape.is_narrow(Kind::of(from)) && Kind::of(to) == Kind::W32;
                if narrows { self.region.pure(VectorOp::Splat(cast), Kind::W32) } else { cast }
            }
        }
    }

    fn wrap(&mut self, to: DType, a: V) -> V {
        let r = &mut self.region;
        match to {
            DType::F16 => r.pure(VectorOp::ThroughHalf(a), Kind::W32),
            DType::BF16 => {
                let (bias, one) = (r.int(0x7fff, Kind::W32), r.int(1, Kind::W32));
                let (high, quiet) = (r.int(0xffff_0000, Kind::W32), r.int(0x0040_0000, Kind::W32));
                let odd = r.shift(Shift::Right, a, 16);
                let odd = r.logic(Logic::And, odd, one);
                let up = r.alu(Alu::Add, Type::I32, a, bias);
                let up = r.alu(Alu::Add, Type::I32, up, odd);
                let nan = r.logic(Logic::Or, a, quiet);
                let is_nan = r.cmp(Cond::Unordered, Type::F32, a, a);
                let rounded = r.select(is_nan, nan, up);
                r.logic(Logic::And, rounded, high)
            }
            DType::U8 => {
                let low = r.int(0xff, Kind::W32);
                r.logic(Logic::And, a, low)
            }
            DType::I8 | DType::I16 => {
                let by = if to == DType::I8 { 24 } else { 16 };
                let a = r.shift(Shift::Left, a, by);
                r.shift(Shift::RightSigned, a, by)
            }
            _ => a,
        }
    }

    fn reduce(&mut self, number: usize, reduce: &Reduce, count: Count) {
        let ty = reduced_type(self.phase.code.ty(reduce.value));
        let accumulator = self.layout.accumulators[self.number][number];
        let mut v = self.as_number(self.v(reduce.value), self.phase.code.ty(reduce.value));
        let neutral = neutral(&mut self.region, reduce.op, ty);
        let mut index = reduce.index.map(|i| self.v(i));
        if count == Count::Rest {
            let active = self.region.pure(VectorOp::Active, Kind::Mask);
            v = self.region.select(active, v, neutral);
            let last = self.region.int(i64::MAX, Kind::W64);
            index = index.map(|i| self.region.select(active, i, last));
        }
        let old = self.region.add(VectorOp::Acc(accumulator, Kind::of(ty)), Kind::of(ty), Moves::Always);
        let old_index =
            index.map(|_| self.region.add(VectorOp::Acc(accumulator + 1, Kind::W64), Kind::W64, Moves::Always));
        let (new, new_index) = join(&mut self.region, self.shape.width, reduce.op, ty, (old, old_index), (v, index));
        self.region.add(VectorOp::SetAcc(accumulator, new), Kind::Mask, Moves::Always);
        if let Some(index) = new_index {
            self.region.add(VectorOp::SetAcc(accumulator + 1, index), Kind::Mask, Moves::Always);
        }
    }
}

fn sign_bit(region: &mut Region, ty: Type) -> V {
    region.float(-0.0, ty)
}

fn element(dtype: DType) -> Element {
    match dtype {
        DType::Bool | DType::U8 => Element::U8,
        DType::F8E4M3 | DType::F8E5M2 | DType::F8E4M3Fnuz | DType::F8E5M2Fnuz => Element::U8,
        DType::I8 => Element::I8,
        DType::I16 => Element::I16,
        DType::BF16 | DType::U16 => Element::U16,
        DType::F16 => Element::F16,
        DType::I32 | DType::F32 | DType::U32 => Element::B32,
        DType::I64 | DType::F64 | DType::C64 | DType::C128 | DType::U64 => Element::B64,
    }
}
