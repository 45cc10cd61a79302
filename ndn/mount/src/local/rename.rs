//! New names for files and folders. A packet's name is in its digest, so content under a new name is hashed once more; it
//! is not copied.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{MutexGuard, PoisonError};

use fuser::Errno;
use ndn_packet::Name;
use ndn_repo::{Change, FileInfo, Staged};

use super::open::Shared;
use super::{Local, OpenFile, lock, new_word, told};
use crate::names;

/// A change of names.
#[derive(Default)]
struct Moving {
    change: Change,
    /// What each file that the change publishes was before, in its order.
    before: Vec<(Name, u64)>,
}

impl Moving {
    /// `info` becomes what is staged.
    fn add(&mut self, info: &FileInfo, staged: Staged) {
        self.change.publish.push(staged);
        self.before.push((info.name.clone(), info.version));
    }
}

/// An open file that is moved: whoever would write waits, as what is written is hashed with the file's name.
type Held<'a> = (u64, MutexGuard<'a, OpenFile>);

impl Local {
    /// Gives what is `from` in `parent` the name `to` in `to_parent`, in the place of what had it, if `replace` allows.
    ///
    /// A file that gets a free name takes all its versions along; one that replaces another becomes that one's newest
    /// version, and its own older ones go.
    ///
    /// # Errors
    /// As `rename(2)` has them, or what the repository says; nothing is changed then.
    pub fn rename(
        &self,
        parent: u64,
        from: &OsStr,
        to_parent: u64,
        to: &OsStr,
        replace: bool,
    ) -> Result<(), Errno> {
        let _one = lock(&self.namespace);
        let to = new_word(to)?;
        let from_folder = self.name(parent)?;
        let to_folder = self.name(to_parent)?;
        let source = names::below(&from_folder, from.as_bytes());
        let target = names::below(&to_folder, to);
        let moves_folder = self.repo.folder(&source).map_err(|e| told(&e))?.is_some();
        let target_folder = self.repo.folder(&target).map_err(|e| told(&e))?.is_some();
        let target_number = lock(&self.nodes).find(to_parent, to);
        let target_is_open =
            || target_number.is_some_and(|number| self.open_file(number).is_some());
        if !replace && self.must_be_free(to_parent, to, &target).is_err() {
            return Err(Errno::EEXIST);
        }
        if source == target {
            return Ok(());
        }
        let mut moving = Moving::default();
        let folders = &mut moving.change.make_folders;
        folders.extend(self.kept(&from_folder));
        folders.extend(self.kept(&to_folder));
        // What is hashed under its new name takes as long as it takes: nobody waits for that.
        for (_, opened) in self.open_at(&source, moves_folder) {
            settle(&mut lock(&opened.file))?;
        }
        let mut replaces = false;
        if moves_folder {
            if source.is_prefix_of(&target) {
                return Err(Errno::EINVAL);
            }
            if target_folder {
                self.must_be_empty(&target, target_number)?;
            } else if target_is_open() || self.is_file(&target)? {
                return Err(Errno::ENOTDIR);
            }
            self.move_folder(&source, &target, &mut moving)?;
        } else {
            if target_folder {
                return Err(Errno::EISDIR);
            }
            // What is being written in its place is over, as on other file systems; what was closed stays as a version.
            replaces = self.is_file(&target)?;
            self.move_file(&source, &target, replaces, &mut moving)?;
        }
        // From here on nobody opens, and nobody writes what is moved.
        let _nobody_opens = self.moving.write().unwrap_or_else(PoisonError::into_inner);
        let open = self.open_at(&source, moves_folder);
        let mut held: Vec<Held<'_>> = Vec::with_capacity(open.len());
        for (number, opened) in &open {
            let mut file = lock(&opened.file);
            settle(&mut file)?;
            held.push((*number, file));
        }
        let since = match moves_folder {
            true => self.versions_below(&source)?,
            false => self.repo.versions(&source).map_err(|e| told(&e))?,
        };
        self.catch_up(since, (&source, &target), replaces, &mut moving)?;
        let target_open = target_number.and_then(|number| self.open_file(number));
        let mut target_file = target_open.as_ref().map(|opened| lock(&opened.file));
        if let Some(file) = &mut target_file {
            file.hold();
        }
        let Moving { change, before } = moving;
        let published = self.apply(change)?;
        if let Some(file) = &mut target_file {
            file.unlink();
        }
        let number = lock(&self.nodes).find(parent, from.as_bytes());
        if let Some(number) = number {
            lock(&self.nodes).rename(number, to_parent, to);
        }
        self.follow(&mut held, before, published);
        Ok(())
    }

