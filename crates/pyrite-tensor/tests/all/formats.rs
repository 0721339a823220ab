//! File formats against files that PyTorch and NumPy wrote (`fixtures/make.py`), against damage and attacks, and
//! against themselves.

use std::io::{Cursor, Write};

use proptest::prelude::*;
use pyrite_tensor::formats::torch_zip::{Saved, read_saved, read_storage, write_storage};
use pyrite_tensor::formats::{FormatError, npy, npz, safetensors, storage_hash};
use pyrite_tensor::random::CounterGenerator;
use pyrite_tensor::{DType, Layout, Tensor, dispatch};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn saved(bytes: &[u8]) -> Result<Saved, FormatError> {
    read_saved(Cursor::new(bytes))
}

fn message(bytes: &[u8]) -> String {
    saved(bytes).unwrap_err().to_string()
}

/// An archive with these entries, stored.
fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    zipped(entries, CompressionMethod::Stored)
}

fn zipped(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut out = bytes.to_vec();
    for at in 0..=out.len() - from.len() {
        if out[at..].starts_with(from) {
            out[at..at + to.len()].copy_from_slice(to);
        }
    }
    out
}

#[test]
fn a_storage_of_pytorch_is_read() {
    let storage = read_storage(Cursor::new(fixture("storage"))).unwrap();
    assert_eq!(&*storage.read::<f32>(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!(read_storage(Cursor::new(fixture("state_dict.pt"))).is_err());
}

#[test]
fn our_storage_has_the_pickle_that_pytorch_writes() {
    let bytes: Vec<u8> = (0..6u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    let mut ours = Cursor::new(Vec::new());
    write_storage(&mut ours, "storage", &bytes, "cpu").unwrap();
    let entry = |bytes: Vec<u8>, name: &str| {
        let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut content = Vec::new();
        std::io::copy(&mut zip.by_name(name).unwrap(), &mut content).unwrap();
        content
    };
    for name in ["storage/data.pkl", "storage/byteorder", "storage/version", "storage/data/0"] {
        assert_eq!(entry(ours.get_ref().clone(), name), entry(fixture("storage"), name), "{name}");
    }
    assert_eq!(read_storage(Cursor::new(ours.into_inner())).unwrap().to_bytes(), bytes);
}

#[test]
fn tensors_that_shared_a_storage_share_it_again() {
    let file = saved(&fixture("shared_views.pt")).unwrap();
    let tensors = file.tensors();
    let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["w", "v", "tail", "nested.list.0"]);
    let [w, v, tail, list] = [0, 1, 2, 3].map(|i| &tensors[i].1);
    assert!(w.storage().same(v.storage()) && w.storage().same(tail.storage()) && !w.storage().same(list.storage()));
    assert_eq!((v.shape(), v.stride(), tail.layout().offset), (&[3, 2][..], &[1, 3][..], 4));
    assert_eq!(v.to_f64s(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let Saved::Dict(items) = file else { panic!("not a dict") };
    assert!(matches!(items[0].1, Saved::Tensor { requires_grad: true, .. }));
    assert!(matches!(items[1].1, Saved::Tensor { requires_grad: false, .. }));
    let Saved::Dict(nested) = &items[3].1 else { panic!("not a dict") };
    assert!(matches!(&nested[1], (key, Saved::DType(DType::BF16)) if key == "7"));
    let Saved::List(size) = &items[4].1 else { panic!("not a size") };
    assert!(matches!(size.as_slice(), [Saved::Int(4), Saved::Int(5)]));
}

#[test]
fn a_state_dict_is_read() {
    let tensors = saved(&fixture("state_dict.pt")).unwrap().tensors();
    assert_eq!(tensors[0].0, "weight");
    assert_eq!(tensors[0].1.to_f64s(), [1.0, 2.0]);
    assert_eq!(tensors[1].1.to_f64s(), [3.0]);
}

#[test]
fn every_type_is_read_from_a_newer_pickle_protocol() {
    let tensors = saved(&fixture("dtypes.pt")).unwrap().tensors();
    assert_eq!(tensors.len(), DType::ALL.len());
    for (name, tensor) in tensors {
        assert_eq!(tensor.dtype().torch_name(), name);
        let last = if tensor.dtype() == DType::Bool { 1.0 } else { 2.0 };
        assert_eq!(tensor.to_f64s(), [0.0, 1.0, last], "{name}");
    }
}

#[test]
fn what_is_not_plain_data_is_refused() {
    let text = message(&fixture("evil.pt"));
    assert!(text.contains("refused the global `posix.system`") && text.contains("byte "), "{text}");
    assert!(message(&fixture("conjugate.pt")).contains("conjugate"));
    assert!(message(&fixture("legacy.pt")).contains("before PyTorch 1.6"));
    assert!(message(b"not a zip at all").starts_with("not a readable torch.save file"));
    assert!(message(b"").starts_with("not a readable torch.save file"));
}

#[test]
fn a_damaged_file_is_an_error() {
    let whole = fixture("shared_views.pt");
    for length in 0..whole.len() {
        assert!(saved(&whole[..length]).is_err(), "cut at {length}");
    }
    let wrong = replace(&whole, &2.0f32.to_le_bytes(), &9.0f32.to_le_bytes());
    assert_ne!(wrong, whole);
    assert!(message(&wrong).contains("checksum"), "{}", message(&wrong));
    assert!(message(&replace(&whole, b"little", b"biggie")).contains("checksum"));
}

#[test]
fn entries_that_lie_about_their_place_are_refused() {
    let big = archive(&[("x/data.pkl", b"N."), ("x/byteorder", b"big")]);
    assert_eq!(message(&big), "entry `x/byteorder`: only little-endian files are read");
    let outside = archive(&[("x/../../data.pkl", b"N.")]);
    assert!(message(&outside).contains("leaves the archive"));
    assert!(message(&archive(&[("/data.pkl", b"N.")])).contains("leaves the archive"));
    assert!(message(&archive(&[("data.pkl", b"N.")])).contains("not in a folder"));
    assert!(message(&archive(&[("x/other", b"")])).contains("`x/data.pkl`: the archive does not have it"));
    let twice = replace(&archive(&[("x/data.pkl", b"N."), ("x/dota.pkl", b"N.")]), b"x/dota.pkl", b"x/data.pkl");
    assert!(message(&twice).contains("same name"), "{}", message(&twice));
}

#[test]
fn a_storage_of_another_size_is_refused() {
    // The pickle of a storage of 24 bytes beside 20 bytes.
    let mut right = Cursor::new(Vec::new());
    write_storage(&mut right, "x", &[0; 24], "cpu").unwrap();
    let mut zip = zip::ZipArchive::new(right).unwrap();
    let mut pickle = Vec::new();
    std::io::copy(&mut zip.by_name("x/data.pkl").unwrap(), &mut pickle).unwrap();
    let short = archive(&[("x/data.pkl", &pickle), ("x/data/0", &[0; 20])]);
    assert_eq!(message(&short), "entry `x/data/0`: it has 20 bytes where 24 are described");
    assert!(message(&archive(&[("x/data.pkl", &pickle)])).contains("`x/data/0`: the archive does not have it"));
    let packed = zipped(&[("x/data.pkl", &pickle), ("x/data/0", &[0; 24])], CompressionMethod::Deflated);
    assert!(message(&packed).contains("it is compressed"));
    let elsewhere = replace(&pickle, b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x00/");
    assert!(message(&archive(&[("x/data.pkl", &elsewhere)])).contains("not described"));
}

#[test]
fn data_that_explodes_or_contains_itself_is_refused() {
    let file = |pickle: &[u8]| archive(&[("x/data.pkl", pickle)]);
    assert!(message(&file(b"\x80\x02]q\x00h\x00a.")).contains("nest deeper"));
    let deep = [vec![b']'; 5000], vec![b'a'; 4999], vec![b'.']].concat();
    assert!(message(&file(&deep)).contains("nest deeper"));
    // Thirty lists, each holding the one before twice.
    let mut laughs = b"]q\x00".to_vec();
    for slot in 1..30u8 {
        laughs.extend([b']', b'(', b'h', slot - 1, b'h', slot - 1, b'e', b'q', slot]);
    }
    laughs.push(b'.');
    assert!(message(&file(&laughs)).contains("more than"));
    // One long string, met many times.
    let text = vec![b'a'; 1 << 20];
    let repeated = [&b"(X"[..], &(1u32 << 20).to_le_bytes(), &text, b"q\x00", &b"h\x00".repeat(1000), b"t."].concat();
    assert!(message(&file(&repeated)).contains("repeated"));
}

#[test]
fn a_declared_size_is_not_believed() {
    let packed = fixture("compressed.npz");
    assert_eq!(npz::read(Cursor::new(&packed)).unwrap()[0].1.shape(), [1000]);
    // The sizes in the local header, the directory, or both.
    let size = 4128u32.to_le_bytes();
    for lie in [4127u32, 4129, 1 << 29, u32::MAX - 1] {
        let bytes = replace(&packed, &size, &lie.to_le_bytes());
        assert_ne!(bytes, packed);
        assert!(npz::read(Cursor::new(&bytes)).is_err(), "{lie}");
    }
    let text = npz::read(Cursor::new(replace(&packed, &size, &(u32::MAX - 1).to_le_bytes()))).unwrap_err().to_string();
    assert!(text.contains("compressed entries may expand to"), "{text}");
}

#[test]
fn arrays_of_numpy_are_read() {
    let arrays = npz::read(Cursor::new(fixture("arrays.npz"))).unwrap();
    let names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "f", "z", "b"]);
    assert_eq!(arrays[0].1.to_vec::<i16>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!((arrays[1].1.stride(), arrays[1].1.to_f64s()), (&[1, 2][..], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
    assert_eq!((arrays[2].1.rank(), arrays[2].1.to_c128s()[0].im), (0, 2.0));
    assert_eq!(arrays[3].1.to_bools(), [true, false]);
    let other = archive(&[("readme.txt", b"hello")]);
    assert_eq!(npz::read(Cursor::new(other)).unwrap_err().to_string(), "entry `readme.txt`: it is not an npy file");
}

#[test]
fn npz_stores_bfloat16_as_f32_and_numbers_what_has_no_name() {
    let tensors =
        npz::numbered([Tensor::from_slice(&[1.5f64], &[1]).cast(DType::BF16), Tensor::zeros(&[2], DType::I8).unwrap()]);
    let mut file = Cursor::new(Vec::new());
    npz::write(&mut file, &tensors).unwrap();
    let back = npz::read(file).unwrap();
    assert_eq!((back[0].0.as_str(), back[0].1.dtype(), back[0].1.to_f64s()), ("arr_0", DType::F32, vec![1.5]));
    assert_eq!((back[1].0.as_str(), back[1].1.dtype()), ("arr_1", DType::I8));
}

#[test]
fn writing_twice_gives_the_same_bytes() {
    let write = || {
        let mut file = Cursor::new(Vec::new());
        write_storage(&mut file, &storage_hash(b"abc"), b"abc", "cpu").unwrap();
        file.into_inner()
    };
    assert_eq!(write(), write());
}

/// Tensors of any type, rank up to four, permuted and sliced.
fn any_tensor() -> impl Strategy<Value = Tensor> {
    let dims = prop::collection::vec((0i64..4, 0i64..2), 0..4);
    (prop::sample::select(DType::ALL.to_vec()), dims, any::<u64>(), any::<u64>()).prop_map(
        |(dtype, dims, order, seed)| {
            let mut order: Vec<usize> =
                (0..dims.len()).map(|i| (order as usize).wrapping_mul(7919 + i) % 97 * 8 + i).collect();
            order.sort_unstable();
            let (mut stride, mut next) = (vec![0; dims.len()], 1);
            for d in order.into_iter().map(|key| key % 8) {
                stride[d] = next;
                next *= (dims[d].0 + dims[d].1).max(1);
            }
            let shape: Vec<i64> = dims.iter().map(|(size, _)| *size).collect();
            let storage = Tensor::zeros(&[next + 3], dtype).unwrap();
            storage.write_i64s(
                &(0..next as u64 + 3).map(|i| CounterGenerator::new(seed, 0).integer(i, -99, 100)).collect::<Vec<_>>(),
            );
            storage.view(dtype, Layout::new(&shape, &stride, 3)).unwrap()
        },
    )
}

fn bits(tensor: &Tensor) -> Vec<u8> {
    dispatch!(tensor.dtype(), T => pyrite_tensor::Storage::from_slice(&tensor.to_vec::<T>()).to_bytes())
}

fn same(a: &Tensor, b: &Tensor) -> bool {
    a.dtype() == b.dtype() && a.shape() == b.shape() && bits(a) == bits(b)
}

proptest! {
    #[test]
    fn npy_gives_back_what_it_was_given(tensor in any_tensor()) {
        let mut file = Vec::new();
        match npy::write(&mut file, "x", &tensor) {
            Ok(()) => prop_assert!(same(&tensor, &npy::read(file.as_slice(), "x").unwrap())),
            Err(error) => prop_assert!(tensor.dtype() == DType::BF16 || tensor.dtype().is_float8(), "{error}"),
        }
    }

    #[test]
    fn npz_gives_back_what_it_was_given(tensors in prop::collection::vec(any_tensor(), 0..4)) {
        let mut file = Cursor::new(Vec::new());
        let tensors = npz::numbered(tensors);
        npz::write(&mut file, &tensors).unwrap();
        let back = npz::read(file).unwrap();
        prop_assert_eq!(back.len(), tensors.len());
        for ((name, tensor), (back_name, back)) in tensors.iter().zip(&back) {
            prop_assert_eq!(name, back_name);
            let narrow = tensor.dtype() == DType::BF16 || tensor.dtype().is_float8();
            let stored = if narrow { tensor.cast(DType::F32) } else { tensor.clone() };
            prop_assert!(same(&stored, back));
        }
    }

    #[test]
    fn safetensors_gives_back_what_it_was_given(tensors in prop::collection::vec(any_tensor(), 0..4)) {
        let held = |dtype: DType| !matches!(dtype, DType::C128 | DType::F8E4M3Fnuz | DType::F8E5M2Fnuz);
        let tensors: Vec<_> = npz::numbered(tensors).into_iter().filter(|(_, t)| held(t.dtype())).collect();
        let mut file = Vec::new();
        safetensors::write(&mut file, &tensors).unwrap();
        let back = safetensors::read(&file).unwrap();
        prop_assert_eq!(back.len(), tensors.len());
        for ((name, tensor), (back_name, back)) in tensors.iter().zip(&back) {
            prop_assert!(name == back_name && same(tensor, back));
        }
    }

    #[test]
    fn a_storage_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..70_000)) {
        let mut file = Cursor::new(Vec::new());
        write_storage(&mut file, &storage_hash(&bytes), &bytes, "cpu").unwrap();
        prop_assert_eq!(read_storage(file).unwrap().to_bytes(), bytes);
    }

    #[test]
    fn damage_never_panics(name in prop::sample::select(vec!["storage", "shared_views.pt", "dtypes.pt", "arrays.npz", "compressed.npz"]),
                           hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = fixture(name);
        for (at, value) in hits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = saved(&bytes);
        let _ = read_storage(Cursor::new(&bytes));
        let _ = npz::read(Cursor::new(&bytes));
    }

    #[test]
    fn random_pickles_never_panic(pickle in prop::collection::vec(prop::sample::select(b"\x80\x02\x95.(N\x88\x89KMJ\x8aGX\x8c)]}t\x85\x86\x87aesuqr\x94hjc\x93QRb\x00\x01".to_vec()), 0..60)) {
        let _ = saved(&archive(&[("x/data.pkl", &pickle), ("x/data/0", b"abcd")]));
    }
}
