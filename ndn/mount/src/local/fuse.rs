//! The kernel's side of a local mount: each call to what does it, each result to what the caller is told.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::{Access, Local, now_ns};
use crate::wire::{self, TTL, entry, show_folder, show_folder_plus, xattr, xattrs};
use crate::xattr::PREFIX;

/// The file system as the kernel calls it.
pub struct LocalFs {
    local: Arc<Local>,
    /// Calls are held against modes here, and not by the kernel: there is nobody but the owner, and root.
    checks_modes: bool,
}

impl LocalFs {
    /// Of a file system whose calls the kernel holds against modes, or else this does.
    pub fn new(local: Arc<Local>, checks_modes: bool) -> Self {
        Self {
            local,
            checks_modes,
        }
    }

    /// Whether the caller may do with an inode what these bits of a mode's last digit stand for.
    fn check(&self, req: &Request, number: u64, wanted: u16) -> Result<(), Errno> {
        if !self.checks_modes || wanted == 0 {
            return Ok(());
        }
        let Ok(attr) = self.local.attr(number) else {
            // It is gone: what is to be done with it tells so in its own way.
            return Ok(());
        };
        let allowed = allowed(req.uid(), attr.kind, attr.perm);
        match wanted & !allowed {
            0 => Ok(()),
            _ => Err(Errno::EACCES),
        }
    }
}

/// What the owner of everything, or root, may do with something of this mode.
fn allowed(uid: u32, kind: FileType, mode: u16) -> u16 {
    match uid {
        // Root may do all but run what nobody may run.
        0 if kind != FileType::Directory && mode & 0o111 == 0 => READ | WRITE,
        0 => READ | WRITE | EXECUTE,
        _ => mode >> 6 & 7,
    }
}

/// The kernel's flag of an `open` by which a program is run (`__FMODE_EXEC`).
const FMODE_EXEC: i32 = 0x20;
/// The bits of a mode's digits, and of what `access` asks for.
const READ: u16 = 4;
const WRITE: u16 = 2;
const EXECUTE: u16 = 1;

