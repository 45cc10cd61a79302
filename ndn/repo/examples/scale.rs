//! What the packet store costs at scale, as JSON lines: bytes of index for a series of 1,000,000 packets, and the time to
//! open a repository that holds 10,000,000, was not closed, and was taking 1,000,000 more.

use std::path::Path;
use std::time::Instant;

use ndn_packet::{Data, Name, SigningKey};
use ndn_repo::{Insertion, Repo, RepoOptions, SeriesInfo};

/// Packets of a series.
const SERIES: u64 = 1_000_000;
/// Series.
const COUNT: u64 = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder =
        tempfile::tempdir_in(std::env::args().nth(1).unwrap_or_else(|| String::from(".")))?;
    let repo = open(folder.path())?;
    let began = Instant::now();
    for n in 0..COUNT {
        insert(&repo, &format!("/series/{n}").parse()?)?;
        if n == 0 {
            let mut bytes = 0;
            repo.walk_packets(&Name::new(), &mut |series: SeriesInfo| {
                bytes += series.index_bytes;
                true
            })?;
            tell("repo.index.1m_packets_bytes", bytes as f64, "bytes");
        }
    }
    let took = began.elapsed().as_secs_f64();
    tell(
        "repo.insert.packets_per_s",
        (SERIES * COUNT) as f64 / took,
        "packets/s",
    );
    let index = repo.status()?.index_bytes;
    tell("repo.index.10m_packets_file_bytes", index as f64, "bytes");
    // As a killed process leaves it: nothing is closed, packets are in the log that were not acknowledged, and the lock is
    // free.
    let mut last = repo.insert(&"/series/last".parse()?, true);
    push(&mut last, &"/series/last".parse()?)?;
    let killed = folder.path().join("killed");
    copy(folder.path(), &killed)?;
    let began = Instant::now();
    let again = open(&killed)?;
    tell(
        "repo.start.10m_packets_s",
        began.elapsed().as_secs_f64(),
        "s",
    );
    assert_eq!(again.status()?.packets, SERIES * COUNT);
    Ok(())
}

fn open(folder: &Path) -> ndn_repo::Result<Repo> {
    Repo::open(folder, SigningKey::DigestSha256, &RepoOptions::default())
}

fn insert(repo: &Repo, prefix: &Name) -> Result<(), Box<dyn std::error::Error>> {
    let mut insertion = repo.insert(prefix, true);
    push(&mut insertion, prefix)?;
    insertion.commit()?;
    Ok(())
}

fn push(insertion: &mut Insertion, prefix: &Name) -> Result<(), Box<dyn std::error::Error>> {
    for n in 0..SERIES {
        let name = prefix.append_segment(n);
        let wire = Data::builder(&name)
            .content(&n.to_be_bytes())
            .sign(&SigningKey::DigestSha256);
        insertion.push(&Data::parse(wire)?)?;
    }
    Ok(())
}

/// Copies a repository as it lies there.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path() == *to {
            continue;
        } else if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn tell(name: &str, value: f64, unit: &str) {
    println!("{{\"name\": \"{name}\", \"value\": {value}, \"unit\": \"{unit}\"}}");
}
