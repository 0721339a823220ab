//! What capture leaves: when a program may be reused, what it computes, and how Python goes on after it.
//!
//! A [`Plan`] is carried out without generated code up to its end: inputs are fetched along their sources, the graph is
//! run, objects are made from [`Recipe`]s, effects are carried out in order, and then the frame returns or goes on in
//! a resume function (see [`crate::resume`]).

use std::rc::Rc;

use pyrite_ir::Graph;
use pyrite_sym::SymEnv;

use crate::code::Code;
use crate::host::{GlobalState, Object};
use crate::resume::Point;
use crate::source::{Guard, Source};

/// A recipe by its place in [`Plan::recipes`].
pub type RecipeId = usize;

/// How to make an object. A recipe is carried out once: who refers to it twice gets the same object.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// What stands at the end of a path.
    Source(Rc<Source>),
    /// This object.
    Object(Object),
    /// An output of the graph, by its number.
    Output(usize),
    /// A random number, by its place in [`Plan::draws`].
    Drawn(usize),
    /// A tuple; of a class with named fields if there is one.
    Tuple(Vec<RecipeId>, Option<Object>),
    /// A list.
    List(Vec<RecipeId>),
    /// A dictionary of a class, with the factory of defaults if it has one.
    Dict(Vec<(RecipeId, RecipeId)>, Option<Object>, Option<RecipeId>),
    /// A set, to which these members are added one by one.
    Set(Vec<RecipeId>),
    /// A slice.
    Slice([RecipeId; 3]),
    /// A cell; empty without contents.
    Cell(Option<RecipeId>),
    /// A function.
    Function(Box<FunctionRecipe>),
    /// A function bound to an object.
    Method(RecipeId, RecipeId),
    /// A named attribute of an object: a method written in C.
    Attribute(RecipeId, Rc<str>),
    /// An object of a class, not initialised, with these attributes in its `__dict__`.
    Instance(Object, Vec<(Rc<str>, RecipeId)>),
    /// An exception of a class made from arguments.
    Exception(Object, Vec<RecipeId>),
    /// A call of a function on objects that exist by then; has no effect beyond its result.
    Call(Object, Vec<RecipeId>, Vec<(Rc<str>, RecipeId)>),
    /// `iter(list)`; [`Effect::SetPlace`] advances it.
    SequenceIterator(RecipeId),
    /// `iter(container)`, advanced.
    Advanced(RecipeId, usize),
    /// A context manager that is entered when it is made: the bound `__exit__` of what this call returns.
    /// With the grad mode that it was entered in, which it restores; `None` for managers that do not switch it.
    Entered(Object, Vec<RecipeId>, Option<bool>),
    /// A generator that has yielded and waits to go on.
    Generator(Box<GeneratorRecipe>),
}

/// How to make a generator that waits: one that is begun anew right before it yields, and yields once.
#[derive(Clone, Debug)]
pub struct GeneratorRecipe {
    /// Its code.
    pub code: Rc<Code>,
    /// Its globals.
    pub globals: Object,
    /// Where it begins: the instruction that yields.
    pub point: Point,
    /// What is on its stack, without NULLs.
    pub stack: Vec<RecipeId>,
    /// What its slots hold.
    pub slots: Vec<(usize, RecipeId)>,
}

/// How to make a function.
#[derive(Clone, Debug)]
pub struct FunctionRecipe {
    /// Its code.
    pub code: Object,
    /// Its globals.
    pub globals: Object,
    /// Its qualified name.
    pub name: Option<RecipeId>,
    /// Defaults of positional parameters: a tuple.
    pub defaults: Option<RecipeId>,
    /// Defaults of keyword-only parameters: a dictionary.
    pub keyword_defaults: Option<RecipeId>,
    /// Cells: a tuple.
    pub closure: Option<RecipeId>,
}

