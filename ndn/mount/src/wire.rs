//! What both kinds of mount say to the kernel in the same way.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use fuser::{
    Errno, FileAttr, FileType, Generation, INodeNo, KernelConfig, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyXattr,
};

/// How long the kernel believes what it was told of a repository here: others may publish and remove, too.
pub const TTL: Duration = Duration::from_secs(1);
/// Most bytes of a write or a read.
pub const MAX_TRANSFER: u32 = 1 << 20;
/// Requests that the kernel may have waiting in the background: read-ahead, mostly.
const MAX_BACKGROUND: u16 = 32;
/// Places of `.` and `..`.
const DOTS: u64 = 2;

/// Agrees with the kernel on sizes.
pub fn configure(config: &mut KernelConfig) {
    // What a kernel can't, it does the older way.
    let _ = config.set_max_write(MAX_TRANSFER);
    let _ = config.set_max_background(MAX_BACKGROUND);
    for capability in [
        fuser::InitFlags::FUSE_PARALLEL_DIROPS,
        fuser::InitFlags::FUSE_CACHE_SYMLINKS,
    ] {
        let _ = config.add_capabilities(capability);
    }
}

/// Agrees with the kernel on listing with attributes, where it sees use for them.
pub fn configure_plus(config: &mut KernelConfig) {
    for capability in [
        fuser::InitFlags::FUSE_DO_READDIRPLUS,
        fuser::InitFlags::FUSE_READDIRPLUS_AUTO,
    ] {
        let _ = config.add_capabilities(capability);
    }
}

/// Answers with what was found or made.
pub fn entry(reply: ReplyEntry, ttl: &Duration, found: Result<FileAttr, Errno>) {
    match found {
        Ok(attr) => reply.entry(ttl, &attr, Generation(0)),
        Err(error) => reply.error(error),
    }
}

/// Answers that it is done.
pub fn done(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

thread_local! {
    /// Where a thread reads to; as large as its largest read.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Answers with what `read` has put into the buffer it is given.
pub fn read(reply: ReplyData, size: u32, read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) {
    BUFFER.with_borrow_mut(|buffer| {
        let size = size as usize;
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        match read(&mut buffer[..size]) {
            Ok(n) => reply.data(&buffer[..n]),
            Err(error) => reply.error(error),
        }
    });
}

/// Adds an entry: inode, place after it, kind, word. False when there is no more room.
type Add<'a> = &'a mut dyn FnMut(u64, u64, FileType, &OsStr) -> bool;
/// Adds an entry with its attributes: inode, place after it, word, attributes.
type AddPlus<'a> = &'a mut dyn FnMut(u64, u64, &OsStr, &FileAttr) -> bool;

/// Answers with a folder's entries from `offset` on; `list` lists those after the dots.
pub fn show_folder(
    mut reply: ReplyDirectory,
    number: u64,
    offset: u64,
    list: impl FnOnce(u64, Add<'_>) -> Result<(), Errno>,
) {
    for (place, word) in [".", ".."].into_iter().enumerate().skip(offset as usize) {
        let next = place as u64 + 1;
        if reply.add(INodeNo(number), next, FileType::Directory, word) {
            return reply.ok();
        }
    }
    let listed = list(
        offset.saturating_sub(DOTS),
        &mut |number, next, kind, word| !reply.add(INodeNo(number), next + DOTS, kind, word),
    );
    match listed {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// As [`show_folder`], with what `stat` tells of each.
pub fn show_folder_plus(
    mut reply: ReplyDirectoryPlus,
    own: &FileAttr,
    ttl: &Duration,
    offset: u64,
    list: impl FnOnce(u64, AddPlus<'_>) -> Result<(), Errno>,
) {
    for (place, word) in [".", ".."].into_iter().enumerate().skip(offset as usize) {
        let next = place as u64 + 1;
        // The kernel counts no lookup for these two.
        if reply.add(own.ino, next, word, ttl, own, Generation(0)) {
            return reply.ok();
        }
    }
    let listed = list(
        offset.saturating_sub(DOTS),
        &mut |number, next, word, attr| {
            !reply.add(INodeNo(number), next + DOTS, word, ttl, attr, Generation(0))
        },
    );
    match listed {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Answers with the value of an extended attribute, or with its size where nothing else is asked for.
pub fn xattr(reply: ReplyXattr, size: u32, value: Result<Vec<u8>, Errno>) {
    match value {
        Err(error) => reply.error(error),
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
    }
}

/// Answers with the names of extended attributes.
pub fn xattrs(reply: ReplyXattr, size: u32, names: Result<Vec<&'static str>, Errno>) {
    let list = names.map(|names| {
        names
            .iter()
            .flat_map(|name| name.bytes().chain([0]))
            .collect()
    });
    xattr(reply, size, list);
}

/// Answers with the room on the disk that holds `folder`.
pub fn statfs(reply: ReplyStatfs, folder: &Path) {
    match rustix::fs::statvfs(folder) {
        Ok(found) => reply.statfs(
            found.f_blocks,
            found.f_bfree,
            found.f_bavail,
            found.f_files,
            found.f_ffree,
            u32::try_from(found.f_bsize).unwrap_or(4096),
            crate::names::MAX_WORD as u32,
            u32::try_from(found.f_frsize).unwrap_or(4096),
        ),
        Err(error) => reply.error(Errno::from_i32(error.raw_os_error())),
    }
}
