//! The instructions of CPython 3.11, 3.12 and 3.13: their numbers, their inline caches, their jumps.
//!
//! The evaluator knows instructions by [`Op`] alone, in the shape that 3.11 gave them where versions only differ in how
//! they write the same thing. [`Op::unfolded`] brings what an interpreter has into that shape when code is decoded,
//! [`Op::folded`] brings it back when code is assembled. Some instructions exist on their way there only, such as those
//! of 3.13 that load two variables.

use std::sync::OnceLock;

/// A version of CPython.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 3.11
    V311,
    /// 3.12
    V312,
    /// 3.13
    V313,
}

impl Version {
    /// The version of a minor number of CPython 3.
    pub fn of(minor: u8) -> Option<Self> {
        [Self::V311, Self::V312, Self::V313].get(minor.checked_sub(11)? as usize).copied()
    }

    /// Whether the NULL of a call, or the object of a method, is above the function on the stack.
    pub fn is_null_above(self) -> bool {
        self == Self::V313
    }

    /// How many instructions that are never run stand between the target of `FOR_ITER` and where it goes on:
    /// `END_FOR`, then `POP_TOP`.
    pub fn skipped_after_loop(self) -> usize {
        match self {
            Self::V311 => 0,
            Self::V312 => 1,
            Self::V313 => 2,
        }
    }
}

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
    ($($op:ident $(($($number:literal $caches:literal)?))*, $jump:ident;)*) => {
        /// An instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names are CPython's")]
        pub enum Op { $($op),* }

        /// In the order of [`Op`]: number and caches in each version, and the way it jumps.
        const TABLE: &[(Op, [Option<(u8, u8)>; 3], Jump)] =
            &[$((Op::$op, [$(entry(&[$(($number, $caches))?])),*], Jump::$jump)),*];
    };
}

const fn entry(given: &[(u8, u8)]) -> Option<(u8, u8)> {
    if given.is_empty() { None } else { Some(given[0]) }
}

