//! Which names there are: files and folders made, linked, found and removed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, PoisonError};

use fuser::{Errno, FileAttr};
use ndn_packet::Name;
use ndn_repo::Change;

use super::{Access, Handle, Local, OpenFile, Opened, Shared, lock, now_ns, told};
use crate::attr;
use crate::names::{self, BadWord};
use crate::nodes::Kind;

impl Local {
    /// Makes a new file and opens it.
    ///
    /// # Errors
    /// `EEXIST`, a word that is none, or what the repository says.
    pub fn create(
        &self,
        parent: u64,
        word: &OsStr,
        mode: u32,
        access: Access,
    ) -> Result<(FileAttr, u64), Errno> {
        let _one = lock(&self.namespace);
        let word = new_word(word)?;
        let name = names::below(&self.name(parent)?, word);
        self.must_be_free(parent, word, &name)?;
        let mode = mode & 0o7777 | libc::S_IFREG;
        let mut file = OpenFile::create(&self.repo, &self.keeping, name, mode)?;
        file.add_user(access);
        self.touch();
        let number = lock(&self.nodes).look_up(parent, word, Kind::File);
        let attr = self.attr_of(number, &file);
        let shared = Opened::new(file, 1);
        lock(&self.files).insert(number, shared.clone());
        Ok((attr, self.handles.add(Handle::File(number, shared, access))))
    }

    /// Makes a file that is `content` at once.
    fn create_whole(
        &self,
        parent: u64,
        word: &OsStr,
        mode: u32,
        content: &[u8],
    ) -> Result<FileAttr, Errno> {
        let _one = lock(&self.namespace);
        let word = new_word(word)?;
        let name = names::below(&self.name(parent)?, word);
        self.must_be_free(parent, word, &name)?;
        let mut file = OpenFile::create(&self.repo, &self.keeping, name, mode)?;
        if file.write(0, 0, content)? < content.len() {
            return Err(Errno::ENOSPC);
        }
        file.publish()?;
        self.touch();
        let number = lock(&self.nodes).look_up(parent, word, Kind::File);
        Ok(self.attr_of(number, &file))
    }

    /// Makes an empty file without opening it.
    ///
    /// # Errors
    /// As [`Local::create`].
    pub fn make_file(&self, parent: u64, word: &OsStr, mode: u32) -> Result<FileAttr, Errno> {
        match mode & libc::S_IFMT {
            0 | libc::S_IFREG => {
                self.create_whole(parent, word, mode & 0o7777 | libc::S_IFREG, &[])
            }
            _ => Err(Errno::EPERM),
        }
    }

