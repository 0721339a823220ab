//! `TorchGenerator` against numbers that PyTorch 2.15 gave on the CPU.
//!
//! Each row is one call on a fresh generator; per seed it holds the bits of the first three elements and of the last
//! one. What goes through the C library may differ by two units in the last place, because that library may be
//! another one; everything else must agree exactly.

use pyrite_tensor::random::{Replacement, TorchGenerator};
use pyrite_tensor::{DType, Tensor, dispatch};

const SEEDS: [u64; 4] = [0, 1, 42, (1 << 63) + 5];

/// The elements' bits, widened.
fn bits(tensor: &Tensor) -> Vec<u64> {
    let size = tensor.dtype().size();
    let bytes = dispatch!(tensor.dtype(), T => pyrite_tensor::Storage::from_slice(&tensor.to_vec::<T>()).to_bytes());
    bytes.chunks(size).map(|b| b.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))).collect()
}

fn draw(call: &str, dtype: DType, seed: u64) -> Tensor {
    let mut generator = TorchGenerator::new(seed);
    let elements = if call == "long_normal" { 37 } else { 9 };
    let out = Tensor::empty(&[elements], dtype).unwrap();
    let weights = Tensor::from_slice(&[1.0f32, 2., 3., 4., 5., 6., 7., 7., 6., 5., 4., 3., 2., 1.], &[2, 7]);
    let odds: Vec<f64> = (0..9u8).map(|i| f64::from(i) / 8.0).collect();
    match call {
        "uniform" => generator.uniform(&out, -0.3, 0.7),
        "short_normal" | "long_normal" => generator.normal(&out, 0.37, 1.9),
        "small_range" => generator.random_range(&out, 3, 200),
        "wide_range" => generator.random_range(&out, -5, 1 << 28),
        "random" => generator.random_full(&out),
        "permutation" => return Tensor::from_slice(&generator.permutation(11), &[11]),
        "bernoulli" => generator.bernoulli_scalar(&out, 0.4),
        "bernoulli_each" => generator.bernoulli_tensor(&out, &Tensor::from_slice(&odds, &[9]).cast(dtype)),
        "dropout" => generator.dropout_factors(&out, 0.3),
        "exponential" => generator.exponential(&out, 2.3),
        "cauchy" => generator.cauchy(&out, 0.3, 2.1),
        "log_normal" => generator.log_normal(&out, 0.3, 0.21),
        "geometric" => generator.geometric(&out, 0.2),
        "multinomial_with" => return generator.multinomial(&weights, 5, Replacement::With).unwrap(),
        "multinomial_without" => return generator.multinomial(&weights, 5, Replacement::Without).unwrap(),
        other => panic!("no call {other}"),
    }
    .unwrap();
    out
}

fn through_the_c_library(call: &str, dtype: DType) -> bool {
    matches!(call, "short_normal" | "exponential" | "cauchy" | "log_normal")
        || (call == "long_normal" && dtype == DType::F64)
}

#[test]
fn every_call_gives_the_numbers_of_pytorch() {
    for (call, dtype, expected) in vectors() {
        for (seed, expected) in SEEDS.into_iter().zip(expected) {
            let got = bits(&draw(call, dtype, seed));
            let got = [got[0], got[1], got[2], got[got.len() - 1]];
            let slack = if through_the_c_library(call, dtype) { 2 } else { 0 };
            let close = got.iter().zip(expected).all(|(g, e)| g.abs_diff(e) <= slack);
            assert!(close, "{call} of {dtype} with seed {seed}: {got:x?}, PyTorch gave {expected:x?}");
        }
    }
}

#[test]
fn calls_share_the_state_of_the_generator() {
    let mut generator = TorchGenerator::new(42);
    let short = Tensor::empty(&[3], DType::F32).unwrap();
    // The second number of the last pair is kept, and the next call begins with it.
    generator.normal(&short, 0.0, 1.0).unwrap();
    let rest = Tensor::empty(&[1], DType::F32).unwrap();
    generator.normal(&rest, 0.0, 1.0).unwrap();
    let all = Tensor::empty(&[4], DType::F32).unwrap();
    TorchGenerator::new(42).normal(&all, 0.0, 1.0).unwrap();
    assert_eq!(all.to_f64s()[..3], short.to_f64s());
    assert_eq!(all.to_f64s()[3..], rest.to_f64s());
}

