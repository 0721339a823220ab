//! Storages over our memory that torch may resize.
//!
//! A storage that torch makes of a DLPack description cannot be resized: it has no allocator and says so. Torch has no
//! function that changes that, so [`Resizable`] does what such a function would: it gives the storage the allocator of
//! torch's own and sets its flag. When torch resizes it, it allocates, copies, and calls the deleter of our memory.
//!
//! Where a storage keeps the two is found in storages of both kinds, which must agree on exactly one place of the allocator,
//! and tried on one of them. Where that fails, results cannot be resized and are otherwise the same.

#![expect(unsafe_code, reason = "torch's storages are raw memory")]

use pyo3::prelude::*;

use super::shim::{IMPLEMENTATION_WORDS, Shim};

/// A storage of every supported torch is at least so many words long.
const STORAGE_WORDS: usize = 10;

/// See the module's text.
pub struct Resizable {
    /// Where a tensor's implementation has the address of its storage, in words.
    storage: usize,
    /// Where a storage has the address of its allocator, in words.
    place: usize,
    /// The allocator of torch's own storages.
    allocator: u64,
    /// Where a storage says whether it can be resized, in bytes.
    flag: usize,
}

impl Resizable {
    /// The places, of tensors over torch's memory and of tensors over ours, all of different sizes.
    pub fn find(shim: &Shim, owned: &[Bound<'_, PyAny>], lent: &[Bound<'_, PyAny>]) -> PyResult<Option<Self>> {
        let all = || owned.iter().chain(lent);
        if !all().all(|probe| shim.is_plain(probe.get_type_ptr())) {
            return Ok(None);
        }
        let storages = all()
            .map(|probe| probe.call_method0("untyped_storage")?.getattr("_cdata")?.extract::<usize>())
            .collect::<PyResult<Vec<usize>>>()?;
        let (theirs, ours) = storages.split_at(owned.len());
        // SAFETY: the probes are tensors of torch's own class, and their implementation is that long.
        let word_of = |probe: &Bound<'_, PyAny>, word: usize| unsafe { Shim::implementation(probe).add(word).read() };
        let storage = only(
            (0..IMPLEMENTATION_WORDS)
                .filter(|word| all().zip(&storages).all(|(probe, storage)| word_of(probe, *word) == *storage as u64)),
        );
        // SAFETY: the probes hold their storages, which are that long.
        let word_at = |storage: usize, word: usize| unsafe { (storage as *const u64).add(word).read() };
        let allocator = theirs.first().copied().unwrap_or_default();
        let place = only((0..STORAGE_WORDS).filter(|word| {
            ours.iter().all(|storage| word_at(*storage, *word) == 0)
                && is_address(word_at(allocator, *word))
                && theirs.iter().all(|storage| word_at(*storage, *word) == word_at(allocator, *word))
        }));
        // SAFETY: as above.
        let byte_at = |storage: usize, byte: usize| unsafe { (storage as *const u8).add(byte).read() };
        let flags = (0..STORAGE_WORDS * size_of::<u64>()).filter(|byte| {
            theirs.iter().all(|storage| byte_at(*storage, *byte) == 1)
                && ours.iter().all(|storage| byte_at(*storage, *byte) == 0)
        });
        let (Some(storage), Some(place)) = (storage, place) else { return Ok(None) };
        // Bytes between the fields are whatever was there before, and may look like the flag: torch says which one it is.
        for flag in flags {
            let found = Self { storage, place, allocator: word_at(allocator, place), flag };
            if found.works(&lent[0])? {
                return Ok(Some(found));
            }
            // SAFETY: as above; the byte was zero, and nothing has looked at it since.
            unsafe { (ours[0] as *mut u8).add(flag).write(0) };
        }
        Ok(None)
    }

    /// Whether torch resizes a storage that it was let to, and keeps what is in it.
    fn works(&self, lent: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.allow(lent);
        let storage = lent.call_method0("untyped_storage")?;
        let before: Vec<u8> = storage.call_method0("tolist")?.extract()?;
        if !storage.call_method0("resizable")?.extract::<bool>()? {
            return Ok(false);
        }
        storage.call_method1("resize_", (before.len() + 1,))?;
        let after: Vec<u8> = storage.call_method0("tolist")?.extract()?;
        Ok(after.len() == before.len() + 1 && after.starts_with(&before))
    }

    /// Lets torch resize the storage of a tensor that was just made over our memory.
    pub fn allow(&self, tensor: &Bound<'_, PyAny>) {
        // SAFETY: the tensor is of torch's own class and nobody else has its storage yet; the places were found in others
        // that were made in the same way.
        unsafe {
            let storage = Shim::implementation(tensor).add(self.storage).read() as *mut u64;
            storage.add(self.place).write(self.allocator);
            storage.cast::<u8>().add(self.flag).write(1);
        }
    }
}

/// Whether a word may be the address of an object. Flags are small, and what lies between them may be anything.
fn is_address(word: u64) -> bool {
    (1 << 16..1 << 47).contains(&word) && word.is_multiple_of(align_of::<u64>() as u64)
}

/// The only item.
fn only(mut places: impl Iterator<Item = usize>) -> Option<usize> {
    let first = places.next();
    first.filter(|_| places.next().is_none())
}
