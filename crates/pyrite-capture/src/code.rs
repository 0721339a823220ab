//! Code objects, decoded: instructions with targets instead of offsets.
//!
//! `co_code` is read, never the adaptive copy. Jump targets and the exception table refer to instructions by their
//! place in [`Code::instructions`]; `EXTENDED_ARG` and inline caches are gone, and what versions of CPython write in
//! different ways has one shape (see [`crate::opcode`]). A loop that ends goes to what comes after its `END_FOR`.

use std::rc::Rc;

use crate::host::Object;
use crate::opcode::{Jump, Op, Version};

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// Its argument; for jumps it is made from the target.
    pub arg: u32,
    /// The place it jumps to.
    pub target: Option<usize>,
    /// The line it belongs to; 0 when it has none.
    pub line: u32,
}

impl Instruction {
    /// An instruction that does not jump.
    pub fn new(op: Op, arg: u32, line: u32) -> Self {
        Self { op, arg, target: None, line }
    }

    /// A jump.
    pub fn jump(op: Op, target: usize, line: u32) -> Self {
        Self { op, arg: 0, target: Some(target), line }
    }
}

/// A part of the code that is protected: an exception in it goes to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The first instruction.
    pub start: usize,
    /// The one after the last.
    pub end: usize,
    /// Where the handler begins.
    pub target: usize,
    /// How many values of the stack are kept.
    pub depth: usize,
    /// Whether the place of the exception is pushed too.
    pub push_place: bool,
}

/// What a code object consists of, as CPython hands it out.
#[derive(Clone, Debug)]
pub struct RawCode {
    /// The interpreter it is for.
    pub version: Version,
    /// `co_code`.
    pub code: Vec<u8>,
    /// `co_exceptiontable`.
    pub exceptions: Vec<u8>,
    /// Start, end and line of every range of `co_lines()`.
    pub lines: Vec<(u32, u32, u32)>,
}

/// A decoded code object.
#[derive(Clone, Debug)]
pub struct Code {
    /// The interpreter it is for.
    pub version: Version,
    /// The code object.
    pub object: Object,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
    /// Its exception table, inner parts first.
    pub protected: Vec<Protected>,
    /// `co_consts`.
    pub consts: Vec<Object>,
    /// `co_names`.
    pub names: Vec<Rc<str>>,
    /// `co_varnames`.
    pub locals: Vec<Rc<str>>,
    /// `co_cellvars`.
    pub cells: Vec<Rc<str>>,
    /// `co_freevars`.
    pub free: Vec<Rc<str>>,
    /// Positional parameters, positional-only ones included.
    pub positional: usize,
    /// Positional-only parameters.
    pub positional_only: usize,
    /// Keyword-only parameters.
    pub keyword_only: usize,
    /// `co_flags`.
    pub flags: u32,
    /// `co_stacksize`.
    pub stack_size: usize,
    /// `co_firstlineno`.
    pub first_line: u32,
    /// `co_name`.
    pub name: Rc<str>,
    /// `co_qualname`.
    pub qualified_name: Rc<str>,
    /// `co_filename`.
    pub file: Rc<str>,
}

/// `co_flags`: takes `*args`.
pub const VARARGS: u32 = 0x4;
/// `co_flags`: takes `**kwargs`.
pub const VARKEYWORDS: u32 = 0x8;
/// `co_flags`: a generator.
pub const GENERATOR: u32 = 0x20;
/// `co_flags`: a coroutine or asynchronous generator.
pub const ASYNCHRONOUS: u32 = 0x80 | 0x100 | 0x200;
/// `co_flags`: has fast locals and a namespace of its own: a function, not a module or class body.
pub const FUNCTION: u32 = 0x1 | 0x2;

impl Code {
    /// The names that are looked up as globals or builtins.
    pub fn global_names(&self) -> impl Iterator<Item = &str> {
        let loads = self.instructions.iter().filter(|i| matches!(i.op, Op::LoadGlobal | Op::LoadName));
        loads.filter_map(|i| {
            let index = if i.op == Op::LoadGlobal { i.arg >> 1 } else { i.arg };
            self.names.get(index as usize).map(|name| &**name)
        })
    }

