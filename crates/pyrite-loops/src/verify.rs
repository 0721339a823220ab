//! What a well-formed kernel is.
//!
//! 1. Every access has a step for every axis; rows and phases name axes that exist, each at most once on any way from
//!    the rows into a phase.
//! 2. An instruction uses values that stand before it, of the types it takes.
//! 3. A load gives the register type of its buffer, a store takes it. Complex buffers are not accessed.
//! 4. A reduced number is reduced once, in a phase before those that use it, and has the type that its reduction gives.
//!    Bool is reduced by `Any` and `All`, numbers by the others. Only a phase that reduces a number uses what it has of
//!    it so far, and only of sums, products, the largest and the smallest.
//! 5. A number of the call that is used exists.
//! 6. An access moves, within a phase, only along the rows and the axes of that phase.

use std::fmt;

use crate::{AxisId, Binary, Inst, Kernel, Phase, Reduction, Shift, Type, Unary, Val};

/// What is wrong with a kernel, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The phase, where it is in one.
    pub phase: Option<usize>,
    /// The value, where it is at one.
    pub value: Option<Val>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(phase) = self.phase {
            write!(f, "phase {phase}")?;
        }
        if let Some(value) = self.value {
            write!(f, ", v{}", value.0)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All that is wrong with a kernel.
pub fn verify(kernel: &Kernel) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut say =
        |phase: Option<usize>, value: Option<Val>, message: String| problems.push(Problem { phase, value, message });
    let axes = kernel.axes.len();
    for (index, access) in kernel.accesses.iter().enumerate() {
        if access.steps.len() != axes {
            say(None, None, format!("access {index} has {} steps for {axes} axes", access.steps.len()));
        }
        if Type::of(access.dtype).is_none() {
            say(None, None, format!("access {index} is to elements of {}", access.dtype));
        }
    }
    let mut reduced = vec![false; kernel.results.len()];
    for (number, phase) in kernel.phases.iter().enumerate() {
        let mut seen = vec![false; axes];
        for axis in kernel.rows.iter().chain(&phase.axes) {
            match seen.get_mut(axis.0 as usize) {
                Some(known) if !*known => *known = true,
                Some(_) => say(Some(number), None, format!("axis {} occurs twice", axis.0)),
                None => say(Some(number), None, format!("axis {} does not exist", axis.0)),
            }
        }
        for (value, inst) in phase.code.iter() {
            if let Some(message) = wrong(kernel, phase, &reduced, &seen, value, inst) {
                say(Some(number), Some(value), message);
            }
        }
        for reduce in &phase.reduces {
            let index = reduce.result.0 as usize;
            let picks = matches!(reduce.op, Reduction::ArgMax | Reduction::ArgMin);
            let exists = |value: Val| (value.0 as usize) < phase.code.len();
            if !exists(reduce.value) || reduce.index.is_some_and(|i| !exists(i)) || picks != reduce.index.is_some() {
                say(Some(number), None, format!("result {index} reduces a value that is not there"));
                continue;
            }
            let ty = if picks { Type::I64 } else { phase.code.ty(reduce.value) };
            let is_bool = matches!(reduce.op, Reduction::Any | Reduction::All);
            if is_bool != (phase.code.ty(reduce.value) == Type::Bool) {
                say(Some(number), None, format!("result {index} reduces bools as numbers, or numbers as bools"));
            }
            if kernel.results.get(index) != Some(&ty) {
                say(Some(number), None, format!("result {index} is not of the type {ty:?} that is reduced"));
            } else if reduced[index] {
                say(Some(number), None, format!("result {index} is reduced twice"));
            } else {
                reduced[index] = true;
            }
        }
    }
    problems
}

