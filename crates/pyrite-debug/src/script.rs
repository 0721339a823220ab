//! The main part of a repro: what `python repro.py` does.
//!
//! A file claims that a backend fails on its program in a certain way, and checks exactly that, in plain PyTorch:
//!
//! - exit code 1, after one line that begins with `bug: ` and the signature: the failure is there;
//! - the announced signal, where the failure is a crash;
//! - exit code 0: it is not there;
//! - exit code 2: something else went wrong, so the file cannot tell.
//!
//! What is checked is the part of the contract that the signature names: values, shapes, strides, dtypes, shared memory,
//! what is left in inputs, gradients, or the error with its type and place. A crash and a hang are reached without asking
//! eager first, which may raise an ordinary error there. A hang, an exit and the use of memory are limited by the file
//! itself. Without a signature everything is checked.

use std::fmt::Write as _;
use std::time::Duration;

use pyrite_compare::Accuracy;
use pyrite_ir::print::{is_dotted, print_options, print_settings, quote};
use pyrite_oracle::{Class, Signature, Stage};

use crate::judge::ON_THE_DEVICE;
use crate::process::MOST_CROWDED;
use crate::torch::{device_memory_limit, setting};

/// What a file claims.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The backend that fails.
    pub backend: &'a str,
    /// Python modules that are imported first.
    pub imports: &'a [String],
    /// How it fails, if that is known.
    pub signature: Option<&'a Signature>,
    /// The seed of inputs that are generated and of random numbers.
    pub seed: u64,
    /// Whether gradients are left out.
    pub forward_only: bool,
    /// How closely results are compared.
    pub accuracy: Accuracy,
    /// The tolerance of all floats, where it is not the usual one.
    pub tolerance: Option<f64>,
    /// How long a run may take before it is a hang.
    pub time: Duration,
    /// How many bytes a run may have before it is out of memory.
    pub memory: Option<u64>,
    /// Whether the program draws random numbers.
    pub draws: bool,
    /// Whether the program is for another device than the CPU.
    pub elsewhere: bool,
}

