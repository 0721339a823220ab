//! The reader: text to instructions with registers by number.

use std::collections::BTreeMap;

/// Why a text is not what this interpreter reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// The line, from one on.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// A module that can be run.
#[derive(Debug, Clone, Default)]
pub struct Module {
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) tables: BTreeMap<String, Vec<u64>>,
}

/// An entry of a module.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub(super) params: usize,
    pub(super) registers: usize,
    pub(super) shared: usize,
    pub(super) code: Vec<Instruction>,
}

/// A type of numbers, as instructions name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ty {
    pub(super) kind: Kind,
    pub(super) bits: u32,
}

/// How bits are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bits,
    Unsigned,
    Signed,
    Float,
    /// Half precision with the exponents of single precision.
    Brain,
    Pred,
}

/// An operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operand {
    Register(usize),
    Number(u64),
    Special(Special),
    /// The address of shared memory or of a table, by its name.
    Symbol(String),
    /// A list in braces.
    List(Vec<usize>),
    /// A register, and how many bytes further.
    Address(usize, u64),
    Param(usize),
}

/// What a thread knows of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Thread,
    Threads,
    Block,
    Blocks,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Binary(Binary, Ty),
    Unary(Unary, Ty),
    Fma(Ty),
    Mad(Ty),
    Setp(Test, Ty),
    Selp,
    Convert {
        to: Ty,
        from: Ty,
        round: Round,
    },
    Mov,
    Pack(u32),
    Unpack(u32),
    Load {
        space: Space,
        ty: Ty,
        lanes: usize,
        relaxed: bool,
    },
    Store {
        space: Space,
        ty: Ty,
        lanes: usize,
        relaxed: bool,
    },
    AtomicAdd(Ty),
    CompareAndSwap(Ty),
    Shuffle(Mode),
    /// Only a hint, but what it names has to be memory of the launch.
    Prefetch,
    Barrier,
    Branch(usize),
    Return,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    MulWide,
    Div,
    Rem,
    Max,
    Min,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Neg,
    Not,
    Sqrt,
    LeadingZeros,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Not equal, or one is NaN.
    Neu,
    Nan,
    Num,
}

/// How a conversion rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// To the nearest number of the type, the even one of two.
    Nearest,
    /// To whole numbers.
    NearestWhole,
    Down,
    Up,
    Zero,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Shared,
    Const,
    Param,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// From the lane whose number differs by some bits.
    Butterfly,
    /// From a lane.
    Index,
}

/// An instruction of an entry.
#[derive(Debug, Clone)]
pub(super) struct Instruction {
    pub(super) line: usize,
    /// It runs only where a predicate is this.
    pub(super) guard: Option<(usize, bool)>,
    pub(super) op: Op,
    pub(super) operands: Vec<Operand>,
}

/// What is known of an entry while it is read.
#[derive(Default)]
struct Reading {
    entry: Entry,
    name: String,
    params: Vec<String>,
    /// The first register of each prefix, and how many there are.
    registers: Vec<(String, usize, usize)>,
    labels: BTreeMap<String, usize>,
    branches: Vec<(usize, String, usize)>,
    shared: Option<String>,
}