/// What the captured code did to objects that exist outside of it.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Sets an item of an object's `__dict__`, or a slot.
    SetAttribute(RecipeId, Rc<str>, RecipeId),
    /// Removes an attribute.
    DeleteAttribute(RecipeId, Rc<str>),
    /// Gives a list these items.
    ReplaceList(RecipeId, Vec<RecipeId>),
    /// Gives a deque these items.
    ReplaceDeque(RecipeId, Vec<RecipeId>),
    /// Gives a dictionary these entries.
    ReplaceDict(RecipeId, Vec<(RecipeId, RecipeId)>),
    /// Calls methods of `set` with a set, each with its arguments.
    ChangeSet(RecipeId, Vec<(&'static str, Vec<RecipeId>)>),
    /// Sets what a cell holds; empties it without contents.
    SetCell(RecipeId, Option<RecipeId>),
    /// Sets a global of a dictionary of globals.
    SetGlobal(Object, Rc<str>, RecipeId),
    /// Removes a global.
    DeleteGlobal(Object, Rc<str>),
    /// Sets a context variable.
    SetContextVariable(Object, RecipeId),
    /// Advances an iterator by so many items.
    Advance(RecipeId, usize),
    /// Puts an iterator over a list behind so many items.
    SetPlace(RecipeId, usize),
    /// Records gradients from here on, or stops to.
    SetGrad(bool),
    /// Calls a function that sets what torch does later: which algorithms it uses, a hook.
    Call(Object, Vec<RecipeId>, Vec<(Rc<str>, RecipeId)>),
    /// Leaves a context manager that was entered before.
    Leave(RecipeId),
}

/// A random number that is drawn in every call, before the graph runs.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The input of the graph that it is, if the graph uses it.
    pub input: Option<usize>,
    /// The function that draws.
    pub function: Object,
    /// The generator that is its first argument: a recipe that starts from a source.
    pub receiver: Option<RecipeId>,
    /// Its arguments.
    pub args: Vec<Object>,
}

/// Why a graph ends before its frame does.
#[derive(Clone, Debug)]
pub struct Break {
    /// What was met.
    pub reason: String,
    /// How to avoid it.
    pub hint: Option<String>,
    /// The user's stack, outermost first: file, line, function.
    pub stack: Vec<(Rc<str>, u32, Rc<str>)>,
}

/// How Python goes on.
#[derive(Clone, Debug)]
pub enum End {
    /// The frame returns this.
    Return(RecipeId),
    /// The frame goes on at an instruction that runs in Python.
    Break(Box<Resume>),
}

/// Where and with what a frame goes on.
#[derive(Clone, Debug)]
pub struct Resume {
    /// The first instruction that Python runs.
    pub first: usize,
    /// The last one; after it a new capture begins.
    pub last: usize,
    /// The values of the stack; `None` stands for the NULL that some calls have.
    pub stack: Vec<Option<RecipeId>>,
    /// The bound locals that are alive, by their slots; those of cells are cells.
    pub locals: Vec<(usize, RecipeId)>,
    /// The bound locals that nothing reads any more and that hold objects which exist all the same.
    pub kept: Vec<(usize, RecipeId)>,
    /// The locals that need not hold what they held when the frame began.
    pub written: Vec<usize>,
    /// Why.
    pub why: Break,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was assumed, the cheapest first.
    pub guards: Vec<Guard>,
    /// torch's state when it was captured.
    pub state: GlobalState,
    /// What is computed; `None` when nothing is.
    pub graph: Option<Graph>,
    /// Where the graph's inputs are found.
    pub inputs: Vec<Rc<Source>>,
    /// The symbols among sizes and numbers: where each is read again, and of which dimension it is the size, or
    /// [`crate::source::NUMBER`].
    pub symbols: Vec<(Rc<str>, Rc<Source>, usize)>,
    /// What was assumed of the symbols. It belongs to the evaluation: a plan without a graph has assumptions as well.
    pub env: SymEnv,
    /// Sizes that the user has marked to differ and that became constants: the user's name, and the constant.
    pub fixed_marks: Vec<(String, i64)>,
    /// The inputs that are floats: the graph takes them as tensors of double precision without dimensions.
    pub floats: Vec<usize>,
    /// The random numbers of Python's that the frame draws, in order.
    pub draws: Vec<Draw>,
    /// Tensors from outside, by recipes that start from a source, that require gradients from before the graph on, or not.
    pub switched: Vec<(RecipeId, bool)>,
    /// Whether the graph writes to its inputs, so that which of them share memory matters.
    pub writes: bool,
    /// The outputs of the graph that the frame asserts to be true. Where one is not, or the graph raises, nothing has been
    /// done yet, and the frame runs plain.
    pub asserted: Vec<usize>,
    /// Whether the graph raises for some data. Then, too, nothing has been done yet, and the frame runs plain.
    pub fallible: bool,
    /// How many operators the graph calls.
    pub op_count: usize,
    /// Objects to make.
    pub recipes: Vec<Recipe>,
    /// What is done to existing objects, in order.
    pub effects: Vec<Effect>,
    /// How many of them change what exists outside; the others complete what is made.
    pub changes: usize,
    /// How Python goes on.
    pub end: End,
}
