//! The functions of patches, one number at a time: an evaluation of the code that other targets print.

use std::sync::OnceLock;

use pyrite_loops::{Block, Inst, Type, Unary};

use super::eval::{self, Reg};

/// The function of a patch, of double precision.
pub(crate) fn slow_path_f64(op: Unary, x: f64) -> f64 {
    match evaluate(code(op, Type::F64), Reg::F64(vec![x])) {
        Reg::F64(y) => y[0],
        _ => unreachable!("a function keeps the type of its value"),
    }
}

/// The function of a patch, of single precision.
pub(crate) fn slow_path_f32(op: Unary, x: f32) -> f32 {
    match evaluate(code(op, Type::F32), Reg::F32(vec![x])) {
        Reg::F32(y) => y[0],
        _ => unreachable!("a function keeps the type of its value"),
    }
}

fn code(op: Unary, ty: Type) -> &'static Block {
    static CODE: [OnceLock<Block>; 6] = [const { OnceLock::new() }; 6];
    let number = match op {
        Unary::Sin => 0,
        Unary::Cos => 1,
        _ => 2,
    };
    CODE[number + 3 * usize::from(ty == Type::F64)].get_or_init(|| pyrite_math::slow_path(op, ty))
}

fn evaluate(code: &Block, argument: Reg) -> Reg {
    let mut regs: Vec<Reg> = vec![argument];
    for (value, inst) in code.iter().skip(1) {
        let mut out = Reg::start(inst, code.ty(value), 1, &[]);
        if !matches!(inst, Inst::Const(..)) {
            eval::compute(inst, &|v| &regs[v.0 as usize], &mut out, 1);
        }
        regs.push(out);
    }
    regs.pop().unwrap_or_default()
}