impl Claim<'_> {
    /// What is claimed of a backend where nothing else is known.
    pub fn of(backend: &str) -> Claim<'_> {
        Claim {
            backend,
            imports: &[],
            signature: None,
            seed: 0,
            forward_only: false,
            accuracy: Accuracy::Fp,
            tolerance: None,
            time: Duration::from_mins(5),
            memory: None,
            draws: false,
            elsewhere: false,
        }
    }

    /// The main part, indented as it stands in the file; `None` where no Python can ask the backend.
    pub(crate) fn script(&self) -> Option<String> {
        let compile = self.compile()?;
        let mut text = "\nif __name__ == '__main__':\n    import sys\n".to_owned();
        for module in self.modules() {
            let _ = writeln!(text, "    import {module}");
        }
        text.push_str(
            "    from torch._dynamo.debug_utils import InputReader\n    from torch.utils._pytree import tree_leaves\n",
        );
        text.push_str(&self.imported());
        let mut written = String::new();
        if self.base() == Some("inductor") {
            print_settings(&mut written, self.settings());
        }
        if self.base() == Some("inductor") && self.draws {
            let import = if written.is_empty() { "    import torch._inductor.config\n\n" } else { "" };
            let _ = writeln!(written, "{import}    torch._inductor.config.fallback_random = True");
        }
        text.push_str(&written);
        if self.elsewhere {
            let allowed = if setting(self.backend, "tf32") == Some("true") { "True" } else { "False" };
            text.push_str(&PRECISION.replace("ALLOWED", allowed));
        }
        if setting(self.backend, "poison") == Some("true") {
            text.push_str(POISON);
        }
        if let Some(folder) = setting(self.backend, "triton") {
            let _ = writeln!(text, "\n    sys.path.insert(0, {})  # another version of Triton", quote(folder));
        }
        if let Some(level) = setting(self.backend, "ptxas") {
            text.push_str(&PTXAS.replace("LEVEL", level));
        }
        text.push_str(&self.run(&compile));
        text.push_str(&match self.signature.map(|signature| signature.class) {
            Some(Class::Signal(signal)) => crash(signal),
            Some(Class::Hang) => self.hang(),
            Some(Class::Exit(code)) => self.exit(code),
            Some(Class::OutOfMemory) => self.memory(),
            Some(Class::Fault) => self.fault(),
            Some(Class::Error | Class::Garbage) => self.error(),
            Some(Class::MissingError) => self.missing_error(),
            Some(class) => self.difference(Some(class)),
            None => self.difference(None),
        });
        Some(text)
    }

    /// The name of torch's backend, without settings.
    fn base(&self) -> Option<&str> {
        self.backend.strip_prefix("torch:").map(|name| name.split_once('?').map_or(name, |(base, _)| base))
    }

    /// What the name of torch's backend sets.
    fn settings(&self) -> &str {
        self.backend.split_once('?').map_or("", |(_, settings)| settings)
    }

    /// The call that compiles `mod`.
    fn compile(&self) -> Option<String> {
        if let Some((module, function)) = self.base().and_then(|name| name.split_once(':')) {
            return Some(format!("torch.compile(mod, backend={module}.{function})"));
        }
        if let Some(name) = self.base() {
            let settings = self.backend.strip_prefix("torch:").unwrap_or_default();
            let mode = setting(settings, "mode").map(|mode| format!(", mode={}", quote(mode))).unwrap_or_default();
            let dynamic = match setting(settings, "dynamic") {
                Some("true") => ", dynamic=True",
                Some("false") => ", dynamic=False",
                _ => "",
            };
            let options = if name == "inductor" { String::new() } else { print_options(self.settings()) };
            return Some(format!("torch.compile(mod, backend={}{mode}{dynamic}{options})", quote(name)));
        }
        if let Some((module, function)) = self.backend.strip_prefix("python:").and_then(|name| name.split_once(':')) {
            return Some(format!("pyrite.compile(mod, backend={module}.{function})"));
        }
        let own = !self.backend.is_empty() && !self.backend.contains(':') && self.backend != "eager";
        let options = format!("{{'backend': {}, 'strict': True}}", quote(self.backend));
        own.then(|| format!("torch.compile(mod, backend='pyrite', options={options})"))
    }

    /// Modules that the main part uses.
    fn modules(&self) -> Vec<&'static str> {
        match self.signature.map(|signature| signature.class) {
            Some(Class::Hang | Class::Exit(_)) => vec!["subprocess"],
            Some(Class::OutOfMemory) if self.is_of_device() => Vec::new(),
            Some(Class::OutOfMemory) => vec!["resource"],
            Some(Class::Error | Class::MissingError | Class::Garbage) | None => vec!["re", "traceback"],
            Some(_) => Vec::new(),
        }
    }

    /// Modules that the program and its backend need.
    fn imported(&self) -> String {
        let mut text = String::new();
        if let Some((module, _)) = self.backend.strip_prefix("python:").and_then(|name| name.split_once(':')) {
            let _ = writeln!(text, "    import pyrite\n    import {module}");
        }
        let own = self.base().and_then(|name| name.split_once(':')).map(|(module, _)| module.to_owned());
        let own = own.filter(|module| !self.imports.contains(module));
        for module in own.iter().chain(self.imports).filter(|module| is_dotted(module)) {
            let _ = writeln!(text, "    import {module}");
        }
        text
    }

    /// What one run on fresh inputs leaves behind.
    fn run(&self, compile: &str) -> String {
        let class = self.signature.map(|signature| signature.class);
        let everything = self.signature.is_none();
        let backward = !self.forward_only
            && (everything
                || self.signature.is_some_and(|signature| signature.stage == Stage::Backward)
                || matches!(class, Some(Class::Hang | Class::Exit(_) | Class::OutOfMemory)));
        let calls = self.calls();
        let mut text = if calls > 1 { KEPT.to_owned() } else { String::new() };
        let look = self.look();
        let (made, name) = match look {
            Some(_) => (MADE.replace("COMPILE", compile), "call_once"),
            None => {
                (format!("        mod, args = Repro(), load()\n        call = {compile} if compiled else mod\n"), "run")
            }
        };
        let _ = write!(
            text,
            "
    def load():
        torch.manual_seed({seed})
        reader = InputReader(save_dir=os.path.dirname(os.path.abspath(__file__)))
        load_args(reader)
        return reader.args

    def {name}(compiled):
{made}        torch.manual_seed({seed})
        with torch.set_grad_enabled({grad}):
",
            seed = self.seed,
            grad = if self.forward_only { "False" } else { "True" },
        );
        if calls > 2 {
            let _ = writeln!(text, "            for _ in range({}):\n                call(*load())", calls - 2);
        }
        text.push_str("            outputs = tree_leaves(call(*args))\n");
        if calls > 1 {
            text.push_str("            call(*load())\n            outputs = kept(outputs)\n");
        }
        // What a device was given to do goes wrong after the call that gave it.
        let waits = self.elsewhere && matches!(class, Some(Class::Fault | Class::Hang | Class::OutOfMemory) | None);
        if waits {
            text.push_str(WAIT);
        }
        if backward {
            text.push_str(BACKWARD);
            if waits {
                text.push_str(WAIT);
            }
        }
        let gradients = class.is_some() && self.signature.is_some_and(|signature| signature.stage == Stage::Backward);
        let (inputs, outputs) = match class {
            None | Some(Class::Aliasing) => (true, true),
            Some(Class::Mutation) => (true, false),
            Some(Class::Structure | Class::Shape | Class::Stride | Class::Dtype | Class::Value) => (false, !gradients),
            Some(_) => return text + &look.map(later_call).unwrap_or_default(),
        };
        text.push_str("        left = {}\n");
        if inputs {
            text.push_str(INPUTS);
        }
        if outputs {
            text.push_str("        left |= {f'output {k}': value for k, value in enumerate(outputs)}\n");
        }
        if backward {
            text.push_str(GRADIENTS);
        }
        text.push_str("        return left\n");
        text + &look.map(later_call).unwrap_or_default()
    }

    /// Which call is looked at, where it is not the first: that of the signature, else that of the backend's name.
    fn look(&self) -> Option<u32> {
        let named = || setting(self.backend, "look").and_then(|call| call.parse().ok());
        self.signature.and_then(|signature| signature.call).or_else(named).filter(|call| *call > 1)
    }

    /// How often the program is called before its results are looked at.
    fn calls(&self) -> u32 {
        setting(self.backend, "calls").and_then(|calls| calls.parse().ok()).unwrap_or(1)
    }

    /// Whether it is a device whose memory is not enough.
    fn is_of_device(&self) -> bool {
        let site = self.signature.and_then(|signature| signature.site.as_ref());
        site.is_some_and(|site| site.kind == ON_THE_DEVICE)
    }

    /// The signature without what only ranks candidates, as the line that tells of the bug begins.
    fn told(&self) -> String {
        self.signature.map(Signature::told).unwrap_or_default()
    }

    fn error(&self) -> String {
        // Own backends raise errors of Python's that are named otherwise than the signature names them.
        let fits = if self.base().is_some() { format!("found == {}", quote(&self.told())) } else { "True".to_owned() };
        format!(
            "{DESCRIBE}
    try:
        run(compiled=True)
    except BaseException as error:
        found, said = describe(error)
        if {fits}:
            print(f'bug: {{found}}: {{said}}')
            sys.exit(1)
        print(f'another failure: {{found}}: {{said}}')
        sys.exit(2)
    print('no bug: it raises nothing')
"
        )
    }

    fn missing_error(&self) -> String {
        let kind = self.signature.and_then(|signature| signature.site.as_ref()).map_or("", |site| site.kind.as_str());
        let told = self.told();
        format!(
            "{DESCRIBE}
    try:
        run(compiled=False)
    except Exception as error:
        kind, (_, said) = type(error).__name__, describe(error)
    else:
        print('no bug: eager raises nothing either')
        sys.exit(0)
    try:
        run(compiled=True)
    except Exception as error:
        print(f'no bug: it raises {{type(error).__name__}} where eager raises {{kind}}')
        sys.exit(0)
    if kind != {kind}:
        print(f'another failure: eager raises {{kind}}: {{said}}')
        sys.exit(2)
    print(f'bug: {told}: {{said}}')
    sys.exit(1)
",
            kind = quote(kind),
        )
    }

    fn hang(&self) -> String {
        let limit = self.time.as_secs() + self.allowance();
        let told = quote(&format!("bug: {}: no answer within {limit} s", self.told()));
        format!(
            "
    if sys.argv[1:] != ['run']:
        # On a machine on which others work too everything takes longer.
        crowding = max(1, min({MOST_CROWDED}, os.getloadavg()[0] / len(os.sched_getaffinity(0))))
        try:
            sys.exit(subprocess.run([sys.executable, __file__, 'run'], timeout={limit} * crowding).returncode)
        except subprocess.TimeoutExpired:
            print({told})
            sys.exit(1)
    run(compiled=True)
    print('no bug: it answers')
"
        )
    }

    fn exit(&self, code: i32) -> String {
        let told = quote(&format!("bug: {}", self.told()));
        format!(
            "
    if sys.argv[1:] != ['run']:
        child = subprocess.run([sys.executable, __file__, 'run'], stdout=subprocess.PIPE)
        print(child.stdout.decode(errors='replace'), end='')
        if b'no bug' not in child.stdout and child.returncode == {code}:
            print({told})
            sys.exit(1)
        sys.exit(0 if b'no bug' in child.stdout else 2)
    run(compiled=True)
    print('no bug: it answers')
"
        )
    }

    fn fault(&self) -> String {
        let site = self.signature.and_then(|signature| signature.site.as_ref());
        let said = tuple(said_of_fault(site.map_or("", |site| site.kind.as_str())));
        let stage = match self.signature.map(|signature| signature.stage) {
            Some(Stage::Compile) => "compile",
            Some(Stage::Backward) => "backward",
            _ => "forward",
        };
        let told = self.told();
        // After a fault the process cannot even end as others do.
        format!(
            "
    # With CUDA_LAUNCH_BLOCKING=1 in the environment the error comes from the call that launches the kernel.
    try:
        run(compiled=True)
    except BaseException as error:
        compiling = any(c.__name__ in ('BackendCompilerFailed', 'InductorError') for c in type(error).__mro__)
        stage = 'compile' if compiling else getattr(run, 'stage', 'forward')
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        found = any(said in str(error) for said in {said}) and stage == '{stage}'
        print(f'bug: {told}: {{line}}' if found else f'another failure: {{stage}}: {{line}}', flush=True)
        os._exit(1 if found else 2)
    print('no bug: no kernel faults')
"
        )
    }

    fn memory(&self) -> String {
        if self.is_of_device() {
            return self.device_memory();
        }
        let limit =
            self.memory.map(|bytes| format!("    resource.setrlimit(resource.RLIMIT_DATA, ({bytes}, {bytes}))\n"));
        let told = self.told();
        format!(
            "
{limit}    try:
        run(compiled=True)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and 'memory' not in str(error):
            raise
        print(f'bug: {told}: {{(str(error).strip() or type(error).__name__).splitlines()[0]}}')
        sys.exit(1)
    print('no bug: the memory is enough')
",
            limit = limit.unwrap_or_default(),
        )
    }

    fn device_memory(&self) -> String {
        let limit = device_memory_limit().map(|bytes| {
            format!(
                "    for index in range(torch.cuda.device_count()):
        total = torch.cuda.get_device_properties(index).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, {bytes} / total), index)
"
            )
        });
        format!(
            "
{limit}    try:
        run(compiled=True)
    except torch.OutOfMemoryError as error:
        print(f'bug: {told}: {{(str(error).strip() or type(error).__name__).splitlines()[0]}}')
        sys.exit(1)
    print('no bug: the memory is enough')
",
            limit = limit.unwrap_or_default(),
            told = self.told(),
        )
    }

    /// How long a hang takes at least before it is one in a fresh process, where everything is compiled anew.
    fn allowance(&self) -> u64 {
        if self.base() == Some("inductor") { 60 } else { 15 }
    }

    fn difference(&self, class: Option<Class>) -> String {
        let all = class.is_none();
        let has = |part: Class| all || class == Some(part);
        let integers = self.signature.and_then(|signature| signature.site.as_ref()).is_some();
        let strict = self.accuracy == Accuracy::Strict;
        let mut text = String::new();
        let values = has(Class::Value) || has(Class::Mutation);
        if values && strict {
            text.push_str(SAME_BITS);
        } else if values {
            let tolerance = match self.tolerance {
                Some(tolerance) => format!("{tolerance:e}, {tolerance:e}"),
                None => TOLERANCES.to_owned(),
            };
            text.push_str(&CLOSE.replace("TOLERANCES", &tolerance));
        }
        if all {
            text.push_str(DESCRIBE);
        }
        text.push_str("\n    def differences(expected, actual):\n");
        if has(Class::Structure) {
            text.push_str(STRUCTURE);
        }
        text.push_str("        for name, want in expected.items():\n            have = actual.get(name)\n");
        text.push_str(
            "            if not (isinstance(want, torch.Tensor) and isinstance(have, torch.Tensor)):\n                continue\n",
        );
        if has(Class::Dtype) {
            text.push_str(DTYPE);
        }
        if has(Class::Shape) {
            text.push_str(SHAPE);
        }
        if has(Class::Stride) {
            text.push_str(STRIDE);
        }
        if values {
            let kind = match (all || strict || has(Class::Mutation), integers) {
                (true, _) => "True",
                (false, true) => "not (want.is_floating_point() or want.is_complex())",
                (false, false) => "want.is_floating_point() or want.is_complex()",
            };
            text.push_str(&VALUE.replace("KIND", kind));
        }
        if has(Class::Aliasing) {
            text.push_str(ALIASING);
        }
        let told = if all { "results differ".to_owned() } else { self.told() };
        if all {
            text.push_str(
                "
    expected = run(compiled=False)
    try:
        actual = run(compiled=True)
    except Exception as error:
        found, said = describe(error)
        print(f'bug: {found}: {said}')
        sys.exit(1)
",
            );
        } else {
            text.push_str("\n    expected, actual = run(compiled=False), run(compiled=True)\n");
        }
        let _ = write!(
            text,
            "    for found in differences(expected, actual):
        print({told} + found)
        sys.exit(1)
    print('no bug: the results are the same')
",
            told = quote(&format!("bug: {told}: ")),
        );
        text
    }
}

