//! The code of a phase at a position: an instruction of the loop IR as instructions of PTX.

use pyrite_loops::{AccessId, Binary, Block, Compare, Inst, Kernel, Lanes, Number, Phase, Shift, Type, Unary, Val};
use pyrite_tensor::DType;

use crate::emit::Param;
use crate::mapping::Mapping;
use crate::nest::Emitter;
use crate::reduce::name;
use crate::text::{Body, Class, Reg};

/// Writes a function of a number in single precision; the register of its value.
pub(crate) fn function(body: &mut Body, op: Unary, x: &str) -> Reg {
    let mut code = Block::default();
    let argument = code.append(Inst::Load(AccessId(0)), Type::F32);
    code.append(Inst::Unary(op, argument), Type::F32);
    let kernel = pyrite_math::expand(&Kernel {
        name: String::new(),
        axes: Vec::new(),
        rows: Vec::new(),
        phases: vec![Phase { axes: Vec::new(), code, reduces: Vec::new() }],
        lanes: Lanes::Rows,
        accesses: Vec::new(),
        results: Vec::new(),
        numbers: Vec::new(),
    });
    let mut emitter = Emitter::new(&kernel, Mapping::Rows, 1, None);
    std::mem::swap(&mut emitter.body, body);
    let code = &kernel.phases[0].code;
    let mut values = vec![x.to_owned()];
    for (value, inst) in code.iter().skip(1) {
        let register = emitter.scalar(code, value, inst, 0, &|v| values[v.0 as usize].clone());
        values.push(register);
    }
    std::mem::swap(&mut emitter.body, body);
    values.remove(values.len() - 1)
}

