//! Where in which cluster: `hdfs://host:port/path`.

use std::str::FromStr;

/// The NameNode's web port, where none is given.
const WEB_PORT: u16 = 9870;

/// A folder of a cluster: `hdfs://host:port/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    host: String,
    /// The folder, without a slash at its end.
    pub path: String,
}

impl Location {
    /// Where the NameNode's HTTP server is unless the cluster has it elsewhere, as `host:port`.
    pub fn web(&self) -> String {
        format!("{}:{WEB_PORT}", self.host)
    }
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || String::from("write hdfs://namenode:port/path");
        let rest = text.strip_prefix("hdfs://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => host,
            Some(_) => return Err(wrong()),
            None => authority,
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let path = path.trim_end_matches('/');
        if host.is_empty() || !host.chars().all(is_host) || !path.split('/').skip(1).all(is_part) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            path: path.to_owned(),
        })
    }
}

/// Whether a path of HDFS can have this between two slashes.
pub(crate) fn is_part(part: &str) -> bool {
    !["", ".", ".."].contains(&part) && !part.contains(['/', ':']) && !part.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_read_and_others_refused() {
        let read = |text: &str| text.parse::<Location>().ok().map(|l| (l.web(), l.path));
        let right = |web: &str, path: &str| Some((web.to_owned(), path.to_owned()));
        assert_eq!(read("hdfs://nn:8020/data/"), right("nn:9870", "/data"));
        assert_eq!(read("hdfs://nn.example"), right("nn.example:9870", ""));
        assert_eq!(read("hdfs://nn/a b/ü"), right("nn:9870", "/a b/ü"));
        for wrong in [
            "",
            "hdfs://",
            "hdfs:///x",
            "http://nn/",
            "hdfs://nn:x/",
            "hdfs://a@b/",
            "hdfs://nn//x",
            "hdfs://nn/x/../y",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
