//! Shared, aligned, recycled memory.
//!
//! A [`Storage`] is a reference-counted block of bytes behind a lock. Freed blocks go to a small per-thread cache by
//! size, so that a program that runs again and again does not fault in fresh pages each time. Memory that somebody else
//! allocated can be a storage too, without a copy: [`Storage::external`].
//!
//! Whoever keeps something that was derived from a storage's content compares its [`Version`], which no other storage and
//! no other content ever has: every way to write to a storage changes it first. External memory has none, because others
//! write to it.

#![expect(unsafe_code, reason = "storages share raw memory between tensors")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use aligned_vec::{AVec, ConstAlign};
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Element;

/// The alignment of every block: a cache line, and the widest vector register.
pub const ALIGN: usize = 64;

type Block = AVec<u8, ConstAlign<ALIGN>>;

/// Blocks larger than this are returned to the system at once.
const LARGEST_CACHED: usize = 64 << 20;
/// The cache of a thread never holds more bytes than this.
const CACHE_LIMIT: usize = 256 << 20;

#[derive(Default)]
struct Cache {
    blocks: HashMap<usize, Vec<Block>>,
    bytes: usize,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// Blocks of at least this many bytes come in steps of a page, so that nearly equal sizes share them.
fn size_class(nbytes: usize) -> usize {
    if nbytes <= 4096 { nbytes.next_multiple_of(ALIGN) } else { nbytes.next_multiple_of(4096) }
}

fn take(nbytes: usize) -> Option<Block> {
    CACHE.with_borrow_mut(|cache| {
        let block = cache.blocks.get_mut(&size_class(nbytes))?.pop()?;
        cache.bytes -= block.capacity();
        Some(block)
    })
}

fn give_back(block: Block) {
    let class = block.capacity();
    if class == 0 || class > LARGEST_CACHED || class != size_class(class) {
        return;
    }
    // A thread that is ending has no cache any more; its blocks are freed.
    let _ = CACHE.try_with(|cache| {
        let cache = &mut *cache.borrow_mut();
        if cache.bytes + class <= CACHE_LIMIT {
            cache.bytes += class;
            cache.blocks.entry(class).or_default().push(block);
        }
    });
}

/// Where the bytes are.
enum Memory {
    Own(Block),
    External(External),
}

/// Memory of somebody else, which lives as long as its owner does.
struct External {
    start: NonNull<u8>,
    nbytes: usize,
    owner: Box<dyn Owner>,
}

// SAFETY: the pointer is reached through the storage's lock alone, and the owner may be dropped on any thread.
unsafe impl Send for External {}
// SAFETY: as above; reading through a shared reference writes nothing.
unsafe impl Sync for External {}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(block) => block,
            // SAFETY: whoever made the storage promised that so many bytes are there while the owner lives.
            Self::External(external) => unsafe { std::slice::from_raw_parts(external.start.as_ptr(), external.nbytes) },
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(block) => block,
            // SAFETY: as for reading; the lock is held for writing.
            Self::External(external) => unsafe {
                std::slice::from_raw_parts_mut(external.start.as_ptr(), external.nbytes)
            },
        }
    }
}

struct Inner {
    bytes: RwLock<Memory>,
    nbytes: usize,
    /// Which storage of this process it is, in the order they were made.
    serial: u64,
    /// How often somebody began to write to it.
    writes: AtomicU64,
}

/// Bytes in all storages that there are, and the most there were since [`watch_peak`].
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Begins to watch how many bytes all storages of the process have at a time; returns how many they have now.
pub fn watch_peak() -> usize {
    let live = LIVE.load(Ordering::Relaxed);
    PEAK.store(live, Ordering::Relaxed);
    live
}

/// The most bytes that all storages of the process had at a time since [`watch_peak`].
pub fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

impl Inner {
    fn new(memory: Memory, nbytes: usize) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let live = LIVE.fetch_add(nbytes, Ordering::Relaxed) + nbytes;
        PEAK.fetch_max(live, Ordering::Relaxed);
        let serial = MADE.fetch_add(1, Ordering::Relaxed);
        Self { bytes: RwLock::new(memory), nbytes, serial, writes: AtomicU64::new(0) }
    }
}

/// A state of a storage: equal versions mean the same storage with the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    serial: u64,
    writes: u64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        LIVE.fetch_sub(self.nbytes, Ordering::Relaxed);
        if let Memory::Own(block) = self.bytes.get_mut() {
            give_back(std::mem::replace(block, AVec::with_capacity(ALIGN, 0)));
        }
    }
}

