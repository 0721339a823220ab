//! Every error path of the driver, by one that is told to fail.

#![expect(unsafe_code, reason = "the driver is a C library")]

mod fake;

use std::ffi::CStr;

use pyrite_cuda::{Context, CudaError, FUNCTIONS, Grid, Result};

const TEXT: &str = ".version 7.4\n.target sm_80\n.visible .entry one(.param .u64 a0) { ret; }\n";

fn context() -> Result<Context> {
    fake::driver(None)?.device(0)?.context()
}

/// Everything that can be done, in order.
fn everything() -> Result<()> {
    let context = context()?;
    let image = context.assemble(TEXT, "a kernel")?;
    let module = context.load(&image, "a kernel")?;
    let function = module.function("one")?;
    let stream = context.stream()?;
    let before = stream.event()?;
    let memory = stream.allocate(24)?;
    memory.write(&[1, 2, 3])?;
    let pinned = context.pinned(8)?;
    // SAFETY: the launch is only noted down.
    unsafe { stream.launch(&function, "one", Grid { blocks: 3, threads: 32 }, &[memory.address()])? };
    stream.wait_for("one")?;
    let mut bytes = [0; 3];
    memory.read(&mut bytes)?;
    assert_eq!(bytes, [1, 2, 3]);
    assert_eq!(pinned.take(0), 0);
    assert_eq!(stream.event()?.seconds_since(&before)?, 0.002);
    Ok(())
}

#[test]
fn everything_works_and_is_given_back() {
    let _alone = fake::fresh();
    everything().unwrap();
    let state = fake::state();
    assert_eq!(state.launched.len(), 1);
    assert_eq!((state.launched[0].entry.as_str(), state.launched[0].grid), ("one", (3, 32)));
    assert_eq!(state.pieces(), 0, "memory is left");
    assert_eq!(state.alive, 1, "only the primary context is kept");
}

#[test]
fn each_function_that_fails_is_an_error_that_names_it_and_leaves_nothing_behind() {
    /// These only end things or give words, so their failure is not told.
    const SILENT: &[&str] = &[
        "cuGetErrorName",
        "cuGetErrorString",
        "cuDevicePrimaryCtxRelease_v2",
        "cuModuleUnload",
        "cuLinkDestroy",
        "cuStreamDestroy_v2",
        "cuMemFreeAsync",
        "cuMemFreeHost",
        "cuEventDestroy_v2",
    ];
    let _alone = fake::fresh();
    for name in FUNCTIONS.iter().filter_map(|name| name.to_str().ok()) {
        *fake::state() = fake::State::default();
        fake::state().fails = Some((name, 719));
        let done = everything();
        if SILENT.contains(&name) {
            assert_eq!(done, Ok(()), "{name}");
            continue;
        }
        let error = done.expect_err(name);
        let refused = ["cuLinkAddData_v2", "cuLinkComplete", "cuModuleLoadDataEx"].contains(&name);
        let text = error.to_string();
        assert!(refused && matches!(error, CudaError::Refused { .. }) || text.contains(name), "{name}: {text}");
        assert!(text.contains("719") && text.contains("CUDA_ERROR_PLANTED"), "{name}: {text}");
        assert!(!error.remedy().is_empty());
        let state = fake::state();
        assert_eq!(state.pieces(), 0, "{name} leaves memory");
        assert!(state.alive <= 1, "{name} leaves {} things", state.alive);
    }
}

#[test]
fn each_function_that_is_missing_is_named_with_a_remedy() {
    let _alone = fake::fresh();
    for name in FUNCTIONS {
        let name = name.to_str().unwrap();
        let error = fake::driver(Some(name)).map(|_| ()).expect_err(name);
        assert_eq!(error, CudaError::NoFunction(name.to_owned()));
        assert!(error.remedy().contains("driver"));
    }
}

#[test]
fn a_launch_that_fails_names_its_kernel() {
    let _alone = fake::fresh();
    fake::state().fails = Some(("cuLaunchKernel", 701));
    let error = everything().unwrap_err();
    assert!(error.to_string().starts_with("cuLaunchKernel failed for one"), "{error}");
}

#[test]
fn what_the_assembler_says_is_in_the_error() {
    let _alone = fake::fresh();
    let error = context().unwrap().assemble("nonsense", "softmax").unwrap_err();
    assert!(error.to_string().contains("softmax") && error.to_string().contains("ptxas fatal"), "{error}");
}

#[test]
fn an_old_driver_an_old_device_and_a_missing_device_are_errors_with_remedies() {
    let _alone = fake::fresh();
    fake::state().version = 11_040;
    let old = fake::driver(None).map(|_| ()).unwrap_err();
    assert_eq!(old.to_string(), "the CUDA driver is of CUDA 11.4, CUDA 12.0 is needed");
    fake::state().version = 12_000;
    let wrong = fake::driver(None).unwrap().device(2).map(|_| ()).unwrap_err();
    assert_eq!(wrong.to_string(), "there is no device cuda:2; the driver sees 2");
    assert_eq!(wrong.remedy(), "name a device from cuda:0 to cuda:1");
    fake::state().capability = (7, 5);
    let turing = context().map(|_| ()).unwrap_err();
    assert_eq!(turing.to_string(), "Fake GPU has compute capability 7.5, 8.0 is needed");
    fake::state().devices = 0;
    let none = fake::driver(None).unwrap().device(0).map(|_| ()).unwrap_err();
    assert!(none.remedy().contains("nvidia-smi"));
}

/// A launch that does what no launch should.
fn faults(_: &str, _: &fake::Launched, _: &[(u64, u64)]) -> std::result::Result<(), i32> {
    Err(700)
}

#[test]
fn a_fault_of_a_kernel_is_told_when_its_stream_is_waited_for() {
    let _alone = fake::fresh();
    fake::execute_by(faults);
    let error = everything().unwrap_err();
    assert!(error.to_string().starts_with("cuStreamSynchronize failed for one"), "{error}");
    assert!(error.remedy().contains("started again"));
}

#[test]
fn names_of_functions_end_where_they_should() {
    assert!(FUNCTIONS.iter().all(|name: &&CStr| name.to_str().is_ok_and(|name| name.starts_with("cu"))));
}

#[test]
fn a_machine_without_the_library_is_an_error_with_a_remedy() {
    // Where there is a GPU the driver is found instead.
    if let Err(error) = pyrite_cuda::Driver::get() {
        assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
    }
}