/// What CUDA's driver says of a fault.
fn said_of_fault(fault: &str) -> &'static [&'static str] {
    match fault {
        "illegal memory access" => {
            &["an illegal memory access was encountered", "operation not supported on global/shared address space"]
        }
        "misaligned address" => &["misaligned address"],
        "device-side assert" => &["device-side assert triggered"],
        "launch failure" => &["unspecified launch failure"],
        "illegal instruction" => &["an illegal instruction was encountered"],
        "invalid program counter" => &["invalid program counter"],
        "stack error" => &["hardware stack error"],
        "launch timeout" => &["the launch timed out and was terminated"],
        _ => &[],
    }
}

fn tuple(texts: &[&str]) -> String {
    format!("({},)", texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", "))
}

fn crash(signal: i32) -> String {
    let name = signal_name(signal);
    format!(
        "
    print('where the bug is there, the next call ends this process by signal {signal} ({name})', flush=True)
    try:
        run(compiled=True)
    except Exception as error:
        print(f'no bug: it raises {{type(error).__name__}} and lives')
    else:
        print('no bug: it answers')
"
    )
}

/// The name of a signal that ends processes.
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => "a signal",
    }
}

const TOLERANCES: &str = "{torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-6, 1e-5), \
                          torch.complex64: (1.3e-6, 1e-5)}.get(want.dtype, (1e-7, 1e-7))";

