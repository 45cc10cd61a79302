//! Files in, served, listed and removed, on a real folder.

mod common;

use std::io::{Cursor, Write};
use std::path::Path;

use common::{SimDisk, ask, name, noise, open, open_at};
use ndn_endpoint::rdr::Metadata;
use ndn_packet::{ComponentBuf, Name, Verifier, sha256};
use ndn_repo::{FileInfo, PutOptions, Repo, RepoError};

fn options(segment_bytes: u32, size: Option<usize>) -> PutOptions {
    PutOptions {
        segment_bytes,
        size: size.map(|n| n as u64),
        mtime_ns: Some(1_000),
        ..PutOptions::default()
    }
}

fn put(repo: &Repo, name: &Name, content: &[u8], options: &PutOptions) -> FileInfo {
    let mut file = repo.put(name, options).expect("a writer");
    file.copy_from(&mut Cursor::new(content), &mut |_| {})
        .expect("written");
    let staged = file.finish().expect("whole");
    repo.publish(vec![staged]).expect("published").remove(0)
}

fn segments(repo: &Repo, info: &FileInfo) -> Vec<u8> {
    let versioned = info.name.append_version(info.version);
    let mut content = Vec::new();
    for n in 0..=info.entry.last_segment() {
        let data = ask(repo, &versioned.append_segment(n), false)
            .expect("read")
            .expect("here");
        assert!(data.verify_digest());
        assert_eq!(data.is_final_block(), n == info.entry.last_segment());
        content.extend_from_slice(data.content_slice());
    }
    assert_eq!(
        ask(
            repo,
            &versioned.append_segment(info.entry.last_segment() + 1),
            false
        )
        .expect("read"),
        None
    );
    content
}

#[test]
fn what_was_put_is_served_whatever_its_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = open_at(folder.path()).expect("a repository");
    for size in [0, 1, 7, 8, 9, 16, 100, 1 << 20, (1 << 20) + 1, 3_000_001] {
        for known in [true, false] {
            let segment = if size > 1000 { 8000 } else { 8 };
            let content = noise(size, size as u64 + 1);
            let object = name(&format!("/data/{size}/{known}"));
            let info = put(
                &repo,
                &object,
                &content,
                &options(segment, known.then_some(size)),
            );
            assert!(segments(&repo, &info) == content, "{size} {known}");
            let reader = repo.open_file(&object, None).expect("a reader");
            let mut all = vec![0; size + 10];
            assert_eq!(reader.read_at(0, &mut all).expect("read"), size);
            assert!(all[..size] == content);
            let mut part = vec![0; 21];
            let n = reader.read_at(5, &mut part).expect("read");
            assert_eq!(
                &part[..n],
                &content[5.min(size)..26.min(size).max(5.min(size))]
            );
            reader.verify(&mut |_| true).expect("whole");
        }
    }
    let again = open_at(folder.path());
    assert!(matches!(again, Err(RepoError::Locked(_))));
    drop(repo);
    let repo = open_at(folder.path()).expect("it is free again");
    let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
    assert_eq!((report.files, report.damaged.len()), (20, 0));
}

#[test]
fn packets_are_the_same_bytes_each_time_and_are_found_by_their_digest() {
    let disk = SimDisk::default();
    let object = name("/a/b");
    let repo = open(&disk).expect("a repository");
    let info = put(&repo, &object, b"0123456789", &options(4, Some(10)));
    let first = object.append_version(info.version).append_segment(0);
    let before = ask(&repo, &first, false).expect("read").expect("here");
    let signed = ask(&repo, &object.append_keyword("metadata"), true)
        .expect("read")
        .expect("here");
    drop(repo);
    let repo = open(&disk).expect("a repository");
    assert_eq!(
        ask(&repo, &first, false).expect("read"),
        Some(before.clone())
    );
    assert_eq!(
        ask(&repo, &object.append_keyword("metadata"), true).expect("read"),
        Some(signed)
    );
    assert_eq!(
        ask(&repo, &before.full_name(), false).expect("read"),
        Some(before)
    );
    let other = first.append(ComponentBuf::implicit_digest(&[0; 32]));
    assert_eq!(ask(&repo, &other, false).expect("read"), None);
}

