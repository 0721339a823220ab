//! Frames captured in a Python that is a table of objects: what graphs hold, what is guarded, what is left to do, and where a
//! capture ends.

mod fake;

use fake::{FakePython, code, i};
use pyrite_capture::code::{Code, Instruction};
use pyrite_capture::opcode::Op;
use pyrite_capture::plan::{Effect, End, Recipe};
use pyrite_capture::{Check, Object, Plan, Settings, Source};
use pyrite_ir::{Kind, Target};

const ADD: u32 = 0;
const MULTIPLY: u32 = 5;
const LESS: u32 = 0;

/// The names of the operators that a plan's graph calls.
fn operators(plan: &Plan) -> Vec<String> {
    let graph = plan.graph.iter();
    graph
        .flat_map(pyrite_ir::Graph::nodes)
        .filter_map(|(_, node)| match &node.kind {
            Kind::Call(Target::Op(op)) => Some(op.schema.name.to_string()),
            _ => None,
        })
        .collect()
}

/// What was assumed of a path, by the kinds of checks.
fn checks<'p>(plan: &'p Plan, path: &str) -> Vec<&'p Check> {
    plan.guards.iter().filter(|guard| guard.source.to_string() == path).map(|guard| &guard.check).collect()
}

/// The recipe of what the frame returns.
fn returned(plan: &Plan) -> &Recipe {
    match &plan.end {
        End::Return(recipe) => &plan.recipes[*recipe],
        End::Break(resume) => panic!("the capture ends early: {}", resume.why.reason),
    }
}

fn captured(python: &FakePython, code: Code, arguments: &[Object]) -> Plan {
    python.capture(code, arguments, &Settings::default()).unwrap()
}

/// `return x + y`
fn sum() -> Code {
    let body =
        vec![i(Op::Resume, 0), i(Op::LoadFast, 0), i(Op::LoadFast, 1), i(Op::BinaryOp, ADD), i(Op::ReturnValue, 0)];
    code(&["x", "y"], &[], &[], body)
}

#[test]
fn a_sum_of_tensors_is_one_operator_and_both_are_guarded() {
    let python = FakePython::new();
    let plan = captured(&python, sum(), &[python.tensor(&[2, 3]), python.tensor(&[2, 3])]);
    assert_eq!(operators(&plan), ["aten.add.Tensor"]);
    assert_eq!(plan.inputs.iter().map(ToString::to_string).collect::<Vec<_>>(), ["x", "y"]);
    for path in ["x", "y"] {
        assert!(checks(&plan, path).iter().any(|check| matches!(check, Check::Tensor(..))), "{path}");
    }
    assert!(matches!(returned(&plan), Recipe::Output(0)));
}

#[test]
fn one_tensor_given_twice_is_one_input_and_guarded_to_be_the_same() {
    let python = FakePython::new();
    let x = python.tensor(&[4]);
    let plan = captured(&python, sum(), &[x, x]);
    assert_eq!(plan.inputs.len(), 1);
    assert!(checks(&plan, "y").iter().any(|check| matches!(check, Check::Same(_))));
}

#[test]
fn numbers_are_computed_at_once_and_guarded_to_be_equal() {
    let python = FakePython::new();
    let (x, y) = (python.number(2), python.number(40));
    let plan = captured(&python, sum(), &[x, y]);
    assert!(plan.graph.is_none());
    assert!(checks(&plan, "x").iter().any(|check| matches!(check, Check::Equal(seen) if *seen == x)));
    assert!(checks(&plan, "y").iter().any(|check| matches!(check, Check::Equal(seen) if *seen == y)));
    let Recipe::Object(made) = returned(&plan) else { panic!("{:?}", returned(&plan)) };
    assert_eq!(pyrite_capture::Host::as_int(&python, *made), Some(42));
}

/// `if n < 3: return x + x` and `return x * x` else.
fn branching(python: &FakePython) -> Code {
    let body = vec![
        i(Op::Resume, 0),
        i(Op::LoadFast, 1),
        i(Op::LoadConst, 0),
        i(Op::CompareOp, LESS),
        Instruction::jump(Op::PopJumpForwardIfFalse, 9, 1),
        i(Op::LoadFast, 0),
        i(Op::LoadFast, 0),
        i(Op::BinaryOp, ADD),
        i(Op::ReturnValue, 0),
        i(Op::LoadFast, 0),
        i(Op::LoadFast, 0),
        i(Op::BinaryOp, MULTIPLY),
        i(Op::ReturnValue, 0),
    ];
    code(&["x", "n"], &[python.number(3)], &[], body)
}