#[test]
fn only_the_low_half_of_a_seed_counts() {
    assert_eq!(TorchGenerator::new(7).next_u64(), TorchGenerator::new(7 + (1 << 32)).next_u64());
    assert_eq!(TorchGenerator::new(7).seed(), 7);
}

#[test]
fn a_complex_tensor_is_filled_part_by_part() {
    let complex = Tensor::empty(&[20], DType::C64).unwrap();
    TorchGenerator::new(1).normal(&complex, 0.0, 1.0).unwrap();
    let real = Tensor::empty(&[40], DType::F32).unwrap();
    TorchGenerator::new(1).normal(&real, 0.0, 0.5f64.sqrt()).unwrap();
    let parts: Vec<f64> = complex.to_c128s().iter().flat_map(|v| [v.re, v.im]).collect();
    assert_eq!(parts, real.to_f64s());
}

#[test]
fn types_without_the_distribution_are_refused() {
    let whole = Tensor::empty(&[4], DType::I64).unwrap();
    let mut generator = TorchGenerator::new(0);
    let message = generator.normal(&whole, 0.0, 1.0).unwrap_err().to_string();
    assert_eq!(message, "normal_ cannot fill a tensor of type i64");
    assert!(generator.uniform(&whole, 0.0, 1.0).is_err());
    let float = Tensor::empty(&[4], DType::F16).unwrap();
    assert!(generator.uniform(&float, 0.0, 1e6).is_err());
    assert!(generator.uniform(&float, 1.0, 0.0).is_err());
    assert!(generator.normal(&float, 0.0, -1.0).is_err());
    assert!(generator.multinomial(&float, 9, Replacement::Without).is_err());
}