#[test]
fn one_signature_vouches_for_the_manifest_and_by_it_for_every_segment() {
    let repo = open(&SimDisk::default()).expect("a repository");
    let object = name("/a");
    let content = noise(1000, 3);
    let info = put(&repo, &object, &content, &options(100, Some(1000)));
    let told = ask(&repo, &object.append_keyword("metadata"), true)
        .expect("read")
        .expect("here");
    assert!(Verifier::hmac_sha256(b"the owner").verify(&told));
    let metadata = Metadata::from_data(&told).expect("metadata");
    let versioned = object.append_version(info.version);
    assert_eq!(metadata.name, versioned);
    assert_eq!((metadata.size, metadata.last), (Some(1000), Some(9)));
    let mut manifest = Vec::new();
    let mut n = 0;
    while let Some(data) = ask(
        &repo,
        &versioned.append_keyword("manifest").append_segment(n),
        false,
    )
    .expect("read")
    {
        assert!(data.verify_digest());
        manifest.extend_from_slice(data.content_slice());
        n += 1;
    }
    assert_eq!(n, 4, "three digests of 32 bytes fit into 100");
    assert_eq!(metadata.manifest_digest, Some(sha256(&manifest)));
    for (n, digest) in manifest.as_chunks::<32>().0.iter().enumerate() {
        let data = ask(&repo, &versioned.append_segment(n as u64), false)
            .expect("read")
            .expect("here");
        assert_eq!(data.signature_value(), digest);
    }
}

#[test]
fn versions_stay_until_they_are_removed() {
    let repo = open(&SimDisk::default()).expect("a repository");
    let object = name("/a/file");
    let old = put(&repo, &object, b"old", &options(8, None));
    let new = put(&repo, &object, b"new!", &options(8, None));
    assert!(new.version > old.version);
    assert_eq!(segments(&repo, &old), b"old");
    assert_eq!(segments(&repo, &new), b"new!");
    assert_eq!(
        repo.versions(&object).expect("read"),
        [old.clone(), new.clone()]
    );
    assert_eq!(repo.find(&object, None).expect("read"), Some(new.clone()));
    let any = ask(&repo, &object, true).expect("read").expect("here");
    assert_eq!(any.content_slice(), b"new!");

    let again = PutOptions {
        version: Some(old.version),
        ..options(8, None)
    };
    assert!(matches!(
        repo.put(&object, &again),
        Err(RepoError::VersionExists { .. })
    ));
    assert_eq!(
        repo.remove(&[(object.clone(), new.version)])
            .expect("removed"),
        1
    );
    assert_eq!(
        repo.remove(&[(object.clone(), new.version)])
            .expect("removed"),
        0
    );
    assert_eq!(repo.find(&object, None).expect("read"), Some(old));
    let gone = object.append_version(new.version).append_segment(0);
    assert_eq!(ask(&repo, &gone, false).expect("read"), None);
}

#[test]
fn folders_are_listed_page_by_page_and_by_name() {
    let repo = open(&SimDisk::default()).expect("a repository");
    for file in ["/a/x", "/a/y/1", "/a/y/2", "/a/z", "/a/z/below", "/b"] {
        put(&repo, &name(file), b"x", &options(8, None));
    }
    repo.make_folder(&name("/a/empty")).expect("made");
    repo.make_folder(&name("/a/z")).expect("made");
    let told =
        |page: usize| {
            let mut all = Vec::new();
            let mut after = None;
            loop {
                let children = repo.list(&name("/a"), after.as_ref(), page).expect("read");
                let Some(last) = children.last() else {
                    return all;
                };
                all.extend(children.iter().map(|c| {
                    format!("{}{}", c.component, if c.file.is_some() { "" } else { "/" })
                }));
                after = Some(last.clone());
            }
        };
    let expected = ["x", "y/", "z", "z/", "empty/"];
    for page in 1..7 {
        assert_eq!(told(page), expected, "{page} at once");
    }
    let metadata = ask(&repo, &name("/a/32=ls/32=metadata"), true)
        .expect("read")
        .expect("here");
    let told = Metadata::from_data(&metadata).expect("metadata");
    let versioned = told.name;
    let manifest = ask(
        &repo,
        &ndn_repo::manifest_name(&versioned).append_segment(0),
        false,
    )
    .expect("read")
    .expect("here");
    assert_eq!(
        told.manifest_digest,
        Some(ndn_packet::sha256(manifest.content_slice()))
    );
    put(&repo, &name("/a/later"), b"x", &options(8, None));
    // Nor do others who ask for other folders drive it out.
    for n in 0..30 {
        let file = name(&format!("/other/{n}/f"));
        put(&repo, &file, b"x", &options(8, None));
        let asked = name(&format!("/other/{n}/32=ls/32=metadata"));
        ask(&repo, &asked, true).expect("read").expect("here");
    }
    let listing = ask(&repo, &versioned.append_segment(0), false)
        .expect("read")
        .expect("it is kept for who asked");
    assert_eq!(listing.content_slice(), b"x\0y/\0z\0z/\0empty/\0");
    assert_eq!(manifest.content_slice(), listing.signature_value());
    assert_eq!(
        ask(&repo, &name("/none/32=ls/32=metadata"), true).expect("read"),
        None
    );
    assert!(
        ask(&repo, &name("/b/32=versions/32=metadata"), true)
            .expect("read")
            .is_some()
    );

    assert!(matches!(
        repo.remove_folder(&name("/a/y")),
        Err(RepoError::NotEmpty(_))
    ));
    assert!(repo.remove_folder(&name("/a/empty")).expect("removed"));
}

