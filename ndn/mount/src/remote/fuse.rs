//! The kernel's side of a mount of a repository elsewhere. It is mounted read only: the kernel itself refuses to change
//! anything.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{
    Errno, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyXattr, Request,
};

use super::caller::Caller;
use super::{Remote, Shown};
use crate::attr::file_type;
use crate::handles::lock;
use crate::wire::{self, entry, show_folder, xattr, xattrs};

/// Bytes of a block, where there is no disk to ask.
const BLOCK: u32 = 4096;

/// The file system as the kernel calls it.
pub struct RemoteFs(pub Arc<Remote>);

impl Shown<'_> {
    fn kind(&self) -> FileType {
        match &self.file {
            None => FileType::Directory,
            Some(Ok(version)) => file_type(version.mode),
            Some(Err(_)) => FileType::RegularFile,
        }
    }
}

impl Filesystem for RemoteFs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // No attributes with a listing: an entry of which nothing can be verified has none, and FUSE has no word for that.
        // What a look-up needs is remembered from the listing.
        wire::configure(config);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.0.look_up(parent.0, name);
        entry(reply, &self.0.options.remember, found);
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.0.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.0.attr(ino.0) {
            Ok(attr) => reply.attr(&self.0.options.remember, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.0.read_link(ino.0, Caller::new(req.pid())) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.0.open_file(ino.0) {
            // An inode's bytes never change.
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let caller = Caller::new(req.pid());
        wire::read(reply, size, |buffer| {
            self.0.read(fh.0, offset, buffer, caller)
        });
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.0.release(fh.0);
        reply.ok();
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.0.open_folder(ino.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        show_folder(reply, ino.0, offset, |from, add| {
            self.0.list(fh.0, from, &mut |folder, next, shown| {
                let word = shown.entry.word;
                let known = lock(&self.0.nodes).find(folder, word.as_bytes());
                add(known.unwrap_or(u64::MAX), next, shown.kind(), word)
            })
        });
    }

    fn releasedir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.0.release(fh.0);
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let longest = u32::try_from(crate::names::MAX_WORD).unwrap_or(u32::MAX);
        reply.statfs(0, 0, 0, 0, 0, BLOCK, longest, BLOCK);
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = match name.to_str() {
            Some(name) => self.0.xattr(ino.0, name),
            None => Err(Errno::ENODATA),
        };
        xattr(reply, size, value);
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        xattrs(reply, size, self.0.xattrs(ino.0));
    }
}
