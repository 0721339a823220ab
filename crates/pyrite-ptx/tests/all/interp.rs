//! The interpreter on texts written by hand.

#![expect(unsafe_code, reason = "kernels work on raw memory")]

use pyrite_ptx::Launch;
use pyrite_ptx::interp::{Module, Region, Trap};

/// A module of one entry with a parameter, the address of a buffer, in `%d0`.
fn module(body: &str) -> Module {
    let text = format!(
        ".version 7.4\n.target sm_80\n.address_size 64\n\n.visible .entry k(\n    .param .u64 a0\n)\n{{\n    \
         .shared .align 8 .b8 shared[256];\n    .reg .pred %p<8>;\n    .reg .b16 %h<8>;\n    .reg .b32 %r<8>;\n    .reg .b64 %d<8>;\n    \
         ld.param.u64 %d0, [a0];\n    mov.u32 %r0, %tid.x;\n    cvt.u64.u32 %d1, %r0;\n{body}\n    ret;\n}}\n"
    );
    Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(module: &Module, block: u32, memory: &mut [u64]) -> Result<(), Trap> {
    let start = memory.as_mut_ptr().addr() as u64;
    let launch = Launch { entry: "k".into(), grid: 1, block, params: vec![start], rows_at_once: 1 };
    let regions = [Region { start, bytes: size_of_val(memory) as u64, writable: true }];
    // SAFETY: the region is the buffer.
    unsafe { module.run(&launch, &regions) }
}

#[test]
fn every_thread_writes_its_number() {
    let module = module("mad.lo.s64 %d2, %d1, 8, %d0;\nst.global.b64 [%d2], %d1;");
    let mut memory = vec![99; 64];
    run(&module, 64, &mut memory).unwrap();
    assert_eq!(memory, (0..64).collect::<Vec<u64>>());
}

#[test]
fn a_write_behind_the_last_element_names_the_byte() {
    let module = module("mad.lo.s64 %d2, %d1, 8, %d0;\nst.global.b64 [%d2], %d1;");
    let trap = run(&module, 64, &mut [0; 63]).unwrap_err();
    assert_eq!(trap.thread, 63);
    assert!(trap.what.contains("byte 504 of the nearest buffer, which has 504 bytes"), "{trap}");
}

#[test]
fn two_threads_that_write_one_place_race() {
    let trap = run(&module("st.global.b64 [%d0], %d1;"), 32, &mut [0]).unwrap_err();
    assert!(trap.what.contains("race"), "{trap}");
    // Atomic additions do not.
    let mut memory = [5];
    run(&module("red.global.add.u64 [%d0], %d1;"), 32, &mut memory).unwrap();
    assert_eq!(memory, [5 + 31 * 16]);
}

#[test]
fn shared_memory_is_seen_by_others_behind_a_barrier_only() {
    let reads = "shl.b32 %r1, %r0, 2;\nst.shared.b32 [%r1], %r0;\nBARRIER\nxor.b32 %r2, %r1, 4;\nld.shared.b32 %r3, [%r2];\n\
                 mad.lo.s64 %d2, %d1, 4, %d0;\nst.global.b32 [%d2], %r3;";
    let trap = run(&module(&reads.replace("BARRIER\n", "")), 32, &mut [0; 16]).unwrap_err();
    assert!(trap.what.contains("race in shared memory"), "{trap}");
    let mut memory = [0; 16];
    run(&module(&reads.replace("BARRIER", "bar.sync 0;")), 32, &mut memory).unwrap();
    assert_eq!(memory[0], 1, "the first word has the numbers of threads 1 and 0");
}

#[test]
fn branches_meet_again_where_the_text_goes_on() {
    let body = "setp.lt.u32 %p0, %r0, 7;\nmov.b32 %r1, 1;\n@%p0 bra L0;\nmov.b32 %r1, 2;\nL0:\n\
                shfl.sync.idx.b32 %r2, %r1, 31, 31, 0xffffffff;\nmad.lo.s64 %d2, %d1, 4, %d0;\nst.global.b32 [%d2], %r2;";
    let mut memory = [0; 16];
    run(&module(body), 32, &mut memory).unwrap();
    assert_eq!(memory, [2 + (2 << 32); 16]);
}

#[test]
fn a_loop_that_does_not_end_for_some_lanes_waits_for_nobody() {
    // Each lane counts to its own number.
    let body = "mov.b32 %r1, 0;\nL0:\nsetp.ge.u32 %p0, %r1, %r0;\n@%p0 bra L1;\nadd.s32 %r1, %r1, 1;\nbra L0;\nL1:\n\
                mad.lo.s64 %d2, %d1, 4, %d0;\nst.global.b32 [%d2], %r1;";
    let mut memory = [0; 16];
    run(&module(body), 32, &mut memory).unwrap();
    assert_eq!(memory[15], 30 + (31 << 32));
}

#[test]
fn an_address_that_is_no_multiple_is_refused() {
    let trap = run(&module("add.s64 %d2, %d0, 4;\nld.global.b64 %d3, [%d2];"), 1, &mut [0; 4]).unwrap_err();
    assert!(trap.what.contains("no multiple"), "{trap}");
}

#[test]
fn what_is_not_emitted_is_not_read() {
    for (line, message) in [
        ("ex2.approx.f32 %r0, %r1;", "there is no instruction ex2.approx.f32"),
        ("add.rn.f32 %r0, %r1, %r9;", "register %r9 is not declared"),
        ("bra L7;", "there is no label L7"),
        ("add.s32 %r0, %r1, %r2", "expected `;`"),
    ] {
        let text = format!(".visible .entry k(\n)\n{{\n    .reg .b32 %r<4>;\n    {line}\n}}\n");
        let error = Module::parse(&text).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!(error.line, 5);
    }
}