instructions! {
    Cache (0 0) (0 0) (0 0), None;
    PopTop (1 0) (1 0) (32 0), None;
    PushNull (2 0) (2 0) (34 0), None;
    Nop (9 0) (9 0) (30 0), None;
    UnaryPositive (10 0) () (), None;
    UnaryNegative (11 0) (11 0) (42 0), None;
    UnaryNot (12 0) (12 0) (43 0), None;
    UnaryInvert (15 0) (15 0) (41 0), None;
    BinarySubscr (25 4) (25 1) (5 1), None;
    GetLen (30 0) (30 0) (20 0), None;
    MatchMapping (31 0) (31 0) (28 0), None;
    MatchSequence (32 0) (32 0) (29 0), None;
    MatchKeys (33 0) (33 0) (27 0), None;
    PushExcInfo (35 0) (35 0) (33 0), None;
    CheckExcMatch (36 0) (36 0) (7 0), None;
    CheckEgMatch (37 0) (37 0) (6 0), None;
    WithExceptStart (49 0) (49 0) (44 0), None;
    GetAiter (50 0) (50 0) (16 0), None;
    GetAnext (51 0) (51 0) (18 0), None;
    BeforeAsyncWith (52 0) (52 0) (1 0), None;
    BeforeWith (53 0) (53 0) (2 0), None;
    EndAsyncFor (54 0) (54 0) (10 0), None;
    StoreSubscr (60 1) (60 1) (39 1), None;
    DeleteSubscr (61 0) (61 0) (9 0), None;
    GetIter (68 0) (68 0) (19 0), None;
    GetYieldFromIter (69 0) (69 0) (21 0), None;
    PrintExpr (70 0) () (), None;
    LoadBuildClass (71 0) (71 0) (24 0), None;
    LoadAssertionError (74 0) (74 0) (23 0), None;
    ReturnGenerator (75 0) (75 0) (35 0), None;
    ListToTuple (82 0) () (), None;
    ReturnValue (83 0) (83 0) (36 0), None;
    ImportStar (84 0) () (), None;
    SetupAnnotations (85 0) (85 0) (37 0), None;
    YieldValue (86 0) (150 0) (118 0), None;
    AsyncGenWrap (87 0) () (), None;
    PrepReraiseStar (88 0) () (), None;
    PopExcept (89 0) (89 0) (31 0), None;
    StoreName (90 0) (90 0) (114 0), None;
    DeleteName (91 0) (91 0) (67 0), None;
    UnpackSequence (92 1) (92 1) (117 1), None;
    ForIter (93 0) (93 1) (72 1), Forward;
    UnpackEx (94 0) (94 0) (116 0), None;
    StoreAttr (95 4) (95 4) (108 4), None;
    DeleteAttr (96 0) (96 0) (63 0), None;
    StoreGlobal (97 0) (97 0) (113 0), None;
    DeleteGlobal (98 0) (98 0) (66 0), None;
    Swap (99 0) (99 0) (115 0), None;
    LoadConst (100 0) (100 0) (83 0), None;
    LoadName (101 0) (101 0) (92 0), None;
    BuildTuple (102 0) (102 0) (52 0), None;
    BuildList (103 0) (103 0) (47 0), None;
    BuildSet (104 0) (104 0) (49 0), None;
    BuildMap (105 0) (105 0) (48 0), None;
    LoadAttr (106 4) (106 9) (82 9), None;
    CompareOp (107 2) (107 1) (58 1), None;
    ImportName (108 0) (108 0) (75 0), None;
    ImportFrom (109 0) (109 0) (74 0), None;
    JumpForward (110 0) (110 0) (79 0), Forward;
    JumpIfFalseOrPop (111 0) () (), Forward;
    JumpIfTrueOrPop (112 0) () (), Forward;
    PopJumpForwardIfFalse (114 0) (114 0) (97 1), Forward;
    PopJumpForwardIfTrue (115 0) (115 0) (100 1), Forward;
    LoadGlobal (116 5) (116 4) (91 4), None;
    IsOp (117 0) (117 0) (76 0), None;
    ContainsOp (118 0) (118 0) (59 1), None;
    Reraise (119 0) (119 0) (102 0), None;
    Copy (120 0) (120 0) (61 0), None;
    BinaryOp (122 1) (122 1) (45 1), None;
    Send (123 0) () (), Forward;
    LoadFast (124 0) (124 0) (85 0), None;
    StoreFast (125 0) (125 0) (110 0), None;
    DeleteFast (126 0) (126 0) (65 0), None;
    PopJumpForwardIfNotNone (128 0) (128 0) (99 1), Forward;
    PopJumpForwardIfNone (129 0) (129 0) (98 1), Forward;
    RaiseVarargs (130 0) (130 0) (101 0), None;
    GetAwaitable (131 0) (131 0) (73 0), None;
    MakeFunction (132 0) (132 0) (26 0), None;
    BuildSlice (133 0) (133 0) (50 0), None;
    JumpBackwardNoInterrupt (134 0) (134 0) (78 0), Backward;
    MakeCell (135 0) (135 0) (94 0), None;
    LoadClosure (136 0) (136 0) (), None;
    LoadDeref (137 0) (137 0) (84 0), None;
    StoreDeref (138 0) (138 0) (109 0), None;
    DeleteDeref (139 0) (139 0) (64 0), None;
    JumpBackward (140 0) (140 0) (77 1), Backward;
    CallFunctionEx (142 0) (142 0) (54 0), None;
    ExtendedArg (144 0) (144 0) (71 0), None;
    ListAppend (145 0) (145 0) (80 0), None;
    SetAdd (146 0) (146 0) (105 0), None;
    MapAdd (147 0) (147 0) (95 0), None;
    LoadClassderef (148 0) () (), None;
    CopyFreeVars (149 0) (149 0) (62 0), None;
    Resume (151 0) (151 0) (149 0), None;
    MatchClass (152 0) (152 0) (96 0), None;
    FormatValue (155 0) (155 0) (), None;
    BuildConstKeyMap (156 0) (156 0) (46 0), None;
    BuildString (157 0) (157 0) (51 0), None;
    LoadMethod (160 10) () (), None;
    ListExtend (162 0) (162 0) (81 0), None;
    SetUpdate (163 0) (163 0) (107 0), None;
    DictMerge (164 0) (164 0) (68 0), None;
    DictUpdate (165 0) (165 0) (69 0), None;
    Precall (166 1) () (), None;
    Call (171 4) (171 3) (53 3), None;
    KwNames (172 0) (172 0) (), None;
    PopJumpBackwardIfNotNone (173 0) () (), Backward;
    PopJumpBackwardIfNone (174 0) () (), Backward;
    PopJumpBackwardIfFalse (175 0) () (), Backward;
    PopJumpBackwardIfTrue (176 0) () (), Backward;
    EndFor () (4 0) (11 0), None;
    EndSend () (5 0) (12 0), None;
    FormatSimple () () (14 0), None;
    FormatWithSpec () () (15 0), None;
    BinarySlice () (26 0) (4 0), None;
    StoreSlice () (27 0) (38 0), None;
    ToBool () () (40 3), None;
    CleanupThrow () (55 0) (8 0), None;
    CallKw () () (57 0), None;
    ConvertValue () () (60 0), None;
    LoadLocals () (87 0) (25 0), None;
    LoadFastLoadFast () () (88 0), None;
    SetFunctionAttribute () () (106 0), None;
    StoreFastLoadFast () () (111 0), None;
    StoreFastStoreFast () () (112 0), None;
    ReturnConst () (121 0) (103 0), None;
    SendKeeping () (123 1) (104 1), Forward;
    LoadFastCheck () (127 0) (87 0), None;
    LoadSuperAttr () (141 1) (93 1), None;
    LoadFastAndClear () (143 0) (86 0), None;
    CallIntrinsic1 () (173 0) (55 0), None;
    CallIntrinsic2 () (174 0) (56 0), None;
    LoadFromDictOrGlobals () (175 0) (90 0), None;
    LoadFromDictOrDeref () (176 0) (89 0), None;
}