impl Module {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut module = Self::default();
        let mut reading: Option<Reading> = None;
        let mut inside = false;
        for (number, line) in text.lines().enumerate() {
            let line_number = number + 1;
            let fail = |message: String| ParseError { line: line_number, message };
            let line = line.split("//").next().unwrap_or_default().trim();
            match reading.as_mut() {
                _ if line.is_empty() => {}
                None if [".version", ".target", ".address_size"].iter().any(|word| line.starts_with(word)) => {}
                None if line.starts_with(".const") => {
                    let (name, words) = table(line).ok_or_else(|| fail(format!("expected a table at `{line}`")))?;
                    module.tables.insert(name, words);
                }
                None => {
                    let name = line.strip_prefix(".visible .entry ").and_then(|rest| rest.strip_suffix('('));
                    let name = name.ok_or_else(|| fail(format!("expected an entry at `{line}`")))?;
                    reading = Some(Reading { name: name.to_owned(), ..Reading::default() });
                }
                Some(own) if !inside => match line {
                    ")" => {}
                    _ if line.starts_with(".maxntid ") => {}
                    "{" => inside = true,
                    _ => {
                        let name = line.strip_prefix(".param .u64 ").map(|rest| rest.trim_end_matches(','));
                        own.params
                            .push(name.ok_or_else(|| fail(format!("expected a parameter at `{line}`")))?.to_owned());
                    }
                },
                Some(_) if line == "}" => {
                    inside = false;
                    if let Some(done) = reading.take() {
                        let (name, entry) = done.finish()?;
                        module.entries.insert(name, entry);
                    }
                }
                Some(own) => own.line(line, line_number).map_err(fail)?,
            }
        }
        match reading {
            Some(_) => Err(ParseError { line: text.lines().count(), message: "the entry does not end".to_owned() }),
            None => Ok(module),
        }
    }

    /// The names of the entries.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

/// `.const .align 8 .b64 name[2] = {1, 2};`
fn table(line: &str) -> Option<(String, Vec<u64>)> {
    let rest = line.strip_prefix(".const .align 8 .b64 ")?.strip_suffix("};")?;
    let (head, words) = rest.split_once(" = {")?;
    let (name, _) = head.split_once('[')?;
    let words = words.split(',').map(|word| literal(word.trim())).collect::<Option<Vec<u64>>>()?;
    Some((name.to_owned(), words))
}

/// An integer, negative or hexadecimal.
fn literal(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse::<i64>().ok().map(|n| n as u64),
    }
}

impl Reading {
    fn finish(mut self) -> Result<(String, Entry), ParseError> {
        for (at, label, line) in &self.branches {
            let to = self.labels.get(label);
            let to = to.ok_or_else(|| ParseError { line: *line, message: format!("there is no label {label}") })?;
            self.entry.code[*at].op = Op::Branch(*to);
        }
        self.entry.params = self.params.len();
        Ok((self.name, self.entry))
    }

    fn line(&mut self, line: &str, number: usize) -> Result<(), String> {
        if let Some(label) = line.strip_suffix(':') {
            self.labels.insert(label.to_owned(), self.entry.code.len());
            return Ok(());
        }
        let line = line.strip_suffix(';').ok_or_else(|| format!("expected `;` after `{line}`"))?;
        if let Some(rest) = line.strip_prefix(".reg ") {
            let (_, name) = rest.split_once(' ').ok_or("expected registers")?;
            let (prefix, count) = name.split_once('<').ok_or("expected the number of registers")?;
            let count = count.trim_end_matches('>').parse::<usize>().map_err(|error| error.to_string())?;
            self.registers.push((prefix.to_owned(), self.entry.registers, count));
            self.entry.registers += count;
            return Ok(());
        }
        let shared = line.strip_prefix(".shared .align 8 .b8 ").or_else(|| line.strip_prefix(".shared .align 16 .b8 "));
        if let Some(rest) = shared {
            let (name, bytes) = rest.split_once('[').ok_or("expected the size of shared memory")?;
            self.entry.shared =
                bytes.trim_end_matches(']').parse().map_err(|_| format!("expected a size at {bytes}"))?;
            self.shared = Some(name.to_owned());
            return Ok(());
        }
        let instruction = self.instruction(line, number)?;
        self.entry.code.push(instruction);
        Ok(())
    }

    fn register(&self, name: &str) -> Result<usize, String> {
        let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
        let (prefix, number) = name.split_at(digits);
        let known = self.registers.iter().find(|(known, ..)| known == prefix);
        let (_, first, count) = known.ok_or_else(|| format!("there is no register {name}"))?;
        match number.parse::<usize>() {
            Ok(number) if number < *count => Ok(first + number),
            _ => Err(format!("register {name} is not declared")),
        }
    }

