//! Compiles `mirror/bpf` with clang. A machine that has none, or lacks libbpf's headers, builds the workspace all the
//! same, with a warning; loading the program then fails and says what to install.

use std::{env, path::PathBuf, process::Command};

const SOURCE: &str = "../bpf";
const PROGRAMS: [&str; 2] = ["mirror", "switch"];
/// What says how maps and their entries are laid out, at hosts and at switches.
const LAYOUT: &[&str] = &["state.h", "maps.h", "lock.h"];
const SWITCH_LAYOUT: &[&str] = &["switch.h"];

fn main() {
    println!("cargo::rustc-env=MIRROR_LAYOUT={:016x}", layout(LAYOUT));
    println!(
        "cargo::rustc-env=SWITCH_LAYOUT={:016x}",
        layout(SWITCH_LAYOUT)
    );
    println!("cargo::rustc-check-cfg=cfg(mirror_program)");
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let lacks = PROGRAMS.iter().find_map(|name| compile(&clang, name).err());
    match lacks {
        None => println!("cargo::rustc-cfg=mirror_program"),
        Some(lacks) => println!(
            "cargo::warning=built without the eBPF programs of mirrored replication ({lacks}); install clang and \
             libbpf-dev, or set CLANG, and build again"
        ),
    }
}

/// What this machine lacks, where it can't.
fn compile(clang: &str, name: &str) -> Result<(), String> {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the architecture");
    let compiled = Command::new(clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-c",
        ])
        // Debian keeps asm/types.h by architecture, where clang doesn't look when it compiles for BPF.
        .args(["-idirafter", &format!("/usr/include/{machine}-linux-gnu")])
        .arg(format!("{SOURCE}/{name}.bpf.c"))
        .arg("-o")
        .arg(folder.join(format!("{name}.bpf.o")))
        .output();
    match compiled {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            if !(said.contains("file not found") || said.contains("No available targets")) {
                panic!("{clang} could not compile {SOURCE}/{name}.bpf.c:\n{said}");
            }
            Err(said.lines().next().unwrap_or_default().to_owned())
        }
        Err(error) => Err(format!("{clang}: {error}")),
    }
}

/// A number that changes with the layout, and not with a word of explanation (FNV-1a).
fn layout(files: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let path = format!("{SOURCE}/{file}");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        for part in without_comments(&text).split_whitespace() {
            for octet in part.bytes().chain([b' ']) {
                hash = (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    hash
}

fn without_comments(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        left.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    left + rest
}
