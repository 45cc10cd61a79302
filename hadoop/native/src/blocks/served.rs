//! A replica that is served, and, where it is guarded, what its segments are
//! sealed with.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use ndn_packet::{Name, sha256};

use super::replica::Replica;
use crate::content_key::{GATE_LEN, KeyId, Secret};
use crate::seal::{self, KEY_ID_LEN, Opener, StreamKind, WriteKey};
use crate::segment::{DIGEST_LEN, HEADER_LEN, SegmentDigest, SegmentHeader};
use crate::verify::checksums_match;

/// What the key of a guarded replica comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The write that it came by, if the replica is what it sealed.
    Write(WriteKey, SealedByWrite),
    /// What stock code makes for this block with the block key of that serial
    /// number.
    BlockKey(u32, Secret),
}

impl KeySource {
    /// What the ids of its keys have in common.
    pub fn gate(&self, genstamp: u64) -> Gate {
        match self {
            KeySource::Write(key, _) => Gate::Write(key.id()),
            KeySource::BlockKey(serial, secret) => Gate::Replica(*serial, secret.gate(genstamp)),
        }
    }
}

/// What an Interest for a sealed segment shows by its key id, before a file is
/// opened or read: that its sender was told the id, or has seen it in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The id of a write's key.
    Write([u8; KEY_ID_LEN]),
    /// Serial number of a block key, and what is made with it.
    Replica(u32, [u8; GATE_LEN]),
}

impl Gate {
    /// Whether the id may be that of a key.
    pub fn admits(&self, id: &KeyId) -> bool {
        *self
            == match *id {
                KeyId::Write(id) => Gate::Write(id),
                KeyId::Replica { serial, gate, .. } => Gate::Replica(serial, gate),
            }
    }
}

/// What a write has sealed for a block, all of it: each number under the write's
/// key is bound to one content. The last segment mostly went by the writer's
/// stream, sealed in another way, but its digest is noted like the others: its
/// number is free for that content and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedByWrite {
    /// How many, from the first one on.
    pub segments: u64,
    /// SHA-256 over their digests.
    pub digest: [u8; 32],
}

impl SealedByWrite {
    /// Whether a replica of these segments' digests is just that.
    fn is(&self, manifest: &[u8]) -> bool {
        let len = usize::try_from(self.segments).ok();
        len.and_then(|n| n.checked_mul(DIGEST_LEN)) == Some(manifest.len())
            && sha256(manifest) == self.digest
    }
}

/// An open replica. Any number of workers may read it.
pub struct Served {
    replica: Replica,
    source: Option<KeySource>,
    gate: Option<Gate>,
    seal: OnceLock<Option<Seal>>,
    /// Held by the one that reads the checksum file for all.
    sealing: Mutex<()>,
}

/// Seals the segments of one replica. Only what has the digest that the key is
/// bound to is sealed: a number has one content under a key, whoever seals it.
pub struct Seal {
    /// Names the key.
    pub id: KeyId,
    /// The key.
    pub key: WriteKey,
    opener: Opener,
    manifest: Bytes,
}

impl Served {
    /// A replica; `source` is that of the key it is guarded by, if it is.
    pub fn new(replica: Replica, source: Option<KeySource>) -> Self {
        let genstamp = replica.genstamp();
        Served {
            gate: source.as_ref().map(|source| source.gate(genstamp)),
            replica,
            source,
            seal: OnceLock::new(),
            sealing: Mutex::default(),
        }
    }

    /// Its files.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// What its key comes from.
    pub fn source(&self) -> Option<&KeySource> {
        self.source.as_ref()
    }

    /// Whether whoever asks for segments by this id was told it, as far as can be
    /// seen without reading anything.
    pub fn admits(&self, id: &KeyId) -> bool {
        self.gate.is_some_and(|gate| gate.admits(id))
    }

