//! The function in which a frame goes on after its graph has ended.
//!
//! A resume function takes the live locals and the values of the stack as arguments. Its code is the whole code of the
//! original, so that jumps and exception handlers mean what they meant, with three additions:
//!
//! 1. a prologue that puts the values back and jumps to the instruction that could not be captured;
//! 2. after that instruction, and where it jumps to, returns that say where the frame goes on: further resume functions
//!    begin right there, and are captured anew;
//! 3. cells become free variables, so that the functions of the frame keep sharing them.
//!
//! The additions of (2) are not protected by the exception table, and nothing runs after them: what is raised later is the
//! further function's own to handle.
//!
//! A generator that waits is made anew in the same way: its function begins at the instruction that yields, so that it waits
//! there once it has been advanced.
//!
//! Invariants: resume functions are made from the original code, never from one another's; the first argument stays the
//! first, for `super()`.

use std::rc::Rc;

use crate::code::{Code, Instruction, Protected, VARARGS, VARKEYWORDS};
use crate::host::Object;
use crate::opcode::{Jump, Op, Version};

/// Where a resume function begins: an instruction, and what is on the stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// The instruction.
    pub place: usize,
    /// For each value on the stack whether it is the NULL that calls have.
    pub nulls: Vec<bool>,
    /// The bound slots, cells included, in order.
    pub slots: Vec<usize>,
    /// The last instruction that Python runs before the next capture; `None` when a capture begins at once.
    pub until: Option<usize>,
}

/// A code object to be made.
#[derive(Clone, Debug)]
pub struct NewCode {
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// The exception table.
    pub protected: Vec<Protected>,
    /// Constants: those of the original, then the helper that is called to go on.
    pub consts: Vec<Object>,
    /// Names.
    pub names: Vec<Rc<str>>,
    /// Locals; the first `arguments` are parameters.
    pub locals: Vec<Rc<str>>,
    /// Free variables: the cells of the original, then its free variables.
    pub free: Vec<Rc<str>>,
    /// How many parameters there are.
    pub arguments: usize,
    /// `co_flags`.
    pub flags: u32,
    /// `co_stacksize`.
    pub stack_size: usize,
    /// `co_name`.
    pub name: String,
    /// For each instruction its place in the original.
    pub places: Vec<Option<usize>>,
    /// For each slot its number in the original.
    pub slots: Vec<Option<usize>>,
}

/// A place after which a further capture begins.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The constant through which it is called; the host puts a function there that takes locals and stack.
    pub constant: usize,
    /// Where it begins. Slots that are unbound there are not passed.
    pub place: usize,
    /// Which values on the stack are NULL.
    pub nulls: Vec<bool>,
    /// The slots that are passed.
    pub slots: Vec<usize>,
    /// The slots that are bound and that nothing reads any more: they are passed after those to keep alive what they hold.
    pub kept: Vec<usize>,
}

/// How the slots of the original are numbered in a resume function.
struct Slots {
    /// For each slot its new number.
    number: Vec<u32>,
    locals: Vec<Rc<str>>,
    free: Vec<Rc<str>>,
    arguments: usize,
}

/// Whether a slot of the original is a cell or a free variable.
fn is_cell(code: &Code, slot: usize) -> bool {
    slot >= code.locals.len() || code.cells.contains(&code.locals[slot])
}

fn renumber(code: &Code, point: &Point) -> Slots {
    let names: Vec<Rc<str>> = code.slots().cloned().collect();
    let mut locals: Vec<Rc<str>> = Vec::new();
    let mut number = vec![u32::MAX; names.len()];
    for slot in &point.slots {
        if !is_cell(code, *slot) {
            number[*slot] = locals.len() as u32;
            locals.push(names[*slot].clone());
        }
    }
    for place in point.nulls.iter().enumerate().filter(|(_, null)| !**null).map(|(place, _)| place) {
        locals.push(format!("___stack{place}").into());
    }
    let arguments = locals.len();
    for (slot, name) in names.iter().enumerate() {
        if !is_cell(code, slot) && number[slot] == u32::MAX {
            number[slot] = locals.len() as u32;
            locals.push(name.clone());
        }
    }
    let mut free = Vec::new();
    for (slot, name) in names.iter().enumerate() {
        if is_cell(code, slot) {
            number[slot] = (locals.len() + free.len()) as u32;
            free.push(name.clone());
        }
    }
    Slots { number, locals, free, arguments }
}

