//! Inodes: what the kernel knows by number. An entry lives as long as the kernel remembers it.

use std::collections::HashMap;
use std::sync::Arc;

use ndn_packet::Name;

use crate::names;

/// The number of the mounted folder itself.
pub const ROOT: u64 = 1;

/// What a number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file, as its newest version or what is being written of it.
    File,
    /// One version of a file, by its own word.
    Version(u64),
    /// A file whose newest version this was when it was looked up.
    Newest(u64),
}

#[derive(Debug)]
struct Node {
    parent: u64,
    /// The word in the parent.
    word: Arc<[u8]>,
    kind: Kind,
    /// How often the kernel was told of it.
    lookups: u64,
    /// The version whose bytes the kernel may have.
    read: Option<u64>,
    /// No path leads to it any more.
    gone: bool,
}

/// All inodes that the kernel knows.
#[derive(Debug)]
pub struct Nodes {
    root: Name,
    nodes: HashMap<u64, Node>,
    words: HashMap<(u64, Arc<[u8]>), u64>,
    next: u64,
}

impl Nodes {
    /// For a mount of the folder `root`.
    pub fn new(root: Name) -> Self {
        Self {
            root,
            nodes: HashMap::new(),
            words: HashMap::new(),
            next: ROOT + 1,
        }
    }

    /// The number of `word` in `parent`, told once more to the kernel. A word that stands for something of another kind now
    /// gets a new number.
    pub fn look_up(&mut self, parent: u64, word: &[u8], kind: Kind) -> u64 {
        let key = (parent, Arc::<[u8]>::from(word));
        if let Some(number) = self.words.get(&key).copied() {
            match self.nodes.get_mut(&number) {
                Some(node) if node.kind == kind => {
                    node.lookups += 1;
                    return number;
                }
                Some(node) => node.gone = true,
                None => {}
            }
        }
        let number = self.next;
        self.next += 1;
        self.nodes.insert(
            number,
            Node {
                parent,
                word: key.1.clone(),
                kind,
                lookups: 1,
                read: None,
                gone: false,
            },
        );
        self.words.insert(key, number);
        number
    }

    /// The number of `word` in `parent`, where the kernel knows one.
    pub fn find(&self, parent: u64, word: &[u8]) -> Option<u64> {
        self.words.get(&(parent, Arc::from(word))).copied()
    }

    /// The kernel has forgotten a number so many times; tells whether it does not know it any more.
    pub fn forget(&mut self, number: u64, times: u64) -> bool {
        let Some(node) = self.nodes.get_mut(&number) else {
            return true;
        };
        node.lookups = node.lookups.saturating_sub(times);
        if node.lookups > 0 {
            return false;
        }
        if let Some(node) = self.nodes.remove(&number) {
            self.unbind(node.parent, &node.word, number);
        }
        true
    }

    fn unbind(&mut self, parent: u64, word: &Arc<[u8]>, number: u64) {
        let key = (parent, word.clone());
        if self.words.get(&key) == Some(&number) {
            self.words.remove(&key);
        }
    }

    /// What a number stands for.
    pub fn kind(&self, number: u64) -> Option<Kind> {
        if number == ROOT {
            return Some(Kind::Folder);
        }
        self.nodes.get(&number).map(|node| node.kind)
    }

    /// The kernel reads this version of `number` from now on; tells whether it did so before. `None` is one that changes.
    pub fn has_read(&mut self, number: u64, version: Option<u64>) -> bool {
        let Some(node) = self.nodes.get_mut(&number) else {
            return false;
        };
        let same = version.is_some() && node.read == version;
        node.read = version;
        same
    }

    /// The word of `number`, where it is in the folder `parent`.
    pub fn word_in(&self, number: u64, parent: u64) -> Option<Arc<[u8]>> {
        let node = self.nodes.get(&number)?;
        (node.parent == parent && !node.gone).then(|| node.word.clone())
    }

    /// No path leads to `number` any more.
    pub fn unlink(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.gone = true;
            let (parent, word) = (node.parent, node.word.clone());
            self.unbind(parent, &word, number);
        }
    }

    /// `number` is `word` in `parent` from now on.
    pub fn rename(&mut self, number: u64, parent: u64, word: &[u8]) {
        if let Some(other) = self.find(parent, word)
            && other != number
        {
            self.unlink(other);
        }
        let Some(node) = self.nodes.get_mut(&number) else {
            return;
        };
        let before = (node.parent, node.word.clone());
        let word: Arc<[u8]> = word.into();
        (node.parent, node.word) = (parent, word.clone());
        self.unbind(before.0, &before.1, number);
        self.words.insert((parent, word), number);
    }

    /// The name that a number stands for, without version; `None` where no path leads to it.
    pub fn name(&self, number: u64) -> Option<Name> {
        let mut words = Vec::new();
        let mut at = number;
        while at != ROOT {
            let node = self.nodes.get(&at).filter(|node| !node.gone)?;
            let word: &[u8] = match node.kind {
                Kind::Version(_) => names::version_of(&node.word)?.0,
                _ => &node.word,
            };
            words.push(word);
            at = node.parent;
        }
        let mut name = self.root.clone();
        for word in words.iter().rev() {
            name = names::below(&name, word);
        }
        Some(name)
    }

    /// How many the kernel knows, beside the root.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    #[test]
    fn numbers_live_as_long_as_the_kernel_knows_them() {
        let mut nodes = Nodes::new(name("/r"));
        let folder = nodes.look_up(ROOT, b"d", Kind::Folder);
        let file = nodes.look_up(folder, b"f", Kind::File);
        assert_eq!(nodes.look_up(folder, b"f", Kind::File), file);
        assert_eq!(nodes.name(file), Some(name("/r/d/f")));
        assert_eq!(nodes.name(ROOT), Some(name("/r")));
        let version = nodes.look_up(folder, b"f@v=3", Kind::Version(3));
        assert_eq!(nodes.name(version), Some(name("/r/d/f")));
        nodes.forget(file, 1);
        assert_eq!(nodes.find(folder, b"f"), Some(file));
        nodes.forget(file, 1);
        assert_eq!((nodes.find(folder, b"f"), nodes.kind(file)), (None, None));
        assert_ne!(nodes.look_up(folder, b"f", Kind::File), file);
        nodes.forget(99, 1);
        assert_eq!(nodes.len(), 3);
    }

    #[test]
    fn another_kind_is_another_number() {
        let mut nodes = Nodes::new(name("/"));
        let file = nodes.look_up(ROOT, b"x", Kind::File);
        let folder = nodes.look_up(ROOT, b"x", Kind::Folder);
        assert_ne!(file, folder);
        assert_eq!(nodes.name(file), None);
        nodes.forget(file, 1);
        assert_eq!(nodes.find(ROOT, b"x"), Some(folder));
    }

    #[test]
    fn names_move_with_their_folders() {
        let mut nodes = Nodes::new(name("/"));
        let a = nodes.look_up(ROOT, b"a", Kind::Folder);
        let file = nodes.look_up(a, b"f", Kind::File);
        let target = nodes.look_up(ROOT, b"b", Kind::Folder);
        nodes.rename(a, ROOT, b"b");
        assert_eq!(nodes.name(file), Some(name("/b/f")));
        assert_eq!((nodes.name(target), nodes.find(ROOT, b"a")), (None, None));
        nodes.rename(file, a, b"f");
        assert_eq!(nodes.find(a, b"f"), Some(file));
        nodes.unlink(file);
        assert_eq!((nodes.name(file), nodes.find(a, b"f")), (None, None));
    }
}