    /// What seals its segments; `None` where none may be: it has no checksums, or
    /// is not what the write has sealed. Reads the checksum file the first time.
    ///
    /// # Errors
    /// When that does not read.
    pub fn seal(&self) -> io::Result<Option<&Seal>> {
        if let Some(made) = self.seal.get() {
            return Ok(made.as_ref());
        }
        let _one = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = self.seal.get() {
            return Ok(made.as_ref());
        }
        let made = self.make_seal()?;
        Ok(self.seal.get_or_init(|| made).as_ref())
    }

    fn make_seal(&self) -> io::Result<Option<Seal>> {
        let Some(source) = &self.source else {
            return Ok(None);
        };
        // Seen before any digest is made: how long segments are is what the writer has said.
        if matches!(source, KeySource::Write(_, sealed) if sealed.segments != self.replica.segments())
        {
            return Ok(None);
        }
        let Some(manifest) = self.replica.manifest()? else {
            return Ok(None);
        };
        let (key, id) = match source {
            KeySource::Write(_, sealed) if !sealed.is(&manifest) => return Ok(None),
            KeySource::Write(key, _) => (key.clone(), KeyId::Write(key.id())),
            KeySource::BlockKey(serial, secret) => {
                let genstamp = self.replica.genstamp();
                let key = secret.replica_key(genstamp, &sha256(&manifest));
                let id = KeyId::Replica {
                    serial: *serial,
                    gate: secret.gate(genstamp),
                    id: key.id(),
                };
                (key, id)
            }
        };
        Ok(Some(Seal {
            opener: key.opener(StreamKind::Block),
            id,
            key,
            manifest,
        }))
    }

    /// Reads a segment, verifies it and seals it into `to`, which has
    /// [`sealed_len`]. Until it is sealed it lies in `room`, which nobody else sees.
    ///
    /// # Errors
    /// When the files do not read, or are not what they were written as.
    pub fn read_sealed(
        &self,
        seal: &Seal,
        name: &Name,
        (number, header): (u64, &SegmentHeader),
        room: &mut Vec<u8>,
        to: &mut [u8],
    ) -> io::Result<()> {
        room.resize(open_len(header), 0);
        self.replica.read(header, room)?;
        if checksums_match(room) != Some(true) {
            return Err(io::Error::other("its data does not match its checksums"));
        }
        let digest = SegmentDigest::of(room).map(|digest| digest.0);
        let bound = usize::try_from(number)
            .ok()
            .and_then(|n| seal.manifest.as_chunks::<DIGEST_LEN>().0.get(n));
        if digest.is_none() || digest.as_ref() != bound {
            return Err(io::Error::other("its checksums are not those it had"));
        }
        seal.opener
            .seal(name.value(), number, to, seal::from(room))
            .map_err(io::Error::other)
    }
}

fn open_len(header: &SegmentHeader) -> usize {
    HEADER_LEN + header.body_len()
}

