//! From a path's words to a name's components and back.
//!
//! A file is found under its last component's own bytes. What no path can have is not shown: components that are empty,
//! that are `.` or `..`, that hold a slash or a zero byte, and those of other kinds than the plain one. `file@v=N` stands
//! for version N of `file`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ndn_packet::{Component, Name};

/// Longest word of a path, as everywhere.
pub const MAX_WORD: usize = 255;
/// Comes between a file and its version.
const VERSION_MARK: &[u8] = b"@v=";

/// Why a word can't name a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadWord {
    /// More than [`MAX_WORD`] bytes.
    TooLong,
    /// It stands for a version of another.
    Version,
}

/// A word that may name a new file or folder.
///
/// # Errors
/// Why it may not.
pub fn new_word(word: &OsStr) -> Result<&[u8], BadWord> {
    let word = word.as_bytes();
    if word.len() > MAX_WORD {
        return Err(BadWord::TooLong);
    }
    match version_of(word) {
        Some(_) => Err(BadWord::Version),
        None => Ok(word),
    }
}

/// `file@v=N` as file and version.
pub fn version_of(word: &[u8]) -> Option<(&[u8], u64)> {
    let at = word
        .windows(VERSION_MARK.len())
        .rposition(|w| w == VERSION_MARK)?;
    let (file, number) = (&word[..at], &word[at + VERSION_MARK.len()..]);
    let plain = number == b"0" || (number.first().is_some_and(|b| (b'1'..=b'9').contains(b)));
    if file.is_empty() || !plain || !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((file, number))
}

/// The word that shows a component; `None` where a path can't have it.
pub fn shown(component: Component<'_>) -> Option<&OsStr> {
    let bytes = component.as_generic()?;
    let can_be = !bytes.is_empty()
        && bytes.len() <= MAX_WORD
        && bytes != b"."
        && bytes != b".."
        && !bytes.iter().any(|b| [b'/', 0].contains(b));
    can_be.then(|| OsStr::from_bytes(bytes))
}

/// The name of `word` in the folder `folder`.
pub fn below(folder: &Name, word: &[u8]) -> Name {
    folder.append(Component::generic(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_from_files() {
        for (word, found) in [
            ("a@v=12", Some(("a", 12))),
            ("a@v=0", Some(("a", 0))),
            ("a@v=1@v=2", Some(("a@v=1", 2))),
            ("a@v=18446744073709551615", Some(("a", u64::MAX))),
            ("a@v=18446744073709551616", None),
            ("a@v=012", None),
            ("a@v=", None),
            ("a@v=1x", None),
            ("@v=1", None),
            ("a", None),
        ] {
            let found = found.map(|(file, n)| (file.as_bytes(), n));
            assert_eq!(version_of(word.as_bytes()), found, "{word}");
        }
    }

    #[test]
    fn what_no_path_can_have_is_not_shown() {
        for bytes in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'x'; 256]] {
            assert_eq!(shown(Component::generic(bytes)), None);
        }
        assert_eq!(shown(Component::keyword(b"ls")), None);
        let odd = b"100% \xff\n";
        assert_eq!(shown(Component::generic(odd)), Some(OsStr::from_bytes(odd)));
    }

    #[test]
    fn new_words() {
        assert_eq!(new_word(OsStr::new("a@v=1")), Err(BadWord::Version));
        assert_eq!(
            new_word(OsStr::from_bytes(&[b'x'; 256])),
            Err(BadWord::TooLong)
        );
        assert_eq!(new_word(OsStr::new("a@v")), Ok(&b"a@v"[..]));
    }
}
