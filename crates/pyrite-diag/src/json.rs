//! Diagnostics for programs: a JSON array of objects.
//!
//! Every object has the same keys, `null` or `[]` standing for what is not known: `code`, `severity` (`error`,
//! `warning`, `note`), `location` (`file`, `line`, `column`, `text`), `message`, `cause`, `hints`, `notes`.

use crate::collection::Diagnostics;

/// Writes the diagnostics as one JSON array, indented, without a newline at the end.
pub fn to_json(diagnostics: &Diagnostics) -> String {
    serde_json::to_string_pretty(diagnostics).expect("a diagnostic holds strings and numbers only")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Code, Diagnostic, Location};

    #[test]
    fn every_key_is_always_there() {
        let diagnostics: Diagnostics = [
            Diagnostic::warning(Code::new("a::b"), "m"),
            Diagnostic::error(Code::new("c::d"), "n")
                .at(Location::in_file("x.py").line(2).column(3).text("y"))
                .cause("z")
                .hint("h")
                .note("t"),
        ]
        .into_iter()
        .collect();
        let value: Value = serde_json::from_str(&to_json(&diagnostics)).unwrap();
        assert_eq!(
            value,
            json!([
                {"code": "a::b", "severity": "warning", "message": "m", "cause": null, "hints": [], "notes": [],
                 "location": {"file": null, "line": null, "column": null, "text": null}},
                {"code": "c::d", "severity": "error", "message": "n", "cause": "z", "hints": ["h"], "notes": ["t"],
                 "location": {"file": "x.py", "line": 2, "column": 3, "text": "y"}},
            ])
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_unicode_is_written_lossily() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let location = Location::in_file(OsStr::from_bytes(b"a\xff"));
        let diagnostics = Diagnostics::from(Diagnostic::error(Code::new("a::b"), "m").at(location));
        assert!(to_json(&diagnostics).contains("\"a\u{fffd}\""));
    }
}
