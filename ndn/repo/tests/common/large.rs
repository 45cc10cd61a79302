//! Large files whose size nobody knows, as a mount's.

use ndn_repo::disk::Disk;
use ndn_repo::{FileWriter, PutOptions, Repo};

use super::{SimDisk, name};

pub const MIB: usize = 1 << 20;

/// They stream from the second block on.
pub fn options() -> PutOptions {
    PutOptions {
        segment_bytes: 8000,
        stream_from: MIB as u64,
        ..PutOptions::default()
    }
}

pub fn writer(repo: &Repo) -> FileWriter {
    repo.put(&name("/large"), &options()).expect("a writer")
}

/// Publishes, and reads it back: every byte, its signature, and the size of its file.
pub fn published(repo: &Repo, file: FileWriter) -> Vec<u8> {
    let staged = file.finish().expect("whole");
    let info = repo.publish(vec![staged]).expect("published").remove(0);
    let reader = repo
        .open_file(&info.name, Some(info.version))
        .expect("there");
    reader.verify(&mut |_| true).expect("as it was put");
    let mut content = vec![0; info.entry.size as usize];
    assert_eq!(
        reader.read_at(0, &mut content).expect("read"),
        content.len()
    );
    content
}

/// The longest content file that is not yet published.
pub fn longest(disk: &SimDisk) -> u64 {
    let incoming = disk
        .files()
        .into_iter()
        .filter(|path| path.starts_with("incoming"));
    let sizes = incoming.map(|path| disk.open(&path).and_then(|f| f.size()).expect("a size"));
    sizes.max().expect("a file")
}
