//! What `stat` tells.

use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, INodeNo};

/// Bytes of a block in `st_blocks`.
const BLOCK: u64 = 512;
/// Bytes that programs should read and write at once: as many as one call brings here.
const AT_ONCE: u32 = crate::wire::MAX_TRANSFER;
/// What folders may be done with.
const FOLDER_MODE: u16 = 0o755;

/// Whose everything is.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What `st_mode` says of the kind; a mode without a kind is a file's.
pub fn file_type(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFLNK => FileType::Symlink,
        _ => FileType::RegularFile,
    }
}

/// Of a file.
pub fn file(ino: u64, owner: Owner, size: u64, mode: u32, mtime_ns: u64) -> FileAttr {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(mtime_ns);
    FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: size.div_ceil(BLOCK),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: file_type(mode),
        perm: (mode & 0o7777) as u16,
        nlink: 1,
        uid: owner.uid,
        gid: owner.gid,
        rdev: 0,
        blksize: AT_ONCE,
        flags: 0,
    }
}

/// Of a folder made at `made_ns`.
pub fn folder(ino: u64, owner: Owner, made_ns: u64) -> FileAttr {
    FileAttr {
        kind: FileType::Directory,
        perm: FOLDER_MODE,
        // As on file systems that count no folders in folders.
        nlink: 1,
        blocks: 0,
        ..file(ino, owner, 0, 0, made_ns)
    }
}

/// The same, of something that can't be written.
pub fn read_only(attr: FileAttr) -> FileAttr {
    FileAttr {
        perm: attr.perm & !0o222,
        ..attr
    }
}
