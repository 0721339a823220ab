//! Kernels as loops that C programmers read: what is computed and in which order, not how vectors do it.

use std::fmt::Write as _;

use crate::print::index;
use crate::{
    AccessId, AxisId, Binary, BufferId, Compare, Inst, Kernel, Number, Phase, Reduction, Shift, Type, Unary, Write,
};

/// A kernel as loops; `name` gives the names of buffers.
pub fn c_like(kernel: &Kernel, name: &dyn Fn(BufferId) -> String) -> String {
    let mut printer = Printer { kernel, name, text: String::new(), depth: 0 };
    printer.open(&kernel.rows);
    kernel.phases.iter().for_each(|phase| printer.phase(phase));
    printer.close(kernel.rows.len());
    printer.text
}

struct Printer<'a> {
    kernel: &'a Kernel,
    name: &'a dyn Fn(BufferId) -> String,
    text: String,
    depth: usize,
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        self.text.extend(std::iter::repeat_n("  ", self.depth));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn open(&mut self, axes: &[AxisId]) {
        for axis in axes {
            let (i, extent) = (axis.0, self.kernel.extent(*axis));
            self.line(&format!("for (long i{i} = 0; i{i} < {extent}; i{i}++) {{"));
            self.depth += 1;
        }
    }

    fn close(&mut self, count: usize) {
        for _ in 0..count {
            self.depth -= 1;
            self.line("}");
        }
    }

    fn phase(&mut self, phase: &Phase) {
        for reduce in &phase.reduces {
            let (result, ty) = (reduce.result.0, type_name(self.kernel.results[reduce.result.0 as usize]));
            self.line(&format!("{ty} r{result} = {};", start_of(reduce.op)));
        }
        self.open(&phase.axes);
        for (value, inst) in phase.code.iter() {
            let text = self.inst(phase, inst);
            if inst.writes() {
                self.line(&format!("{text};"));
            } else {
                self.line(&format!("{} v{} = {text};", type_name(phase.code.ty(value)), value.0));
            }
        }
        for reduce in &phase.reduces {
            let (r, v) = (reduce.result.0, reduce.value.0);
            let at = reduce.index.map_or(0, |index| index.0);
            self.line(&match reduce.op {
                Reduction::Sum => format!("r{r} += v{v};"),
                Reduction::Prod => format!("r{r} *= v{v};"),
                Reduction::Max => format!("r{r} = max(r{r}, v{v});"),
                Reduction::Min => format!("r{r} = min(r{r}, v{v});"),
                Reduction::Any => format!("r{r} |= v{v};"),
                Reduction::All => format!("r{r} &= v{v};"),
                Reduction::ArgMax => format!("r{r} = argmax(r{r}, v{v}, v{at});"),
                Reduction::ArgMin => format!("r{r} = argmin(r{r}, v{v}, v{at});"),
            });
        }
        self.close(phase.axes.len());
    }

    fn at(&self, id: AccessId) -> String {
        let access = self.kernel.access(id);
        format!("{}[{}]", (self.name)(access.buffer), index(access))
    }

    fn further(&self, id: AccessId, by: u32) -> String {
        let access = self.kernel.access(id);
        let base = index(access);
        let base = if base == "0" { String::new() } else { format!("{base} + ") };
        format!("{}[{base}v{by}]", (self.name)(access.buffer))
    }

    fn inst(&self, phase: &Phase, inst: &Inst) -> String {
        match *inst {
            Inst::Const(Number::Int(n), Type::Bool) => (n != 0).to_string(),
            Inst::Const(Number::Int(n), _) => n.to_string(),
            Inst::Const(Number::Float(n), _) => format!("{n:?}"),
            Inst::Load(access) => self.at(access),
            Inst::Gather { access, at } => self.further(access, at.0),
            Inst::Store { access, value } => format!("{} = v{}", self.at(access), value.0),
            Inst::Scatter { access, at, value, write } => {
                let sign = if write == Write::Add { "+=" } else { "=" };
                format!("{} {sign} v{}", self.further(access, at.0), value.0)
            }
            Inst::Index(axis) => format!("i{}", axis.0),
            Inst::Offset(access) => index(self.kernel.access(access)),
            Inst::Size(number) => self.kernel.numbers[number as usize].to_string(),
            Inst::Result(result) | Inst::Before(result) => format!("r{}", result.0),
            Inst::Unary(op, a) => unary(op, a.0, phase.code.ty(a)),
            Inst::Binary(op, a, b) => binary(op, a.0, b.0),
            Inst::Fma(a, b, c) => format!("fma(v{}, v{}, v{})", a.0, b.0, c.0),
            Inst::Fnma(a, b, c) => format!("fma(-v{}, v{}, v{})", a.0, b.0, c.0),
            Inst::Shift(Shift::Left, a, by) => format!("v{} << {by}", a.0),
            Inst::Shift(Shift::Right, a, by) => format!("(unsigned)v{} >> {by}", a.0),
            Inst::Shift(Shift::RightSigned, a, by) => format!("v{} >> {by}", a.0),
            Inst::Bits(to, a) => format!("bits_as_{}(v{})", type_name(to), a.0),
            Inst::Table(table, at) => format!("{}[v{}]", format!("{table:?}").to_lowercase(), at.0),
            Inst::Patch { op, a, mask, value } => {
                format!("v{} ? {} : v{}", mask.0, unary(op, a.0, phase.code.ty(a)), value.0)
            }
            Inst::Compare(op, a, b) => format!("v{} {} v{}", a.0, comparison(op), b.0),
            Inst::Select(c, a, b) => format!("v{} ? v{} : v{}", c.0, a.0, b.0),
            Inst::Cast(to, a) => format!("({})v{}", type_name(to), a.0),
            Inst::Wrap(to, a) => format!("({to})v{}", a.0),
            Inst::Bounded { index, extent } => format!("bounded(v{}, v{})", index.0, extent.0),
        }
    }
}

fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::I32 => "int",
        Type::I64 => "long",
        Type::F32 => "float",
        Type::F64 => "double",
    }
}

fn start_of(op: Reduction) -> &'static str {
    match op {
        Reduction::Sum => "0",
        Reduction::Prod => "1",
        Reduction::Max => "-inf",
        Reduction::Min => "inf",
        Reduction::Any => "false",
        Reduction::All => "true",
        Reduction::ArgMax | Reduction::ArgMin => "none",
    }
}

fn unary(op: Unary, a: u32, ty: Type) -> String {
    match op {
        Unary::Neg => format!("-v{a}"),
        Unary::Not if ty == Type::Bool => format!("!v{a}"),
        Unary::Not => format!("~v{a}"),
        _ => {
            let mut text = format!("{op:?}").to_lowercase();
            let _ = write!(text, "(v{a})");
            text
        }
    }
}

fn binary(op: Binary, a: u32, b: u32) -> String {
    let sign = match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::Shl => "<<",
        Binary::Max
        | Binary::Min
        | Binary::Pow
        | Binary::Fmod
        | Binary::Atan2
        | Binary::Draw
        | Binary::Scale
        | Binary::MulLow
        | Binary::Shr => {
            return format!("{}(v{a}, v{b})", format!("{op:?}").to_lowercase());
        }
    };
    format!("v{a} {sign} v{b}")
}

fn comparison(op: Compare) -> &'static str {
    match op {
        Compare::Eq => "==",
        Compare::Ne => "!=",
        Compare::Lt => "<",
        Compare::Le => "<=",
        Compare::Gt => ">",
        Compare::Ge => ">=",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Reduce};
    use pyrite_tensor::DType;

    #[test]
    fn a_row_sum_reads_like_c() {
        let mut kernel = Kernel::default();
        let row = kernel.add_axis(8.into());
        let column = kernel.add_axis(4.into());
        kernel.rows = vec![row];
        let mut access = |buffer, steps: [i64; 2]| {
            let steps = steps.map(Into::into).to_vec();
            kernel.add_access(Access { buffer: BufferId(buffer), dtype: DType::F32, offset: 0.into(), steps })
        };
        let (from, to) = (access(0, [4, 1]), access(1, [1, 0]));
        let result = kernel.add_result(Type::F32);
        let mut phase = Phase { axes: vec![column], ..Phase::default() };
        let x = phase.code.push(Inst::Load(from), Type::F32);
        let value = phase.code.unary(Unary::Exp, x);
        phase.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result });
        let mut last = Phase::default();
        let value = last.code.push(Inst::Result(result), Type::F32);
        last.code.push(Inst::Store { access: to, value }, Type::F32);
        kernel.phases = vec![phase, last];
        let text = c_like(&kernel, &|buffer| format!("buf{}", buffer.0));
        assert_eq!(
            text,
            "for (long i0 = 0; i0 < 8; i0++) {\n  float r0 = 0;\n  for (long i1 = 0; i1 < 4; i1++) {\n    \
             float v0 = buf0[4*i0 + i1];\n    float v1 = exp(v0);\n    r0 += v1;\n  }\n  float v0 = r0;\n  \
             buf1[i0] = v0;\n}\n"
        );
    }
}