fn wrong(kernel: &Kernel, phase: &Phase, reduced: &[bool], axes: &[bool], value: Val, inst: &Inst) -> Option<String> {
    let mut late = None;
    inst.each_operand(|used| {
        if used >= value {
            late = Some(format!("uses v{}, which does not stand before it", used.0));
        }
    });
    if late.is_some() {
        return late;
    }
    let ty = phase.code.ty(value);
    let of = |v: Val| phase.code.ty(v);
    let has = |axis: AxisId| axes.get(axis.0 as usize) == Some(&true);
    if let Some(id) = inst.access() {
        let Some(access) = kernel.accesses.get(id.0 as usize) else { return Some("the access does not exist".into()) };
        if Type::of(access.dtype) != Some(ty) {
            return Some(format!("{ty:?} does not hold elements of {}", access.dtype));
        }
        for (axis, step) in access.steps.iter().enumerate() {
            if !has(AxisId(axis as u32)) && step.as_int() != Some(0) {
                return Some(format!("the access moves along axis {axis}, which does not run here"));
            }
        }
    }
    let fits = match *inst {
        Inst::Const(..) | Inst::Load(_) | Inst::Offset(_) => true,
        Inst::Gather { at, .. } => of(at) == Type::I64,
        Inst::Store { value, .. } => of(value) == ty,
        Inst::Scatter { at, value, .. } => of(at) == Type::I64 && of(value) == ty,
        Inst::Index(axis) => ty == Type::I64 && has(axis),
        Inst::Size(number) => ty == Type::I64 && (number as usize) < kernel.numbers.len(),
        Inst::Result(result) => {
            kernel.results.get(result.0 as usize) == Some(&ty) && reduced.get(result.0 as usize) == Some(&true)
        }
        Inst::Before(result) => {
            let joins = |op| matches!(op, Reduction::Sum | Reduction::Prod | Reduction::Max | Reduction::Min);
            let own = phase.reduces.iter().any(|reduce| reduce.result == result && joins(reduce.op));
            own && kernel.results.get(result.0 as usize) == Some(&ty)
        }
        Inst::Unary(op, a) => {
            of(a) == ty
                && match op {
                    Unary::Neg | Unary::Abs | Unary::Sign => ty != Type::Bool,
                    Unary::Not => !ty.is_float(),
                    _ => ty.is_float(),
                }
        }
        Inst::Binary(op, a, b) => {
            of(a) == ty
                && of(b) == ty
                && match op {
                    Binary::Add | Binary::Sub | Binary::Mul | Binary::Max | Binary::Min => ty != Type::Bool,
                    Binary::And | Binary::Or | Binary::Xor => !ty.is_float(),
                    Binary::Draw | Binary::MulLow | Binary::Shl | Binary::Shr => ty == Type::I64,
                    Binary::Div | Binary::Pow | Binary::Fmod | Binary::Atan2 | Binary::Scale => ty.is_float(),
                }
        }
        Inst::Fma(a, b, c) | Inst::Fnma(a, b, c) => ty.is_float() && [a, b, c].into_iter().all(|v| of(v) == ty),
        Inst::Shift(shift, a, by) => {
            let integer = matches!(ty, Type::I32 | Type::I64);
            let signed = shift == Shift::RightSigned;
            integer && of(a) == ty && (by as usize) < ty.bytes() * 8 && !(signed && ty == Type::I64)
        }
        Inst::Bits(to, a) => {
            to == ty && ty.bytes() == of(a).bytes() && [ty, of(a)].into_iter().all(|held| held != Type::Bool)
        }
        Inst::Table(_, at) => ty == Type::I64 && of(at) == Type::I64,
        Inst::Patch { a, mask, value, .. } => ty.is_float() && of(a) == ty && of(mask) == Type::Bool && of(value) == ty,
        Inst::Compare(_, a, b) => ty == Type::Bool && of(a) == of(b),
        Inst::Select(c, a, b) => of(c) == Type::Bool && of(a) == ty && of(b) == ty,
        Inst::Cast(to, _) => to == ty,
        Inst::Wrap(to, a) => Type::of(to) == Some(ty) && of(a) == ty,
        Inst::Bounded { index, extent } => of(index) == Type::I64 && of(extent) == Type::I64 && ty == Type::I64,
    };
    (!fits).then(|| format!("{inst:?} does not fit its type {ty:?}, or names what is not there"))
}