#[test]
fn a_file_may_be_written_here_and_there() {
    let repo = open(&SimDisk::default()).expect("a repository");
    let object = name("/f");
    let mut file = repo.put(&object, &options(8, None)).expect("a writer");
    file.write_all(b"0123456789").expect("written");
    file.write_at(3, b"abc").expect("written");
    file.write_at(12, b"z").expect("written");
    let mut seen = [9; 20];
    let n = file.read_at(2, &mut seen).expect("read");
    assert_eq!(&seen[..n], b"2abc6789\0\0z");
    file.set_size(11).expect("cut");
    let staged = file.finish().expect("whole");
    let info = repo.publish(vec![staged]).expect("published").remove(0);
    assert_eq!(segments(&repo, &info), b"012abc6789\0");

    let linked = repo.link(&info, &name("/g/h"), None).expect("linked");
    let linked = repo.publish(vec![linked]).expect("published").remove(0);
    repo.remove(&[(object, info.version)]).expect("removed");
    assert_eq!(segments(&repo, &linked), b"012abc6789\0");
    repo.open_file(&linked.name, None)
        .and_then(|r| r.verify(&mut |_| true))
        .expect("whole");
}

#[test]
fn an_interrupted_transfer_goes_on_where_it_stopped() {
    let disk = SimDisk::default();
    let content = noise(2_500_000, 9);
    let object = name("/big");
    let wanted = options(8000, Some(content.len()));
    let repo = open(&disk).expect("a repository");
    let mut file = repo.put(&object, &wanted).expect("a writer");
    let told = file.versioned();
    file.write_all(&content[..2_100_000]).expect("written");
    file.suspend().expect("kept");
    drop(repo);

    let repo = open(&disk).expect("a repository");
    assert_eq!(repo.find(&object, None).expect("read"), None);
    let other = repo
        .put(&object, &options(8000, Some(5)))
        .expect("a writer");
    assert_eq!(other.position(), 0, "another size is another file");
    drop(other);
    let mut file = repo.put(&object, &wanted).expect("a writer");
    assert_eq!(file.versioned(), told);
    let at = file.position() as usize;
    assert!(
        (1_000_000..=2_100_000).contains(&at) && at.is_multiple_of(8000),
        "{at}"
    );
    let second = repo.put(&object, &wanted).expect("a writer");
    assert_eq!(
        second.position(),
        0,
        "nobody else goes on with it meanwhile"
    );
    drop(second);
    file.write_all(&content[at..]).expect("written");
    let staged = file.finish().expect("whole");
    let info = repo.publish(vec![staged]).expect("published").remove(0);
    assert!(segments(&repo, &info) == content);
    repo.open_file(&object, None)
        .and_then(|r| r.verify(&mut |_| true))
        .expect("whole");
}

#[test]
fn what_waits_to_be_published_is_not_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = open_at(folder.path()).expect("a repository");
    let name = name("/twice");
    let contents = [noise(100_000, 1), noise(100_000, 2)];
    // The same name, size and time: a transfer of the second would go on with an interrupted one of the first.
    let options = options(8_000, Some(100_000));
    let staged = contents
        .iter()
        .map(|content| {
            let mut file = repo.put(&name, &options).expect("a writer");
            assert_eq!(file.position(), 0);
            file.copy_from(&mut Cursor::new(content), &mut |_| {})
                .expect("written");
            file.finish().expect("whole")
        })
        .collect();
    let published = repo.publish(staged).expect("published");
    assert_eq!(published.len(), 2);
    for (info, content) in published.iter().zip(&contents) {
        assert!(segments(&repo, info) == *content, "not what was put");
    }
}

