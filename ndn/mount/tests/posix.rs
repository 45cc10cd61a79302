//! fsx, the file system exerciser that other file systems are tested by: reads, writes, mappings, cuts and holes at random
//! places, each compared with what must be there.

mod common;

use std::fs;
use std::process::Command;

use common::{Mounted, mounted};

/// Runs fsx on a file of the mount; false where there is no fsx.
fn fsx(m: &Mounted, file: &str, arguments: &[&str]) -> bool {
    let Some(program) = std::env::var_os("TRUNKLINE_FSX") else {
        println!("skipped: no fsx; set TRUNKLINE_FSX to the program of cargo install fsx");
        return false;
    };
    let done = Command::new(program)
        .args(arguments)
        .arg("-P")
        .arg(m.folder.path())
        .arg(m.path(file))
        .output()
        .expect("run");
    let said = String::from_utf8_lossy(&done.stdout);
    let log = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}\n{log}");
    true
}

#[test]
fn exercised_by_fsx() {
    let Some(m) = mounted() else { return };
    let config = m.folder.path().join("fsx.toml");
    let weights = "flen = 262144\n[weights]\nclose_open = 1\nread = 10\nwrite = 10\nmapread = 10\nmapwrite = 10\n\
                   truncate = 5\nfsync = 1\nfdatasync = 1\npunch_hole = 3\nposix_fallocate = 1\n";
    fs::write(&config, weights).expect("written");
    let config = config.display().to_string();
    for seed in ["1", "2"] {
        let file = format!("fsx{seed}");
        if !fsx(&m, &file, &["-N", "800", "-S", seed, "-f", &config]) {
            return;
        }
        let seen = fs::read(m.path(&file)).expect("read");
        assert!(m.published(&format!("/{file}")) == Some(seen));
    }
}
