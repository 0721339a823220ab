//! Collects what is wrong with a text.

use std::cell::RefCell;

use pyrite_diag::{Diagnostic, Diagnostics, Severity};

/// The codes of the reader's diagnostics.
pub mod codes {
    use pyrite_diag::Code;

    /// The file cannot be read.
    pub const IO: Code = Code::new("reader::io");
    /// The file or a part of it is larger than is reasonable.
    pub const TOO_LARGE: Code = Code::new("reader::too-large");
    /// The file is not UTF-8.
    pub const NOT_UTF8: Code = Code::new("reader::not-utf8");
    /// An archive that is not a program of `torch.export`.
    pub const EXPORTED: Code = Code::new("reader::exported");
    /// The text is not Python.
    pub const SYNTAX: Code = Code::new("reader::syntax");
    /// A nested graph of which torch wrote down nothing but the class.
    pub const LOST_BODY: Code = Code::new("reader::lost-body");
    /// A file in which torch says why it wrote no graph.
    pub const NOT_WRITTEN: Code = Code::new("reader::not-written");
    /// Expressions are nested too deeply.
    pub const TOO_DEEP: Code = Code::new("reader::too-deep");
    /// There is no graph in the text.
    pub const NO_GRAPH: Code = Code::new("reader::no-graph");
    /// Python that a graph does not consist of.
    pub const UNSUPPORTED: Code = Code::new("reader::unsupported-python");
    /// A name that nothing defines, or not yet.
    pub const UNKNOWN_NAME: Code = Code::new("reader::unknown-name");
    /// A name defined twice.
    pub const DUPLICATE_NAME: Code = Code::new("reader::duplicate-name");
    /// A call whose arguments do not fit.
    pub const WRONG_ARGUMENTS: Code = Code::new("reader::wrong-arguments");
    /// A call that inference refuses.
    pub const WRONG_CALL: Code = Code::new("reader::wrong-call");
    /// A data type that does not exist.
    pub const UNKNOWN_DTYPE: Code = Code::new("reader::unknown-dtype");
    /// A size that is no size.
    pub const BAD_SIZE: Code = Code::new("reader::bad-size");
    /// A call that the registry does not know.
    pub const UNKNOWN_OPERATOR: Code = Code::new("reader::unknown-operator");
    /// An annotation that disagrees with inference.
    pub const ANNOTATION: Code = Code::new("reader::annotation-differs");
    /// An annotation that cannot be read.
    pub const BAD_ANNOTATION: Code = Code::new("reader::bad-annotation");
    /// An item that a list does not have.
    pub const OUT_OF_RANGE: Code = Code::new("reader::item-out-of-range");
    /// A constant that the text does not have.
    pub const MISSING_CONSTANT: Code = Code::new("reader::missing-constant");
    /// A constant's values were generated.
    pub const GENERATED: Code = Code::new("reader::generated-values");
    /// `load_args` does something unknown.
    pub const LOAD_ARGS: Code = Code::new("reader::load-args");
    /// The text has tensors on a device that they are not put on.
    pub const DEVICE: Code = Code::new("reader::device");
    /// Inference is not possible here.
    pub const NOT_INFERRED: Code = Code::new("reader::not-inferred");
}

/// After this many errors reading stops.
const MAX_ERRORS: usize = 20;
/// No more notes than this are kept.
const MAX_NOTES: usize = 200;

/// Something failed and was reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed;

/// The result of reading a part of the text; the failure was reported already.
pub(crate) type Res<T> = Result<T, Failed>;

/// The diagnostics found so far.
#[derive(Default)]
pub(crate) struct Problems {
    errors: RefCell<Vec<Diagnostic>>,
    notes: RefCell<Vec<Diagnostic>>,
}

impl Problems {
    /// Keeps a diagnostic.
    pub fn push(&self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            let mut errors = self.errors.borrow_mut();
            if errors.len() < MAX_ERRORS {
                errors.push(diagnostic);
            }
        } else {
            let mut notes = self.notes.borrow_mut();
            if notes.len() < MAX_NOTES {
                notes.push(diagnostic);
            }
        }
    }

    /// Keeps an error and fails.
    pub fn fail<T>(&self, diagnostic: Diagnostic) -> Res<T> {
        self.push(diagnostic);
        Err(Failed)
    }

    /// The errors, which are forgotten.
    pub fn take_errors(&self) -> Vec<Diagnostic> {
        self.notes.borrow_mut().clear();
        std::mem::take(&mut self.errors.borrow_mut())
    }

    /// Whether so many errors were found that more would not help.
    pub fn full(&self) -> bool {
        self.errors.borrow().len() >= MAX_ERRORS
    }

    /// The notes, or all diagnostics if there is an error.
    pub fn finish(self) -> Result<Vec<Diagnostic>, Diagnostics> {
        let errors = self.errors.into_inner();
        let notes = self.notes.into_inner();
        if errors.is_empty() {
            return Ok(notes);
        }
        let mut all = Diagnostics::new();
        errors.into_iter().chain(notes).for_each(|d| all.push(d));
        Err(all)
    }
}