/// A block of bytes that tensors share.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

/// A storage that is read by address: it lives, and nobody writes to it, while this does.
pub struct Held(Storage);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the lock for reading was taken, and its guard forgotten, when this was made.
        unsafe { self.0.0.bytes.force_unlock_read() };
    }
}

/// Who owns external memory.
pub trait Owner: Send + Sync {
    /// The memory as it is now, where that is not what it was lent as: the owner may move it, or change its size, while
    /// nobody reads it.
    fn current(&self) -> Option<Storage> {
        None
    }

    /// Where the memory begins now, where the owner may move it or has lent a copy.
    fn address(&self) -> Option<usize> {
        None
    }
}

impl Owner for () {}
impl<T: Send + Sync> Owner for Arc<T> {}

/// Elements that are being read; the storage cannot be written meanwhile.
pub type Reading<'a, T> = MappedRwLockReadGuard<'a, [T]>;
/// Elements that are being written; the storage cannot be reached otherwise meanwhile.
pub type Writing<'a, T> = MappedRwLockWriteGuard<'a, [T]>;

impl Storage {
    fn own(block: Block, nbytes: usize) -> Self {
        Self(Arc::new(Inner::new(Memory::Own(block), nbytes)))
    }

    /// Memory of somebody else, without a copy. The owner is dropped with the last clone.
    ///
    /// # Safety
    /// While the owner lives, `start` points to `nbytes` bytes that are initialized and may be written, and nobody else
    /// reads or writes them while they are read or written through the storage. `start` is aligned for every element
    /// type that they are read as.
    pub unsafe fn external(start: NonNull<u8>, nbytes: usize, owner: Box<dyn Owner>) -> Self {
        let memory = Memory::External(External { start, nbytes, owner });
        Self(Arc::new(Inner::new(memory, nbytes)))
    }

    /// A block of zeros.
    pub fn zeroed(nbytes: usize) -> Self {
        let mut block = take(nbytes).unwrap_or_else(|| AVec::with_capacity(ALIGN, size_class(nbytes)));
        block.clear();
        block.resize(nbytes, 0);
        Self::own(block, nbytes)
    }

    /// A block of unspecified content: what a recycled block last held, else zeros.
    pub fn recycled(nbytes: usize) -> Self {
        match take(nbytes) {
            Some(mut block) => {
                block.resize(nbytes, 0);
                Self::own(block, nbytes)
            }
            None => Self::zeroed(nbytes),
        }
    }

    /// A block with these elements.
    pub fn from_slice<T: Element>(elements: &[T]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        let mut block = take(bytes.len()).unwrap_or_else(|| AVec::with_capacity(ALIGN, size_class(bytes.len())));
        block.clear();
        block.extend_from_slice(bytes);
        Self::own(block, bytes.len())
    }

    /// Bytes in it.
    pub fn nbytes(&self) -> usize {
        self.0.nbytes
    }

    /// The address of its first byte for writing, the same as long as the storage lives. Whoever follows it makes sure
    /// that nobody else reads or writes meanwhile, and asks anew before writing once others may have looked at it: that
    /// is what changes the [`Version`].
    pub fn as_mut_ptr(&self) -> *mut u8 {
        let mut bytes = self.0.bytes.write();
        self.0.writes.fetch_add(1, Ordering::Release);
        bytes.as_mut_ptr()
    }

    /// The address of its first byte for reading. Whoever follows it makes sure that nobody writes meanwhile.
    pub fn as_ptr(&self) -> *const u8 {
        self.0.bytes.read_recursive().as_ptr()
    }

    /// What tells its present content from every other; `None` for external memory.
    pub fn version(&self) -> Option<Version> {
        let own = matches!(&*self.0.bytes.read_recursive(), Memory::Own(_));
        own.then(|| Version { serial: self.0.serial, writes: self.0.writes.load(Ordering::Acquire) })
    }

    /// Whether both are the same block.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An identity for maps, which no other storage of this process ever has.
    pub fn id(&self) -> usize {
        self.0.serial as usize
    }

    /// Whether nobody else holds it. What former holders did is seen by whoever is told so.
    pub fn is_unique(&self) -> bool {
        let unique = Arc::strong_count(&self.0) == 1;
        if unique {
            // The count is read without an order; the last holder gave its share back with a release.
            std::sync::atomic::fence(Ordering::Acquire);
        }
        unique
    }

