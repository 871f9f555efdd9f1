//! Which headers of a response are kept.

/// Headers with lower-cased names, and the names of those that were taken out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptHeaders {
    pub(crate) kept: Vec<(String, String)>,
    pub(crate) removed: Vec<String>,
}

impl KeptHeaders {
    /// Sorts headers into kept and removed.
    pub(crate) fn of<'a>(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut kept = Self::default();
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            if is_credential(&name) {
                if !kept.removed.contains(&name) {
                    kept.removed.push(name);
                }
            } else {
                kept.kept.push((name, String::from_utf8_lossy(value).into_owned()));
            }
        }
        kept
    }

    /// The first value of a header.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.kept.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// By what the name says: a list of exact names is never complete. `x-ratelimit-remaining-tokens`
/// and the like stay, they say how much may still be sent.
fn is_credential(name: &str) -> bool {
    let telling = ["cookie", "auth", "secret", "api-key", "apikey", "password", "session", "signature"];
    telling.iter().any(|word| name.contains(word)) || name.ends_with("-token") || name == "token"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_and_the_removal_recorded() {
        let headers: [(&str, &[u8]); 6] = [
            ("Content-Type", b"application/json"),
            ("Set-Cookie", b"__cf=canary"),
            ("set-cookie", b"b=canary"),
            ("X-Amz-Security-Token", b"canary"),
            ("WWW-Authenticate", b"Bearer canary"),
            ("x-ratelimit-remaining-tokens", b"12"),
        ];
        let kept = KeptHeaders::of(headers);
        let names: Vec<_> = kept.kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "x-ratelimit-remaining-tokens"]);
        assert_eq!(kept.removed, ["set-cookie", "x-amz-security-token", "www-authenticate"]);
        assert!(!format!("{kept:?}").contains("canary"));
    }
}