    fn operand(&self, text: &str) -> Result<Operand, String> {
        let special = match text {
            "%tid.x" => Some(Special::Thread),
            "%ntid.x" => Some(Special::Threads),
            "%ctaid.x" => Some(Special::Block),
            "%nctaid.x" => Some(Special::Blocks),
            _ => None,
        };
        if let Some(special) = special {
            return Ok(Operand::Special(special));
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if let Some(number) = self.params.iter().position(|param| param == inner) {
                return Ok(Operand::Param(number));
            }
            let (register, further) = inner.split_once('+').unwrap_or((inner, "0"));
            let further = literal(further).ok_or_else(|| format!("expected a number at `{further}`"))?;
            return Ok(Operand::Address(self.register(register)?, further));
        }
        if let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let list = inner.split(',').map(|one| self.register(one.trim())).collect::<Result<Vec<usize>, String>>()?;
            return Ok(Operand::List(list));
        }
        if text.starts_with('%') {
            return Ok(Operand::Register(self.register(text)?));
        }
        Ok(literal(text).map_or_else(|| Operand::Symbol(text.to_owned()), Operand::Number))
    }

    fn instruction(&mut self, line: &str, number: usize) -> Result<Instruction, String> {
        let (guard, line) = match line.strip_prefix('@') {
            None => (None, line),
            Some(rest) => {
                let (name, rest) = rest.split_once(' ').ok_or("expected an instruction after the predicate")?;
                let (name, wanted) = name.strip_prefix('!').map_or((name, true), |name| (name, false));
                (Some((self.register(name)?, wanted)), rest)
            }
        };
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if name == "bra" {
            self.branches.push((self.entry.code.len(), rest.trim().to_owned(), number));
            return Ok(Instruction { line: number, guard, op: Op::Branch(0), operands: Vec::new() });
        }
        let operands = split(rest).into_iter().map(|text| self.operand(&text)).collect::<Result<Vec<_>, String>>()?;
        let op = op(name, &operands).ok_or_else(|| format!("there is no instruction {name} here"))?;
        Ok(Instruction { line: number, guard, op, operands })
    }
}

/// Operands at commas, but not those inside of braces.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn ty(name: &str) -> Option<Ty> {
    let (kind, bits) = match name {
        "pred" => (Kind::Pred, "1"),
        "bf16" => (Kind::Brain, "16"),
        _ => {
            let kind = match name.chars().next()? {
                'b' => Kind::Bits,
                'u' => Kind::Unsigned,
                's' => Kind::Signed,
                'f' => Kind::Float,
                _ => return None,
            };
            (kind, &name[1..])
        }
    };
    Some(Ty { kind, bits: bits.parse().ok()? })
}

