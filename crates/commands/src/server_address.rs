//! `url` and `headers` of `[mcp.NAME]`: a server that lies at an address.

use std::collections::BTreeMap;

use egress::header::{HeaderMap, HeaderName, HeaderValue};
use egress::{Gate, Purpose, Reach, Rule, Url};

use crate::server_secrets::{is_of_keys, is_secret};

/// Headers that are those of the protocol.
const OURS: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// A server at an address, as it is spoken with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AddressEntry {
    pub(crate) url: Url,
    /// Headers as they are written, with the names of secrets in their values.
    headers: Vec<(HeaderName, String)>,
}

impl AddressEntry {
    /// Reads `url` and `headers` of the entry of a name.
    ///
    /// # Errors
    /// What is wrong, by its key.
    pub(crate) fn read(server: &str, url: &str, headers: &BTreeMap<String, String>) -> Result<Self, String> {
        let url = address(server, url).map_err(|why| format!("url: {why}"))?;
        let headers = headers.iter().map(|(name, value)| {
            header(server, name, value)
                .map(|name| (name, value.clone()))
                .map_err(|why| format!("headers.{name}: {why}"))
        });
        Ok(Self { url, headers: headers.collect::<Result<_, _>>()? })
    }

    /// Names of secrets that its headers name, and which are not there.
    pub(crate) fn missing<'e>(&'e self, secrets: &BTreeMap<String, String>) -> Vec<&'e str> {
        let named = self.headers.iter().flat_map(|(_, value)| parts(value));
        let named = named.filter_map(|part| match part {
            Part::Secret(name) if !secrets.contains_key(name) => Some(name),
            _ => None,
        });
        named.collect()
    }

    /// The headers with their secrets.
    ///
    /// # Errors
    /// A secret is not there, or cannot stand in a header. It is not told.
    pub(crate) fn headers(&self, secrets: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let mut whole = String::new();
            for part in parts(value) {
                whole += match part {
                    Part::Text(text) => text,
                    Part::Secret(secret) => {
                        secrets.get(secret).ok_or_else(|| format!("there is no secret {secret}"))?.trim()
                    }
                };
            }
            let mut value = HeaderValue::from_str(&whole)
                .map_err(|_| format!("headers.{name} has characters that no header takes"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// # Errors
/// Why nothing is sent there.
fn address(server: &str, written: &str) -> Result<Url, String> {
    // It is not repeated: it may hold a password.
    let url = Url::parse(written.trim()).map_err(|error| format!("it is no address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it begins with neither http:// nor https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds a user name or a password: those belong into a header".to_owned());
    }
    if url.fragment().is_some() {
        return Err("it has a part behind #, which is sent to nobody".to_owned());
    }
    if let Some((name, _)) = url.query_pairs().find(|(name, value)| is_secret(name, value)) {
        return Err(format!(
            "{name:?} in its query is a secret by its name: write it into a header, as `${{TOKEN}}`; {}",
            is_of_keys(server, "TOKEN")
        ));
    }
    let public = Rule { purpose: Purpose::Server, reach: Reach::Public { named: Vec::new() } };
    if url.scheme() == "http" && Gate::default().judge(&public, &url).is_ok() {
        return Err("what is said there would go unencrypted: write https://".to_owned());
    }
    Ok(url)
}

/// # Errors
/// Why there is no such header.
fn header(server: &str, name: &str, value: &str) -> Result<HeaderName, String> {
    let lower = name.to_ascii_lowercase();
    let header =
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| "it is no name of a header".to_owned())?;
    if OURS.contains(&&*lower) {
        return Err("Drawloom sets it itself".to_owned());
    }
    let has_secret = parts(value).any(|part| matches!(part, Part::Secret(_)));
    if !has_secret && is_secret(&lower, value) {
        return Err(format!("write ${{TOKEN}} in place of the secret; {}", is_of_keys(server, "TOKEN")));
    }
    if HeaderValue::from_str(value).is_err() {
        return Err("it has characters that no header takes".to_owned());
    }
    Ok(header)
}

enum Part<'v> {
    Text(&'v str),
    /// Name of a secret.
    Secret(&'v str),
}

/// A value, with `${NAME}` as the names of secrets.
fn parts(value: &str) -> impl Iterator<Item = Part<'_>> {
    let mut pieces = value.split("${");
    let first = pieces.next().map(Part::Text);
    let others = pieces.flat_map(|piece| match piece.split_once('}') {
        Some((name, text)) => [Some(Part::Secret(name)), Some(Part::Text(text))],
        None => [Some(Part::Text("${")), Some(Part::Text(piece))],
    });
    first.into_iter().chain(others.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str, headers: &[(&str, &str)]) -> Result<AddressEntry, String> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        AddressEntry::read("x", url, &headers.collect())
    }

    #[test]
    fn m7_m8_ordinary_addresses_are_taken_and_what_is_none_or_unencrypted_is_not() {
        for url in [
            "https://mcp.example.com/sse",
            "https://api.anthropic.com/mcp",
            "https://mcp.example.com:8443/mcp?tools=all",
            "http://localhost:3000/mcp",
            "http://127.0.0.1:3000/mcp",
            "http://[::1]/",
            "http://192.168.1.5:8000/mcp",
            "http://box.local/mcp",
        ] {
            assert!(read(url, &[]).is_ok(), "{url}");
        }
        for (url, why) in [
            ("file:///etc/passwd", "begins with neither"),
            ("not-a-url", "is no address"),
            ("", "is no address"),
            ("https://", "is no address"),
            ("ws://mcp.example.com", "begins with neither"),
            ("http://mcp.example.com/mcp", "unencrypted"),
            ("http://8.8.8.8/mcp", "unencrypted"),
            ("https://me:word@mcp.example.com", "user name"),
            ("https://mcp.example.com/#x", "behind #"),
            ("https://mcp.example.com/mcp?tools=all&api_key=hunter2hunter2", "mcp.x.secrets.TOKEN VALUE"),
            ("https://mcp.example.com/mcp?%74oken=hunter2hunter2", "\"token\" in its query is a secret"),
        ] {
            let said = read(url, &[]).unwrap_err();
            assert!(said.starts_with("url: ") && said.contains(why), "{url}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn secrets_of_headers_are_named_and_never_written() {
        let url = "https://mcp.example.com/mcp";
        let value = ["tok", "1234"].join("-");
        let secrets = BTreeMap::from([("TOKEN".to_owned(), format!("{value}\n"))]);
        let entry = read(url, &[("Authorization", "Bearer ${TOKEN}"), ("X-Team", "looms ${")]).unwrap();
        let headers = entry.headers(&secrets).unwrap();
        assert_eq!(headers["authorization"], format!("Bearer {value}"));
        assert_eq!(headers["x-team"], "looms ${");
        assert!(!format!("{headers:?}{entry:?}").contains(&value));
        assert_eq!((entry.missing(&secrets), entry.missing(&BTreeMap::new())), (vec![], vec!["TOKEN"]));
        assert!(entry.headers(&BTreeMap::new()).unwrap_err().ends_with("no secret TOKEN"));
        let broken = BTreeMap::from([("TOKEN".to_owned(), format!("{value}\nx"))]);
        assert!(!entry.headers(&broken).unwrap_err().contains(&value));
        for (name, value, why) in [
            ("Authorization", "Bearer abc", "keys.toml"),
            ("X-Api-Key", "abc", "keys.toml"),
            ("Host", "other.example", "Drawloom sets it"),
            ("Mcp-Session-Id", "x", "Drawloom sets it"),
            ("X-Team", "a\nb", "no header takes"),
        ] {
            let said = read(url, &[(name, value)]).unwrap_err();
            assert!(said.starts_with(&format!("headers.{name}: ")) && said.contains(why), "{said}");
        }
    }
}