    /// Keeps the storage, and keeps others from writing to it through Pyrite, until the guard goes.
    pub fn hold(&self) -> Held {
        std::mem::forget(self.0.bytes.read_recursive());
        Held(self.clone())
    }

    /// Where its memory begins now for its owner. Equal addresses of storages that both live are the same memory.
    pub fn address(&self) -> usize {
        let memory = self.0.bytes.read_recursive();
        let moved = if let Memory::External(external) = &*memory { external.owner.address() } else { None };
        moved.unwrap_or(memory.as_ptr() as usize)
    }

    /// The storage as it is now: external memory may have been moved or changed in size by its owner.
    #[must_use]
    pub fn current(&self) -> Self {
        let memory = self.0.bytes.read_recursive();
        let Memory::External(external) = &*memory else { return self.clone() };
        external.owner.current().unwrap_or_else(|| self.clone())
    }

    /// How many hold it.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// All whole elements of a type, for reading.
    pub fn read<T: Element>(&self) -> Reading<'_, T> {
        RwLockReadGuard::map(self.0.bytes.read_recursive(), |block| typed(block))
    }

    /// All whole elements of a type, for writing.
    pub fn write<T: Element>(&self) -> Writing<'_, T> {
        let bytes = self.0.bytes.write();
        self.0.writes.fetch_add(1, Ordering::Release);
        RwLockWriteGuard::map(bytes, |block| {
            let whole = block.len() / size_of::<T>() * size_of::<T>();
            bytemuck::cast_slice_mut(&mut block[..whole])
        })
    }

    /// A copy of the bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.bytes.read_recursive().to_vec()
    }
}

fn typed<T: Element>(block: &[u8]) -> &[T] {
    let whole = block.len() / size_of::<T>() * size_of::<T>();
    bytemuck::cast_slice(&block[..whole])
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Storage({} bytes)", self.0.nbytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zeroed_block_is_zero_even_when_recycled() {
        let first = Storage::from_slice(&[7u8; 1000]);
        drop(first);
        assert!(Storage::zeroed(1000).to_bytes().iter().all(|b| *b == 0));
    }

    #[test]
    fn blocks_are_aligned_and_sized_exactly() {
        for nbytes in [0, 1, 63, 4096, 5000] {
            let storage = Storage::recycled(nbytes);
            assert_eq!(storage.read::<u8>().len(), nbytes);
            assert_eq!(storage.read::<u8>().as_ptr() as usize % ALIGN, 0);
        }
    }

    #[test]
    fn external_memory_is_seen_and_its_owner_kept_until_the_last_clone_goes() {
        let owner = Arc::new(parking_lot::Mutex::new([1i64, 2, 3]));
        let start = NonNull::from(&mut owner.lock()[0]).cast();
        // SAFETY: the owner has three numbers and is kept; the lock is free and nobody else looks.
        let storage = unsafe { Storage::external(start, 24, Box::new(owner.clone())) };
        let clone = storage.clone();
        storage.write::<i64>()[1] = 7;
        drop(storage);
        assert_eq!((&*clone.read::<i64>(), Arc::strong_count(&owner)), (&[1, 7, 3][..], 2));
        drop(clone);
        assert_eq!((*owner.lock(), Arc::strong_count(&owner)), ([1, 7, 3], 1));
        // SAFETY: as above.
        let external = unsafe { Storage::external(start, 24, Box::new(owner)) };
        assert_eq!(external.version(), None);
    }

    #[test]
    fn a_version_changes_with_every_write_and_never_comes_again() {
        let storage = Storage::zeroed(8);
        let first = storage.version();
        assert!(first.is_some());
        assert_eq!(storage.read::<u8>()[0], 0);
        assert!(!storage.as_ptr().is_null());
        assert_eq!(storage.clone().version(), first);
        storage.clone().write::<u8>()[0] = 1;
        let second = storage.version();
        assert_ne!(first, second);
        storage.as_mut_ptr();
        assert!(![first, second].contains(&storage.version()));
        drop(storage);
        assert!(![first, second].contains(&Storage::recycled(8).version()));
    }

    #[test]
    fn clones_share_their_bytes() {
        let a = Storage::zeroed(8);
        let b = a.clone();
        a.write::<i64>()[0] = 5;
        assert_eq!(b.read::<i64>()[0], 5);
        assert!(a.same(&b) && !a.same(&Storage::zeroed(8)));
    }
}
