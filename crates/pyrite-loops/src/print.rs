//! Kernels as text: the kernel itself, and its memory dependencies.

use std::collections::BTreeSet;
use std::fmt;

use pyrite_sym::SymInt;

use crate::{Access, AccessId, AxisId, BufferId, Direction, Inst, Kernel, Number, Phase, Shift};

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &|buffer| format!("buf{}", buffer.0))
    }
}

impl Kernel {
    fn write(&self, f: &mut dyn fmt::Write, name: &dyn Fn(BufferId) -> String) -> fmt::Result {
        let lanes = match self.lanes {
            crate::Lanes::Phase => "",
            crate::Lanes::Rows => ", rows side by side",
        };
        writeln!(f, "{}: for {}{lanes}", self.name, self.ranges(&self.rows))?;
        for phase in &self.phases {
            writeln!(f, "  for {}", self.ranges(&phase.axes))?;
            for (value, inst) in phase.code.iter() {
                let text = self.inst(phase, inst, name);
                if inst.writes() {
                    writeln!(f, "    {text}")?;
                } else {
                    writeln!(f, "    v{} = {text}", value.0)?;
                }
            }
            for reduce in &phase.reduces {
                let index = reduce.index.map(|v| format!(", v{}", v.0)).unwrap_or_default();
                let op = format!("{:?}", reduce.op).to_lowercase();
                writeln!(f, "    r{} = {op}(v{}{index})", reduce.result.0, reduce.value.0)?;
            }
        }
        Ok(())
    }

    fn ranges(&self, axes: &[AxisId]) -> String {
        let ranges: Vec<String> = axes.iter().map(|a| format!("i{} < {}", a.0, self.extent(*a))).collect();
        format!("[{}]", ranges.join(", "))
    }

    fn inst(&self, phase: &Phase, inst: &Inst, name: &dyn Fn(BufferId) -> String) -> String {
        let at = |id: AccessId| {
            let access = self.access(id);
            format!("{}[{}]", name(access.buffer), index(access))
        };
        let further = |id: AccessId, by: u32| {
            let access = self.access(id);
            format!("{}[{} + v{by}]", name(access.buffer), index(access))
        };
        match *inst {
            Inst::Const(Number::Int(n), ty) => format!("{n}: {ty:?}"),
            Inst::Const(Number::Float(n), ty) => format!("{n:?}: {ty:?}"),
            Inst::Load(access) => at(access),
            Inst::Gather { access, at } => further(access, at.0),
            Inst::Store { access, value } => format!("{} = v{}", at(access), value.0),
            Inst::Scatter { access, at, value, write } => {
                let sign = if write == crate::Write::Add { "+=" } else { "=" };
                format!("{} {sign} v{}", further(access, at.0), value.0)
            }
            Inst::Index(axis) => format!("i{}", axis.0),
            Inst::Offset(access) => index(self.access(access)),
            Inst::Size(number) => format!("{}", self.numbers[number as usize]),
            Inst::Result(result) => format!("r{}", result.0),
            Inst::Before(result) => format!("r{} so far", result.0),
            Inst::Unary(op, a) => format!("{}(v{})", format!("{op:?}").to_lowercase(), a.0),
            Inst::Binary(op, a, b) => format!("{}(v{}, v{})", format!("{op:?}").to_lowercase(), a.0, b.0),
            Inst::Fma(a, b, c) => format!("fma(v{}, v{}, v{})", a.0, b.0, c.0),
            Inst::Fnma(a, b, c) => format!("fnma(v{}, v{}, v{})", a.0, b.0, c.0),
            Inst::Shift(shift, a, by) => format!("{}(v{}, {by})", shift_name(shift), a.0),
            Inst::Bits(to, a) => format!("bits(v{}, {:?} as {to:?})", a.0, phase.code.ty(a)),
            Inst::Table(table, at) => format!("{}[v{}]", format!("{table:?}").to_lowercase(), at.0),
            Inst::Patch { op, a, mask, value } => {
                format!("patch(v{}, {}(v{}), v{})", mask.0, format!("{op:?}").to_lowercase(), a.0, value.0)
            }
            Inst::Compare(op, a, b) => format!("{}(v{}, v{})", format!("{op:?}").to_lowercase(), a.0, b.0),
            Inst::Select(c, a, b) => format!("select(v{}, v{}, v{})", c.0, a.0, b.0),
            Inst::Cast(to, a) => format!("cast(v{}, {:?} to {to:?})", a.0, phase.code.ty(a)),
            Inst::Wrap(to, a) => format!("wrap(v{}, {to})", a.0),
            Inst::Bounded { index, extent } => format!("bounded(v{}, v{})", index.0, extent.0),
        }
    }
}

fn shift_name(shift: Shift) -> &'static str {
    match shift {
        Shift::Left => "shl",
        Shift::Right => "shr",
        Shift::RightSigned => "sar",
    }
}

