//! Maps of another release, whose values are of a layout that is not known here: their keys, and their first word.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;

use aya::maps::MapInfo;

use crate::layout::Key;

/// Commands of bpf(2). aya has them for maps whose values it knows.
const BPF_MAP_LOOKUP_ELEM: i32 = 1;
const BPF_MAP_UPDATE_ELEM: i32 = 2;
const BPF_MAP_GET_NEXT_KEY: i32 = 4;

/// The keys of a pinned map of flows.
///
/// # Errors
/// They are of another layout, too, or the system refuses.
pub fn keys(path: &Path) -> io::Result<Vec<Key>> {
    let map = MapInfo::from_pin(path).map_err(io::Error::other)?;
    if map.key_size() as usize != size_of::<Key>() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let fd = map.fd().map_err(io::Error::other)?;
    let fd = fd.as_fd().as_raw_fd();
    let mut keys: Vec<Key> = Vec::new();
    while keys.len() < map.max_entries() as usize {
        let before = keys.last().map_or(0, |key| std::ptr::from_ref(key) as u64);
        // SAFETY: integers alone.
        let mut next: Key = unsafe { std::mem::zeroed() };
        // SAFETY: both keys live through the call, and are of the size that the map says.
        match unsafe {
            bpf(
                BPF_MAP_GET_NEXT_KEY,
                fd,
                before,
                std::ptr::from_mut(&mut next) as u64,
            )
        } {
            Ok(()) => keys.push(next),
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    Ok(keys)
}

/// Sets the first word of a pinned array's one entry.
///
/// # Errors
/// It is none, or the system refuses.
pub fn set_first_word(path: &Path, word: u32) -> io::Result<()> {
    let map = MapInfo::from_pin(path).map_err(io::Error::other)?;
    if map.key_size() != 4 || map.value_size() < 4 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let fd = map.fd().map_err(io::Error::other)?;
    let fd = fd.as_fd().as_raw_fd();
    let key = 0_u32;
    let mut value = vec![0_u8; map.value_size() as usize];
    let (key, at) = (std::ptr::from_ref(&key) as u64, value.as_mut_ptr() as u64);
    // SAFETY: key and value live through both calls, and are of the sizes that the map says.
    unsafe {
        bpf(BPF_MAP_LOOKUP_ELEM, fd, key, at)?;
        value[..4].copy_from_slice(&word.to_ne_bytes());
        bpf(BPF_MAP_UPDATE_ELEM, fd, key, at)
    }
}

/// bpf(2) on one element of a map.
///
/// # Safety
/// `key` is 0 where the command takes none, else of as many octets as the map's keys; `value` of as many as its values, or
/// as its keys where the command writes one.
unsafe fn bpf(command: i32, map: i32, key: u64, value: u64) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        map: u32,
        pad: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let attributes = Attributes {
        map: map as u32,
        pad: 0,
        key,
        value,
        flags: 0,
    };
    // SAFETY: as above; the attributes live through the call.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, &attributes, size_of::<Attributes>()) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
