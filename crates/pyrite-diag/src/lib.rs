//! A diagnostic as data: what went wrong, where, why, and what to do about it.
//!
//! Libraries build [`Diagnostic`]s and return them, alone or gathered in [`Diagnostics`]; they never print. The binary
//! decides how they look, with [`TextRenderer`] for people and [`to_json`] for programs.
//!
//! Invariants:
//! - a diagnostic owns all it says, so it outlives the text it speaks about;
//! - lines and columns start at one, and a column counts characters, not bytes;
//! - rendering is deterministic, never fails, and lets no control character of the input reach the terminal.
//!
//! ```
//! use pyrite_diag::{Code, Colour, Diagnostic, Location, TextRenderer};
//!
//! const UNKNOWN_OPERATOR: Code = Code::new("reader::unknown-operator");
//!
//! let source = "def forward(self, x):\n    y = aten.rleu(x)\n";
//! let diagnostic = Diagnostic::error(UNKNOWN_OPERATOR, "no operator is called `aten.rleu`")
//!     .at(Location::in_file("repro.py").line(2).column(9).text("aten.rleu"))
//!     .hint("did you mean `aten.relu`?");
//!
//! let text = TextRenderer::new(Colour::Plain).source("repro.py", source).render(&diagnostic);
//! assert_eq!(
//!     text,
//!     "error[reader::unknown-operator]: no operator is called `aten.rleu`\n \
//!       --> repro.py:2:9\n  \
//!        |\n\
//!      2 |     y = aten.rleu(x)\n  \
//!        |         ^^^^^^^^^\n  \
//!        = help: did you mean `aten.relu`?\n"
//! );
//! ```

mod collection;
mod counted;
mod diagnostic;
mod json;
mod location;
mod nearest;
mod text;

pub use collection::Diagnostics;
pub use counted::counted;
pub use diagnostic::{Code, Diagnostic, Severity};
pub use json::to_json;
pub use location::Location;
pub use nearest::nearest;
pub use text::{Colour, TextRenderer};
