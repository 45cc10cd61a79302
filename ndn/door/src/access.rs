//! Who is let in: a browser must have come here by a name of ours, and not on behalf of somebody else's page.

use std::net::IpAddr;

use hyper::header::{HOST, HeaderMap};
use hyper::{Request, Uri};

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The Host header names a host that is not this one: its name may have been rebound to our address.
    ForeignHost,
    /// Another site's page asks.
    ForeignSite,
}

/// Whether the request may be answered. `hosts` are names, besides addresses and `localhost`, that this server goes by.
pub fn check<B>(request: &Request<B>, hosts: &[String]) -> Result<(), Refused> {
    let headers = request.headers();
    let host = host_of(request.uri(), headers).ok_or(Refused::ForeignHost)?;
    if !is_ours(host, hosts) {
        return Err(Refused::ForeignHost);
    }
    let word = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    match (word("sec-fetch-site"), word("sec-fetch-mode")) {
        // A link that a person follows.
        (Some("cross-site" | "same-site"), Some("navigate"))
            if word("sec-fetch-dest") == Some("document") =>
        {
            Ok(())
        }
        (Some("cross-site" | "same-site"), _) => Err(Refused::ForeignSite),
        _ => Ok(()),
    }
}

/// The host that is asked for, without port. One Host header alone counts.
fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let mut all = headers.get_all(HOST).iter();
    let (Some(header), None) = (all.next(), all.next()) else {
        return None;
    };
    let authority = match uri.authority() {
        Some(authority) => authority.as_str(),
        None => header.to_str().ok()?,
    };
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')?;
            (&rest[..end], &rest[end + 1..])
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    (digits.bytes().all(|b| b.is_ascii_digit())).then_some(host)
}

/// An address can't be rebound; a name can, unless it is known.
fn is_ours(host: &str, hosts: &[String]) -> bool {
    host.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|h| h.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&str, &str)]) -> Result<(), Refused> {
        let mut request = Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(
            &request.body(()).expect("a request"),
            &[String::from("repo.example")],
        )
    }

    #[test]
    fn hosts_that_are_not_ours_are_refused() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "[::1]:8080",
            "[::1]",
            "192.0.2.1",
            "repo.example:80",
        ] {
            assert_eq!(asked(&[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:80@evil.example",
            "[::1",
            "evil.example:localhost",
            "repo.example.",
        ] {
            assert_eq!(
                asked(&[("host", host)]),
                Err(Refused::ForeignHost),
                "{host}"
            );
        }
        assert_eq!(asked(&[]), Err(Refused::ForeignHost));
        assert_eq!(
            asked(&[("host", "localhost"), ("host", "evil.example")]),
            Err(Refused::ForeignHost)
        );
    }

    #[test]
    fn pages_of_others_are_refused_and_their_links_followed() {
        let by = |site: &str, mode: &str, dest: &str| {
            asked(&[
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ])
        };
        assert_eq!(by("same-origin", "cors", "empty"), Ok(()));
        assert_eq!(by("none", "navigate", "document"), Ok(()));
        assert_eq!(by("cross-site", "navigate", "document"), Ok(()));
        assert!(by("cross-site", "navigate", "iframe").is_err());
        assert!(by("cross-site", "no-cors", "image").is_err());
        assert!(by("same-site", "cors", "empty").is_err());
    }
}
