//! A repository, mounted.

#![allow(dead_code)] // each test file uses its part

pub mod bad_disk;
pub mod world;

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ndn_mount::{Mount, MountOptions};
use ndn_packet::{Name, SigningKey};
use ndn_repo::{PutOptions, Repo, RepoOptions};
use tempfile::TempDir;

/// A repository with a mount; both go when it is dropped.
pub struct Mounted {
    pub repo: Repo,
    pub mount: Option<Mount>,
    pub folder: TempDir,
}

/// Whether file systems can be mounted here; says why not.
pub fn can_mount() -> bool {
    let open = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    let why = match open {
        Err(error) => error.to_string(),
        Ok(_) if !rustix::process::geteuid().is_root() => String::from("not root"),
        Ok(_) => return true,
    };
    println!("skipped: /dev/fuse: {why}");
    false
}

pub fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

pub fn open(store: &Path) -> Repo {
    Repo::open(store, SigningKey::DigestSha256, &RepoOptions::default()).expect("a repository")
}

/// Publishes a new version of a file without a mount; tells its number.
pub fn publish(repo: &Repo, uri: &str, content: &[u8]) -> u64 {
    publish_as(repo, uri, content, &PutOptions::default())
}

pub fn publish_as(repo: &Repo, uri: &str, content: &[u8], options: &PutOptions) -> u64 {
    let mut file = repo.put(&name(uri), options).expect("a writer");
    file.write_all(content).expect("written");
    let staged = file.finish().expect("whole");
    repo.publish(vec![staged]).expect("published")[0].version
}

/// What a call that must fail says; 0 where it did not fail.
pub fn errno(result: std::io::Result<impl Sized>) -> i32 {
    match result {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().expect("an errno"),
    }
}

/// A new repository, mounted as `options` say.
pub fn mounted_with(options: &MountOptions) -> Option<Mounted> {
    if !can_mount() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mnt")).expect("a folder");
    let repo = open(&folder.path().join("store"));
    let mut mounted = Mounted {
        repo,
        mount: None,
        folder,
    };
    mounted.mount_again(options);
    Some(mounted)
}

pub fn mounted() -> Option<Mounted> {
    mounted_with(&MountOptions::default())
}

impl Mounted {
    pub fn mount_again(&mut self, options: &MountOptions) {
        let store = self.folder.path().join("store");
        let mount = Mount::local(&self.repo, &store, &self.root(), options);
        self.mount = Some(mount.expect("mounted"));
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn unmount(&mut self) {
        let mount = self.mount.take().expect("mounted");
        mount.unmount().expect("unmounted");
    }

    /// The content of the newest version, as the repository has it.
    pub fn published(&self, uri: &str) -> Option<Vec<u8>> {
        let reader = self.repo.open_file(&name(uri), None).ok()?;
        let mut content = vec![0; reader.size() as usize];
        reader.read_at(0, &mut content).expect("read");
        reader.verify(&mut |_| true).expect("whole");
        Some(content)
    }

    pub fn versions(&self, uri: &str) -> Vec<u64> {
        let versions = self.repo.versions(&name(uri)).expect("read");
        versions.iter().map(|info| info.version).collect()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.mount.take());
    }
}

pub fn xattr(path: &Path, attribute: &str) -> Option<String> {
    let mut value = [0; 65536];
    let n = rustix::fs::getxattr(path, attribute, &mut value).ok()?;
    Some(String::from_utf8(value[..n].to_vec()).expect("text"))
}

pub fn words(path: &Path) -> Vec<String> {
    let mut words: Vec<String> = std::fs::read_dir(path)
        .expect("a folder")
        .map(|entry| {
            let word = entry.expect("an entry").file_name();
            String::from_utf8_lossy(word.as_bytes()).into_owned()
        })
        .collect();
    words.sort();
    words
}

/// Bytes without order.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        })
        .collect()
}
