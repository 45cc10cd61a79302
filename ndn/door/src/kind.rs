//! What a file is, by the end of its name. Nothing here makes a browser run what is in a file: pages are shown as text.

/// How the page may show a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preview {
    /// Its first bytes, as text or else as hexadecimal digits.
    Text,
    /// As a picture.
    Image,
    /// In the browser's own viewer.
    Pdf,
    /// As sound.
    Audio,
    /// As a film.
    Video,
}

impl Preview {
    /// The word that the page knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Preview::Text => "text",
            Preview::Image => "image",
            Preview::Pdf => "pdf",
            Preview::Audio => "audio",
            Preview::Video => "video",
        }
    }
}

const OCTETS: &str = "application/octet-stream";
const TEXT: &str = "text/plain; charset=utf-8";

/// Content-Type and preview of a file with this last component.
pub fn kind_of(label: &[u8]) -> (&'static str, Preview) {
    let end = label
        .rsplit(|b| *b == b'.')
        .next()
        .filter(|end| end.len() < label.len())
        .unwrap_or_default()
        .to_ascii_lowercase();
    match &end[..] {
        b"png" => ("image/png", Preview::Image),
        b"jpg" | b"jpeg" => ("image/jpeg", Preview::Image),
        b"gif" => ("image/gif", Preview::Image),
        b"webp" => ("image/webp", Preview::Image),
        b"avif" => ("image/avif", Preview::Image),
        b"bmp" => ("image/bmp", Preview::Image),
        b"ico" => ("image/x-icon", Preview::Image),
        b"svg" => ("image/svg+xml", Preview::Image),
        b"pdf" => ("application/pdf", Preview::Pdf),
        b"mp3" => ("audio/mpeg", Preview::Audio),
        b"ogg" | b"oga" | b"opus" => ("audio/ogg", Preview::Audio),
        b"wav" => ("audio/wav", Preview::Audio),
        b"flac" => ("audio/flac", Preview::Audio),
        b"mp4" | b"m4v" => ("video/mp4", Preview::Video),
        b"webm" => ("video/webm", Preview::Video),
        b"gz" | b"tgz" => ("application/gzip", Preview::Text),
        b"zip" | b"jar" => ("application/zip", Preview::Text),
        b"tar" => ("application/x-tar", Preview::Text),
        b"json" => ("application/json", Preview::Text),
        b"txt" | b"text" | b"md" | b"log" | b"csv" | b"tsv" | b"toml" | b"yaml" | b"yml"
        | b"ini" | b"conf" | b"properties" | b"xml" | b"html" | b"htm" | b"xhtml" | b"css"
        | b"js" | b"mjs" | b"ts" | b"rs" | b"py" | b"java" | b"c" | b"h" | b"cpp" | b"hpp"
        | b"go" | b"sh" | b"rst" | b"tex" | b"sql" => (TEXT, Preview::Text),
        _ => (OCTETS, Preview::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_runs_in_a_page_is_told_as_such() {
        for label in ["a.html", "a.HTM", "a.xhtml", "a.js", "a.xml"] {
            assert_eq!(kind_of(label.as_bytes()).0, TEXT, "{label}");
        }
        assert_eq!(kind_of(b"a.tar.GZ").0, "application/gzip");
        assert_eq!(kind_of(b"PNG").0, OCTETS);
        assert_eq!(kind_of(b"").0, OCTETS);
        assert_eq!(kind_of(b"x.png"), ("image/png", Preview::Image));
    }
}