/// Length of a sealed segment's content.
pub fn sealed_len(header: &SegmentHeader) -> usize {
    seal::sealed_len(open_len(header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::crc32c;
    use std::path::PathBuf;

    struct Files {
        dir: PathBuf,
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    impl Files {
        fn write(name: &str, data: &[u8]) -> Self {
            let dir = std::env::temp_dir()
                .join(format!("trunkline-served-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            let files = Files { dir };
            files.put(data);
            files
        }

        /// A block and the checksums that match it.
        fn put(&self, data: &[u8]) {
            let mut sums = vec![0, 1, 2, 0, 0, 2, 0];
            for chunk in data.chunks(512) {
                sums.extend_from_slice(&crc32c(chunk).to_be_bytes());
            }
            std::fs::write(self.dir.join("blk_7"), data).unwrap();
            std::fs::write(self.dir.join("blk_7_1.meta"), sums).unwrap();
        }

        fn served(&self, source: KeySource) -> Served {
            let (block, meta) = (self.dir.join("blk_7"), self.dir.join("blk_7_1.meta"));
            let length = std::fs::metadata(&block).unwrap().len();
            let replica = Replica::open(&block, &meta, length, 1, 1024).unwrap();
            Served::new(replica, Some(source))
        }
    }

    fn name(id: KeyId, segment: u64) -> Name {
        let version: Name = "/hadoop/blocks/p/7/v=1".parse().unwrap();
        version
            .append_keyword(id.to_bytes())
            .append_segment(segment)
    }

    fn sealed(served: &Served, segment: u64) -> io::Result<(Name, Vec<u8>)> {
        let seal = served.seal()?.expect("a key");
        let name = name(seal.id, segment);
        let header = served.replica().header(segment).unwrap();
        let mut content = vec![0; sealed_len(&header)];
        served.read_sealed(
            seal,
            &name,
            (segment, &header),
            &mut Vec::new(),
            &mut content,
        )?;
        Ok((name, content))
    }

    fn secret() -> KeySource {
        KeySource::BlockKey(3, Secret::new(b"made with a block key").unwrap())
    }

    #[test]
    fn all_holders_seal_alike_and_another_content_has_another_key() {
        let data = vec![7; 2500];
        let (one, two) = (Files::write("one", &data), Files::write("two", &data));
        let (first, second) = (one.served(secret()), two.served(secret()));
        for segment in 0..3 {
            let (name, content) = sealed(&first, segment).unwrap();
            assert_eq!(sealed(&second, segment).unwrap().1, content);
            let key = &first.seal().unwrap().unwrap().key;
            let opened = key.opener(StreamKind::Block);
            let opened = opened.open(name.value(), segment, &content).unwrap();
            assert_eq!(checksums_match(&opened), Some(true));
        }
        let mut other = data;
        other[2400] ^= 1;
        let three = Files::write("three", &other);
        let third = three.served(secret());
        let (first, third) = (
            first.seal().unwrap().unwrap(),
            third.seal().unwrap().unwrap(),
        );
        assert_ne!(first.id, third.id);
        assert_ne!(first.key, third.key);
        assert!(matches!(first.id, KeyId::Replica { serial: 3, .. }));
    }

    #[test]
    fn the_writes_key_is_for_what_the_write_sealed() {
        let files = Files::write("write", &[7; 2500]);
        let key = WriteKey::new(&[9; 16]);
        let open = files.served(secret());
        let manifest = open.replica().manifest().unwrap().unwrap();
        let sealed = |segments: usize| SealedByWrite {
            segments: segments as u64,
            digest: sha256(&manifest[..segments * DIGEST_LEN]),
        };
        assert_eq!(manifest.len(), 3 * DIGEST_LEN);
        let all = files.served(KeySource::Write(key.clone(), sealed(3)));
        let seal = all.seal().unwrap().expect("the write's key");
        assert_eq!((seal.id, &seal.key), (KeyId::Write(key.id()), &key));
        let digest = [0; 32];
        for other in [
            sealed(1),
            sealed(2),
            SealedByWrite {
                digest,
                ..sealed(3)
            },
            SealedByWrite {
                segments: 4,
                ..sealed(3)
            },
            SealedByWrite {
                segments: u64::MAX,
                ..sealed(3)
            },
        ] {
            let other = files.served(KeySource::Write(key.clone(), other));
            assert!(other.seal().unwrap().is_none(), "some of it came otherwise");
        }
    }

    /// A stock DataNode that finds the file shorter takes the shorter length, under
    /// the same generation stamp: what is left of the last segment matches its
    /// checksums, and its number was used for the whole one.
    #[test]
    fn a_replica_that_was_cut_short_has_not_the_writes_key() {
        let data = vec![7; 2500];
        let files = Files::write("shorter", &data);
        let key = WriteKey::new(&[9; 16]);
        let manifest = files.served(secret()).replica().manifest();
        let manifest = manifest.unwrap().unwrap();
        let noted = |segments: usize| SealedByWrite {
            segments: segments as u64,
            digest: sha256(&manifest[..segments * DIGEST_LEN]),
        };
        let by = |segments| files.served(KeySource::Write(key.clone(), noted(segments)));
        let whole = sealed(&by(3), 2).unwrap();
        files.put(&data[..2048 + 100]);
        for segments in [2, 3] {
            let cut = by(segments);
            assert!(cut.seal().unwrap().is_none(), "{segments} noted");
        }
        files.put(&data);
        assert_eq!(sealed(&by(3), 2).unwrap(), whole);
    }

    /// Sealed, it would give away what the right content is sealed with.
    #[test]
    fn a_corrupt_replica_is_not_sealed() {
        let mut data = vec![7; 2500];
        let files = Files::write("corrupt", &data);
        let served = files.served(secret());
        sealed(&served, 1).unwrap();
        data[1500] ^= 1;
        std::fs::write(files.dir.join("blk_7"), &data).unwrap();
        sealed(&served, 0).unwrap();
        assert!(sealed(&served, 1).is_err(), "data that does not match");
        // Data and checksums that match each other, and are not those of before.
        files.put(&data);
        assert!(sealed(&served, 1).is_err(), "checksums that have changed");
        sealed(&files.served(secret()), 1).unwrap();
    }

    #[test]
    fn a_key_id_is_told_from_others_before_anything_is_read() {
        let files = Files::write("gate", &[7; 2500]);
        let write_key = WriteKey::new(&[9; 16]);
        let sealed = SealedByWrite {
            segments: 3,
            digest: [0; 32],
        };
        let (written, made) = (
            files.served(KeySource::Write(write_key.clone(), sealed)),
            files.served(secret()),
        );
        let id = made.seal().unwrap().unwrap().id;
        let KeyId::Replica { serial, gate, .. } = id else {
            panic!("made with a block key");
        };
        assert!(made.admits(&id) && !written.admits(&id));
        let of_write = KeyId::Write(write_key.id());
        assert!(written.admits(&of_write) && !made.admits(&of_write));
        assert!(!written.admits(&KeyId::Write([1; 8])));
        for (serial, gate) in [(serial + 1, gate), (serial, [1; 8])] {
            let id = [1; 8];
            assert!(!made.admits(&KeyId::Replica { serial, gate, id }));
        }
    }

    /// It is a mebibyte of a large block, and a reader's first window comes at once.
    #[test]
    fn the_checksum_file_is_read_by_one_for_all() {
        let files = Files::write("one-reads", &[7; 2500]);
        let served = files.served(secret());
        std::fs::write(files.dir.join("blk_7_1.meta"), [0; 7]).unwrap();
        let reading = served.sealing.lock().unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| served.seal().map(|seal| seal.is_none()));
            // Long enough for one that does not wait to find the file too short.
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(served.seal.set(None).is_ok(), "it did not wait");
            drop(reading);
            assert!(waits.join().unwrap().unwrap(), "it read once more");
        });
    }

    #[test]
    fn without_checksums_there_is_no_key() {
        let files = Files::write("bare", &[7; 100]);
        std::fs::write(files.dir.join("blk_7_1.meta"), [0, 1, 0, 0, 0, 2, 0]).unwrap();
        assert!(files.served(secret()).seal().unwrap().is_none());
    }

    /// How long segments are is what the writer has said: digests of a block that was cut into bytes would
    /// take sixteen times its length.
    #[test]
    fn no_digest_is_made_for_a_write_that_has_sealed_another_number_of_segments() {
        let dir = std::env::temp_dir().join(format!("trunkline-served-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (block, meta) = (dir.join("blk_7"), dir.join("blk_7_1001.meta"));
        std::fs::write(&block, [1; 1024]).unwrap();
        // Without the checksums: whoever wants a digest meets an error.
        std::fs::write(&meta, [0, 1, 2, 0, 0, 2, 0]).unwrap();
        let seal = |segments| {
            let replica = Replica::open(&block, &meta, 1024, 1001, 512).unwrap();
            let digest = [0; 32];
            let key = WriteKey::draw().unwrap();
            let source = KeySource::Write(key, SealedByWrite { segments, digest });
            Served::new(replica, Some(source))
                .seal()
                .map(|seal| seal.is_some())
        };
        assert!(!seal(1).unwrap());
        assert!(!seal(3).unwrap());
        assert!(seal(2).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
