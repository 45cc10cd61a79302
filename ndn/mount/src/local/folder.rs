//! A folder that is being listed: a page at a time, however much is in it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Arc, Mutex};

use fuser::{Errno, FileAttr, FileType};
use ndn_packet::Name;
use ndn_repo::Child;

use super::{Handle, Local, lock, told};
use crate::nodes::Kind;
use crate::{attr, names};

/// Children listed at once.
const PAGE: usize = 512;

/// Where a listing stands.
pub struct Folder {
    number: u64,
    name: Name,
    /// Files that nobody else can see yet, as they were at the start. They come first.
    new: Vec<(u64, Arc<[u8]>)>,
    words: BTreeSet<Arc<[u8]>>,
    /// A page of children, and how many came before it.
    page: Vec<Child>,
    before: u64,
}

/// One thing in a folder.
pub struct Entry {
    /// Its word.
    pub word: OsString,
    /// What it is.
    pub kind: FileType,
    origin: Origin,
}

enum Origin {
    New,
    Child(Box<Child>),
}

impl Local {
    /// Begins to list a folder.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`.
    pub fn open_folder(&self, number: u64) -> Result<u64, Errno> {
        if self.kind(number)? != Kind::Folder {
            return Err(Errno::ENOTDIR);
        }
        let new = self.new_files(number);
        let folder = Folder {
            number,
            name: self.name(number)?,
            words: new.iter().map(|(_, word)| word.clone()).collect(),
            new,
            page: Vec::new(),
            before: 0,
        };
        Ok(self
            .handles
            .add(Handle::Folder(Arc::new(Mutex::new(folder)))))
    }

    /// Shows what is in a folder from place `offset` on to `show`, with the place after each, until that says that there is
    /// no more room.
    ///
    /// # Errors
    /// What the repository says.
    pub fn list(
        &self,
        handle: u64,
        mut offset: u64,
        show: &mut dyn FnMut(&Folder, u64, Entry) -> bool,
    ) -> Result<(), Errno> {
        let Handle::Folder(folder) = self.handles.get(handle)? else {
            return Err(Errno::ENOTDIR);
        };
        let mut folder = lock(&folder);
        loop {
            let new = folder.new.len() as u64;
            let entry = if offset < new {
                let word = &folder.new[usize::try_from(offset).unwrap_or(0)].1;
                Some(Entry {
                    word: OsStr::from_bytes(word).to_owned(),
                    kind: FileType::RegularFile,
                    origin: Origin::New,
                })
            } else {
                match self.child(&mut folder, offset - new)? {
                    None => return Ok(()),
                    Some(entry) => entry,
                }
            };
            offset += 1;
            if let Some(entry) = entry
                && !show(&folder, offset, entry)
            {
                return Ok(());
            }
        }
    }

    /// The child at a place; the inner `None` where a path can't have it, or it was shown before.
    fn child(&self, folder: &mut Folder, place: u64) -> Result<Option<Option<Entry>>, Errno> {
        // Whoever begins again sees what is there now.
        if place == 0 || place < folder.before {
            (folder.page, folder.before) = (Vec::new(), 0);
        }
        let index = loop {
            let index = usize::try_from(place - folder.before).unwrap_or(usize::MAX);
            if index < folder.page.len() {
                break index;
            }
            let last = folder.page.last().cloned();
            let page = self
                .repo
                .list(&folder.name, last.as_ref(), PAGE)
                .map_err(|e| told(&e))?;
            if page.is_empty() {
                return Ok(None);
            }
            folder.before += folder.page.len() as u64;
            folder.page = page;
        };
        let child = &folder.page[index];
        // A folder hides the file of its name.
        let hidden = child.file.is_some()
            && folder
                .page
                .get(index + 1)
                .is_some_and(|next| next.component == child.component);
        let component = child.component.as_component();
        let Some(word) = names::shown(component).filter(|_| !hidden) else {
            return Ok(Some(None));
        };
        if folder.words.contains(word.as_bytes()) {
            return Ok(Some(None));
        }
        let kind = match &child.file {
            None => FileType::Directory,
            Some(info) => attr::file_type(info.entry.mode),
        };
        Ok(Some(Some(Entry {
            word: word.to_owned(),
            kind,
            origin: Origin::Child(Box::new(child.clone())),
        })))
    }

    /// The inode of an entry, where the kernel knows one.
    pub fn known(&self, folder: &Folder, entry: &Entry) -> Option<u64> {
        lock(&self.nodes).find(folder.number, entry.word.as_bytes())
    }

    /// What `stat` tells of an entry; the kernel knows it from now on.
    ///
    /// # Errors
    /// `ENOENT` where it is gone meanwhile.
    pub fn entry_attr(&self, folder: &Folder, entry: &Entry) -> Result<FileAttr, Errno> {
        let word = entry.word.as_bytes();
        let known = lock(&self.nodes).find(folder.number, word);
        let is_open = known.is_some_and(|number| self.open_file(number).is_some());
        match &entry.origin {
            Origin::Child(child) if !is_open => {
                let numbered = |kind| lock(&self.nodes).look_up(folder.number, word, kind);
                match &child.file {
                    Some(info) => Ok(self.attr_of_version(numbered(Kind::File), info)),
                    None => {
                        let name = folder.name.append(&child.component);
                        let made = self.repo.folder(&name).map_err(|e| told(&e))?;
                        let made = made.ok_or(Errno::ENOENT)?;
                        Ok(attr::folder(numbered(Kind::Folder), self.owner, made))
                    }
                }
            }
            _ => self.look_up(folder.number, &OsString::from_vec(word.to_vec())),
        }
    }
}