const PRECISION: &str = "
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = ALLOWED
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
";

const POISON: &str = "
    # Memory that generated code allocates begins as NaN, so that elements which are never written show.
    def poisoned(allocate):
        def allocated(*args):
            fresh = allocate(*args)
            rounds = fresh.is_floating_point() or fresh.is_complex()
            return fresh.fill_(float('nan') if rounds else True if fresh.dtype is torch.bool else torch.iinfo(fresh.dtype).max)
        return allocated

    for name in ('_empty_strided_cpu', '_empty_strided_cuda'):
        if hasattr(torch._C._dynamo.guards, name):
            setattr(torch._C._dynamo.guards, name, poisoned(getattr(torch._C._dynamo.guards, name)))
";

const PTXAS: &str = "
    # Triton's assembler optimises no more than this level.
    os.environ |= {'TRITON_ALWAYS_COMPILE': '1', 'DISABLE_PTXAS_OPT': str(int(LEVEL == 0))}
    import torch._inductor.config
    from triton.backends.nvidia.compiler import CUDABackend
    torch._inductor.config.compile_threads = 1
    parse = CUDABackend.parse_options
    CUDABackend.parse_options = lambda self, given: parse(self, given | ({'ptx_options': '--opt-level LEVEL'} if LEVEL else {}))