/// The index of an access over the loop variables `i0`, `i1`, ….
pub fn index(access: &Access) -> String {
    let mut terms = Vec::new();
    if access.offset.as_int() != Some(0) {
        terms.push(access.offset.to_string());
    }
    for (axis, step) in access.steps.iter().enumerate() {
        match step.as_int() {
            Some(0) => {}
            Some(1) => terms.push(format!("i{axis}")),
            _ => terms.push(format!("{}*i{axis}", factor(step))),
        }
    }
    if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
}

fn factor(step: &SymInt) -> String {
    let text = step.to_string();
    if text.contains(' ') { format!("({text})") } else { text }
}

/// The memory dependencies of a kernel, in the form that PyTorch's scheduler prints: what it writes, what it reads that
/// another kernel computes (unmet), what it reads that is there from the start (met), the sizes of its loops, its body.
pub fn dependencies(kernel: &Kernel, name: &dyn Fn(BufferId) -> String, computed: &dyn Fn(BufferId) -> bool) -> String {
    let mut writes = BTreeSet::new();
    let (mut unmet, mut met) = (BTreeSet::new(), BTreeSet::new());
    kernel.each_access(|id, direction| {
        let access = kernel.access(id);
        let sizes: Vec<String> = access
            .steps
            .iter()
            .zip(&kernel.axes)
            .filter(|(step, _)| step.as_int() != Some(0))
            .map(|(_, axis)| axis.extent.to_string())
            .collect();
        let comma = if sizes.len() == 1 { "," } else { "" };
        let buffer = name(access.buffer);
        let text = format!("MemoryDep(name='{buffer}', index={}, size=({}{comma}))", index(access), sizes.join(", "));
        match direction {
            Direction::Write => writes.insert(text),
            Direction::Read if computed(access.buffer) => unmet.insert(text),
            Direction::Read => met.insert(text),
        };
    });
    let set = |items: BTreeSet<String>| format!("{{{}}}", items.into_iter().collect::<Vec<_>>().join(", "));
    let extents = |axes: &[AxisId]| {
        let list: Vec<String> = axes.iter().map(|a| kernel.extent(*a).to_string()).collect();
        format!("[{}]", list.join(", "))
    };
    let inner: Vec<String> = kernel.phases.iter().map(|phase| extents(&phase.axes)).collect();
    let title = &kernel.name;
    let mut body = String::new();
    // Writing to a string does not fail.
    let _ = kernel.write(&mut body, name);
    format!(
        "{title}.writes = {}\n{title}.unmet_dependencies = {}\n{title}.met_dependencies = {}\n{title}.sizes = ({}, {})\n{body}",
        set(writes),
        set(unmet),
        set(met),
        extents(&kernel.rows),
        inner.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Reduce, Reduction, Type, verify};
    use pyrite_tensor::DType;

    /// `buf1 = sum(buf0 + primals_2)`.
    fn summed() -> Kernel {
        let mut kernel = Kernel { name: "buf1".to_owned(), ..Kernel::default() };
        let axis = kernel.add_axis(12.into());
        let mut access = |buffer, step: i64| {
            kernel.add_access(Access {
                buffer: BufferId(buffer),
                dtype: DType::F32,
                offset: 0.into(),
                steps: vec![step.into()],
            })
        };
        let (a, b, c) = (access(0, 1), access(2, 1), access(1, 0));
        let result = kernel.add_result(Type::F32);
        let mut phase = Phase { axes: vec![axis], ..Phase::default() };
        let x = phase.code.push(Inst::Load(a), Type::F32);
        let y = phase.code.push(Inst::Load(b), Type::F32);
        let value = phase.code.binary(Binary::Add, x, y);
        phase.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result });
        let mut last = Phase::default();
        let value = last.code.push(Inst::Result(result), Type::F32);
        last.code.push(Inst::Store { access: c, value }, Type::F32);
        kernel.phases = vec![phase, last];
        kernel
    }

    #[test]
    fn a_kernel_prints_its_dependencies_and_its_body() {
        let kernel = summed();
        assert_eq!(verify(&kernel), []);
        let name = |b: BufferId| if b.0 == 2 { "primals_2".to_owned() } else { format!("buf{}", b.0) };
        let text = dependencies(&kernel, &name, &|b| b.0 == 0);
        assert!(text.contains("buf1.writes = {MemoryDep(name='buf1', index=0, size=())}"), "{text}");
        assert!(text.contains("buf1.unmet_dependencies = {MemoryDep(name='buf0', index=i0, size=(12,))}"), "{text}");
        assert!(text.contains("buf1.met_dependencies = {MemoryDep(name='primals_2', index=i0, size=(12,))}"), "{text}");
        assert!(text.contains("v1 = primals_2[i0]\n    v2 = add(v0, v1)\n    r0 = sum(v2)"), "{text}");
    }

    #[test]
    fn a_result_that_nothing_reduced_is_a_problem() {
        let mut kernel = summed();
        kernel.phases.remove(0);
        assert_eq!(verify(&kernel).len(), 1);
        assert_eq!(verify(&kernel)[0].value, Some(crate::Val(0)));
    }
}