/// The numbers of `CALL_INTRINSIC_1`'s functions that are instructions of their own in 3.11.
const POSITIVE: u32 = 5;
const LIST_TO_TUPLE: u32 = 6;
/// The low bits of `COMPARE_OP` from 3.12 on, by comparison: which of unordered, less, greater and equal make it true.
const MASKS: [u32; 6] = [2, 2 | 8, 8, 1 | 2 | 4, 4, 4 | 8];
/// The bit of 3.13's `COMPARE_OP` that asks for a bool.
const COMPARE_TO_BOOL: u32 = 16;

impl Op {
    /// The instruction of a number.
    pub fn of(version: Version, number: u8) -> Option<Self> {
        static NUMBERS: OnceLock<[[Option<Op>; 256]; 3]> = OnceLock::new();
        let numbers = NUMBERS.get_or_init(|| {
            let mut numbers = [[None; 256]; 3];
            for (op, versions, _) in TABLE {
                for (numbers, entry) in numbers.iter_mut().zip(versions) {
                    if let Some((number, _)) = entry {
                        numbers[*number as usize] = Some(*op);
                    }
                }
            }
            numbers
        });
        numbers[version as usize][number as usize]
    }

    /// Its number, where the version has it.
    pub fn number(self, version: Version) -> Option<u8> {
        TABLE[self as usize].1[version as usize].map(|(number, _)| number)
    }

    /// How many code units of cache follow it.
    pub fn caches(self, version: Version) -> usize {
        TABLE[self as usize].1[version as usize].map_or(0, |(_, caches)| caches as usize)
    }

    /// Which way it jumps.
    pub fn jump(self) -> Jump {
        TABLE[self as usize].2
    }