/// The slots that are cells or free variables, in the order in which a resume function's closure holds them.
pub fn closure_slots(code: &Code) -> Vec<usize> {
    (0..code.slot_count()).filter(|slot| is_cell(code, *slot)).collect()
}

/// The slots that are passed as arguments.
pub fn argument_slots<'a>(code: &'a Code, point: &'a Point) -> impl Iterator<Item = usize> + 'a {
    point.slots.iter().copied().filter(|slot| !is_cell(code, *slot))
}

/// The code of the function that goes on at a point; with it the points where captures begin after it, each with the
/// number of the constant to call. `first_constant` objects of the original come first.
pub fn resume_code(code: &Code, point: &Point) -> Option<(NewCode, Vec<Continuation>)> {
    // `super()` reads the first slot.
    let uses_super = code.free.iter().any(|name| &**name == "__class__");
    if uses_super && code.parameters() > 0 && (is_cell(code, 0) || point.slots.first() != Some(&0)) {
        return None;
    }
    // Cells that are made in the middle of a frame belong to a comprehension and end with it.
    let body = code.instructions.iter().skip_while(|instruction| instruction.op != Op::Resume);
    if body.clone().any(|instruction| instruction.op == Op::MakeCell) {
        return None;
    }
    let slots = renumber(code, point);
    let mut out = prologue(code, point, &slots);
    let entry = out.len();
    out.push(Instruction::jump(Op::JumpForward, 0, code.instructions[point.place].line));
    let (mut continuations, mut consts) = (Vec::new(), code.consts.clone());
    // The body, with what comes after the instruction that Python runs.
    let mut moved = Vec::with_capacity(code.instructions.len() + 1);
    let mut insertion = None;
    for (place, instruction) in code.instructions.iter().enumerate() {
        moved.push(out.len());
        let new = renumbered(*instruction, &slots)?;
        match unbound(new) {
            // It leaves a function and its object or a function and a NULL, as it finds; going on needs to know which.
            Some(load) if Some(place) == point.until => {
                out.push(load);
                out.push(Instruction::new(Op::PushNull, 0, new.line));
                if !code.version.is_null_above() {
                    out.push(Instruction::new(Op::Swap, 2, new.line));
                }
            }
            _ => out.push(new),
        }
        if Some(place) == point.until {
            let begin = out.len();
            continuation(code, &slots, point, place, None, &mut out, &mut consts, &mut continuations)?;
            insertion = Some((begin, out.len()));
        }
    }
    moved.push(out.len());
    for (index, instruction) in out.iter_mut().enumerate() {
        let inserted = insertion.is_some_and(|(begin, end)| begin <= index && index < end);
        if index > entry
            && !inserted
            && let Some(target) = instruction.target
        {
            instruction.target = Some(moved[target]);
        }
    }
    out[entry].target = Some(moved[point.place]);
    // A branch that Python takes leads to a capture too.
    if let Some(until) = point.until
        && let Some(target) = code.instructions[until].target
    {
        let op = code.instructions[until].op;
        if op == Op::ForIter {
            let skipped = [Op::EndFor, Op::PopTop].into_iter().take(code.version.skipped_after_loop());
            out.extend(skipped.map(|op| Instruction::new(op, 0, 0)));
        }
        let begin = out.len();
        continuation(code, &slots, point, until, Some(target), &mut out, &mut consts, &mut continuations)?;
        let place = moved[until];
        if op.jump() == Jump::Forward {
            out[place].target = Some(begin);
        } else {
            out[place] = Instruction::jump(forward(op)?, begin, out[place].line);
        }
    }
    let mut places = vec![None; out.len()];
    for (place, new) in moved.iter().enumerate().take(code.instructions.len()) {
        places[*new] = Some(place);
    }
    let mut originals = vec![None; slots.locals.len() + slots.free.len()];
    for (slot, new) in slots.number.iter().enumerate() {
        originals[*new as usize] = Some(slot);
    }
    let made = NewCode {
        places,
        slots: originals,
        instructions: out,
        protected: protected_parts(code, &moved, insertion),
        consts,
        names: code.names.clone(),
        stack_size: code.stack_size + slots.locals.len() + slots.free.len() + 8,
        locals: slots.locals,
        free: slots.free,
        arguments: slots.arguments,
        flags: code.flags & !(VARARGS | VARKEYWORDS),
        name: code.name.to_string(),
    };
    Some((made, continuations))
}

