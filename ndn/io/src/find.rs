//! Finding the forwarder of this host.

use std::path::{Path, PathBuf};

use crate::error::ClientError;
use crate::uri::FaceUri;

/// The environment variable that names the forwarder's face.
const VARIABLE: &str = "TRUNKLINE_FACE";
/// NFD's own client setting, understood here too.
const NFD_VARIABLE: &str = "NDN_CLIENT_TRANSPORT";
/// Where NFD has its socket where nothing is configured.
const DEFAULT_FACE: &str = "unix:///run/nfd/nfd.sock";

/// The face of this host's forwarder: `face` where given (as by `--face`), else the environment
/// variable `TRUNKLINE_FACE`, else NFD's `NDN_CLIENT_TRANSPORT` and `client.conf` (in
/// `~/.ndn`, `/usr/local/etc/ndn`, `/opt/local/etc/ndn`, `/etc/ndn`), else
/// `unix:///run/nfd/nfd.sock`.
///
/// # Errors
/// Where the first of these that is set is no face URI; names which one.
pub fn find_forwarder(face: Option<&str>) -> Result<FaceUri, ClientError> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let home = std::env::var_os("HOME").map(PathBuf::from);
    find(
        face,
        variable(VARIABLE),
        variable(NFD_VARIABLE),
        &conf_files(home),
    )
}

fn conf_files(home: Option<PathBuf>) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = home
        .map(|home| home.join(".ndn/client.conf"))
        .into_iter()
        .collect();
    files.extend(
        [
            "/usr/local/etc/ndn/client.conf",
            "/opt/local/etc/ndn/client.conf",
            "/etc/ndn/client.conf",
        ]
        .map(PathBuf::from),
    );
    files
}

fn find(
    face: Option<&str>,
    ours: Option<String>,
    nfds: Option<String>,
    files: &[PathBuf],
) -> Result<FaceUri, ClientError> {
    let parse = |from: &str, text: &str| {
        FaceUri::parse(text).map_err(|error| ClientError::NoForwarder(format!("{from}: {error}")))
    };
    if let Some(face) = face {
        return parse("--face", face);
    }
    if let Some(face) = ours {
        return parse(VARIABLE, &face);
    }
    if let Some(face) = nfds {
        return parse(NFD_VARIABLE, &face);
    }
    for file in files {
        if let Some(transport) = transport_of(file) {
            return parse(&format!("{}: transport", file.display()), &transport);
        }
    }
    parse("the default face", DEFAULT_FACE)
}

/// The `transport=` line of a client.conf; `;` begins a comment.
fn transport_of(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split(';').next()?.split_once('=')?;
        (key.trim() == "transport")
            .then(|| value.trim().to_owned())
            .filter(|v| !v.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_names_one_wins() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("client.conf");
        std::fs::write(
            &file,
            "; a comment\n;transport=tcp://no\n transport = unix:///tmp/n.sock ; so\n",
        )
        .unwrap();
        let files = [dir.path().join("none"), file];
        let some = |text: &str| Some(text.to_owned());
        let all = find(Some("tcp://a"), some("tcp://b"), some("tcp://c"), &files).unwrap();
        assert_eq!(all.to_string(), "tcp://a:6363");
        assert_eq!(
            find(None, some("tcp://b"), some("tcp://c"), &files)
                .unwrap()
                .to_string(),
            "tcp://b:6363"
        );
        assert_eq!(
            find(None, None, some("tcp://c"), &files)
                .unwrap()
                .to_string(),
            "tcp://c:6363"
        );
        assert_eq!(
            find(None, None, None, &files).unwrap().to_string(),
            "unix:///tmp/n.sock"
        );
        assert_eq!(
            find(None, None, None, &[]).unwrap().to_string(),
            DEFAULT_FACE
        );
        let error = find(None, some("nonsense"), None, &files)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("TRUNKLINE_FACE: `nonsense`"), "{error}");
    }
}