    /// What was published since all there was is staged to be moved goes along.
    fn catch_up(
        &self,
        versions: Vec<FileInfo>,
        (source, target): (&Name, &Name),
        replaces: bool,
        moving: &mut Moving,
    ) -> Result<(), Errno> {
        let known: HashSet<(Name, u64)> = moving.change.remove.iter().cloned().collect();
        for info in versions {
            let gone = (info.name.clone(), info.version);
            if known.contains(&gone) {
                continue;
            }
            let version = (!replaces).then_some(info.version);
            let new = renamed(source, target, &info.name);
            let staged = self.repo.link(&info, &new, version).map_err(|e| told(&e))?;
            moving.add(&info, staged);
            moving.change.remove.push(gone);
        }
        Ok(())
    }

    /// All versions of files below a folder; a file of the folder's own name stays what it is.
    fn versions_below(&self, folder: &Name) -> Result<Vec<FileInfo>, Errno> {
        let mut versions: Vec<FileInfo> = Vec::new();
        self.repo
            .walk(folder, &mut |info| {
                if info.name != *folder {
                    versions.push(info.clone());
                }
                Ok(())
            })
            .map_err(|e| told(&e))?;
        Ok(versions)
    }

    fn is_file(&self, name: &Name) -> Result<bool, Errno> {
        let found = self.repo.find(name, None).map_err(|e| told(&e))?;
        Ok(found.is_some())
    }

    /// What is open of a file, or below a folder; a file of the folder's own name stays what it is.
    fn open_at(&self, source: &Name, is_folder: bool) -> Vec<(u64, Shared)> {
        let files = lock(&self.files);
        let mut open: Vec<(u64, Shared)> = files
            .iter()
            .map(|(number, opened)| (*number, opened.clone()))
            .collect();
        drop(files);
        let nodes = lock(&self.nodes);
        open.retain(|(number, _)| {
            let name = nodes.name(*number);
            name.is_some_and(|name| match is_folder {
                true => source.is_prefix_of(&name) && name != *source,
                false => name == *source,
            })
        });
        open
    }

    fn move_file(
        &self,
        source: &Name,
        target: &Name,
        replaces: bool,
        moving: &mut Moving,
    ) -> Result<(), Errno> {
        let versions = self.repo.versions(source).map_err(|e| told(&e))?;
        let newest = versions.last().ok_or(Errno::ENOENT)?;
        if replaces {
            let staged = self.repo.link(newest, target, None);
            moving.add(newest, staged.map_err(|e| told(&e))?);
        } else {
            self.move_versions(&versions, target, moving)?;
        }
        let gone = versions.into_iter().map(|v| (v.name, v.version));
        moving.change.remove.extend(gone);
        Ok(())
    }

    fn move_versions(
        &self,
        versions: &[FileInfo],
        target: &Name,
        moving: &mut Moving,
    ) -> Result<(), Errno> {
        for info in versions {
            let staged = self.repo.link(info, target, Some(info.version));
            moving.add(info, staged.map_err(|e| told(&e))?);
        }
        Ok(())
    }

    fn move_folder(&self, source: &Name, target: &Name, moving: &mut Moving) -> Result<(), Errno> {
        let renamed = |name: &Name| renamed(source, target, name);
        let versions = self.versions_below(source)?;
        for info in &versions {
            self.move_versions(std::slice::from_ref(info), &renamed(&info.name), moving)?;
        }
        let change = &mut moving.change;
        let gone = versions.into_iter().map(|v| (v.name, v.version));
        change.remove.extend(gone);
        let folders = self.repo.folders(source).map_err(|e| told(&e))?;
        change.make_folders.push(target.clone());
        change.make_folders.extend(folders.iter().map(renamed));
        change.remove_folders.extend(folders);
        Ok(())
    }

    /// Files that are open are what they were, under their new names.
    fn follow(&self, held: &mut [Held<'_>], before: Vec<(Name, u64)>, published: Vec<FileInfo>) {
        let moved: HashMap<(Name, u64), FileInfo> = before.into_iter().zip(published).collect();
        for (number, file) in held {
            if let Some(name) = lock(&self.nodes).name(*number) {
                let version = file.version().map(|info| (info.name.clone(), info.version));
                let info = version.and_then(|version| moved.get(&version));
                file.rename(name, info.cloned());
            }
        }
    }
}

/// What is being written is published first: then it is moved as any other. Who has it open goes on with what it is now.
fn settle(file: &mut OpenFile) -> Result<(), Errno> {
    file.publish()?;
    file.hold();
    Ok(())
}

/// The name that a file at or below `source` has at or below `target`.
fn renamed(source: &Name, target: &Name, name: &Name) -> Name {
    (source.len()..name.len())
        .filter_map(|n| name.get(n))
        .fold(target.clone(), |name, component| name.append(component))
}