impl Emitter<'_> {
    /// Writes the code of a phase; gives the registers of each value, one for each lane.
    pub(crate) fn code(&mut self, phase: &Phase) -> Vec<Vec<Reg>> {
        let mut values: Vec<Vec<Reg>> = Vec::with_capacity(phase.code.len());
        for (value, inst) in phase.code.iter() {
            if let Some(known) = self.uniform.get(value.0 as usize).cloned().flatten() {
                values.push(vec![known; self.lanes]);
                continue;
            }
            let of = |v: Val| values[v.0 as usize].clone();
            let registers = match *inst {
                Inst::Load(access) => self.load(access, phase),
                Inst::Gather { access, at } => {
                    let at = of(at);
                    self.gather(access, phase, &at)
                }
                Inst::Store { access, value } => {
                    let stored = of(value);
                    self.store(access, phase, &stored);
                    Vec::new()
                }
                Inst::Scatter { access, at, value, write } => {
                    let (at, value) = (of(at), of(value));
                    self.scatter(access, phase, &at, &value, write);
                    Vec::new()
                }
                Inst::Const(..) | Inst::Size(_) | Inst::Result(_) => {
                    let one = self.scalar(&phase.code, value, inst, 0, &|_| String::new());
                    vec![one; self.lanes]
                }
                Inst::Before(result) => {
                    let own = phase.reduces.iter().position(|reduce| reduce.result == result).unwrap_or(0);
                    let so_far = self.accumulators[own].clone().finish(&mut self.body);
                    let class = Class::of(phase.code.ty(value));
                    vec![self.body.op(class, &format!("mov.{}", class.bits()), &[&so_far])]
                }
                Inst::Binary(Binary::Div, a, b) if self.divides_a_row(phase, value, b) => {
                    let (a, b) = (of(a), of(b));
                    self.quotients(&a, &b[0])
                }
                // What is the same for all lanes is computed once.
                _ if self.is_alike(inst, &values) => {
                    let of = |v: Val| values[v.0 as usize][0].clone();
                    vec![self.scalar(&phase.code, value, inst, 0, &of); self.lanes]
                }
                _ => (0..self.lanes)
                    .map(|lane| {
                        let of = |v: Val| values[v.0 as usize][lane].clone();
                        self.scalar(&phase.code, value, inst, lane, &of)
                    })
                    .collect(),
            };
            values.push(registers);
        }
        values
    }

    /// Whether an instruction gives the same to all lanes.
    fn is_alike(&self, inst: &Inst, values: &[Vec<Reg>]) -> bool {
        let mut alike = !matches!(inst, Inst::Index(axis) if self.lane_axis == Some(*axis));
        inst.each_operand(|v| alike &= values[v.0 as usize].windows(2).all(|pair| pair[0] == pair[1]));
        alike
    }

    /// Whether a row in registers is divided by a number of the row, in single precision.
    fn divides_a_row(&self, phase: &Phase, quotient: Val, by: Val) -> bool {
        let known = self.uniform.get(by.0 as usize).is_some_and(Option::is_some);
        self.row.is_some()
            && self.lane_axis.is_some()
            && phase.code.ty(quotient) == Type::F32
            && (known || matches!(phase.code.inst(by), Inst::Result(_)))
    }

    /// Quotients by one number, rounded as `div.rn` does it: the reciprocal is found once, and a product with it is corrected by
    /// what is left over, which is exact where neither number is very small or very large. Where one is, `div.rn` divides.
    fn quotients(&mut self, dividends: &[Reg], by: &str) -> Vec<Reg> {
        // The bits of 2^-61 and 2^61 without sign, as a range.
        const LEAST: u32 = 66 << 23;
        const WIDTH: u32 = 122 << 23;
        let is_moderate = |emitter: &mut Self, number: &str| {
            let size = emitter.body.op(Class::B32, "and.b32", &[number, "0x7fffffff"]);
            let above = emitter.body.op(Class::B32, "sub.s32", &[&size, &LEAST.to_string()]);
            emitter.pred("setp.lt.u32", &[&above, &WIDTH.to_string()])
        };
        let known = self.reciprocals.iter().find(|(known, _)| known == by).map(|(_, found)| found.clone());
        let (reciprocal, minus, moderate) = known.unwrap_or_else(|| {
            let one = self.body.constant(Class::B32, u64::from(1f32.to_bits()));
            let reciprocal = self.body.op(Class::B32, "div.rn.f32", &[&one, by]);
            let minus = self.unary(Unary::Neg, Type::F32, by);
            let found = (reciprocal, minus, is_moderate(self, by));
            self.reciprocals.push((by.to_owned(), found.clone()));
            found
        });
        let mut all = moderate;
        for dividend in dividends {
            let own = is_moderate(self, dividend);
            all = self.pred("and.pred", &[&all, &own]);
        }
        let quotients: Vec<Reg> = dividends.iter().map(|_| self.body.reg(Class::B32)).collect();
        let (exact, joined) = (self.body.label(), self.body.label());
        self.body.line(&format!("@!{all} bra {exact}"));
        let near: Vec<Reg> =
            dividends.iter().map(|one| self.body.op(Class::B32, "mul.rn.f32", &[one, &reciprocal])).collect();
        for ((dividend, near), quotient) in dividends.iter().zip(near).zip(&quotients) {
            let rest = self.body.op(Class::B32, "fma.rn.f32", &[&minus, &near, dividend]);
            self.body.line(&format!("fma.rn.f32 {quotient}, {rest}, {reciprocal}, {near}"));
        }
        self.body.line(&format!("bra {joined}"));
        self.body.place(&exact);
        for (dividend, quotient) in dividends.iter().zip(&quotients) {
            self.body.line(&format!("div.rn.f32 {quotient}, {dividend}, {by}"));
        }
        self.body.place(&joined);
        quotients
    }

    /// An instruction that depends on its operands and the position.
    pub(crate) fn scalar(
        &mut self,
        code: &Block,
        value: Val,
        inst: &Inst,
        lane: usize,
        of: &dyn Fn(Val) -> Reg,
    ) -> Reg {
        let ty = code.ty(value);
        let class = Class::of(ty);
        match *inst {
            Inst::Const(number, _) => self.body.constant(class, bits(number, ty)),
            Inst::Size(number) => self.param(Param::Number(number)),
            Inst::Index(axis) => {
                let begin = self.param(Param::Begin(axis));
                let index = self.indices[axis.0 as usize].clone().unwrap_or_default();
                let index = self.body.op(class, "add.s64", &[&index, &begin]);
                if self.lane_axis == Some(axis) && lane > 0 {
                    self.body.op(class, "add.s64", &[&index, &lane.to_string()])
                } else {
                    index
                }
            }
            Inst::Result(result) => {
                let register = self.results[result.0 as usize].clone().unwrap_or_default();
                if ty == Type::Bool { self.body.op(class, "setp.ne.u32", &[&register, "0"]) } else { register }
            }
            Inst::Unary(op, a) => self.unary(op, ty, &of(a)),
            Inst::Binary(op, a, b) => {
                let number = matches!(code.inst(a), Inst::Const(Number::Float(x), _) if !x.is_nan());
                self.binary(op, ty, &of(a), &of(b), number)
            }
            Inst::Fma(a, b, c) => self.body.op(class, &format!("fma.rn.{}", name(ty)), &[&of(a), &of(b), &of(c)]),
            Inst::Fnma(a, b, c) => {
                let minus = self.unary(Unary::Neg, ty, &of(a));
                self.body.op(class, &format!("fma.rn.{}", name(ty)), &[&minus, &of(b), &of(c)])
            }
            Inst::Shift(shift, a, by) => {
                let wide = class == Class::B64;
                let op = match (shift, wide) {
                    (Shift::Left, false) => "shl.b32",
                    (Shift::Left, true) => "shl.b64",
                    (Shift::Right, false) => "shr.u32",
                    (Shift::Right, true) => "shr.u64",
                    (Shift::RightSigned, false) => "shr.s32",
                    (Shift::RightSigned, true) => "shr.s64",
                };
                self.body.op(class, op, &[&of(a), &by.to_string()])
            }
            Inst::Bits(_, a) => of(a),
            Inst::Table(table, at) => {
                if !self.body.tables.contains(&table) {
                    self.body.tables.push(table);
                }
                let base = self.body.op(Class::B64, "mov.u64", &[&format!("{table:?}").to_lowercase()]);
                let place = self.body.op(Class::B64, "mad.lo.s64", &[&of(at), "8", &base]);
                self.body.op(Class::B64, "ld.const.b64", &[&format!("[{place}]")])
            }
            Inst::Patch { op, a, mask, value } => self.patch(op, ty, &of(a), &of(mask), &of(value)),
            Inst::Compare(op, a, b) => self.compare(op, code.ty(a), &of(a), &of(b)),
            Inst::Select(c, a, b) => self.select(ty, &of(c), &of(a), &of(b)),
            Inst::Cast(to, a) => self.cast(code.ty(a), to, &of(a)),
            Inst::Wrap(to, a) => self.wrap(to, &of(a)),
            Inst::Bounded { index, extent } => self.bounded(&of(index), &of(extent)),
            Inst::Load(_)
            | Inst::Gather { .. }
            | Inst::Store { .. }
            | Inst::Scatter { .. }
            | Inst::Before(_)
            | Inst::Offset(_) => unreachable!("not an instruction of its operands"),
        }
    }

    fn pred(&mut self, op: &str, operands: &[&str]) -> Reg {
        self.body.op(Class::Pred, op, operands)
    }

    /// The function of a patch, behind a branch.
    fn patch(&mut self, op: Unary, ty: Type, a: &str, mask: &str, value: &str) -> Reg {
        let class = Class::of(ty);
        let to = self.body.op(class, &format!("mov.{}", class.bits()), &[value]);
        let done = self.body.label();
        self.body.line(&format!("@!{mask} bra {done}"));
        let code = pyrite_math::slow_path(op, ty);
        let mut values = vec![a.to_owned()];
        for (value, inst) in code.iter().skip(1) {
            let register = self.scalar(&code, value, inst, 0, &|v| values[v.0 as usize].clone());
            values.push(register);
        }
        self.body.line(&format!("mov.{} {to}, {}", class.bits(), values[values.len() - 1]));
        self.body.place(&done);
        to
    }

    fn unary(&mut self, op: Unary, ty: Type, a: &str) -> Reg {
        let (class, ty_name) = (Class::of(ty), name(ty));
        let (sign, rest) = match class {
            Class::B64 => ("0x8000000000000000", "0x7fffffffffffffff"),
            _ => ("0x80000000", "0x7fffffff"),
        };
        let logic = |op: &str| format!("{op}.{}", class.bits());
        match op {
            Unary::Not => self.body.op(class, &logic("not"), &[a]),
            Unary::Neg if ty.is_float() => self.body.op(class, &logic("xor"), &[a, sign]),
            Unary::Abs if ty.is_float() => self.body.op(class, &logic("and"), &[a, rest]),
            Unary::Neg => self.body.op(class, &format!("neg.{ty_name}"), &[a]),
            Unary::Abs => {
                let minus = self.body.op(class, &format!("neg.{ty_name}"), &[a]);
                let below = self.pred(&format!("setp.lt.{ty_name}"), &[a, "0"]);
                self.body.op(class, &format!("selp.{}", class.bits()), &[&minus, a, &below])
            }
            Unary::Sign => {
                let one = self.body.constant(class, bits(Number::Float(1.0), ty));
                let less = self.body.constant(class, bits(Number::Float(-1.0), ty));
                let zero = self.body.constant(class, 0);
                let above = self.pred(&format!("setp.gt.{ty_name}"), &[a, &zero]);
                let below = self.pred(&format!("setp.lt.{ty_name}"), &[a, &zero]);
                let select = format!("selp.{}", class.bits());
                let other = self.body.op(class, &select, &[&less, &zero, &below]);
                self.body.op(class, &select, &[&one, &other, &above])
            }
            Unary::Sqrt => self.body.op(class, &format!("sqrt.rn.{ty_name}"), &[a]),
            Unary::Rsqrt => {
                let root = self.body.op(class, &format!("sqrt.rn.{ty_name}"), &[a]);
                let one = self.body.constant(class, bits(Number::Float(1.0), ty));
                self.body.op(class, &format!("div.rn.{ty_name}"), &[&one, &root])
            }
            Unary::Floor => self.body.op(class, &format!("cvt.rmi.{ty_name}.{ty_name}"), &[a]),
            Unary::Ceil => self.body.op(class, &format!("cvt.rpi.{ty_name}.{ty_name}"), &[a]),
            Unary::Trunc => self.body.op(class, &format!("cvt.rzi.{ty_name}.{ty_name}"), &[a]),
            Unary::Round => self.body.op(class, &format!("cvt.rni.{ty_name}.{ty_name}"), &[a]),
            _ => unreachable!("functions are written out before"),
        }
    }

    /// A function of two values; `number` tells that the first is a number that is known.
    fn binary(&mut self, op: Binary, ty: Type, a: &str, b: &str, number: bool) -> Reg {
        let (class, ty_name) = (Class::of(ty), name(ty));
        let rounded = if ty.is_float() { ".rn" } else { "" };
        let low = if ty.is_float() { ".rn" } else { ".lo" };
        match op {
            Binary::Add => self.body.op(class, &format!("add{rounded}.{ty_name}"), &[a, b]),
            Binary::Sub => self.body.op(class, &format!("sub{rounded}.{ty_name}"), &[a, b]),
            Binary::Mul => self.body.op(class, &format!("mul{low}.{ty_name}"), &[a, b]),
            Binary::Div => self.body.op(class, &format!("div.rn.{ty_name}"), &[a, b]),
            Binary::Max | Binary::Min if ty.is_float() => {
                // Of equal numbers the second, as on the CPU; the instruction for it orders zeros by their sign.
                let wins = if op == Binary::Max { "gt" } else { "lt" };
                let mut first = self.pred(&format!("setp.{wins}.{ty_name}"), &[a, b]);
                if !number {
                    let nan = self.pred(&format!("setp.nan.{ty_name}"), &[a, a]);
                    first = self.pred("or.pred", &[&first, &nan]);
                }
                self.body.op(class, &format!("selp.{}", class.bits()), &[a, b, &first])
            }
            Binary::Max => self.body.op(class, &format!("max.{ty_name}"), &[a, b]),
            Binary::Min => self.body.op(class, &format!("min.{ty_name}"), &[a, b]),
            Binary::And => self.body.op(class, &format!("and.{}", class.bits()), &[a, b]),
            Binary::Or => self.body.op(class, &format!("or.{}", class.bits()), &[a, b]),
            Binary::Xor => self.body.op(class, &format!("xor.{}", class.bits()), &[a, b]),
            Binary::MulLow => {
                let (x, y) =
                    (self.body.op(Class::B32, "cvt.u32.u64", &[a]), self.body.op(Class::B32, "cvt.u32.u64", &[b]));
                self.body.op(class, "mul.wide.u32", &[&x, &y])
            }
            Binary::Shl | Binary::Shr => {
                let by = self.body.op(Class::B32, "cvt.u32.u64", &[b]);
                self.body.op(class, if op == Binary::Shl { "shl.b64" } else { "shr.u64" }, &[a, &by])
            }
            Binary::Scale => self.scale(ty, a, b),
            Binary::Fmod if ty == Type::F32 => {
                let (x, y) =
                    (self.body.op(Class::B64, "cvt.f64.f32", &[a]), self.body.op(Class::B64, "cvt.f64.f32", &[b]));
                let rest = self.remainder(&x, &y);
                self.body.op(class, "cvt.rn.f32.f64", &[&rest])
            }
            Binary::Fmod => self.remainder(a, b),
            Binary::Pow | Binary::Atan2 | Binary::Draw => unreachable!("functions are written out before"),
        }
    }

    /// `y · 2ⁿ` for a whole `n`: the first of two products with powers of two is exact.
    fn scale(&mut self, ty: Type, y: &str, n: &str) -> Reg {
        let (class, ty_name) = (Class::of(ty), name(ty));
        let whole = self.body.op(Class::B32, &format!("cvt.rzi.s32.{ty_name}"), &[n]);
        let half = self.body.op(Class::B32, "shr.s32", &[&whole, "1"]);
        let rest = self.body.op(Class::B32, "sub.s32", &[&whole, &half]);
        let mut y = y.to_owned();
        for part in [half, rest] {
            let power = if ty == Type::F32 {
                let biased = self.body.op(Class::B32, "add.s32", &[&part, "127"]);
                self.body.op(class, "shl.b32", &[&biased, "23"])
            } else {
                let biased = self.body.op(Class::B32, "add.s32", &[&part, "1023"]);
                let wide = self.body.op(class, "cvt.s64.s32", &[&biased]);
                self.body.op(class, "shl.b64", &[&wide, "52"])
            };
            y = self.body.op(class, &format!("mul.rn.{ty_name}"), &[&y, &power]);
        }
        y
    }

    /// The remainder of doubles with the sign of the dividend, exactly: the mantissas are divided bit by bit.
    fn remainder(&mut self, a: &str, b: &str) -> Reg {
        const MAGNITUDE: &str = "0x7fffffffffffffff";
        const INFINITE: &str = "0x7ff0000000000000";
        let (x, y) = (
            self.body.op(Class::B64, "and.b64", &[a, MAGNITUDE]),
            self.body.op(Class::B64, "and.b64", &[b, MAGNITUDE]),
        );
        let (end, undefined) = (self.body.label(), self.body.label());
        let to = self.body.op(Class::B64, "mov.b64", &[a]);
        for (test, left, right) in
            [("setp.eq.s64", &y[..], "0"), ("setp.ge.s64", &x[..], INFINITE), ("setp.gt.s64", &y[..], INFINITE)]
        {
            let wrong = self.pred(test, &[left, right]);
            self.body.line(&format!("@{wrong} bra {undefined}"));
        }
        let less = self.pred("setp.lt.s64", &[&x, &y]);
        self.body.line(&format!("@{less} bra {end}"));
        let (mx, ex) = self.mantissa(&x);
        let (my, ey) = self.mantissa(&y);
        let count = self.body.op(Class::B32, "sub.s32", &[&ex, &ey]);
        let (again, last) = (self.body.label(), self.body.label());
        let step = |emitter: &mut Self| {
            let fits = emitter.pred("setp.ge.s64", &[&mx, &my]);
            emitter.body.line(&format!("@{fits} sub.s64 {mx}, {mx}, {my}"));
        };
        self.body.place(&again);
        let over = self.pred("setp.le.s32", &[&count, "0"]);
        self.body.line(&format!("@{over} bra {last}"));
        step(self);
        self.body.line(&format!("shl.b64 {mx}, {mx}, 1"));
        self.body.line(&format!("sub.s32 {count}, {count}, 1"));
        self.body.line(&format!("bra {again}"));
        self.body.place(&last);
        step(self);
        // Back to a float: the highest bit becomes the 52nd unless the number is subnormal.
        let zeros = self.body.op(Class::B32, "clz.b64", &[&mx]);
        let by = self.body.op(Class::B32, "sub.s32", &[&zeros, "11"]);
        let exponent = self.body.op(Class::B32, "sub.s32", &[&ey, &by]);
        let normal = self.pred("setp.gt.s32", &[&exponent, "0"]);
        let lower = self.body.op(Class::B32, "sub.s32", &[&ey, "1"]);
        let by = self.body.op(Class::B32, "selp.b32", &[&by, &lower, &normal]);
        let exponent = self.body.op(Class::B32, "selp.b32", &[&exponent, "1", &normal]);
        let back = self.body.op(Class::B32, "neg.s32", &[&by]);
        let left = self.pred("setp.ge.s32", &[&by, "0"]);
        let by = self.body.op(Class::B32, "selp.b32", &[&by, "0", &left]);
        let back = self.body.op(Class::B32, "selp.b32", &["0", &back, &left]);
        let moved = self.body.op(Class::B64, "shl.b64", &[&mx, &by]);
        let moved = self.body.op(Class::B64, "shr.u64", &[&moved, &back]);
        let exponent = self.body.op(Class::B32, "sub.s32", &[&exponent, "1"]);
        let exponent = self.body.op(Class::B64, "cvt.s64.s32", &[&exponent]);
        let exponent = self.body.op(Class::B64, "shl.b64", &[&exponent, "52"]);
        let magnitude = self.body.op(Class::B64, "add.s64", &[&moved, &exponent]);
        let nothing = self.pred("setp.eq.s64", &[&mx, "0"]);
        let magnitude = self.body.op(Class::B64, "selp.b64", &["0", &magnitude, &nothing]);
        let sign = self.body.op(Class::B64, "and.b64", &[a, "0x8000000000000000"]);
        self.body.line(&format!("or.b64 {to}, {magnitude}, {sign}"));
        self.body.line(&format!("bra {end}"));
        self.body.place(&undefined);
        self.body.line(&format!("mov.b64 {to}, 0x7ff8000000000000"));
        self.body.place(&end);
        to
    }

    /// The mantissa of a positive double with its highest bit the 52nd, and the exponent that goes with it.
    fn mantissa(&mut self, x: &str) -> (Reg, Reg) {
        let biased = self.body.op(Class::B64, "shr.u64", &[x, "52"]);
        let biased = self.body.op(Class::B32, "cvt.u32.u64", &[&biased]);
        let normal = self.pred("setp.gt.s32", &[&biased, "0"]);
        let exponent = self.body.op(Class::B32, "max.s32", &[&biased, "1"]);
        let fraction = self.body.op(Class::B64, "and.b64", &[x, "0x000fffffffffffff"]);
        let one = self.body.op(Class::B64, "or.b64", &[&fraction, "0x0010000000000000"]);
        let mantissa = self.body.op(Class::B64, "selp.b64", &[&one, &fraction, &normal]);
        let zeros = self.body.op(Class::B32, "clz.b64", &[&mantissa]);
        let by = self.body.op(Class::B32, "sub.s32", &[&zeros, "11"]);
        let mantissa = self.body.op(Class::B64, "shl.b64", &[&mantissa, &by]);
        (mantissa, self.body.op(Class::B32, "sub.s32", &[&exponent, &by]))
    }

    fn compare(&mut self, op: Compare, ty: Type, a: &str, b: &str) -> Reg {
        if ty == Type::Bool {
            let (first, second, negated) = match op {
                Compare::Ne => return self.pred("xor.pred", &[a, b]),
                Compare::Eq => {
                    let differ = self.pred("xor.pred", &[a, b]);
                    return self.pred("not.pred", &[&differ]);
                }
                Compare::Lt => (a, b, false),
                Compare::Gt => (b, a, false),
                Compare::Le => (b, a, true),
                Compare::Ge => (a, b, true),
            };
            let not = self.pred("not.pred", &[first]);
            let less = self.pred("and.pred", &[&not, second]);
            return if negated { self.pred("not.pred", &[&less]) } else { less };
        }
        let op = match op {
            Compare::Eq => "eq",
            Compare::Ne if ty.is_float() => "neu",
            Compare::Ne => "ne",
            Compare::Lt => "lt",
            Compare::Le => "le",
            Compare::Gt => "gt",
            Compare::Ge => "ge",
        };
        self.pred(&format!("setp.{op}.{}", name(ty)), &[a, b])
    }

    fn select(&mut self, ty: Type, c: &str, a: &str, b: &str) -> Reg {
        if ty == Type::Bool {
            let first = self.pred("and.pred", &[c, a]);
            let not = self.pred("not.pred", &[c]);
            let second = self.pred("and.pred", &[&not, b]);
            return self.pred("or.pred", &[&first, &second]);
        }
        let class = Class::of(ty);
        self.body.op(class, &format!("selp.{}", class.bits()), &[a, b, c])
    }

    fn cast(&mut self, from: Type, to: Type, a: &str) -> Reg {
        let class = Class::of(to);
        match (from, to) {
            (from, to) if from == to => a.to_owned(),
            (from, Type::Bool) => {
                let zero = self.body.constant(Class::of(from), 0);
                self.compare(Compare::Ne, from, a, &zero)
            }
            (Type::Bool, to) => {
                let one = self.body.constant(class, bits(Number::Float(1.0), to));
                let zero = self.body.constant(class, 0);
                self.body.op(class, &format!("selp.{}", class.bits()), &[&one, &zero, a])
            }
            (from, to) if from.is_float() && !to.is_float() => self.truncated(from, to, a),
            (Type::I64, Type::I32) => self.body.op(class, "cvt.u32.u64", &[a]),
            (Type::F32, Type::F64) => self.body.op(class, "cvt.f64.f32", &[a]),
            (Type::I32, Type::F64) => self.body.op(class, "cvt.rn.f64.s32", &[a]),
            (Type::I32, Type::I64) => self.body.op(class, "cvt.s64.s32", &[a]),
            (from, to) => self.body.op(class, &format!("cvt.rn.{}.{}", name(to), name(from)), &[a]),
        }
    }

    /// A float towards zero, as x86 converts: what does not fit becomes the least integer.
    fn truncated(&mut self, from: Type, to: Type, a: &str) -> Reg {
        let class = Class::of(to);
        let limit = if to == Type::I32 { 31f64.exp2() } else { 63f64.exp2() };
        let limit = self.body.constant(Class::of(from), bits(Number::Float(limit), from));
        let least = self.body.constant(class, if to == Type::I32 { 1 << 31 } else { 1 << 63 });
        let size = self.unary(Unary::Abs, from, a);
        let fits = self.pred(&format!("setp.lt.{}", name(from)), &[&size, &limit]);
        let whole = self.body.op(class, &format!("cvt.rzi.{}.{}", name(to), name(from)), &[a]);
        self.body.op(class, &format!("selp.{}", class.bits()), &[&whole, &least, &fits])
    }

    fn wrap(&mut self, to: DType, a: &str) -> Reg {
        match to {
            DType::F16 => {
                let half = self.narrowed(to, a);
                self.body.op(Class::B32, "cvt.f32.f16", &[&half])
            }
            DType::BF16 => {
                let half = self.narrowed(to, a);
                self.of_upper_half(&half)
            }
            DType::U8 => self.body.op(Class::B32, "and.b32", &[a, "0xff"]),
            DType::I8 | DType::I16 => {
                let by = if to == DType::I8 { "24" } else { "16" };
                let up = self.body.op(Class::B32, "shl.b32", &[a, by]);
                self.body.op(Class::B32, "shr.s32", &[&up, by])
            }
            _ => a.to_owned(),
        }
    }

    fn bounded(&mut self, index: &str, extent: &str) -> Reg {
        let from_end = self.body.op(Class::B64, "add.s64", &[index, extent]);
        let negative = self.pred("setp.lt.s64", &[index, "0"]);
        let counted = self.body.op(Class::B64, "selp.b64", &[&from_end, index, &negative]);
        let below = self.pred("setp.lt.s64", &[&counted, "0"]);
        let above = self.pred("setp.ge.s64", &[&counted, extent]);
        let outside = self.pred("or.pred", &[&below, &above]);
        self.fault_where(&outside, index, extent);
        counted
    }
}

/// A literal as the bits of a type.
fn bits(number: Number, ty: Type) -> u64 {
    let (int, float) = match number {
        Number::Int(n) => (n, n as f64),
        Number::Float(x) => (x as i64, x),
    };
    match ty {
        Type::Bool => u64::from(float != 0.0),
        Type::I32 => u64::from(int as u32),
        Type::I64 => int as u64,
        Type::F32 => u64::from((float as f32).to_bits()),
        Type::F64 => float.to_bits(),
    }
}