type Row = (&'static str, DType, [[u64; 4]; 4]);

fn vectors() -> Vec<Row> {
    vec![
        (
            "uniform",
            DType::F32,
            [
                [0x3e48_f77c, 0x3eef_bac4, 0xbe58_9960, 0x3e1f_5cf0],
                [0x3eea_4eb0, 0xbca9_7c40, 0x3dd3_15f8, 0x3e89_fd04],
                [0x3f15_0f99, 0x3f1d_70e6, 0x3da9_b478, 0x3f24_0999],
                [0x3f07_be96, 0xbe32_0ffc, 0x3f1b_8322, 0xbe88_918a],
            ],
        ),
        (
            "uniform",
            DType::F64,
            [
                [0x3fe5_7112_fe2b_1096, 0x3fda_19b8_7d10_664d, 0x3fc4_66a9_0822_e586, 0x3fd2_017d_5866_67e5],
                [0xbfce_95ce_6948_62ba, 0xbfb3_5065_56ec_2a8c, 0xbfb0_d4d3_c666_b084, 0x3fd1_e7da_abcb_c6ff],
                [0xbfce_f4cb_36bd_6f9a, 0xbfce_58f5_aa90_122e, 0xbfc6_94bb_47ff_154a, 0xbfcb_b4d9_d41a_b8ca],
                [0x3fd5_e392_e90d_5e69, 0xbfa4_9a9c_4c7b_2dc8, 0x3faf_24cc_3844_2dc8, 0x3fe1_846e_640c_d732],
            ],
        ),
        (
            "uniform",
            DType::F16,
            [
                [0x3248, 0x377e, 0xb2c5, 0x30fb],
                [0x3752, 0xa54c, 0x2e99, 0x3450],
                [0x38a8, 0x38ec, 0x2d4e, 0x3920],
                [0x383e, 0xb190, 0x38dc, 0xb445],
            ],
        ),
        (
            "uniform",
            DType::BF16,
            [
                [0x3e49, 0x3ef0, 0xbe59, 0x3e1f],
                [0x3eea, 0xbca9, 0x3dd3, 0x3e8a],
                [0x3f15, 0x3f1d, 0x3daa, 0x3f24],
                [0x3f08, 0xbe32, 0x3f1c, 0xbe89],
            ],
        ),
        (
            "short_normal",
            DType::F32,
            [
                [0x4053_10ac, 0xbe40_03e9, 0xc071_42c3, 0xbf7f_207c],
                [0x3fd0_336b, 0x3f60_8d48, 0x3ef9_708c, 0xbfca_8dee],
                [0x3f81_3e3b, 0x3f1d_5f76, 0x3f50_c333, 0x3f9f_a292],
                [0xbf0e_0cd7, 0xbf46_fa94, 0xbf30_bcee, 0x3fc8_df00],
            ],
        ),
        (
            "short_normal",
            DType::F64,
            [
                [0x400a_6215_84b8_5dad, 0xbfc8_007d_2a7c_b383, 0xc00e_2858_61e1_4023, 0xbfef_e40f_7394_76c4],
                [0x3ffa_066d_590c_8b2e, 0x3fec_11a9_0333_9fbd, 0x3fdf_2e11_8138_e6ad, 0xbff9_51bd_b0e6_be0f],
                [0x3ff0_27c7_6d75_6c33, 0x3fe3_abee_c0c7_5ae9, 0x3fea_1866_58d9_b40f, 0x3ff3_f452_37a5_fd8b],
                [0xbfe1_c19a_e328_ff74, 0xbfe8_df52_7f0c_4278, 0xbfe6_179d_c02b_6681, 0x3ff9_1be0_0e65_0b60],
            ],
        ),
        (
            "short_normal",
            DType::F16,
            [
                [0x4299, 0xb200, 0xc38a, 0xbbf9],
                [0x3e82, 0x3b04, 0x37cc, 0xbe54],
                [0x3c0a, 0x38eb, 0x3a86, 0x3cfd],
                [0xb870, 0xba38, 0xb986, 0x3e47],
            ],
        ),
        (
            "short_normal",
            DType::BF16,
            [
                [0x4053, 0xbe40, 0xc071, 0xbf7f],
                [0x3fd0, 0x3f61, 0x3ef9, 0xbfcb],
                [0x3f81, 0x3f1d, 0x3f51, 0x3fa0],
                [0xbf0e, 0xbf47, 0xbf31, 0x3fc9],
            ],
        ),
        (
            "long_normal",
            DType::F32,
            [
                [0xbfe2_71ba, 0xbfe8_e4dd, 0xbdd9_4a96, 0xbf1d_4586],
                [0xc021_d51c, 0xbf87_18ac, 0xbf5f_6056, 0xbf81_bdd8],
                [0x4080_ff17, 0x404c_88a3, 0x4005_350c, 0x4027_0a5a],
                [0x4077_b512, 0x3fad_8da9, 0xc038_7d58, 0x402e_abc5],
            ],
        ),
        (
            "long_normal",
            DType::F64,
            [
                [0xc010_1441_d7c3_6309, 0xbfd5_b511_ec37_1f08, 0xbffa_542e_0212_78ee, 0x4004_82e9_f955_3c37],
                [0xbfcc_587a_8654_baea, 0xbfef_8322_3714_986e, 0xbff0_3e61_473a_3307, 0x3ff5_d7a1_6768_7b70],
                [0x3fee_0d92_de7f_e966, 0x3fea_939a_1214_8c7d, 0x3fed_0f1b_407a_e097, 0x400a_d106_5d74_43ac],
                [0x3ffe_f4e1_cb68_a264, 0xbff0_a403_8ce6_32fb, 0xbfe8_4d1a_f557_66a2, 0xbff3_e75e_a29e_461d],
            ],
        ),
        (
            "long_normal",
            DType::F16,
            [
                [0xbf14, 0xbf47, 0xaeca, 0xc14a],
                [0xc10f, 0xbc39, 0xbafb, 0xba9d],
                [0x4408, 0x4264, 0x402a, 0xb875],
                [0x43be, 0x3d6c, 0xc1c4, 0xc1b6],
            ],
        ),
        (
            "long_normal",
            DType::BF16,
            [
                [0xbfe2, 0xbfe9, 0xbdd9, 0xc029],
                [0xc022, 0xbf87, 0xbf5f, 0xbf54],
                [0x4081, 0x404d, 0x4005, 0xbf0f],
                [0x4078, 0x3fae, 0xc038, 0xc037],
            ],
        ),
        (
            "small_range",
            DType::I64,
            [[0x76, 0xc1, 0x77, 0x5c], [0x13, 6, 0xaf, 0x12], [0xa1, 0x24, 0x6f, 0x2c], [9, 0x68, 0x83, 0x71]],
        ),
        (
            "small_range",
            DType::I32,
            [[0x76, 0xc1, 0x77, 0x5c], [0x13, 6, 0xaf, 0x12], [0xa1, 0x24, 0x6f, 0x2c], [9, 0x68, 0x83, 0x71]],
        ),
        (
            "small_range",
            DType::U8,
            [[0x76, 0xc1, 0x77, 0x5c], [0x13, 6, 0xaf, 0x12], [0xa1, 0x24, 0x6f, 0x2c], [9, 0x68, 0x83, 0x71]],
        ),
        (
            "small_range",
            DType::F32,
            [
                [0x42ec_0000, 0x4341_0000, 0x42ee_0000, 0x42b8_0000],
                [0x4198_0000, 0x40c0_0000, 0x432f_0000, 0x4190_0000],
                [0x4321_0000, 0x4210_0000, 0x42de_0000, 0x4230_0000],
                [0x4110_0000, 0x42d0_0000, 0x4303_0000, 0x42e2_0000],
            ],
        ),
        (
            "wide_range",
            DType::I64,
            [
                [0x0011_61f3, 0x010d_d9c9, 0x030a_5cd4, 0x0dfc_aa0d],
                [0x02ab_3f74, 0x0e7d_4a3f, 0x0e75_13cf, 0x01b3_4cd5],
                [0x0555_66ed, 0x0054_9fff, 0x085d_8533, 0x0dbd_1b72],
                [0x0bb4_bf65, 0x0c39_018e, 0x0382_29a0, 0x0f2d_15b8],
            ],
        ),
        ("random", DType::Bool, [[0, 1, 1, 1], [1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0]]),
        (
            "random",
            DType::U8,
            [[0xac, 0x2f, 0x75, 9], [0x25, 0xeb, 0x8c, 0x4f], [0x66, 0xb3, 0x5c, 0x66], [0x63, 0xce, 0xef, 8]],
        ),
        (
            "random",
            DType::I8,
            [[0x2c, 0x2f, 0x75, 9], [0x25, 0x6b, 0xc, 0x4f], [0x66, 0x33, 0x5c, 0x66], [0x63, 0x4e, 0x6f, 8]],
        ),
        (
            "random",
            DType::I16,
            [
                [0xaac, 0x2a2f, 0x2675, 0x2409],
                [0x7425, 0xeb, 0x2f8c, 0x4b4f],
                [0x5c66, 0x3db3, 0x35c, 0x5666],
                [0xb63, 0x48ce, 0x4fef, 0x408],
            ],
        ),
        (
            "random",
            DType::I32,
            [
                [0x0c7f_0aac, 0x17c4_aa2f, 0x3716_a675, 0x6c74_a409],
                [0x6ac1_f425, 0x7f47_80eb, 0x3867_2f8c, 0x2591_cb4f],
                [0x5fe1_dc66, 0x4bea_3db3, 0x7362_035c, 0x27f0_d666],
                [0x38d4_8b63, 0x0e20_48ce, 0x5ee8_4fef, 0x7d08_8408],
            ],
        ),
        (
            "random",
            DType::I64,
            [
                [0x0c7f_0aac_97c4_aa2f, 0x3716_a675_d821_ccc0, 0x1a4e_b343_dba2_52fb, 0x76b2_9a58_45cc_cd8c],
                [0x6ac1_f425_ff47_80eb, 0x3867_2f8c_eebc_1448, 0x0007_7eff_20cc_c389, 0x6592_8d86_ef7f_7d19],
                [0x5fe1_dc66_cbea_3db3, 0x7362_035c_2ef5_950e, 0x3b63_f46a_c799_d447, 0x19e2_ac63_2492_eb67],
                [0x38d4_8b63_0e20_48ce, 0x5ee8_4fef_d4d1_e6bd, 0x34eb_8be6_5d1d_dc76, 0x4bfb_1e07_fda6_70cc],
            ],
        ),
        (
            "random",
            DType::F16,
            [
                [0x64fd, 0x63f2, 0x667d, 0x6727],
                [0x6592, 0x63f0, 0x6588, 0x5eb0],
                [0x5ea8, 0x6336, 0x61d2, 0x5b58],
                [0x5ed4, 0x64fe, 0x6661, 0x64ec],
            ],
        ),
        (
            "random",
            DType::BF16,
            [
                [0x4315, 0x4333, 0x423c, 0x42dc],
                [0x4309, 0x4334, 0x4140, 0x4371],
                [0x4140, 0x4315, 0x4349, 0x42b2],
                [0x42e8, 0x4318, 0x432a, 0x4180],
            ],
        ),
        (
            "random",
            DType::F32,
            [
                [0x4afe_1440, 0x4b44_a998, 0x49b5_2df0, 0x4ae9_473a],
                [0x4b41_f3bb, 0x4a8e_ffd8, 0x4ace_5da8, 0x4b11_cb2a],
                [0x4b61_dc07, 0x4b6a_3ce8, 0x4ac4_04d2, 0x4b70_d63f],
                [0x4b54_8b2b, 0x4a01_2300, 0x4b68_4f11, 0x4908_38b0],
            ],
        ),
        (
            "random",
            DType::F64,
            [
                [0x433f_0aac_97c4_a5cc, 0x4336_a675_d821_c708, 0x432d_6687_b744_9c52, 0x4332_9a58_45cc_c5d7],
                [0x42ff_425f_f477_d950, 0x431c_be33_baf0_3a14, 0x431d_fbfc_8333_0e24, 0x4332_8d86_ef7f_79ed],
                [0x42fd_c66c_bea3_ab40, 0x4300_1ae1_77ac_6b98, 0x430f_a356_3cce_7360, 0x4305_6319_2497_34c0],
                [0x4334_8b63_0e20_4708, 0x4320_9fdf_a9a3_bf8c, 0x4327_17cc_ba3b_b59e, 0x433b_1e07_fda6_6e6d],
            ],
        ),
        ("permutation", DType::I64, [[0xa, 0, 4, 6], [0, 0xa, 2, 5], [6, 8, 9, 4], [9, 5, 0, 4]]),
        ("bernoulli", DType::Bool, [[0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 1, 0]]),
        (
            "bernoulli",
            DType::F32,
            [
                [0, 0, 0, 0],
                [0x3f80_0000, 0x3f80_0000, 0x3f80_0000, 0],
                [0x3f80_0000, 0x3f80_0000, 0x3f80_0000, 0x3f80_0000],
                [0, 0x3f80_0000, 0x3f80_0000, 0],
            ],
        ),
        (
            "bernoulli_each",
            DType::F32,
            [[0, 0, 0x3f80_0000, 0x3f80_0000], [0, 0, 0, 0x3f80_0000], [0, 0, 0, 0x3f80_0000], [0, 0, 0, 0x3f80_0000]],
        ),
        (
            "bernoulli_each",
            DType::F64,
            [
                [0, 0, 0, 0x3ff0_0000_0000_0000],
                [0, 0, 0x3ff0_0000_0000_0000, 0x3ff0_0000_0000_0000],
                [0, 0x3ff0_0000_0000_0000, 0x3ff0_0000_0000_0000, 0x3ff0_0000_0000_0000],
                [0, 0, 0, 0x3ff0_0000_0000_0000],
            ],
        ),
        (
            "dropout",
            DType::F32,
            [
                [0, 0, 0x3fb6_db6e, 0x3fb6_db6e],
                [0x3fb6_db6e, 0x3fb6_db6e, 0x3fb6_db6e, 0x3fb6_db6e],
                [0x3fb6_db6e, 0x3fb6_db6e, 0x3fb6_db6e, 0x3fb6_db6e],
                [0x3fb6_db6e, 0x3fb6_db6e, 0x3fb6_db6e, 0],
            ],
        ),
        (
            "dropout",
            DType::BF16,
            [
                [0, 0, 0x3fb7, 0x3fb7],
                [0x3fb7, 0x3fb7, 0x3fb7, 0x3fb7],
                [0x3fb7, 0x3fb7, 0x3fb7, 0x3fb7],
                [0x3fb7, 0x3fb7, 0x3fb7, 0],
            ],
        ),
        (
            "exponential",
            DType::F32,
            [
                [0x3fc3_3ef8, 0x3f08_f27a, 0x3e88_ea07, 0x3ec1_d335],
                [0x3ce0_6092, 0x3de2_7406, 0x3ded_a8d8, 0x3ec0_fe9f],
                [0x3cd5_65e9, 0x3ce7_6d93, 0x3d6a_ed34, 0x3d1b_5d30],
                [0x3ee4_ad8e, 0x3e05_e95f, 0x3e47_4559, 0x3f51_41af],
            ],
        ),
        (
            "cauchy",
            DType::F32,
            [
                [0x41b4_711d, 0x3ff3_f82d, 0x3cfa_70d6, 0x3f59_3fb5],
                [0xc128_3990, 0xc00a_9be0, 0xc001_33c8, 0x3f56_6df3],
                [0xc131_0f40, 0xc122_fd05, 0xc09a_b210, 0xc0f0_8893],
                [0x3fa6_f8e8, 0xbfd6_67ad, 0xbf2e_785b, 0x408a_e1cc],
            ],
        ),
        (
            "log_normal",
            DType::F32,
            [
                [0x3fee_cd99, 0x3fa2_74dc, 0x3f5a_af53, 0x3f94_8f41],
                [0x3fc6_865c, 0x3fb6_be60, 0x3faf_08ce, 0x3f8b_3ea1],
                [0x3fb9_70d3, 0x3fb1_84fb, 0x3fb5_808b, 0x3fbe_5f25],
                [0x3f9b_fe04, 0x3f98_3475, 0x3f99_ac69, 0x3fc5_45b6],
            ],
        ),
        (
            "exponential",
            DType::F64,
            [
                [0x3ff8_67df_0f88_6a58, 0x3fe1_1e4f_3f54_26c5, 0x3fd1_1d40_d3d5_808c, 0x3fd8_3a66_94b1_045e],
                [0x3f9c_0c12_465f_a2f8, 0x3fbc_4e80_cdbf_5468, 0x3fbd_b51b_0b0f_9ce8, 0x3fd8_1fd3_dded_683b],
                [0x3f9a_acbd_2fef_fbda, 0x3f9c_edb2_57fa_c780, 0x3fad_5da6_8832_2728, 0x3fa3_6ba5_f7ad_679c],
                [0x3fdc_95b1_bc37_20ec, 0x3fc0_bd2b_d0ca_8dfe, 0x3fc8_e8ab_1c21_9af0, 0x3fea_2835_d08a_b374],
            ],
        ),
        (
            "cauchy",
            DType::F64,
            [
                [0x4036_8e23_a83f_b79a, 0x3ffe_7f05_a5bd_2daf, 0x3f9f_4e1a_b118_ee5d, 0x3feb_27f6_98e0_26d8],
                [0xc025_0732_05ae_5666, 0xc001_537b_f18e_3e9b, 0xc000_2679_0362_81fa, 0x3fea_cdbe_6c8f_4a77],
                [0xc026_21e8_0602_ffd8, 0xc024_5fa0_9d5e_bc7a, 0xc013_5641_fc0c_3c32, 0xc01e_1112_6d34_9980],
                [0x3ff4_df1d_0849_9626, 0xbffa_ccf5_9e29_be2a, 0xbfe5_cf0b_6ce5_840f, 0x4011_5c39_79b3_70dc],
            ],
        ),
        (
            "log_normal",
            DType::F64,
            [
                [0x3ffd_d9b3_28a8_e372, 0x3ff4_4e9b_8aa9_2cc5, 0x3feb_55ea_549b_a632, 0x3ff2_91e8_2e08_329b],
                [0x3ff8_d0cb_78b9_04cb, 0x3ff6_d7cb_f0e9_91b0, 0x3ff5_e119_c01f_496a, 0x3ff1_67d4_2db4_e6c4],
                [0x3ff7_2e1a_5788_cb21, 0x3ff6_309f_6b6e_2291, 0x3ff6_b011_67ea_493c, 0x3ff7_cbe4_a8fd_89d6],
                [0x3ff3_7fc0_7c71_d8eb, 0x3ff3_068e_a783_e5ff, 0x3ff3_358d_1a3b_79b2, 0x3ff8_a8b6_cc1a_8915],
            ],
        ),
        ("geometric", DType::I64, [[1, 2, 4, 3], [0xd, 7, 7, 3], [0xd, 0xd, 0xa, 0xc], [2, 7, 5, 1]]),
        ("multinomial_with", DType::I64, [[6, 5, 4, 1], [1, 3, 3, 2], [1, 1, 2, 0], [5, 3, 4, 1]]),
        ("multinomial_without", DType::I64, [[6, 2, 4, 3], [5, 3, 0, 3], [3, 1, 2, 0], [4, 3, 6, 6]]),
    ]
}