";

const KEPT: &str = "
    def kept(value):
        return [kept(item) for item in value] if isinstance(value, list) else \\
            value.clone() if isinstance(value, torch.Tensor) else value
";

/// A function `run` whose given call counts: the module is compiled once, and called so often on fresh inputs.
fn later_call(call: u32) -> String {
    format!(
        "
    made = {{}}

    def run(compiled):
        # The failure is one of call {call}.
        for _ in range({call}):
            left = call_once(compiled)
        return left
"
    )
}

const MADE: &str = "        if compiled not in made:
            mod = Repro()
            made[compiled] = mod, COMPILE if compiled else mod
        (mod, call), args = made[compiled], load()
        mod.zero_grad()
";

const WAIT: &str = "        torch.cuda.synchronize()
";

const BACKWARD: &str = "        for value in args:
            if isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf:
                value.retain_grad()
        run.stage = 'backward'
        tensors = [value.to_dense() for value in outputs if isinstance(value, torch.Tensor)]
        means = [value.mean().real for value in tensors
                 if (value.is_floating_point() or value.is_complex()) and value.dtype.itemsize > 1]
        loss = sum(means) / len(tensors) if means else None
        if loss is not None and loss.requires_grad:
            loss.backward()
";

const INPUTS: &str = "        left |= {f'input {k}': value for k, value in enumerate(args)}
        left |= {f'buffer {name}': value for name, value in mod.state_dict(keep_vars=True).items()}