    /// Makes a symbolic link: a file whose mode says so, and whose content is where it leads.
    ///
    /// # Errors
    /// As [`Local::create`].
    pub fn symlink(&self, parent: u64, word: &OsStr, target: &OsStr) -> Result<FileAttr, Errno> {
        self.create_whole(parent, word, libc::S_IFLNK | 0o777, target.as_bytes())
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// `EINVAL`, or what the repository says.
    pub fn read_link(&self, number: u64) -> Result<Vec<u8>, Errno> {
        let name = self.name(number)?;
        let reader = self.repo.open_file(&name, None).map_err(|e| told(&e))?;
        let most = usize::try_from(libc::PATH_MAX).unwrap_or(0);
        let size = usize::try_from(reader.size()).unwrap_or(usize::MAX);
        if reader.entry().mode & libc::S_IFMT != libc::S_IFLNK || size > most {
            return Err(Errno::EINVAL);
        }
        let mut target = vec![0; size];
        reader.read_at(0, &mut target).map_err(|e| told(&e))?;
        Ok(target)
    }

    pub(super) fn must_be_free(&self, parent: u64, word: &[u8], name: &Name) -> Result<(), Errno> {
        let open = lock(&self.nodes)
            .find(parent, word)
            .and_then(|number| self.open_file(number));
        let taken = open.is_some_and(|opened| !lock(&opened.file).is_gone())
            || self.repo.folder(name).map_err(|e| told(&e))?.is_some()
            || self.repo.find(name, None).map_err(|e| told(&e))?.is_some();
        if taken { Err(Errno::EEXIST) } else { Ok(()) }
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// As [`Local::create`].
    pub fn make_folder(&self, parent: u64, word: &OsStr) -> Result<FileAttr, Errno> {
        let _one = lock(&self.namespace);
        let word = new_word(word)?;
        let name = names::below(&self.name(parent)?, word);
        self.must_be_free(parent, word, &name)?;
        self.apply(Change {
            make_folders: vec![name],
            ..Change::default()
        })?;
        let number = lock(&self.nodes).look_up(parent, word, Kind::Folder);
        Ok(attr::folder(number, self.owner, now_ns()))
    }

    /// Removes a file, all its versions.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, or what the repository says. A version alone is removed by its own word.
    pub fn unlink(&self, parent: u64, word: &OsStr) -> Result<(), Errno> {
        let _one = lock(&self.namespace);
        let word = word.as_bytes();
        let folder = self.name(parent)?;
        let name = names::below(&folder, word);
        if self.repo.folder(&name).map_err(|e| told(&e))?.is_some() {
            return Err(Errno::EISDIR);
        }
        // Nobody opens it, and nobody publishes what is written to it, until it is gone.
        let _nobody_opens = self.moving.write().unwrap_or_else(PoisonError::into_inner);
        let number = lock(&self.nodes).find(parent, word);
        let open = number.and_then(|number| self.open_file(number));
        let mut file = open.as_ref().map(|opened| lock(&opened.file));
        let mut remove = self.versions(&name)?;
        if remove.is_empty() && open.is_none() {
            let (file, version) = names::version_of(word).ok_or(Errno::ENOENT)?;
            let name = names::below(&folder, file);
            // The file itself may be open.
            let number = lock(&self.nodes).find(parent, file);
            if let Some(opened) = number.and_then(|number| self.open_file(number)) {
                lock(&opened.file).hold();
            }
            let found = self.repo.find(&name, Some(version)).map_err(|e| told(&e))?;
            remove = vec![(found.ok_or(Errno::ENOENT)?.name, version)];
        }
        if let Some(file) = &mut file {
            file.hold();
        }
        self.apply(Change {
            remove,
            make_folders: self.kept(&folder),
            ..Change::default()
        })?;
        // No path leads to it any more.
        if let Some(file) = &mut file {
            file.unlink();
        }
        if let Some(number) = number {
            lock(&self.nodes).unlink(number);
        }
        Ok(())
    }

    fn versions(&self, name: &Name) -> Result<Vec<(Name, u64)>, Errno> {
        let versions = self.repo.versions(name).map_err(|e| told(&e))?;
        Ok(versions.into_iter().map(|v| (v.name, v.version)).collect())
    }

    /// A folder stays when the last file in it goes.
    pub(super) fn kept(&self, folder: &Name) -> Vec<Name> {
        match *folder == self.root {
            true => Vec::new(),
            false => vec![folder.clone()],
        }
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENOTEMPTY`, or what the repository says.
    pub fn remove_folder(&self, parent: u64, word: &OsStr) -> Result<(), Errno> {
        let _one = lock(&self.namespace);
        let folder = self.name(parent)?;
        let name = names::below(&folder, word.as_bytes());
        if self.repo.folder(&name).map_err(|e| told(&e))?.is_none() {
            let found = self.repo.find(&name, None).map_err(|e| told(&e))?;
            return Err(found.map_or(Errno::ENOENT, |_| Errno::ENOTDIR));
        }
        let number = lock(&self.nodes).find(parent, word.as_bytes());
        self.must_be_empty(&name, number)?;
        self.apply(Change {
            remove_folders: vec![name],
            make_folders: self.kept(&folder),
            ..Change::default()
        })?;
        if let Some(number) = number {
            lock(&self.nodes).unlink(number);
        }
        Ok(())
    }

    pub(super) fn must_be_empty(&self, folder: &Name, number: Option<u64>) -> Result<(), Errno> {
        let listed = self.repo.list(folder, None, 1).map_err(|e| told(&e))?;
        let new = number.is_some_and(|number| !self.new_files(number).is_empty());
        match listed.is_empty() && !new {
            true => Ok(()),
            false => Err(Errno::ENOTEMPTY),
        }
    }

    /// Words of files in a folder that nobody else can see yet, with their inodes.
    pub(super) fn new_files(&self, folder: u64) -> Vec<(u64, Arc<[u8]>)> {
        let open: Vec<(u64, Shared)> = lock(&self.files)
            .iter()
            .map(|(number, file)| (*number, file.clone()))
            .collect();
        open.into_iter()
            .filter_map(|(number, file)| {
                // First, so that nobody waits for what is not of this folder.
                let word = lock(&self.nodes).word_in(number, folder)?;
                let file = lock(&file.file);
                (!file.is_published() && !file.is_gone()).then_some((number, word))
            })
            .collect()
    }
}

/// A word that may name a new file or folder.
pub fn new_word(word: &OsStr) -> Result<&[u8], Errno> {
    names::new_word(word).map_err(|bad| match bad {
        BadWord::TooLong => Errno::ENAMETOOLONG,
        BadWord::Version => Errno::EINVAL,
    })
}
