//! Where an object was found, and what capture assumed of it.
//!
//! A [`Source`] is a path from the frame to an object that can be walked again on a later call without running user
//! code. A [`Guard`] is an assumption about what stands at the end of such a path: a captured program may be reused when
//! all its guards hold.

use std::fmt;
use std::rc::Rc;

use pyrite_ir::Meta;

use crate::host::Object;

/// A path to an object; see the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A slot of the frame.
    Local(usize, Rc<str>),
    /// A cell of the frame's function.
    Closure(usize, Rc<str>),
    /// What a cell holds.
    Contents(Rc<Source>),
    /// A global of the frame.
    Global(Rc<str>),
    /// A builtin of the frame.
    Builtin(Rc<str>),
    /// An item of the `__dict__` of an object.
    InstanceItem(Rc<Source>, Rc<str>),
    /// An attribute that is read without user code.
    Attribute(Rc<Source>, Rc<str>),
    /// An item of a list or tuple.
    Index(Rc<Source>, usize),
    /// An item of a dictionary.
    Key(Rc<Source>, Object),
    /// An attribute of a class, its bases included, unbound.
    ClassItem(Object, Rc<str>),
    /// What a weak reference refers to, or `None`.
    Referent(Rc<Source>),
    /// What a context variable holds.
    ContextVariable(Object),
    /// What this function, called without arguments, says of the state of torch or Python.
    Asked(Object),
    /// The dictionary behind a `types.MappingProxyType`.
    Proxied(Rc<Source>),
    /// What this function makes of an object, without user code.
    Called(Rc<Source>, Object),
    /// Always this object: a module, a dictionary of globals.
    Fixed(Object),
}

/// Where a dimension of a tensor is named, stands for an absent number.
pub const NUMBER: usize = usize::MAX;

impl Source {
    /// Whether it is an argument of the frame, an item of one, or what a function among them closes over or binds.
    pub fn is_argument(&self) -> bool {
        match self {
            Self::Local(..) => true,
            Self::Index(base, _) | Self::Key(base, _) | Self::Contents(base) | Self::Called(base, _) => {
                base.is_argument()
            }
            Self::Attribute(base, name) => matches!(&**name, "__closure__" | "keywords" | "args") && base.is_argument(),
            _ => false,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(_, name) | Self::Closure(_, name) | Self::Global(name) | Self::Builtin(name) => {
                f.write_str(name)
            }
            Self::Contents(cell) => write!(f, "{cell}"),
            Self::InstanceItem(base, name) | Self::Attribute(base, name) => write!(f, "{base}.{name}"),
            Self::Index(base, index) => write!(f, "{base}[{index}]"),
            Self::Key(base, _) => write!(f, "{base}[…]"),
            Self::ClassItem(_, name) => write!(f, "(class).{name}"),
            Self::Referent(base) => write!(f, "{base}()"),
            Self::ContextVariable(_) => f.write_str("(context variable)"),
            Self::Asked(_) => f.write_str("(state)"),
            Self::Proxied(base) | Self::Called(base, _) => write!(f, "{base}"),
            Self::Fixed(_) => f.write_str("(fixed)"),
        }
    }
}

/// An assumption about an object.
#[derive(Clone, Debug)]
pub enum Check {
    /// It is this object.
    Is(Object),
    /// It has exactly this class, which has not been changed since.
    Class(Object, Option<u32>),
    /// It has the class of this object and equals it.
    Equal(Object),
    /// It has that many items.
    Length(usize),
    /// It is a dictionary of exactly these keys in this order.
    Keys(Vec<Object>),
    /// It is a function of this code.
    Code(Object),
    /// It is a tensor like this one. Sizes that are symbolic may differ.
    Tensor(Rc<Meta>, Object),
    /// Its `__dict__` has nothing of this name.
    Lacks(Rc<str>),
    /// There is nothing at all at the end of the path.
    Nothing,
    /// There is something at the end of the path.
    Something,
    /// A class that holds what it held, as its version says.
    Unchanged(u32),
    /// It is the object at the end of another path.
    Same(Rc<Source>),
    /// It is not the object at the end of another path.
    Differs(Rc<Source>),
    /// A float that, compared with this number, gives this bool.
    Compares(Order, Object, Object),
}

impl Check {
    /// The kinds of checks, by their names.
    pub const KINDS: [&'static str; 14] = [
        "is",
        "class",
        "equal",
        "length",
        "keys",
        "code",
        "tensor",
        "lacks",
        "nothing",
        "something",
        "unchanged",
        "same",
        "differs",
        "compares",
    ];

    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Is(_) => "is",
            Self::Class(..) => "class",
            Self::Equal(_) => "equal",
            Self::Length(_) => "length",
            Self::Keys(_) => "keys",
            Self::Code(_) => "code",
            Self::Tensor(..) => "tensor",
            Self::Lacks(_) => "lacks",
            Self::Nothing => "nothing",
            Self::Something => "something",
            Self::Unchanged(_) => "unchanged",
            Self::Same(_) => "same",
            Self::Differs(_) => "differs",
            Self::Compares(..) => "compares",
        }
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Order {
    /// The comparison with its sides exchanged.
    #[must_use]
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Equal => Self::Equal,
            Self::NotEqual => Self::NotEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

/// An assumption about what stands at the end of a path.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The path.
    pub source: Rc<Source>,
    /// What was assumed.
    pub check: Check,
    /// The user's line that relies on it: file and line.
    pub line: Option<(Rc<str>, u32)>,
}