/// What comes before the first instruction that is run: cells are copied and the stack is made anew.
fn prologue(code: &Code, point: &Point, slots: &Slots) -> Vec<Instruction> {
    let line = code.instructions[point.place].line;
    let mut out = Vec::new();
    if !slots.free.is_empty() {
        out.push(Instruction::new(Op::CopyFreeVars, slots.free.len() as u32, 0));
    }
    if code.flags & crate::code::GENERATOR != 0 {
        out.push(Instruction::new(Op::ReturnGenerator, 0, line));
        out.push(Instruction::new(Op::PopTop, 0, line));
    }
    out.push(Instruction::new(Op::Resume, 0, line));
    let mut argument = argument_slots(code, point).count() as u32;
    for null in &point.nulls {
        if *null {
            out.push(Instruction::new(Op::PushNull, 0, line));
        } else {
            out.push(Instruction::new(Op::LoadFast, argument, line));
            argument += 1;
        }
    }
    // The evaluator leaves tensors as they are until the branch.
    let first = code.instructions[point.place].op;
    if code.version == Version::V313
        && matches!(first, Op::PopJumpForwardIfFalse | Op::PopJumpForwardIfTrue | Op::UnaryNot)
    {
        out.push(Instruction::new(Op::ToBool, 0, line));
    }
    out
}

/// An instruction of the body with the new numbers of its slots.
fn renumbered(instruction: Instruction, slots: &Slots) -> Option<Instruction> {
    let arg = match instruction.op {
        Op::LoadFast
        | Op::LoadFastCheck
        | Op::LoadFastAndClear
        | Op::StoreFast
        | Op::DeleteFast
        | Op::LoadClosure
        | Op::LoadDeref
        | Op::StoreDeref
        | Op::DeleteDeref
        | Op::LoadClassderef => *slots.number.get(instruction.arg as usize)?,
        // The prologue of the original is never reached; its cells exist already.
        Op::MakeCell | Op::CopyFreeVars | Op::ReturnGenerator => {
            return Some(Instruction::new(Op::Nop, 0, instruction.line));
        }
        _ => instruction.arg,
    };
    Some(Instruction { arg, ..instruction })
}

/// What loads an attribute as it is, in place of an instruction that loads a method and maybe its object.
fn unbound(instruction: Instruction) -> Option<Instruction> {
    match instruction.op {
        Op::LoadMethod => Some(Instruction { op: Op::LoadAttr, ..instruction }),
        Op::LoadSuperAttr if instruction.arg & 1 != 0 => Some(Instruction { arg: instruction.arg & !1, ..instruction }),
        _ => None,
    }
}

/// The exception table of the body, which protects nothing of what was inserted.
fn protected_parts(code: &Code, moved: &[usize], insertion: Option<(usize, usize)>) -> Vec<Protected> {
    let mut protected = Vec::new();
    for part in &code.protected {
        let part = Protected { start: moved[part.start], end: moved[part.end], target: moved[part.target], ..*part };
        match insertion {
            Some((begin, end)) if part.start < end && begin < part.end => {
                protected.push(Protected { end: begin, ..part });
                protected.push(Protected { start: end, ..part });
            }
            _ => protected.push(part),
        }
    }
    protected.retain(|part| part.start < part.end);
    protected.sort_by_key(|part| part.start);
    protected
}

