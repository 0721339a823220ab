//! Programs keep their devices on the way through the debugger: read, printed, stored, reduced, and read again.

use pyrite_debug::{Claim, Folder, candidate_of};
use pyrite_ir::{Device, Graph, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Class, Signature, Stage, Verdict};
use pyrite_reader::{Devices, ReadOptions, read_path, read_text};
use pyrite_reduce::{Candidate, Options, Silent, reduce};

const PROGRAM: &str = r#"
class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('_tensor_constant0', torch.tensor([1.0, 2.0]).cuda())

    def forward(self, x: "f32[9, 9][9, 1]cuda:0", s: "f32[]cpu"):
        c = self._tensor_constant0
        a = torch.ops.aten.sin.default(x)
        z = torch.ops.aten.zeros.default([9, 9], device=device(type='cuda', index=0))
        b = torch.ops.aten.add.Tensor(a, z)
        d = torch.ops.aten.mul.Tensor(b, s)
        r = torch.ops.aten.relu.default(d)
        e = torch.ops.aten.cos.default(r)
        return (e, c)
"#;

fn devices(graph: &Graph) -> Vec<(String, String)> {
    let known = |meta: &Option<Value<pyrite_ir::Meta>>| meta.as_ref()?.as_tensor().map(|meta| meta.device.to_string());
    graph.nodes().filter_map(|(_, node)| Some((node.name.clone(), known(&node.meta)?))).collect()
}

fn candidate() -> Candidate {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("program.py");
    std::fs::write(&path, PROGRAM).expect("a file");
    candidate_of(&path, 0).expect("a program")
}

#[test]
fn a_program_that_is_written_and_read_again_has_its_devices() {
    let candidate = candidate();
    let place = tempfile::tempdir().expect("a folder");
    let path = Folder::open(place.path()).unwrap().write("repro.py", &candidate, &[]).unwrap();
    let again = candidate_of(&path, 0).expect("the written program");
    assert_eq!(devices(&candidate.graph), devices(&again.graph));
    let names: Vec<String> = devices(&again.graph).into_iter().map(|(_, device)| device).collect();
    assert_eq!(names.iter().filter(|device| *device == "cpu").count(), 1, "{names:?}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("device=device(type='cuda', index=0)") && text.contains(".to('cuda:0')"), "{text}");
}

#[test]
fn what_stands_for_a_node_lies_on_its_device() {
    let relu = |candidate: &Candidate| {
        let has = candidate.graph.nodes().any(|(_, node)| format!("{:?}", node.kind).contains("relu"));
        if has { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
    };
    let found = reduce(candidate(), &relu, Options::default(), &mut Silent).expect("it fails");
    let devices = devices(&found.best.graph);
    assert!(devices.len() <= 2 && devices.iter().all(|(_, device)| device == "cuda:0"), "{devices:?}");
}

#[test]
fn a_whole_program_moves_to_a_device_and_back() {
    let read = |devices: Devices| {
        let options = ReadOptions { devices, ..ReadOptions::default() };
        read_text(PROGRAM, None, registry(), &options).expect("a program").graph
    };
    let there = read(Devices::On(Device::from_name("cuda:1")));
    assert!(devices(&there).iter().all(|(_, device)| device == "cuda:1"), "{:?}", devices(&there));
    let mut back = there.clone();
    back.put_on(&Device::Cpu);
    assert!(there.is_elsewhere() && !back.is_elsewhere());
    assert_eq!(devices(&back), devices(&read(Devices::Cpu)));
}

#[test]
fn a_fault_is_shown_by_what_the_driver_says() {
    let place = tempfile::tempdir().expect("a folder");
    let signature = Signature::new(Stage::Forward, Class::Fault).raised("misaligned address", None);
    let claim = Claim { signature: Some(&signature), ..Claim::of("torch:inductor?mode=reduce-overhead&calls=3") };
    let path = Folder::open(place.path()).unwrap().write_claiming("repro.py", &candidate(), &[], Some(&claim)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    for part in [
        "'misaligned address'",
        "torch.cuda.synchronize()",
        "mode='reduce-overhead'",
        "outputs = kept(outputs)",
        "os._exit(1",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("bug: forward: device fault: misaligned address"), "{text}");
    assert!(read_path(&path, registry(), &ReadOptions::default()).is_ok());
}
