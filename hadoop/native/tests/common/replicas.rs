//! Replicas on disk, as a DataNode leaves them, and a resolver thread in
//! Java's place.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use trunkline_native::{Answer, BlockSource, Secrets};

/// A block file and its checksum file in a folder of their own.
pub struct Files {
    dir: PathBuf,
    pub block: PathBuf,
    pub meta: PathBuf,
    pub data: Vec<u8>,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// CRC-32C, bit by bit.
pub fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

/// Writes `data` as block 7 of some generation, 512 bytes a checksum.
pub fn write(test: &str, genstamp: u64, data: Vec<u8>) -> Files {
    let dir = std::env::temp_dir().join(format!("trunkline-native-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let (block, meta) = (
        dir.join("blk_7"),
        dir.join(format!("blk_7_{genstamp}.meta")),
    );
    let mut sums = vec![0, 1, 2, 0, 0, 2, 0];
    for chunk in data.chunks(512) {
        sums.extend_from_slice(&crc32c(chunk).to_be_bytes());
    }
    std::fs::write(&block, &data).expect("the block");
    std::fs::write(&meta, sums).expect("its checksums");
    Files {
        dir,
        block,
        meta,
        data,
    }
}

/// Bytes without a pattern.
pub fn random(len: usize) -> Vec<u8> {
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x as u8
        })
        .collect()
}

/// Block path, checksum path, length, generation.
pub type Place = (PathBuf, PathBuf, u64, u64);

/// Answers a source's requests from a map of `<pool> <block>`.
pub struct Resolver {
    pub places: Arc<Mutex<HashMap<String, Place>>>,
    pub asked: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    pub fn start(source: &Arc<BlockSource>) -> Self {
        let places: Arc<Mutex<HashMap<String, Place>>> = Arc::default();
        let (asked, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (source, known, count, end) =
            (source.clone(), places.clone(), asked.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let Ok(request) = source.next_request(Duration::from_millis(50)) else {
                    return;
                };
                let Some(request) = request else {
                    continue;
                };
                count.fetch_add(1, Ordering::Relaxed);
                let block = request.rsplit_once(' ').expect("three words").0;
                let place = known.lock().expect("no panic").get(block).cloned();
                let answer = place
                    .as_ref()
                    .map(|(block, meta, length, genstamp)| Answer {
                        block,
                        meta,
                        length: *length,
                        genstamp: *genstamp,
                        secrets: Secrets::default(),
                    });
                source.answer(&request, answer);
            }
        });
        Resolver {
            places,
            asked,
            stop,
            thread: Some(thread),
        }
    }

    /// Says that the files are finalized replica 7 of that generation.
    pub fn add(&self, files: &Files, genstamp: u64) {
        let place = (
            files.block.clone(),
            files.meta.clone(),
            files.data.len() as u64,
            genstamp,
        );
        self.places
            .lock()
            .expect("no panic")
            .insert("BP-1 7".into(), place);
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the resolver does not panic");
        }
    }
}