    /// What an instruction of a version is to the evaluator: one instruction or two.
    pub fn unfolded(self, version: Version, arg: u32) -> ((Self, u32), Option<(Self, u32)>) {
        if version == Version::V311 {
            return ((self, arg), None);
        }
        let one = |op, arg| ((op, arg), None);
        let two_slots = |first, second| ((first, arg >> 4), Some((second, arg & 15)));
        match self {
            Self::LoadAttr if arg & 1 == 1 => one(Self::LoadMethod, arg >> 1),
            Self::LoadAttr => one(Self::LoadAttr, arg >> 1),
            Self::CompareOp if version == Version::V312 => one(self, arg >> 4),
            Self::CompareOp => ((self, arg >> 5), (arg & COMPARE_TO_BOOL != 0).then_some((Self::ToBool, 0))),
            Self::ReturnConst => ((Self::LoadConst, arg), Some((Self::ReturnValue, 0))),
            Self::CallIntrinsic1 if arg == POSITIVE => one(Self::UnaryPositive, 0),
            Self::CallIntrinsic1 if arg == LIST_TO_TUPLE => one(Self::ListToTuple, 0),
            Self::FormatSimple => one(Self::FormatValue, 0),
            Self::FormatWithSpec => one(Self::FormatValue, 4),
            Self::LoadFastLoadFast => two_slots(Self::LoadFast, Self::LoadFast),
            Self::StoreFastLoadFast => two_slots(Self::StoreFast, Self::LoadFast),
            Self::StoreFastStoreFast => two_slots(Self::StoreFast, Self::StoreFast),
            _ => one(self, arg),
        }
    }

    /// The instruction of a version that does what this one does.
    pub fn folded(self, version: Version, arg: u32) -> (Self, u32) {
        if version == Version::V311 {
            return (self, arg);
        }
        match self {
            Self::LoadAttr => (self, arg << 1),
            Self::LoadMethod => (Self::LoadAttr, arg << 1 | 1),
            Self::CompareOp => {
                let shift = if version == Version::V312 { 4 } else { 5 };
                (self, arg << shift | MASKS[arg as usize])
            }
            Self::UnaryPositive => (Self::CallIntrinsic1, POSITIVE),
            Self::ListToTuple => (Self::CallIntrinsic1, LIST_TO_TUPLE),
            Self::FormatValue if version == Version::V313 && arg == 0 => (Self::FormatSimple, 0),
            Self::FormatValue if version == Version::V313 => (Self::FormatWithSpec, 0),
            Self::LoadClosure if version == Version::V313 => (Self::LoadFast, arg),
            _ => (self, arg),
        }
    }
}

/// The names of `BINARY_OP`'s operators in Python's `operator` module, by their numbers; from 13 on in place.
pub const BINARY: [&str; 13] =
    ["add", "and_", "floordiv", "lshift", "matmul", "mul", "mod", "or_", "pow", "rshift", "sub", "truediv", "xor"];

/// The names of `COMPARE_OP`'s comparisons in Python's `operator` module.
pub const COMPARE: [&str; 6] = ["lt", "le", "eq", "ne", "gt", "ge"];

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: [Version; 3] = [Version::V311, Version::V312, Version::V313];

    #[test]
    fn a_number_belongs_to_one_instruction() {
        for version in VERSIONS {
            for number in 0..=255 {
                if let Some(op) = Op::of(version, number) {
                    assert_eq!(op.number(version), Some(number), "{op:?} in {version:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_unfolded_into_one_instruction_folds_back() {
        for version in VERSIONS {
            for number in 0..=255 {
                let Some(op) = Op::of(version, number) else { continue };
                for arg in 0..8 {
                    let arg = if op == Op::CompareOp && version != Version::V311 {
                        Op::CompareOp.folded(version, arg % 6).1
                    } else {
                        arg
                    };
                    // These take no argument.
                    let arg = if matches!(op, Op::FormatSimple | Op::FormatWithSpec) { 0 } else { arg };
                    if let ((one, its), None) = op.unfolded(version, arg) {
                        assert_eq!(one.folded(version, its), (op, arg), "{op:?} {arg} in {version:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn instructions_that_load_two_variables_become_two() {
        let unfolded = Op::StoreFastLoadFast.unfolded(Version::V313, 0x21);
        assert_eq!(unfolded, ((Op::StoreFast, 2), Some((Op::LoadFast, 1))));
        let compared = Op::CompareOp.unfolded(Version::V313, 4 << 5 | 16 | 4);
        assert_eq!(compared, ((Op::CompareOp, 4), Some((Op::ToBool, 0))));
    }
}
