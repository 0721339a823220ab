//! Sources are reduced to what a question needs, and to nothing that can be made smaller in one step.

use pyrite_source::edits::edits;
use pyrite_source::{Kind, Options, Reduction, Size, reduce};
use ruff_python_parser::parse_module;

const SCRIPT: &str = r#""""What this is about."""
import math
import torch, sys

WIDTH = 64


class Model(torch.nn.Module):
    """A model."""

    def __init__(self, width, depth=3):
        super().__init__()
        self.layers = [torch.nn.Linear(width, width) for _ in range(depth)]

    @torch.no_grad()
    def forward(self, x, mask=None):
        # Every layer.
        for layer in self.layers:
            x = torch.relu(layer(x)) + 1.5
        if mask is not None:
            x = x * mask
        else:
            x = x - math.pi
        return {"out": x, "sum": x.sum()}


def train(model, data, steps):
    try:
        with torch.enable_grad():
            for step in range(steps):
                loss = model(data)["sum"] / len(data)
                print(f"step {step}", loss)
    finally:
        sys.stdout.flush()
    return loss


if __name__ == "__main__":
    train(Model(WIDTH), torch.ones(4, WIDTH), 100)
"#;

/// What is left of the script where a text fails that has all of some words.
fn needing(words: &[&str]) -> Reduction {
    let fails = |text: &str| words.iter().all(|word| text.contains(word));
    let options = Options { jobs: 1, until: None };
    reduce(SCRIPT, &fails, options, &mut |_, _, _| {}).expect("a script")
}

#[test]
fn a_result_has_what_is_needed_and_little_else() {
    assert_eq!(needing(&["range(steps)"]).source.trim(), "range(steps)");
    assert_eq!(needing(&["torch.relu("]).source.trim(), "torch.relu()");
    let both = needing(&["x - math.pi", "range("]);
    assert!(both.sizes.1.tokens <= 10, "{}", both.source);
    let def = needing(&["def forward(self"]);
    assert!(def.sizes.1.tokens <= 8 && !def.source.contains("no_grad"), "{}", def.source);
}

#[test]
fn nothing_can_be_taken_away_from_a_result() {
    let questions: [&[&str]; 6] = [
        &["torch.relu(", "/ len("],
        &["finally:", "WIDTH"],
        &["for layer in", "else:"],
        &["class Model", "steps):"],
        &["print(f\"", "**"],
        &["import", "64", "100"],
    ];
    for words in questions {
        let fails = |text: &str| words.iter().all(|word| text.contains(word));
        if !fails(SCRIPT) {
            continue;
        }
        let found = needing(words);
        assert!(found.is_minimal && fails(&found.source));
        let parsed = parse_module(&found.source).expect("valid Python");
        for kind in Kind::ALL {
            for edit in edits(&found.source, &parsed, kind) {
                let smaller = edit.apply(&found.source);
                let shrinks = Size::of(&smaller).is_some_and(|size| size < found.sizes.1);
                assert!(!(shrinks && fails(&smaller)), "{words:?}: {}\nmay be\n{smaller}", found.source);
            }
        }
    }
}

#[test]
fn every_text_that_is_asked_about_is_python_and_asked_about_once() {
    let asked = std::sync::Mutex::new(Vec::<String>::new());
    let fails = |text: &str| {
        assert!(parse_module(text).is_ok(), "{text}");
        asked.lock().expect("no panic").push(text.to_owned());
        text.contains("model(data)")
    };
    let found = reduce(SCRIPT, &fails, Options { jobs: 1, until: None }, &mut |_, _, _| {}).expect("a script");
    let mut asked = asked.into_inner().expect("no panic");
    let count = asked.len();
    assert_eq!(count as u64, found.queries);
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), count);
}

#[test]
fn a_parameter_goes_with_what_is_given_for_it() {
    let source = "def f(a, b, c):\n    return a + c\n\n\nf(1, 2, 3)\nf(4, 5, 6)\n";
    let meaning = |text: &str| text.contains("def f(a, c)") && text.contains("f(1, 3)");
    let parsed = parse_module(source).expect("valid Python");
    let found = edits(source, &parsed, Kind::Elements).iter().map(|edit| edit.apply(source)).find(|text| meaning(text));
    assert_eq!(found.as_deref(), Some("def f(a, c):\n    return a + c\n\n\nf(1, 3)\nf(4, 6)\n"));
}

#[test]
fn what_is_no_python_is_not_reduced() {
    assert!(reduce("def f(:", &|_| true, Options { jobs: 1, until: None }, &mut |_, _, _| {}).is_none());
}
