//! What the tables ask of the machine's memory: to fetch lines ahead, and to use large pages.
//!
//! A search of a table too large for the caches waits for memory several times over, and longer for the page tables
//! than for the data itself. Fetching for a whole burst ahead makes the waits overlap; large pages keep the page
//! tables small.

/// Begins to bring a value's first cache line into the cache, without waiting for it.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_address(std::ptr::from_ref(value).cast());
}

/// As [`prefetch`], for a value's last cache line.
#[inline]
pub(crate) fn prefetch_end<T>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<i8>();
    prefetch_address(start.wrapping_add(size_of::<T>().saturating_sub(1)));
}

#[inline]
fn prefetch_address(address: *const i8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction reads nothing that the program sees, and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Begins to bring the line at an index into the cache, if there is such an index.
#[inline]
pub(crate) fn prefetch_at<T>(values: &[T], at: usize) {
    if let Some(value) = values.get(at) {
        prefetch(value);
    }
}

/// Buffers below this many bytes gain nothing from large pages.
const LARGE: usize = 4 << 20;

/// An empty vector with room for `capacity` values, on large pages when it is large and the system has them.
pub(crate) fn large_vec<T>(capacity: usize) -> Vec<T> {
    let vec = Vec::with_capacity(capacity);
    let bytes = vec.capacity() * size_of::<T>();
    #[cfg(target_os = "linux")]
    if bytes >= LARGE {
        const PAGE: usize = 4096;
        let start = (vec.as_ptr() as usize).next_multiple_of(PAGE);
        let len = (vec.as_ptr() as usize + bytes - start) & !(PAGE - 1);
        // SAFETY: the pages lie wholly in the vector's allocation, and the advice changes nothing of what they hold.
        // It may be refused, which does no harm.
        unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_HUGEPAGE) };
    }
    vec
}
