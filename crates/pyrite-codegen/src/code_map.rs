//! Code written anew with changed or left out instructions.

use pyrite_loops::{Block, Inst, Reduce, Type, Val};

/// The code with every instruction replaced, or left out where `f` says so; what uses a value that is left out must be
/// left out too. Reductions go along.
pub fn rebuilt(code: &Block, reduces: &mut Vec<Reduce>, f: &mut dyn FnMut(Inst) -> Option<Inst>) -> Block {
    let mut new = Block::default();
    let mut values: Vec<Option<Val>> = Vec::with_capacity(code.len());
    for (value, inst) in code.iter() {
        let kept = f(*inst).map(|inst| {
            let inst = inst.map_operands(&mut |v| values[v.0 as usize].unwrap_or(v));
            new.push(inst, code.ty(value))
        });
        values.push(kept);
    }
    let name = |value: Val| values[value.0 as usize].unwrap_or(value);
    for reduce in reduces {
        reduce.value = name(reduce.value);
        reduce.index = reduce.index.map(name);
    }
    new
}

/// The code with every instruction written anew by `f`, which is given its type and says which value counts. Reductions go
/// along.
pub fn rebuilt_by(code: &Block, reduces: &mut [Reduce], f: &mut dyn FnMut(&mut Block, Type, Inst) -> Val) -> Block {
    let mut new = Block::default();
    let mut values: Vec<Val> = Vec::with_capacity(code.len());
    for (value, inst) in code.iter() {
        let inst = inst.map_operands(&mut |v| values[v.0 as usize]);
        values.push(f(&mut new, code.ty(value), inst));
    }
    for reduce in reduces {
        reduce.value = values[reduce.value.0 as usize];
        reduce.index = reduce.index.map(|v| values[v.0 as usize]);
    }
    new
}

/// The code without what nothing uses: writes, and values that reductions take, are used.
pub fn without_dead_code(code: &Block, reduces: &mut Vec<Reduce>) -> Block {
    let mut live = vec![false; code.len()];
    for reduce in reduces.iter() {
        live[reduce.value.0 as usize] = true;
        if let Some(index) = reduce.index {
            live[index.0 as usize] = true;
        }
    }
    for (value, inst) in code.iter().rev() {
        if inst.writes() || live[value.0 as usize] {
            live[value.0 as usize] = true;
            inst.each_operand(|used| live[used.0 as usize] = true);
        }
    }
    let mut at = 0;
    rebuilt(code, reduces, &mut |inst| {
        at += 1;
        live[at - 1].then_some(inst)
    })
}
