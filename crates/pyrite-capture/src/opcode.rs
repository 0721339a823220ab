//! The instructions of CPython 3.11: their numbers, their inline caches, their jumps.
//!
//! The numbers are those of the interpreter; the evaluator and the assembler know instructions by [`Op`] alone.

/// Which way an instruction jumps, counted from the instruction after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// It does not.
    None,
    /// Forward.
    Forward,
    /// Backward.
    Backward,
}

macro_rules! instructions {
    ($($op:ident = $number:literal, $caches:literal, $jump:ident;)*) => {
        /// An instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names are CPython's")]
        pub enum Op { $($op = $number),* }

        impl Op {
            /// The instruction of a number.
            pub fn of(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$op),)* _ => None }
            }

            /// How many code units of cache follow it.
            pub fn caches(self) -> usize {
                match self { $(Self::$op => $caches),* }
            }

            /// Which way it jumps.
            pub fn jump(self) -> Jump {
                match self { $(Self::$op => Jump::$jump),* }
            }
        }
    };
}

instructions! {
    Cache = 0, 0, None;
    PopTop = 1, 0, None;
    PushNull = 2, 0, None;
    Nop = 9, 0, None;
    UnaryPositive = 10, 0, None;
    UnaryNegative = 11, 0, None;
    UnaryNot = 12, 0, None;
    UnaryInvert = 15, 0, None;
    BinarySubscr = 25, 4, None;
    GetLen = 30, 0, None;
    MatchMapping = 31, 0, None;
    MatchSequence = 32, 0, None;
    MatchKeys = 33, 0, None;
    PushExcInfo = 35, 0, None;
    CheckExcMatch = 36, 0, None;
    CheckEgMatch = 37, 0, None;
    WithExceptStart = 49, 0, None;
    GetAiter = 50, 0, None;
    GetAnext = 51, 0, None;
    BeforeAsyncWith = 52, 0, None;
    BeforeWith = 53, 0, None;
    EndAsyncFor = 54, 0, None;
    StoreSubscr = 60, 1, None;
    DeleteSubscr = 61, 0, None;
    GetIter = 68, 0, None;
    GetYieldFromIter = 69, 0, None;
    PrintExpr = 70, 0, None;
    LoadBuildClass = 71, 0, None;
    LoadAssertionError = 74, 0, None;
    ReturnGenerator = 75, 0, None;
    ListToTuple = 82, 0, None;
    ReturnValue = 83, 0, None;
    ImportStar = 84, 0, None;
    SetupAnnotations = 85, 0, None;
    YieldValue = 86, 0, None;
    AsyncGenWrap = 87, 0, None;
    PrepReraiseStar = 88, 0, None;
    PopExcept = 89, 0, None;
    StoreName = 90, 0, None;
    DeleteName = 91, 0, None;
    UnpackSequence = 92, 1, None;
    ForIter = 93, 0, Forward;
    UnpackEx = 94, 0, None;
    StoreAttr = 95, 4, None;
    DeleteAttr = 96, 0, None;
    StoreGlobal = 97, 0, None;
    DeleteGlobal = 98, 0, None;
    Swap = 99, 0, None;
    LoadConst = 100, 0, None;
    LoadName = 101, 0, None;
    BuildTuple = 102, 0, None;
    BuildList = 103, 0, None;
    BuildSet = 104, 0, None;
    BuildMap = 105, 0, None;
    LoadAttr = 106, 4, None;
    CompareOp = 107, 2, None;
    ImportName = 108, 0, None;
    ImportFrom = 109, 0, None;
    JumpForward = 110, 0, Forward;
    JumpIfFalseOrPop = 111, 0, Forward;
    JumpIfTrueOrPop = 112, 0, Forward;
    PopJumpForwardIfFalse = 114, 0, Forward;
    PopJumpForwardIfTrue = 115, 0, Forward;
    LoadGlobal = 116, 5, None;
    IsOp = 117, 0, None;
    ContainsOp = 118, 0, None;
    Reraise = 119, 0, None;
    Copy = 120, 0, None;
    BinaryOp = 122, 1, None;
    Send = 123, 0, Forward;
    LoadFast = 124, 0, None;
    StoreFast = 125, 0, None;
    DeleteFast = 126, 0, None;
    PopJumpForwardIfNotNone = 128, 0, Forward;
    PopJumpForwardIfNone = 129, 0, Forward;
    RaiseVarargs = 130, 0, None;
    GetAwaitable = 131, 0, None;
    MakeFunction = 132, 0, None;
    BuildSlice = 133, 0, None;
    JumpBackwardNoInterrupt = 134, 0, Backward;
    MakeCell = 135, 0, None;
    LoadClosure = 136, 0, None;
    LoadDeref = 137, 0, None;
    StoreDeref = 138, 0, None;
    DeleteDeref = 139, 0, None;
    JumpBackward = 140, 0, Backward;
    CallFunctionEx = 142, 0, None;
    ExtendedArg = 144, 0, None;
    ListAppend = 145, 0, None;
    SetAdd = 146, 0, None;
    MapAdd = 147, 0, None;
    LoadClassderef = 148, 0, None;
    CopyFreeVars = 149, 0, None;
    Resume = 151, 0, None;
    MatchClass = 152, 0, None;
    FormatValue = 155, 0, None;
    BuildConstKeyMap = 156, 0, None;
    BuildString = 157, 0, None;
    LoadMethod = 160, 10, None;
    ListExtend = 162, 0, None;
    SetUpdate = 163, 0, None;
    DictMerge = 164, 0, None;
    DictUpdate = 165, 0, None;
    Precall = 166, 1, None;
    Call = 171, 4, None;
    KwNames = 172, 0, None;
    PopJumpBackwardIfNotNone = 173, 0, Backward;
    PopJumpBackwardIfNone = 174, 0, Backward;
    PopJumpBackwardIfFalse = 175, 0, Backward;
    PopJumpBackwardIfTrue = 176, 0, Backward;
}

/// The names of `BINARY_OP`'s operators in Python's `operator` module, by their numbers; from 13 on in place.
pub const BINARY: [&str; 13] =
    ["add", "and_", "floordiv", "lshift", "matmul", "mul", "mod", "or_", "pow", "rshift", "sub", "truediv", "xor"];

/// The names of `COMPARE_OP`'s comparisons in Python's `operator` module.
pub const COMPARE: [&str; 6] = ["lt", "le", "eq", "ne", "gt", "ge"];