impl Filesystem for LocalFs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        wire::configure(config);
        wire::configure_plus(config);
        // Cut at opening, so that nothing is copied first. Where the kernel can't, it cuts before.
        let _ = config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC);
        Ok(())
    }

    fn destroy(&mut self) {
        if let Err(error) = self.local.close_all() {
            tracing::error!(?error, "not all written files are published");
        }
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, &TTL, self.local.look_up(parent.0, name));
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.local.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.local.attr(ino.0) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let owner = self.local.owner;
        if uid.is_some_and(|uid| uid != owner.uid) || gid.is_some_and(|gid| gid != owner.gid) {
            return reply.error(Errno::EPERM);
        }
        if size.is_some()
            && fh.is_none()
            && let Err(error) = self.check(req, ino.0, WRITE)
        {
            return reply.error(error);
        }
        let mtime_ns = mtime.map(|time| match time {
            TimeOrNow::Now => now_ns(),
            TimeOrNow::SpecificTime(time) => {
                let since = time.duration_since(SystemTime::UNIX_EPOCH);
                u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
            }
        });
        match self.local.set_attr(ino.0, size, mode, mtime_ns) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.local.read_link(ino.0) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        entry(reply, &TTL, self.local.make_file(parent.0, name, mode));
    }

    fn mkdir(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        entry(reply, &TTL, self.local.make_folder(parent.0, name));
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        wire::done(reply, self.local.unlink(parent.0, name));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        wire::done(reply, self.local.remove_folder(parent.0, name));
    }

    fn symlink(
        &self,
        _req: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        entry(
            reply,
            &TTL,
            self.local.symlink(parent.0, link_name, target.as_os_str()),
        );
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let known = RenameFlags::RENAME_NOREPLACE;
        if !known.contains(flags) {
            return reply.error(Errno::EINVAL);
        }
        let replace = !flags.contains(known);
        let renamed = self
            .local
            .rename(parent.0, name, newparent.0, newname, replace);
        wire::done(reply, renamed);
    }

    fn access(&self, req: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        // Of whether it is there the kernel knows, and asks for nothing.
        let wanted = u16::try_from(mask.bits()).unwrap_or(0);
        wire::done(reply, self.check(req, ino.0, wanted));
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let access = access(flags);
        let wanted = u16::from(access.reads) * READ + u16::from(access.writes) * WRITE;
        // What is run is opened to be read, and may be by who may run it.
        let runs = flags.0 & FMODE_EXEC != 0;
        if let Err(error) = self.check(req, ino.0, if runs { EXECUTE } else { wanted }) {
            return reply.error(error);
        }
        let cut = flags.0 & libc::O_TRUNC != 0;
        match self.local.open(ino.0, access, cut && access.writes) {
            Ok((handle, same)) => reply.opened(FileHandle(handle), opened(flags.acc_mode(), same)),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = OpenFlags(flags);
        match self.local.create(parent.0, name, mode, access(flags)) {
            Ok((attr, handle)) => {
                let how = opened(flags.acc_mode(), false);
                reply.created(&TTL, &attr, Generation(0), FileHandle(handle), how);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        wire::read(reply, size, |buffer| self.local.read(fh.0, offset, buffer));
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = match flags.0 & libc::O_APPEND {
            0 => self.local.write(fh.0, offset, data),
            _ => self.local.append(fh.0, data),
        };
        match written {
            Ok(n) => reply.written(u32::try_from(n).unwrap_or(u32::MAX)),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let lengthen = mode & libc::FALLOC_FL_KEEP_SIZE == 0;
        let bytes = offset..offset.saturating_add(length);
        let done = match mode & !libc::FALLOC_FL_KEEP_SIZE {
            0 => self.local.allocate(fh.0, bytes, lengthen),
            libc::FALLOC_FL_ZERO_RANGE => self.local.zero(fh.0, offset, length, lengthen),
            libc::FALLOC_FL_PUNCH_HOLE => self.local.zero(fh.0, offset, length, false),
            _ => Err(Errno::ENOTSUP),
        };
        wire::done(reply, done);
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        wire::done(reply, self.local.close(fh.0));
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
        self.local.release(fh.0);
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        wire::done(reply, self.local.sync_file(fh.0));
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.local.open_folder(ino.0) {
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
            self.local.list(fh.0, from, &mut |folder, next, found| {
                let number = self.local.known(folder, &found).unwrap_or(u64::MAX);
                add(number, next, found.kind, &found.word)
            })
        });
    }

    fn readdirplus(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let own = match self.local.attr(ino.0) {
            Ok(attr) => attr,
            Err(error) => return reply.error(error),
        };
        show_folder_plus(reply, &own, &TTL, offset, |from, add| {
            self.local.list(fh.0, from, &mut |folder, next, found| {
                // It may be gone meanwhile.
                let Ok(attr) = self.local.entry_attr(folder, &found) else {
                    return true;
                };
                let more = add(attr.ino.0, next, &found.word, &attr);
                if !more {
                    self.local.forget(attr.ino.0, 1);
                }
                more
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
        self.local.release(fh.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        wire::done(reply, self.local.sync_now());
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        wire::statfs(reply, &self.local.store);
    }

    fn setxattr(
        &self,
        _req: &Request,
        _ino: INodeNo,
        name: &OsStr,
        _value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(refused(name));
    }

    fn removexattr(&self, _req: &Request, _ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply.error(refused(name));
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = match name.to_str() {
            Some(name) if name.starts_with(PREFIX) => self.local.xattr(ino.0, name),
            _ => Err(Errno::ENODATA),
        };
        xattr(reply, size, value);
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        xattrs(reply, size, self.local.xattrs(ino.0));
    }
}

/// Ours are what they are; others have no place here.
fn refused(name: &OsStr) -> Errno {
    match name.as_bytes().starts_with(PREFIX.as_bytes()) {
        true => Errno::EPERM,
        false => Errno::ENOTSUP,
    }
}

fn access(flags: OpenFlags) -> Access {
    let mode = flags.acc_mode();
    Access {
        reads: mode != OpenAccMode::O_WRONLY,
        writes: mode != OpenAccMode::O_RDONLY,
    }
}

/// How the kernel may keep what it reads and writes by a new handle.
fn opened(mode: OpenAccMode, same: bool) -> FopenFlags {
    match mode {
        // Straight from the writer's memory to here, in pieces as large as it gives them.
        OpenAccMode::O_WRONLY => FopenFlags::FOPEN_DIRECT_IO,
        OpenAccMode::O_RDONLY if same => FopenFlags::FOPEN_KEEP_CACHE,
        _ => FopenFlags::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_for_the_owner_and_hardly_for_root() {
        let file = |uid, mode| allowed(uid, FileType::RegularFile, mode);
        assert_eq!(file(7, 0o644), READ | WRITE);
        assert_eq!(file(7, 0o4577), READ | EXECUTE);
        assert_eq!(file(7, 0o077), 0);
        assert_eq!(file(0, 0), READ | WRITE);
        assert_eq!(file(0, 0o001), READ | WRITE | EXECUTE);
        assert_eq!(allowed(0, FileType::Directory, 0), READ | WRITE | EXECUTE);
    }
}