#[test]
fn a_branch_follows_the_number_that_is_guarded() {
    let python = FakePython::new();
    for (n, operator) in [(1, "aten.add.Tensor"), (3, "aten.mul.Tensor")] {
        let plan = captured(&python, branching(&python), &[python.tensor(&[4]), python.number(n)]);
        assert_eq!(operators(&plan), [operator]);
        assert!(checks(&plan, "n").iter().any(|check| matches!(check, Check::Equal(_))));
    }
}

#[test]
fn a_number_that_changes_is_a_symbol_whose_branch_is_assumed() {
    let python = FakePython::new();
    let mut settings = Settings::default();
    settings.dynamic.insert((Source::Local(1, "n".into()), pyrite_capture::source::NUMBER));
    let arguments = [python.tensor(&[4]), python.number(7)];
    let plan = python.capture(branching(&python), &arguments, &settings).unwrap();
    assert_eq!(operators(&plan), ["aten.mul.Tensor"]);
    assert_eq!(plan.symbols.len(), 1);
    assert!(!checks(&plan, "n").iter().any(|check| matches!(check, Check::Equal(_))));
    assert_eq!(plan.env.constraints().len(), 1, "7 was not less than 3");
}

#[test]
fn sizes_are_symbols_where_all_are_dynamic() {
    let python = FakePython::new();
    let settings = Settings { all_dynamic: true, ..Settings::default() };
    let plan = python.capture(sum(), &[python.tensor(&[5, 3]), python.tensor(&[5, 3])], &settings).unwrap();
    assert!(!plan.symbols.is_empty());
    assert_eq!(operators(&plan), ["aten.add.Tensor"]);
}

/// `for item in items: x = x + item`, `return x`
fn summing() -> Code {
    let body = vec![
        i(Op::Resume, 0),
        i(Op::LoadFast, 1),
        i(Op::GetIter, 0),
        Instruction::jump(Op::ForIter, 9, 1),
        i(Op::StoreFast, 2),
        i(Op::LoadFast, 0),
        i(Op::LoadFast, 2),
        i(Op::BinaryOp, ADD),
        Instruction::jump(Op::JumpForward, 11, 1),
        i(Op::LoadFast, 0),
        i(Op::ReturnValue, 0),
        i(Op::StoreFast, 0),
        Instruction::jump(Op::JumpBackward, 3, 1),
    ];
    Code { positional: 2, ..code(&["x", "items", "item"], &[], &[], body) }
}

#[test]
fn a_loop_over_a_list_is_unrolled_and_its_length_guarded() {
    let python = FakePython::new();
    let items: Vec<_> = (0..3).map(|_| python.tensor(&[4])).collect();
    let plan = captured(&python, summing(), &[python.tensor(&[4]), python.list(&items)]);
    assert_eq!(operators(&plan), ["aten.add.Tensor"; 3]);
    assert!(checks(&plan, "items").iter().any(|check| matches!(check, Check::Length(3))));
    assert!(checks(&plan, "items[2]").iter().any(|check| matches!(check, Check::Tensor(..))));
}

#[test]
fn a_global_function_is_followed_and_its_code_guarded() {
    let python = FakePython::new();
    python.set_global("add", python.function(sum()));
    let body = vec![
        i(Op::Resume, 0),
        i(Op::LoadGlobal, 1),
        i(Op::LoadFast, 0),
        i(Op::LoadFast, 0),
        i(Op::Precall, 2),
        i(Op::Call, 2),
        i(Op::ReturnValue, 0),
    ];
    let plan = captured(&python, code(&["x"], &[], &["add"], body), &[python.tensor(&[4])]);
    assert_eq!(operators(&plan), ["aten.add.Tensor"]);
    assert!(!checks(&plan, "add").is_empty());
}

#[test]
fn a_global_that_is_missing_raises_and_is_guarded_to_be_missing() {
    let python = FakePython::new();
    let body = vec![i(Op::Resume, 0), i(Op::LoadGlobal, 0), i(Op::ReturnValue, 0)];
    let plan = captured(&python, code(&[], &[], &["unknown"], body), &[]);
    let End::Break(resume) = &plan.end else { panic!("it raises") };
    assert!(resume.why.reason.contains("NameError"), "{}", resume.why.reason);
    assert!(checks(&plan, "unknown").iter().all(|check| matches!(check, Check::Nothing)));
}

