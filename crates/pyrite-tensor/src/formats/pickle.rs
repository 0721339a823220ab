//! The part of the pickle format that describes tensors.
//!
//! A pickle is a program for a stack machine. [`parse`] runs the instructions that only build data; where a pickle
//! would call a function, a node says which of the few known functions it was and with which arguments. An unknown
//! function, class or instruction is an error that names it. Nothing is imported or executed.
//!
//! Invariants: nodes live in one arena and refer to each other by index, so shared and even cyclic data costs
//! nothing and nothing recurses; each instruction adds at most one node of bounded size, and their number is limited.

use std::collections::HashMap;

use super::FormatError;
use crate::DType;

/// A pickle may build this many pieces of data: room for half a million tensors.
const NODE_LIMIT: usize = 1 << 23;
/// No known function has more arguments.
const ARGUMENT_LIMIT: usize = 8;

/// The index of a node in its arena.
pub(super) type Id = u32;

/// The functions and classes that PyTorch writes for tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `torch._utils._rebuild_tensor_v2`.
    RebuildTensor,
    /// `torch._utils._rebuild_tensor_v3`, which names the element type of a storage without one.
    RebuildTyped,
    /// `torch._utils._rebuild_parameter`.
    RebuildParameter,
    /// `torch.Size`.
    Size,
    /// A storage class with its element type.
    TypedStorage(DType),
    /// A storage of bytes.
    UntypedStorage,
    /// A data type.
    DType(DType),
}

impl Global {
    fn find(module: &str, name: &str) -> Option<Self> {
        Some(match (module, name) {
            ("collections", "OrderedDict") => Self::OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2") => Self::RebuildTensor,
            ("torch._utils", "_rebuild_tensor_v3") => Self::RebuildTyped,
            ("torch._utils", "_rebuild_parameter") => Self::RebuildParameter,
            ("torch", "Size") => Self::Size,
            ("torch.storage", "UntypedStorage") => Self::UntypedStorage,
            ("torch", "DoubleStorage") => Self::TypedStorage(DType::F64),
            ("torch", "FloatStorage") => Self::TypedStorage(DType::F32),
            ("torch", "HalfStorage") => Self::TypedStorage(DType::F16),
            ("torch", "BFloat16Storage") => Self::TypedStorage(DType::BF16),
            ("torch", "LongStorage") => Self::TypedStorage(DType::I64),
            ("torch", "IntStorage") => Self::TypedStorage(DType::I32),
            ("torch", "ShortStorage") => Self::TypedStorage(DType::I16),
            ("torch", "CharStorage") => Self::TypedStorage(DType::I8),
            ("torch", "ByteStorage") => Self::TypedStorage(DType::U8),
            ("torch", "BoolStorage") => Self::TypedStorage(DType::Bool),
            ("torch", "ComplexFloatStorage") => Self::TypedStorage(DType::C64),
            ("torch", "ComplexDoubleStorage") => Self::TypedStorage(DType::C128),
            ("torch", name) => Self::DType(DType::from_torch_name(name)?),
            _ => return None,
        })
    }
}

/// A piece of data.
#[derive(Clone, Debug)]
pub(super) enum Node {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    /// What PyTorch keeps outside of the pickle, by its description: a storage.
    Persistent(Id),
    /// A tensor, by the arguments that describe it.
    Tensor(Vec<Id>),
    /// A parameter, by the arguments that describe it.
    Parameter(Vec<Id>),
}

/// The data of a pickle.
#[derive(Debug)]
pub(super) struct Pickle {
    nodes: Vec<Node>,
    /// The outermost piece.
    pub(super) root: Id,
}

impl Pickle {
    /// A piece of data.
    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }
}