    /// `vars` or `dir`, where it may be called without arguments: it then tells the variables of the frame.
    pub fn asked_without_arguments(&self) -> Option<&str> {
        for (place, load) in self.instructions.iter().enumerate() {
            let index = match load.op {
                Op::LoadGlobal => load.arg >> 1,
                Op::LoadName => load.arg,
                _ => continue,
            };
            let Some(name) = self.names.get(index as usize).filter(|name| matches!(&***name, "vars" | "dir")) else {
                continue;
            };
            let mut rest = self.instructions[place + 1..]
                .iter()
                .filter(|i| !matches!(i.op, Op::Precall | Op::Cache | Op::PushNull));
            let is_callee = load.op == Op::LoadGlobal && load.arg & 1 != 0;
            let with_arguments = rest.next().is_some_and(|next| !(next.op == Op::Call && next.arg == 0));
            if !is_callee || !with_arguments {
                return Some(name);
            }
        }
        None
    }

    /// How many parameters there are, `*args` and `**kwargs` included: they are the first locals.
    pub fn parameters(&self) -> usize {
        let starred = usize::from(self.flags & VARARGS != 0) + usize::from(self.flags & VARKEYWORDS != 0);
        self.positional + self.keyword_only + starred
    }

    /// The names of the slots of a frame: locals, cells that are no locals, free variables.
    pub fn slots(&self) -> impl Iterator<Item = &Rc<str>> {
        let cells = self.cells.iter().filter(|cell| !self.locals.contains(cell));
        self.locals.iter().chain(cells).chain(&self.free)
    }

    /// How many slots a frame has.
    pub fn slot_count(&self) -> usize {
        self.slots().count()
    }

    /// The part of the exception table that protects an instruction.
    pub fn handler(&self, place: usize) -> Option<&Protected> {
        self.protected.iter().filter(|p| p.start <= place && place < p.end).min_by_key(|p| p.end - p.start)
    }
}

/// The instructions and the exception table of raw code; `None` when an instruction is unknown.
pub fn decode(raw: &RawCode) -> Option<(Vec<Instruction>, Vec<Protected>)> {
    let code = &raw.code;
    let mut instructions = Vec::with_capacity(code.len() / 4);
    let mut places = vec![usize::MAX; code.len() / 2 + 1];
    let (mut at, mut extended, mut start) = (0, 0u32, None);
    let mut lines = raw.lines.iter().peekable();
    while at + 1 < code.len() {
        let op = Op::of(raw.version, code[at])?;
        let arg = extended << 8 | u32::from(code[at + 1]);
        let begin = *start.get_or_insert(at);
        if op == Op::ExtendedArg {
            extended = arg;
            at += 2;
            continue;
        }
        let next = at + 2 + 2 * op.caches(raw.version);
        places[begin / 2] = instructions.len();
        places[at / 2] = instructions.len();
        let target = match op.jump() {
            Jump::None => None,
            Jump::Forward if op == Op::ForIter => Some(next + 2 * (arg as usize + raw.version.skipped_after_loop())),
            Jump::Forward => Some(next + 2 * arg as usize),
            Jump::Backward => Some(next.checked_sub(2 * arg as usize)?),
        };
        while lines.peek().is_some_and(|(_, end, _)| *end as usize <= at) {
            lines.next();
        }
        let line = lines.peek().filter(|(start, _, _)| *start as usize <= at).map_or(0, |(_, _, line)| *line);
        let ((op, arg), second) = op.unfolded(raw.version, arg);
        instructions.push(Instruction { op, arg, target, line });
        instructions.extend(second.map(|(op, arg)| Instruction::new(op, arg, line)));
        (at, extended, start) = (next, 0, None);
    }
    places[code.len() / 2] = instructions.len();
    let place_of = |offset: usize| places.get(offset / 2).copied().filter(|p| *p != usize::MAX);
    for instruction in &mut instructions {
        if let Some(target) = instruction.target {
            instruction.target = Some(place_of(target)?);
        }
    }
    // A protected part may end inside the caches of its last instruction.
    let end_of = |offset: usize| (offset / 2..places.len()).find_map(|unit| place_of(2 * unit));
    let mut protected = Vec::new();
    let mut bytes = raw.exceptions.iter().copied();
    while let Some(start) = varint(&mut bytes) {
        let (length, target, packed) = (varint(&mut bytes)?, varint(&mut bytes)?, varint(&mut bytes)?);
        protected.push(Protected {
            start: end_of(2 * start)?,
            end: end_of(2 * (start + length))?,
            target: end_of(2 * target)?,
            depth: packed >> 1,
            push_place: packed & 1 != 0,
        });
    }
    Some((instructions, protected))
}

/// A number of the exception table: six bits a byte, the highest first.
fn varint(bytes: &mut impl Iterator<Item = u8>) -> Option<usize> {
    let mut byte = bytes.next()?;
    let mut value = usize::from(byte & 63);
    while byte & 64 != 0 {
        byte = bytes.next()?;
        value = value << 6 | usize::from(byte & 63);
    }
    Some(value)
}