#[test]
fn what_is_stored_outside_is_left_to_be_done_after_the_graph() {
    let python = FakePython::new();
    let body = vec![
        i(Op::Resume, 0),
        i(Op::LoadFast, 0),
        i(Op::LoadFast, 0),
        i(Op::BinaryOp, ADD),
        i(Op::StoreGlobal, 0),
        i(Op::LoadFast, 0),
        i(Op::LoadFast, 1),
        i(Op::LoadConst, 0),
        i(Op::StoreSubscr, 0),
        i(Op::LoadConst, 1),
        i(Op::ReturnValue, 0),
    ];
    let consts = [python.number(0), pyrite_capture::Host::none(&python)];
    let items = python.list(&[python.number(5), python.number(6)]);
    let plan = captured(&python, code(&["x", "items"], &consts, &["total"], body), &[python.tensor(&[4]), items]);
    let total = plan.effects.iter().find_map(|effect| match effect {
        Effect::SetGlobal(_, name, value) if &**name == "total" => Some(&plan.recipes[*value]),
        _ => None,
    });
    assert!(matches!(total, Some(Recipe::Output(_))), "{total:?}");
    let replaced = plan.effects.iter().find_map(|effect| match effect {
        Effect::ReplaceList(_, items) => Some(items.iter().map(|item| &plan.recipes[*item]).collect::<Vec<_>>()),
        _ => None,
    });
    let replaced = replaced.expect("the list is written");
    assert!(matches!(replaced[0], Recipe::Source(source) if source.to_string() == "x"), "{replaced:?}");
    assert_eq!(replaced.len(), 2);
}

#[test]
fn what_cannot_be_described_ends_the_graph_before_its_instruction() {
    let python = FakePython::new();
    let body = vec![
        i(Op::Resume, 0),
        i(Op::LoadFast, 0),
        i(Op::LoadFast, 0),
        i(Op::BinaryOp, ADD),
        i(Op::PushNull, 0),
        i(Op::LoadFast, 1),
        i(Op::Precall, 0),
        i(Op::Call, 0),
        i(Op::BinaryOp, ADD),
        i(Op::ReturnValue, 0),
    ];
    let plan = captured(&python, code(&["x", "thing"], &[], &[], body), &[python.tensor(&[4]), python.opaque()]);
    assert_eq!(operators(&plan), ["aten.add.Tensor"]);
    let End::Break(resume) = &plan.end else { panic!("the call cannot be followed") };
    assert_eq!((resume.first, resume.last), (6, 7));
    // The sum, the NULL of the call and the object that is called.
    assert_eq!(resume.stack.len(), 3);
    assert!(resume.stack[1].is_none());
    assert_eq!(resume.why.stack.last().map(|(file, line, _)| (&**file, *line)), Some(("program.py", 1)));
}

#[test]
fn a_free_variable_is_read_through_its_cell() {
    let python = FakePython::new();
    let body = vec![
        i(Op::CopyFreeVars, 1),
        i(Op::Resume, 0),
        i(Op::LoadFast, 0),
        i(Op::LoadDeref, 1),
        i(Op::BinaryOp, MULTIPLY),
        i(Op::ReturnValue, 0),
    ];
    let closed = Code { free: vec!["scale".into()], ..code(&["x"], &[], &[], body) };
    let cell = python.cell(python.number(3));
    let plan = python.capture_closed(closed, &[python.tensor(&[4])], &[cell], &Settings::default()).unwrap();
    assert_eq!(operators(&plan), ["aten.mul.Tensor"]);
    assert!(checks(&plan, "scale").iter().any(|check| matches!(check, Check::Equal(_))));
}

#[test]
fn an_entry_of_a_dictionary_is_guarded_and_others_are_not() {
    let python = FakePython::new();
    let body =
        vec![i(Op::Resume, 0), i(Op::LoadFast, 0), i(Op::LoadConst, 0), i(Op::BinarySubscr, 0), i(Op::ReturnValue, 0)];
    let (a, b) = (python.text("a"), python.text("b"));
    let table = python.dict(&[(a, python.number(1)), (b, python.number(2))]);
    let plan = captured(&python, code(&["table"], &[a], &[], body), &[table]);
    assert!(!plan.guards.iter().any(|guard| matches!(guard.check, Check::Keys(_) | Check::Length(_))));
    let values: Vec<_> = plan.guards.iter().filter(|guard| matches!(guard.check, Check::Equal(_))).collect();
    assert_eq!(values.len(), 1, "{:?}", plan.guards);
}

#[test]
fn a_loop_without_an_end_is_left_to_python() {
    let python = FakePython::new();
    let body = vec![i(Op::Resume, 0), i(Op::Nop, 0), Instruction::jump(Op::JumpBackward, 1, 1)];
    let plan = captured(&python, code(&[], &[], &[], body), &[]);
    let End::Break(resume) = &plan.end else { panic!("it has no end") };
    assert_eq!(resume.why.reason, "the frame takes too many steps to be followed");
}

#[test]
fn a_frame_that_may_look_at_its_variables_is_left_to_python() {
    let python = FakePython::new();
    let body = vec![i(Op::Resume, 0), i(Op::LoadGlobal, 1), i(Op::Precall, 0), i(Op::Call, 0), i(Op::ReturnValue, 0)];
    let skipped = python.capture(code(&[], &[], &["eval"], body), &[], &Settings::default()).unwrap_err();
    assert!(skipped.0.contains("eval()"), "{}", skipped.0);
}
