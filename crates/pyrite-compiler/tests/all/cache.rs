//! Programs come out of the cache as they went in, and a damaged or other file never runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pyrite_codegen::Generator;
use pyrite_compiler::Options;
use pyrite_compiler::cache::{Cache, Folder, GraphKey};
use pyrite_ir::{Builder, Graph, Meta, Value};
use pyrite_ops::registry;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{DType, Tensor};

/// `gelu(x) + x`, whose kernel calls nothing, and `lgamma(x)`, whose kernel may.
fn graph(size: i64) -> Graph {
    let op = |name: &str| registry().get(name).unwrap();
    let mut builder = Builder::new();
    let x = builder.placeholder("x", Some(Value::Tensor(Meta::contiguous(&[size.into()], DType::F32))));
    let y = builder.call(op("aten.gelu.default"), vec![x.into(), "none".into()]);
    let z = builder.call(op("aten.add.Tensor"), vec![x.into(), y.into(), 1.into()]);
    let w = builder.call(op("aten.lgamma.default"), vec![x.into()]);
    builder.output(vec![z, w].into());
    builder.finish()
}

fn run(cache: &Cache, size: i64) -> Vec<f64> {
    let (program, _) = cache.program(&graph(size), &Options::default(), Generator::best()).unwrap();
    let values: Vec<f32> = (0..size).map(|i| i as f32 / 7.0 + 0.5).collect();
    let input = Tensor::from_slice(&values, &[size]);
    let output = program.run(vec![input.into()], registry(), &mut TorchGenerator::new(0), &mut |_, _| {}).unwrap();
    let Value::List(items) = output else { panic!("the graph returns a list") };
    items.iter().flat_map(|item| item.as_tensor().unwrap().to_f64s()).collect()
}

fn with_folder(path: &Path) -> Cache {
    let cache = Cache::default();
    cache.use_folder(Some(Folder::open(path).unwrap()));
    cache
}

fn file(path: &Path, size: i64) -> PathBuf {
    let key = GraphKey::of(&graph(size), &Options::default(), Generator::best());
    Folder::open(path).unwrap().file(&key.code)
}

#[test]
fn code_from_disk_computes_what_fresh_code_computes_and_is_not_written_again() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("code");
    let fresh = run(&Cache::default(), 100);
    assert_eq!(run(&with_folder(&folder), 100), fresh);
    if Generator::best() == Generator::Tiles {
        return;
    }
    let written = fs::metadata(file(&folder, 100)).unwrap();
    let again = with_folder(&folder);
    assert_eq!(run(&again, 100), fresh);
    assert_eq!(run(&again, 100), fresh, "from memory");
    assert_eq!(fs::metadata(file(&folder, 100)).unwrap().ino(), written.ino());
    run(&again, 101);
    assert!(file(&folder, 101).exists());
    assert_ne!(file(&folder, 101), file(&folder, 100));
}

#[test]
fn a_damaged_file_is_ignored_and_written_anew() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("code");
    let fresh = run(&with_folder(&folder), 50);
    if Generator::best() == Generator::Tiles {
        return;
    }
    let path = file(&folder, 50);
    let whole = fs::read(&path).unwrap();
    let other = fs::read({
        run(&with_folder(&folder), 51);
        file(&folder, 51)
    });
    let mut flipped = whole.clone();
    flipped[whole.len() - 9] ^= 1;
    for damaged in [flipped, whole[..whole.len() / 2].to_vec(), Vec::new(), other.unwrap()] {
        fs::write(&path, damaged).unwrap();
        assert_eq!(run(&with_folder(&folder), 50), fresh);
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn what_decides_a_program_is_in_its_key() {
    let key = |graph: &Graph, options: &Options, generator| GraphKey::of(graph, options, generator);
    let (options, best) = (Options::default(), Generator::best());
    let one = key(&graph(8), &options, best);
    assert_eq!(one, key(&graph(8), &options, best));
    assert!(one.plan.is_some());
    let refused = Options { refused: vec!["fuse".to_owned()], ..Options::default() };
    let limited = Options { rewrites: Some(1), ..Options::default() };
    let others = [key(&graph(9), &options, best), key(&graph(8), &refused, best), key(&graph(8), &limited, best)];
    for other in others {
        assert_ne!(one.plan, other.plan);
        assert_ne!(one.code, other.code);
    }
    if best != Generator::Tiles {
        assert_ne!(one.code, key(&graph(8), &options, Generator::Tiles).code);
    }
}

#[test]
fn programs_of_one_plan_keep_their_own_constants() {
    let with_constant = |value: f32| {
        let op = |name: &str| registry().get(name).unwrap();
        let mut builder = Builder::new();
        let x = builder.placeholder("x", Some(Value::Tensor(Meta::contiguous(&[2.into()], DType::F32))));
        let c = builder.constant("c", Tensor::from_slice(&[value, value], &[2]));
        let y = builder.call(op("aten.add.Tensor"), vec![x.into(), c.into(), 1.into()]);
        builder.output(vec![y].into());
        builder.finish()
    };
    let cache = Cache::default();
    let programs =
        [1.0, 2.0].map(|value| cache.program(&with_constant(value), &Options::default(), Generator::best()).unwrap().0);
    for (program, expected) in programs.iter().zip([1.0, 2.0]) {
        let x = Tensor::from_slice(&[0.0f32, 0.0], &[2]);
        let output = program.run(vec![x.into()], registry(), &mut TorchGenerator::new(0), &mut |_, _| {}).unwrap();
        let Value::List(items) = output else { panic!("the graph returns a list") };
        assert_eq!(items[0].as_tensor().unwrap().to_f64s(), [expected, expected]);
    }
}