fn op(name: &str, operands: &[Operand]) -> Option<Op> {
    let parts: Vec<&str> = name.split('.').collect();
    let last = || ty(parts[parts.len() - 1]);
    let float = |ty: Ty| ty.kind == Kind::Float;
    let lists = operands.iter().position(|operand| matches!(operand, Operand::List(_)));
    Some(match (parts[0], &parts[1..]) {
        ("add", [_]) => Op::Binary(Binary::Add, last().filter(|ty| !float(*ty))?),
        ("add", ["rn", _]) => Op::Binary(Binary::Add, last().filter(|ty| float(*ty))?),
        ("sub", [_]) => Op::Binary(Binary::Sub, last().filter(|ty| !float(*ty))?),
        ("sub", ["rn", _]) => Op::Binary(Binary::Sub, last().filter(|ty| float(*ty))?),
        ("mul", ["lo", _]) => Op::Binary(Binary::Mul, last().filter(|ty| !float(*ty))?),
        ("mul", ["rn", _]) => Op::Binary(Binary::Mul, last().filter(|ty| float(*ty))?),
        ("mul", ["wide", "u32"]) => Op::Binary(Binary::MulWide, last()?),
        ("div", ["u32" | "u64"]) => Op::Binary(Binary::Div, last()?),
        ("div", ["rn", _]) => Op::Binary(Binary::Div, last().filter(|ty| float(*ty))?),
        ("rem", ["u32" | "u64"]) => Op::Binary(Binary::Rem, last()?),
        ("max", [_]) => Op::Binary(Binary::Max, last().filter(|ty| !float(*ty))?),
        ("min", [_]) => Op::Binary(Binary::Min, last().filter(|ty| !float(*ty))?),
        ("max", ["NaN", "f32"]) => Op::Binary(Binary::Max, last()?),
        ("min", ["NaN", "f32"]) => Op::Binary(Binary::Min, last()?),
        ("and", [_]) => Op::Binary(Binary::And, last()?),
        ("or", [_]) => Op::Binary(Binary::Or, last()?),
        ("xor", [_]) => Op::Binary(Binary::Xor, last()?),
        ("shl", [_]) => Op::Binary(Binary::Shl, last()?),
        ("shr", [_]) => Op::Binary(Binary::Shr, last()?),
        ("neg", [_]) => Op::Unary(Unary::Neg, last().filter(|ty| !float(*ty))?),
        ("not", [_]) => Op::Unary(Unary::Not, last()?),
        ("sqrt", ["rn", _]) => Op::Unary(Unary::Sqrt, last().filter(|ty| float(*ty))?),
        ("clz", ["b64"]) => Op::Unary(Unary::LeadingZeros, last()?),
        ("fma", ["rn", _]) => Op::Fma(last().filter(|ty| float(*ty))?),
        ("mad", ["lo", _]) => Op::Mad(last()?),
        ("setp", [test, _]) => {
            let test = match *test {
                "eq" => Test::Eq,
                "ne" => Test::Ne,
                "lt" => Test::Lt,
                "le" => Test::Le,
                "gt" => Test::Gt,
                "ge" => Test::Ge,
                "neu" => Test::Neu,
                "nan" => Test::Nan,
                "num" => Test::Num,
                _ => return None,
            };
            Op::Setp(test, last()?)
        }
        ("selp", ["b32" | "b64"]) => Op::Selp,
        ("cvt", [to, from]) => Op::Convert { to: ty(to)?, from: ty(from)?, round: Round::Nearest },
        ("cvt", [round, to, from]) => {
            let round = match *round {
                "rn" => Round::Nearest,
                "rni" => Round::NearestWhole,
                "rmi" => Round::Down,
                "rpi" => Round::Up,
                "rzi" => Round::Zero,
                _ => return None,
            };
            Op::Convert { to: ty(to)?, from: ty(from)?, round }
        }
        ("mov", [_]) => match lists {
            Some(0) => Op::Unpack(last()?.bits / 2),
            Some(_) => Op::Pack(last()?.bits / 2),
            None => Op::Mov,
        },
        ("ld" | "st", rest) => {
            let relaxed = rest.contains(&"relaxed");
            let space = rest.iter().find_map(|part| match *part {
                "global" => Some(Space::Global),
                "shared" => Some(Space::Shared),
                "const" => Some(Space::Const),
                "param" => Some(Space::Param),
                _ => None,
            })?;
            let lanes = rest.iter().find_map(|part| part.strip_prefix('v')?.parse().ok()).unwrap_or(1);
            let ty = last()?;
            if parts[0] == "ld" {
                Op::Load { space, ty, lanes, relaxed }
            } else {
                Op::Store { space, ty, lanes, relaxed }
            }
        }
        ("red", ["global", "add", _]) => Op::AtomicAdd(last()?),
        ("atom", ["global", "cas", _]) => Op::CompareAndSwap(last()?),
        ("shfl", ["sync", "bfly", "b32"]) => Op::Shuffle(Mode::Butterfly),
        ("shfl", ["sync", "idx", "b32"]) => Op::Shuffle(Mode::Index),
        ("prefetch", ["global", "L2"]) => Op::Prefetch,
        ("bar", ["sync"]) => Op::Barrier,
        ("ret", []) => Op::Return,
        _ => return None,
    })
}