";

const GRADIENTS: &str = "        grads = {f'gradient of input {k}': value for k, value in enumerate(args) if isinstance(value, torch.Tensor)}
        grads |= {f'gradient of {name}': value for name, value in mod.named_parameters()}
        left |= {name: value.grad for name, value in grads.items()}
";

const CLOSE: &str = "
    def close(want, have):
        if not (want.is_floating_point() or want.is_complex()):
            return want == have
        rtol, atol = TOLERANCES
        wide = torch.complex128 if want.is_complex() else torch.float64
        return torch.isclose(have.to(wide), want.to(wide), rtol=rtol, atol=atol, equal_nan=True)
";

const SAME_BITS: &str = "
    def close(want, have):
        return (want == have) | (want.isnan() & have.isnan())
";

const STRUCTURE: &str =
    "        sparse = lambda value: isinstance(value, torch.Tensor) and value.layout != torch.strided
        meta = lambda value: isinstance(value, torch.Tensor) and value.is_meta
        kind = lambda value: type(value).__name__ + (f' of {value.layout}' if sparse(value) else ' on meta' if meta(value) else '')
        kinds = [{name: kind(value) for name, value in left.items()} for left in (expected, actual)]
        for name in kinds[0] | kinds[1]:
            want, have = kinds[0].get(name, 'nothing'), kinds[1].get(name, 'nothing')
            if want != have:
                yield f'{name} is a {want} in eager, a {have} compiled'
