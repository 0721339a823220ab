//! The text of one entry: registers, labels, lines.

use std::fmt::Write as _;

use pyrite_loops::{Table, Type};

/// A register, by its name.
pub(crate) type Reg = String;

/// The registers of a kind; bits have no type, instructions say what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Pred,
    B16,
    B32,
    B64,
}

impl Class {
    pub(crate) fn of(ty: Type) -> Self {
        match ty {
            Type::Bool => Self::Pred,
            Type::I32 | Type::F32 => Self::B32,
            Type::I64 | Type::F64 => Self::B64,
        }
    }

    /// The type of a move.
    pub(crate) fn bits(self) -> &'static str {
        match self {
            Self::Pred => "pred",
            Self::B16 => "b16",
            Self::B32 => "b32",
            Self::B64 => "b64",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Pred => "%p",
            Self::B16 => "%h",
            Self::B32 => "%r",
            Self::B64 => "%d",
        }
    }
}

/// The body of an entry while it is written.
#[derive(Default)]
pub(crate) struct Body {
    lines: String,
    counts: [u32; 4],
    labels: u32,
    /// The tables that it looks words up in.
    pub(crate) tables: Vec<Table>,
}

impl Body {
    /// A new register.
    pub(crate) fn reg(&mut self, class: Class) -> Reg {
        let count = &mut self.counts[class as usize];
        *count += 1;
        format!("{}{}", class.prefix(), *count - 1)
    }

    /// A new label.
    pub(crate) fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels - 1)
    }

    /// An instruction.
    pub(crate) fn line(&mut self, text: &str) {
        let _ = writeln!(self.lines, "    {text};");
    }

    /// The place of a label.
    pub(crate) fn place(&mut self, label: &str) {
        let _ = writeln!(self.lines, "{label}:");
    }

    /// A remark.
    pub(crate) fn remark(&mut self, text: &str) {
        let _ = writeln!(self.lines, "    // {text}");
    }

    /// An instruction that gives a value in a new register.
    pub(crate) fn op(&mut self, class: Class, name: &str, operands: &[&str]) -> Reg {
        let to = self.reg(class);
        self.line(&format!("{name} {to}, {}", operands.join(", ")));
        to
    }

    /// A number in a new register.
    pub(crate) fn constant(&mut self, class: Class, bits: u64) -> Reg {
        let text = match class {
            Class::Pred => bits.to_string(),
            Class::B16 | Class::B32 => format!("0x{:08x}", bits as u32),
            Class::B64 => format!("0x{bits:016x}"),
        };
        self.op(class, &format!("mov.{}", class.bits()), &[&text])
    }

    /// The declarations and lines.
    pub(crate) fn finish(&self) -> String {
        let mut text = String::new();
        for class in [Class::Pred, Class::B16, Class::B32, Class::B64] {
            let count = self.counts[class as usize];
            if count > 0 {
                let _ = writeln!(text, "    .reg .{} {}<{count}>;", class.bits(), class.prefix());
            }
        }
        text.push_str(&self.lines);
        text
    }
}