#[test]
fn what_is_not_finished_leaves_nothing() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let before = disk.files();
    let mut file = repo.put(&name("/a"), &options(8, None)).expect("a writer");
    file.write_all(b"some").expect("written");
    drop(file);
    let mut file = repo
        .put(&name("/a"), &options(8, Some(5)))
        .expect("a writer");
    file.write_all(b"some").expect("written");
    assert!(matches!(
        file.finish(),
        Err(RepoError::Short {
            said: 5,
            came: 4,
            ..
        })
    ));
    let staged = repo.put(&name("/a"), &options(8, None)).expect("a writer");
    drop(staged.finish().expect("whole"));
    for bad in ["/", "/a/v=3", "/a/seg=1", "/a/32=ls"] {
        assert!(matches!(
            repo.put(&name(bad), &options(8, None)),
            Err(RepoError::BadName { .. })
        ));
    }
    assert!(matches!(
        repo.put(&name("/a"), &options(0, None)),
        Err(RepoError::Setting(_))
    ));
    assert_eq!(disk.files(), before);
}

#[test]
fn not_one_flipped_bit_is_served() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let content = noise(20, 4);
    let info = put(&repo, &name("/a"), &content, &options(8, Some(20)));
    drop(repo);
    let versioned = info.name.append_version(info.version);
    let files: Vec<_> = disk
        .files()
        .into_iter()
        .filter(|path| path.starts_with("files"))
        .collect();
    assert_eq!(files.len(), 2);
    for path in files {
        let bits = disk_size(&disk, &path) * 8;
        for bit in (0..bits).step_by(3) {
            disk.flip(&path, bit);
            let repo = open(&disk).expect("a repository");
            let mut served = Vec::new();
            let mut refused = 0;
            for n in 0..3 {
                match ask(&repo, &versioned.append_segment(n), false) {
                    Ok(Some(data)) => {
                        assert!(data.verify_digest(), "{} bit {bit}", path.display());
                        served.extend_from_slice(data.content_slice());
                    }
                    Ok(None) => panic!("it is here"),
                    Err(error) => {
                        assert!(matches!(error, RepoError::Damaged { .. }), "{error}");
                        refused += 1;
                    }
                }
            }
            assert!(
                refused > 0 || served == content,
                "{} bit {bit}",
                path.display()
            );
            let told = ask(&repo, &info.name.append_keyword("metadata"), true);
            if let Ok(Some(told)) = &told {
                assert!(
                    Verifier::hmac_sha256(b"the owner").verify(told),
                    "bit {bit}"
                );
            }
            let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
            assert_eq!(report.damaged.len(), 1, "{} bit {bit}", path.display());
            assert_eq!(
                repo.status().expect("status").damaged_answers > 0,
                refused > 0 || told.is_err()
            );
            disk.flip(&path, bit);
        }
    }
}

fn disk_size(disk: &SimDisk, path: &Path) -> u64 {
    use ndn_repo::disk::Disk;
    disk.open(path).and_then(|f| f.size()).expect("a size")
}

#[test]
fn a_full_disk_refuses_and_goes_on_reading() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let info = put(&repo, &name("/a"), &noise(5000, 1), &options(1000, None));
    disk.set_capacity(disk.used() + 100_000);
    let before = disk.files();
    let mut file = repo
        .put(&name("/b"), &options(1000, None))
        .expect("a writer");
    let written = file.write_all(&noise(3_000_000, 2));
    let failed = match written {
        Err(error) => {
            drop(file);
            error.kind() == std::io::ErrorKind::StorageFull
        }
        Ok(()) => file.finish().is_err_and(|error| error.is_disk_full()),
    };
    assert!(failed);
    assert_eq!(disk.files(), before);
    let early = repo.put(&name("/c"), &options(1000, Some(3_000_000)));
    assert!(early.is_err_and(|error| {
        error.is_disk_full() && error.to_string().contains("the disk is full")
    }));
    assert_eq!(segments(&repo, &info), noise(5000, 1));
}