";

const DTYPE: &str = "            if want.dtype != have.dtype:
                yield f'{name} has the dtype {want.dtype} in eager, {have.dtype} compiled'
";

const SHAPE: &str = "            if want.shape != have.shape:
                yield f'{name} has the shape {tuple(want.shape)} in eager, {tuple(have.shape)} compiled'
";

const STRIDE: &str =
    "            strides = [[s for s, size in zip(t.stride(), t.shape) if size > 1] for t in (want, have)]
            if want.shape == have.shape and want.numel() > 1 and strides[0] != strides[1]:
                yield f'{name} has the strides {want.stride()} in eager, {have.stride()} compiled'
";

const VALUE: &str = "            if want.shape == have.shape and (KIND):
                want, have = (t.detach().to_dense().resolve_conj().resolve_neg() for t in (want, have))
                wrong = ~close(want, have)
                if wrong.any():
                    place = tuple(wrong.nonzero()[0].tolist())
                    yield f'{name}{list(place)} is {want[place].item()} in eager, {have[place].item()} compiled'
";

const ALIASING: &str = "
        def sharing(left):
            first = {}
            for name, value in left.items():
                if isinstance(value, torch.Tensor) and value.numel() and not name.startswith('gradient'):
                    start = value.storage_offset() * value.element_size()
                    owner, base = first.setdefault(value.untyped_storage()._cdata, (name, start))
                    yield name, f'{start - base} bytes after {owner}'

        shared, found = dict(sharing(expected)), dict(sharing(actual))
        for name in shared:
            if shared[name] != found.get(name):
                yield f'{name} lies {shared[name]} in eager, {found.get(name)} compiled'
";

const DESCRIBE: &str = "
    def describe(error):
        compiling = any(c.__name__ in ('BackendCompilerFailed', 'InductorError') for c in type(error).__mro__)
        inner = getattr(error, 'inner_exception', None) or error
        frames = traceback.extract_tb(inner.__traceback__) or traceback.extract_tb(error.__traceback__)
        file = os.path.basename(frames[-1].filename)
        if frames[-1].filename == __file__:
            file = 'the program'
        elif file.startswith('<') or re.fullmatch(r'c[a-z2-7]{40,}\\.py', file):
            file = 'generated code'
        stage = 'compile' if compiling else getattr(run, 'stage', 'forward')
        try:
            said = (str(inner) or str(error)).encode('utf-8', 'replace').decode().strip() or 'nothing'
        except Exception:
            said = 'nothing'
        complaints = [line for line in said.splitlines() if ' error: ' in line]
        line = (complaints or said.splitlines())[0]
        return f'{stage}: error {type(inner).__name__} at {frames[-1].name} in {file}', line
";
