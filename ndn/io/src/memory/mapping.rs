//! A mapped file.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
#[cfg(not(all(test, miri)))]
use rustix::mm::{MapFlags, ProtFlags};

/// What this process may do with a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadWrite,
}

/// A file of memory, mapped whole. What lies in it is reached by pointers, each use with its own reason why it may be.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// Where Miri runs the tests: it knows no mapped files.
    #[cfg(all(test, miri))]
    _heap: std::sync::Arc<heap::Heap>,
}

// SAFETY: the mapping is plain memory that lives as long as this value; each use of its pointers says for itself why no
// other use at the same time matters.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// What `statfs` says of a file of ordinary memory.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

/// A new memory file of `bytes`, which can neither shrink nor grow once `seals` are set on it.
pub(crate) fn memory_file(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(name, flags)?;
    rustix::fs::ftruncate(&file, bytes as u64)?;
    Ok(file)
}

/// Checks what a peer has passed: memory with these seals and of this size.
///
/// # Errors
/// It is something else. A file that is no memory has no seals: reading it could take as long as whoever made it likes.
pub(crate) fn check_sealed(file: impl AsFd, seals: SealFlags, bytes: u64) -> io::Result<()> {
    let refuse = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    if !rustix::fs::fcntl_get_seals(&file)?.contains(seals) {
        return refuse("the memory is not sealed against being changed");
    }
    // Huge pages can be taken out of a file, and its size say otherwise than they do. None but memory comes so far: to
    // ask another file could take as long.
    if rustix::fs::fstatfs(&file)?.f_type != TMPFS_MAGIC {
        return refuse("the memory is of huge pages");
    }
    if u64::try_from(rustix::fs::fstat(&file)?.st_size) != Ok(bytes) {
        return refuse("the memory is of another size than announced");
    }
    Ok(())
}

impl Mapping {
    /// Maps the first `len` bytes of `file`, which must be sealed against shrinking.
    #[cfg(not(all(test, miri)))]
    pub fn new(file: BorrowedFd<'_>, len: usize, access: Access) -> io::Result<Self> {
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: a fresh shared mapping at an address of the kernel's choice aliases nothing
        // of ours; the file is sealed against shrinking, so every page stays backed.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at null"))?;
        Ok(Self { base, len })
    }

    #[cfg(all(test, miri))]
    pub fn new(_: BorrowedFd<'_>, _: usize, _: Access) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Bytes of the mapping.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Gives up this process's hold on the pages of these bytes; they are read again from the file when they are needed.
    #[cfg(not(all(test, miri)))]
    pub fn forget(&self, at: usize, len: usize) {
        const PAGE: usize = 4096;
        let start = at / PAGE * PAGE;
        let end = (at + len).next_multiple_of(PAGE).min(self.len);
        let advice = rustix::mm::Advice::LinuxDontNeed;
        // SAFETY: of a shared mapping of a file no byte is lost by it, and whoever reads one meanwhile finds it again.
        let _ = unsafe { rustix::mm::madvise(self.at(start).as_ptr().cast(), end - start, advice) };
    }

    #[cfg(all(test, miri))]
    pub fn forget(&self, _: usize, _: usize) {}

    /// Where byte `at` lies.
    ///
    /// # Panics
    /// Where it lies outside.
    pub fn at(&self, at: usize) -> NonNull<u8> {
        assert!(at < self.len, "outside of the mapping");
        // SAFETY: within the mapping.
        unsafe { self.base.add(at) }
    }
}

#[cfg(not(all(test, miri)))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the one that was mapped, and no reference into it outlives self.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Memory of the process in the place of a mapped file.
#[cfg(all(test, miri))]
pub(crate) mod heap {
    use super::*;
    use std::sync::Arc;

    pub(crate) struct Heap {
        base: NonNull<u8>,
        layout: std::alloc::Layout,
    }

    impl Heap {
        #[expect(clippy::arc_with_non_send_sync, reason = "as a mapping is sent")]
        pub fn new(bytes: usize) -> Arc<Self> {
            let layout = std::alloc::Layout::from_size_align(bytes, 4096).unwrap();
            // SAFETY: its size is not zero.
            let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).unwrap();
            Arc::new(Heap { base, layout })
        }

        pub fn mapping(self: &Arc<Self>) -> Mapping {
            Mapping {
                base: self.base,
                len: self.layout.size(),
                _heap: self.clone(),
            }
        }
    }

    impl Drop for Heap {
        fn drop(&mut self) {
            // SAFETY: it was allocated by this layout, and every mapping of it holds this value.
            unsafe { std::alloc::dealloc(self.base.as_ptr(), self.layout) }
        }
    }
}