/// Reads a pickle.
pub(super) fn parse(bytes: &[u8]) -> Result<Pickle, FormatError> {
    let mut machine = Machine {
        bytes,
        at: 0,
        start: 0,
        nodes: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    let root = machine.run()?;
    Ok(Pickle { nodes: machine.nodes, root })
}

struct Machine<'a> {
    bytes: &'a [u8],
    /// The next byte.
    at: usize,
    /// The first byte of the running instruction.
    start: usize,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Heights of the stack at the open marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Id, FormatError> {
        loop {
            self.start = self.at;
            if self.nodes.len() > NODE_LIMIT {
                return Err(self.error(format!("it builds more than {NODE_LIMIT} pieces of data")));
            }
            let [opcode] = self.take()?;
            match opcode {
                // Protocol and frame: nothing to do.
                0x80 => {
                    let [version] = self.take()?;
                    if version > 5 {
                        return Err(self.error(format!("protocol {version} is unknown")));
                    }
                }
                0x95 => drop(self.take::<8>()?),
                b'.' => return self.pop(),
                b'(' => self.marks.push(self.stack.len()),
                b'N' => self.push(Node::None),
                0x88 => self.push(Node::Bool(true)),
                0x89 => self.push(Node::Bool(false)),
                b'K' => {
                    let value = i64::from(u8::from_le_bytes(self.take()?));
                    self.push(Node::Int(value));
                }
                b'M' => {
                    let value = i64::from(u16::from_le_bytes(self.take()?));
                    self.push(Node::Int(value));
                }
                b'J' => {
                    let value = i64::from(i32::from_le_bytes(self.take()?));
                    self.push(Node::Int(value));
                }
                0x8a => self.long()?,
                b'G' => {
                    let value = f64::from_be_bytes(self.take()?);
                    self.push(Node::Float(value));
                }
                b'X' => {
                    let length = u32::from_le_bytes(self.take()?) as usize;
                    self.text(length)?;
                }
                0x8c => {
                    let length = usize::from(u8::from_le_bytes(self.take()?));
                    self.text(length)?;
                }
                b')' => self.push(Node::Tuple(Vec::new())),
                b']' => self.push(Node::List(Vec::new())),
                b'}' => self.push(Node::Dict(Vec::new())),
                b't' => {
                    let items = self.pop_to_mark()?;
                    self.push(Node::Tuple(items));
                }
                0x85..=0x87 => {
                    let count = usize::from(opcode - 0x84);
                    let floor = self.floor();
                    if self.stack.len() < floor + count {
                        return Err(self.error("the stack is empty"));
                    }
                    let items = self.stack.split_off(self.stack.len() - count);
                    self.push(Node::Tuple(items));
                }
                b'a' => {
                    let item = self.pop()?;
                    self.append(vec![item])?;
                }
                b'e' => {
                    let items = self.pop_to_mark()?;
                    self.append(items)?;
                }
                b's' => {
                    let value = self.pop()?;
                    let key = self.pop()?;
                    self.set(&[key, value])?;
                }
                b'u' => {
                    let items = self.pop_to_mark()?;
                    self.set(&items)?;
                }
                b'q' => {
                    let slot = u32::from(u8::from_le_bytes(self.take()?));
                    self.remember(slot)?;
                }
                b'r' => {
                    let slot = u32::from_le_bytes(self.take()?);
                    self.remember(slot)?;
                }
                0x94 => self.remember(self.memo.len() as u32)?,
                b'h' => {
                    let slot = u32::from(u8::from_le_bytes(self.take()?));
                    self.recall(slot)?;
                }
                b'j' => {
                    let slot = u32::from_le_bytes(self.take()?);
                    self.recall(slot)?;
                }
                b'c' => {
                    let module = self.line()?;
                    let name = self.line()?;
                    self.global(&module, &name)?;
                }
                0x93 => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    match (self.node(module), self.node(name)) {
                        (Node::Text(module), Node::Text(name)) => {
                            let (module, name) = (module.clone(), name.clone());
                            self.global(&module, &name)?;
                        }
                        _ => return Err(self.error("a global without a name")),
                    }
                }
                b'Q' => {
                    let description = self.pop()?;
                    self.push(Node::Persistent(description));
                }
                b'R' => self.call()?,
                b'b' => {
                    // The attributes of a container, such as `_metadata` of a state dict, are not part of the data.
                    self.pop()?;
                    let target = self.pop()?;
                    if !matches!(self.node(target), Node::Dict(_)) {
                        return Err(self.error("it sets attributes of a value that is not a dict"));
                    }
                    self.stack.push(target);
                }
                other => return Err(self.error(format!("instruction 0x{other:02x} is not one that tensors need"))),
            }
        }
    }

    fn error(&self, reason: impl Into<String>) -> FormatError {
        FormatError::Pickle { offset: self.start, reason: reason.into() }
    }

    fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let taken = self.bytes[self.at..].first_chunk::<N>().copied();
        self.at += N;
        taken.ok_or_else(|| self.error("it ends in the middle of an instruction"))
    }

    fn slice(&mut self, length: usize) -> Result<&[u8], FormatError> {
        match self.bytes[self.at..].get(..length) {
            Some(slice) => {
                self.at += length;
                Ok(slice)
            }
            None => Err(self.error(format!("it declares {length} bytes, and fewer follow"))),
        }
    }

    fn text(&mut self, length: usize) -> Result<(), FormatError> {
        let text = std::str::from_utf8(self.slice(length)?).map(str::to_string);
        let text = text.map_err(|_| self.error("a string is not UTF-8"))?;
        self.push(Node::Text(text));
        Ok(())
    }

    fn long(&mut self) -> Result<(), FormatError> {
        let length = usize::from(u8::from_le_bytes(self.take()?));
        let digits = self.slice(length)?;
        let mut wide = [if digits.last().is_some_and(|byte| *byte >= 0x80) { 0xff } else { 0 }; 8];
        let fits = length <= 8;
        if fits {
            wide[..length].copy_from_slice(digits);
        }
        if !fits {
            return Err(self.error("an integer does not fit 64 bits"));
        }
        self.push(Node::Int(i64::from_le_bytes(wide)));
        Ok(())
    }

    fn line(&mut self) -> Result<String, FormatError> {
        let length = self.bytes[self.at..].iter().position(|byte| *byte == b'\n');
        let length = length.ok_or_else(|| self.error("a global's name does not end"))?;
        let line = String::from_utf8_lossy(self.slice(length)?).into_owned();
        self.at += 1;
        Ok(line)
    }

    fn push(&mut self, node: Node) {
        self.stack.push(self.nodes.len() as Id);
        self.nodes.push(node);
    }

    /// The height below which the running instruction must not reach.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id, FormatError> {
        if self.stack.len() <= self.floor() {
            return Err(self.error("the stack is empty"));
        }
        self.stack.pop().ok_or_else(|| self.error("the stack is empty"))
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>, FormatError> {
        let mark = self.marks.pop().ok_or_else(|| self.error("there is no mark"))?;
        Ok(self.stack.split_off(mark))
    }

    /// The container on top of the stack.
    fn top(&mut self) -> Result<&mut Node, FormatError> {
        let top = self.pop()?;
        self.stack.push(top);
        Ok(&mut self.nodes[top as usize])
    }

    fn append(&mut self, items: Vec<Id>) -> Result<(), FormatError> {
        let Node::List(list) = self.top()? else { return Err(self.error("it appends to a value that is not a list")) };
        list.extend(items);
        Ok(())
    }

    fn set(&mut self, items: &[Id]) -> Result<(), FormatError> {
        let pairs = items.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(self.error("a key without a value"));
        }
        let Node::Dict(dict) = self.top()? else {
            return Err(self.error("it sets items of a value that is not a dict"));
        };
        dict.extend(pairs.map(|pair| (pair[0], pair[1])));
        Ok(())
    }

    fn remember(&mut self, slot: u32) -> Result<(), FormatError> {
        let top = self.pop()?;
        self.stack.push(top);
        self.memo.insert(slot, top);
        Ok(())
    }

    fn recall(&mut self, slot: u32) -> Result<(), FormatError> {
        let id = self.memo.get(&slot).copied();
        self.stack.push(id.ok_or_else(|| self.error(format!("nothing was remembered as {slot}")))?);
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), FormatError> {
        let Some(global) = Global::find(module, name) else {
            let global = format!("{module}.{name}").escape_debug().to_string();
            return Err(FormatError::Global { offset: self.start, global });
        };
        self.push(Node::Global(global));
        Ok(())
    }

    fn call(&mut self) -> Result<(), FormatError> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let arguments = match self.node(arguments) {
            Node::Tuple(arguments) if arguments.len() <= ARGUMENT_LIMIT => arguments.clone(),
            _ => return Err(self.error("a call without a short tuple of arguments")),
        };
        let Node::Global(function) = *self.node(function) else {
            return Err(self.error("it calls a value that is not a global"));
        };
        match (function, arguments.as_slice()) {
            (Global::OrderedDict, []) => self.push(Node::Dict(Vec::new())),
            (Global::Size, [sizes]) => self.stack.push(*sizes),
            (Global::RebuildTensor | Global::RebuildTyped, _) => self.push(Node::Tensor(arguments)),
            (Global::RebuildParameter, _) => self.push(Node::Parameter(arguments)),
            _ => return Err(self.error(format!("it calls {function:?} with {} arguments", arguments.len()))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8]) -> String {
        parse(bytes).unwrap_err().to_string()
    }

    #[test]
    fn a_global_that_runs_code_is_named_with_its_place() {
        let text = message(b"\x80\x02cos\nsystem\nq\x00X\x02\x00\x00\x00ls\x85R.");
        assert!(text.starts_with("data.pkl, byte 2: refused the global `os.system`"), "{text}");
        let text = message(b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.");
        assert!(text.starts_with("data.pkl, byte 18: refused the global `builtins.eval`"), "{text}");
    }

    #[test]
    fn instructions_that_tensors_do_not_need_are_refused() {
        assert_eq!(message(b"\x80\x02i"), "data.pkl, byte 2: instruction 0x69 is not one that tensors need");
        assert!(message(b"\x80\x09").contains("protocol 9"));
    }

    #[test]
    fn every_cut_of_a_pickle_is_an_error() {
        let whole =
            b"\x80\x02}q\x00(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00b]q\x01(K\x02G?\xf8\x00\x00\x00\x00\x00\x00eu.";
        assert!(parse(whole).is_ok());
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn lengths_and_slots_that_lie_cost_nothing() {
        assert!(message(b"X\xff\xff\xff\xff").contains("declares 4294967295 bytes"));
        assert!(parse(b"Nr\xff\xff\xff\xff.").is_ok());
        assert!(message(b"j\xff\xff\xff\xff").contains("nothing was remembered"));
        assert!(message(b"\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09").contains("64 bits"));
    }

    #[test]
    fn a_stack_that_is_too_short_is_an_error() {
        for bytes in [
            &b"."[..],
            b"t",
            b"\x85",
            b"a",
            b"Na",
            b"]a",
            b"(Na",
            b"u",
            b"}(Nu",
            b"R",
            b"N)R",
            b"b",
            b"NNb",
            b"q\x00",
            b"(q\x00",
        ] {
            assert!(matches!(parse(bytes), Err(FormatError::Pickle { .. })), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn integers_have_their_sign() {
        let int = |bytes: &[u8]| match parse(bytes) {
            Ok(pickle) => match pickle.node(pickle.root) {
                Node::Int(value) => *value,
                other => panic!("{other:?}"),
            },
            Err(error) => panic!("{error}"),
        };
        assert_eq!(int(b"\x8a\x01\xff."), -1);
        assert_eq!(int(b"\x8a\x05\x00\x00\x00\x00\x01."), 1 << 32);
        assert_eq!(int(b"J\xff\xff\xff\xff."), -1);
        assert_eq!(int(b"\x8a\x00."), 0);
    }
}
