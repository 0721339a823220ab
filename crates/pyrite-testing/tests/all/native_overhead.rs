//! What a call of a compiled program costs besides its work.

use std::time::{Duration, Instant};

use pyrite_compiler::{Options, find};
use pyrite_ir::{Builder, Meta, Value};
use pyrite_ops::registry;
use pyrite_tensor::Tensor;

/// Far more than a call takes in an optimized build, where `cargo xtask bench --only kernels` measures it: builds for
/// tests are slow, and machines that run them are busy.
const LIMIT: Duration = Duration::from_micros(200);

#[test]
fn a_call_of_a_scalar_add_takes_microseconds() {
    let inputs: Vec<Value<Tensor>> = [1.0f32, 2.0].map(|x| Tensor::from_slice(&[x], &[]).into()).to_vec();
    let mut builder = Builder::new();
    let ids: Vec<_> = inputs
        .iter()
        .filter_map(Value::as_tensor)
        .map(|input| builder.placeholder("x", Some(Value::Tensor(Meta::of(input)))))
        .collect();
    let sum = builder.call(registry().get("aten.add.Tensor").unwrap(), vec![ids[0].into(), ids[1].into(), 1.into()]);
    builder.output(vec![sum].into());
    let native = find("native").unwrap();
    let compiled = (native.compile)(builder.finish(), &Options::default()).unwrap();
    let mut fastest = Duration::MAX;
    for _ in 0..2000 {
        let inputs = inputs.clone();
        let start = Instant::now();
        let forward = compiled.run(inputs, None, &mut |_, _| {}).unwrap();
        fastest = fastest.min(start.elapsed());
        let Value::List(outputs) = forward.outputs else { panic!("a program returns a list") };
        assert_eq!(outputs[0].as_tensor().unwrap().to_f64s(), [3.0]);
    }
    assert!(fastest < LIMIT, "a call took {fastest:?}");
}