/// The forward twin of a backward jump.
fn forward(op: Op) -> Option<Op> {
    Some(match op {
        Op::JumpBackward | Op::JumpBackwardNoInterrupt => Op::JumpForward,
        Op::PopJumpBackwardIfFalse => Op::PopJumpForwardIfFalse,
        Op::PopJumpBackwardIfTrue => Op::PopJumpForwardIfTrue,
        Op::PopJumpBackwardIfNone => Op::PopJumpForwardIfNone,
        Op::PopJumpBackwardIfNotNone => Op::PopJumpForwardIfNotNone,
        _ => return None,
    })
}

/// Emits the return that says where a frame goes on after an instruction, or where that jumps to.
#[allow(clippy::too_many_arguments, reason = "the parts of one code object under construction")]
fn continuation(
    code: &Code,
    slots: &Slots,
    point: &Point,
    until: usize,
    target: Option<usize>,
    out: &mut Vec<Instruction>,
    consts: &mut Vec<Object>,
    continuations: &mut Vec<Continuation>,
) -> Option<()> {
    let line = code.instructions[until].line;
    let place = target.unwrap_or(until + 1);
    let nulls = stack_after(code, point, until, target.is_some())?;
    let live = crate::liveness::live_slots(code, place);
    // What the instruction itself may have bound or unbound.
    let written = code.instructions[until];
    let mut bound: Vec<usize> = point.slots.clone();
    match written.op {
        Op::StoreFast if !bound.contains(&(written.arg as usize)) => bound.push(written.arg as usize),
        Op::DeleteFast => bound.retain(|slot| *slot != written.arg as usize),
        _ => {}
    }
    bound.sort_unstable();
    let (passed, kept): (Vec<usize>, Vec<usize>) =
        bound.into_iter().partition(|slot| live[*slot] || is_cell(code, *slot) || *slot == 0);
    let constant = consts.len();
    consts.push(Object(0));
    // `return helper((stack…), (locals…))`. What is on the stack stays there, NULLs too: returning clears it.
    let mut helper = [Instruction::new(Op::PushNull, 0, line), Instruction::new(Op::LoadConst, constant as u32, line)];
    if code.version.is_null_above() {
        helper.reverse();
    }
    out.extend(helper);
    let mut pushed = 2;
    for (place, _) in nulls.iter().enumerate().filter(|(_, null)| !**null) {
        out.push(Instruction::new(Op::Copy, (nulls.len() - place + pushed) as u32, line));
        pushed += 1;
    }
    out.push(Instruction::new(Op::BuildTuple, pushed as u32 - 2, line));
    for slot in passed.iter().chain(&kept) {
        let op = if is_cell(code, *slot) { Op::LoadClosure } else { Op::LoadFast };
        out.push(Instruction::new(op, slots.number[*slot], line));
    }
    out.push(Instruction::new(Op::BuildTuple, (passed.len() + kept.len()) as u32, line));
    if code.version == Version::V311 {
        out.push(Instruction::new(Op::Precall, 2, line));
    }
    out.push(Instruction::new(Op::Call, 2, line));
    out.push(Instruction::new(Op::ReturnValue, 0, line));
    continuations.push(Continuation { constant, place, nulls, slots: passed, kept });
    Some(())
}

/// What is on the stack after the instructions from a point to `until`, as far as NULLs go.
fn stack_after(code: &Code, point: &Point, until: usize, jumped: bool) -> Option<Vec<bool>> {
    let mut nulls = point.nulls.clone();
    for place in point.place..=until {
        let instruction = code.instructions[place];
        let arg = instruction.arg as usize;
        let jumps = jumped && place == until;
        let (pops, pushes) = effect(instruction.op, arg, jumps)?;
        if matches!(instruction.op, Op::Swap | Op::Copy) {
            return None;
        }
        nulls.truncate(nulls.len().checked_sub(pops)?);
        nulls.resize(nulls.len() + pushes, false);
        match instruction.op {
            Op::LoadMethod => mark_null(code, &mut nulls),
            Op::LoadGlobal | Op::LoadSuperAttr if arg & 1 != 0 => mark_null(code, &mut nulls),
            Op::PushNull => {
                let top = nulls.len() - 1;
                nulls[top] = true;
            }
            _ => {}
        }
    }
    Some(nulls)
}

