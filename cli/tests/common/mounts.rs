//! Mounts in tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Bench;

/// Whether file systems can be mounted here; says why not.
pub fn can_mount() -> bool {
    let open = fs::OpenOptions::new()
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

/// A mount that is gone when the test is over, whatever became of its process.
pub struct MountPoint(pub PathBuf);

impl MountPoint {
    pub fn new(bench: &Bench, name: &str) -> Self {
        let path = bench.path(name);
        fs::create_dir(&path).expect("a folder");
        MountPoint(path)
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    pub fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("the mounts");
        let path = self.0.display().to_string();
        mounts
            .lines()
            .any(|line| line.split(' ').nth(1) == Some(&path))
    }

    pub fn detach(&self) {
        // Fails only where nothing is mounted.
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        if self.is_mounted() {
            self.detach();
        }
    }
}

/// The configuration of a repository that serves /data.
pub fn configure(bench: &Bench) -> String {
    let config = bench.path("repo.toml");
    let text = "[repo]\ndirectory = \"store\"\n[[serve]]\nprefix = \"/data\"\n";
    fs::write(&config, text).expect("a configuration");
    config.display().to_string()
}

pub fn xattr(path: &Path, attribute: &str) -> String {
    let mut value = [0; 1024];
    let n = rustix::fs::getxattr(path, attribute, &mut value).expect("an attribute");
    String::from_utf8_lossy(&value[..n]).into_owned()
}