/// Marks the NULL beside the function on top of the stack.
fn mark_null(code: &Code, nulls: &mut [bool]) {
    let place = nulls.len() - if code.version.is_null_above() { 1 } else { 2 };
    nulls[place] = true;
}

/// How many values an instruction takes from the stack and puts there.
fn effect(op: Op, arg: usize, jumps: bool) -> Option<(usize, usize)> {
    Some(match op {
        Op::Nop | Op::Resume | Op::Precall | Op::KwNames | Op::Cache | Op::JumpForward | Op::JumpBackward => (0, 0),
        Op::DeleteFast | Op::DeleteDeref | Op::DeleteGlobal | Op::JumpBackwardNoInterrupt => (0, 0),
        Op::PopTop | Op::StoreFast | Op::StoreGlobal | Op::StoreDeref | Op::DeleteAttr => (1, 0),
        Op::LoadFast | Op::LoadConst | Op::LoadDeref | Op::LoadClosure | Op::LoadName | Op::PushNull => (0, 1),
        Op::LoadClassderef | Op::LoadAssertionError | Op::LoadBuildClass | Op::LoadFastCheck => (0, 1),
        Op::LoadSuperAttr => (3, 1 + (arg & 1)),
        Op::ToBool | Op::ConvertValue => (1, 1),
        Op::BinarySlice => (3, 1),
        Op::StoreSlice => (4, 0),
        Op::SetFunctionAttribute => (2, 1),
        Op::CallKw => (arg + 3, 1),
        Op::LoadGlobal => (0, 1 + (arg & 1)),
        Op::LoadAttr | Op::UnaryNegative | Op::UnaryNot | Op::UnaryInvert | Op::UnaryPositive | Op::GetIter => (1, 1),
        Op::ListToTuple => (1, 1),
        Op::LoadMethod => (1, 2),
        Op::StoreAttr | Op::DeleteSubscr => (2, 0),
        Op::BinaryOp | Op::BinarySubscr | Op::CompareOp | Op::IsOp | Op::ContainsOp => (2, 1),
        Op::StoreSubscr => (3, 0),
        Op::PopJumpForwardIfFalse
        | Op::PopJumpForwardIfTrue
        | Op::PopJumpBackwardIfFalse
        | Op::PopJumpBackwardIfTrue
        | Op::PopJumpForwardIfNone
        | Op::PopJumpForwardIfNotNone
        | Op::PopJumpBackwardIfNone
        | Op::PopJumpBackwardIfNotNone => (1, 0),
        Op::JumpIfFalseOrPop | Op::JumpIfTrueOrPop => (1, usize::from(jumps)),
        Op::ForIter => (1, if jumps { 0 } else { 2 }),
        Op::Call => (arg + 2, 1),
        Op::CallFunctionEx => (3 + (arg & 1), 1),
        Op::BuildTuple | Op::BuildList | Op::BuildSet | Op::BuildString => (arg, 1),
        Op::BuildMap => (2 * arg, 1),
        Op::BuildConstKeyMap => (arg + 1, 1),
        Op::BuildSlice => (arg, 1),
        Op::FormatValue => (1 + usize::from(arg & 4 != 0), 1),
        Op::ListAppend | Op::SetAdd | Op::ListExtend | Op::SetUpdate | Op::DictUpdate | Op::DictMerge => (1, 0),
        Op::MapAdd => (2, 0),
        Op::UnpackSequence => (1, arg),
        Op::UnpackEx => (1, (arg & 0xff) + (arg >> 8) + 1),
        Op::BeforeWith => (1, 2),
        Op::ImportName => (2, 1),
        Op::ImportFrom => (1, 2),
        Op::MakeFunction => (1 + (arg & 1) + (arg >> 1 & 1) + (arg >> 2 & 1) + (arg >> 3 & 1), 1),
        Op::GetLen | Op::MatchMapping | Op::MatchSequence => (1, 2),
        _ => return None,
    })
}
