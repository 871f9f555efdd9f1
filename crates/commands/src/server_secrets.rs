//! Secrets of `[mcp.NAME]`: they stand in `keys.toml`, whatever uses them.

/// Words in names of variables and headers whose values are secrets.
const SECRET: [&str; 11] = [
    "auth",
    "bearer",
    "cookie",
    "credential",
    "key",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "token",
];
/// Words that begin or end with such a word, and are none.
const PLAIN: [&str; 13] = [
    "author",
    "authority",
    "donkey",
    "hockey",
    "jockey",
    "keyboard",
    "keymap",
    "keyspace",
    "keyword",
    "monkey",
    "secretary",
    "tokenizer",
    "turkey",
];

/// A word that says so where it stands alone.
const PASS: &str = "pass";
/// What the last word of a name ends with whose value says where something is.
const PLACES: [&str; 6] = ["dir", "file", "path", "sock", "uri", "url"];
/// What a value begins with that says where something is.
const BEGINNINGS: [&str; 5] = ["/", "./", "~/", "http://", "https://"];
/// Last words of a name whose number is a measure.
const MEASURES: [&str; 15] = [
    "bytes", "count", "expires", "expiry", "hours", "length", "lifetime", "limit", "minutes", "ms",
    "seconds", "secs", "size", "timeout", "ttl",
];
/// Most characters of a number that is no secret under another name.
const SHORT_NUMBER: usize = 6;

/// Whether this is a secret by the name of its variable or header: a word of it begins or ends with one that says so. Short
/// numbers and `true` or `false` are none, whatever they are called, nor are a number under the name of a measure, a path or
/// an address without a user or a query under a name that ends as one of a place.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
    let says_so = |word: &str| {
        let whole = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let word = whole.strip_suffix('s').unwrap_or(whole);
        whole == PASS
            || !PLAIN.contains(&word)
                && SECRET.iter().any(|secret| word.starts_with(secret) || word.ends_with(secret))
    };
    let name = name.to_ascii_lowercase();
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    let last = words().next_back().unwrap_or_default();
    let is_bound =
        last.ends_with('s') && words().rev().nth(1).is_some_and(|word| ["max", "min"].contains(&word));
    let is_measure = is_bound || MEASURES.contains(&last);
    let is_number = (is_measure || value.len() <= SHORT_NUMBER) && value.parse::<f64>().is_ok();
    let is_place = PLACES.iter().any(|place| name.ends_with(place))
        && BEGINNINGS.iter().any(|beginning| value.starts_with(beginning))
        && !value.contains(['@', '?']);
    let is_plain = value.is_empty() || is_number || value.parse::<bool>().is_ok() || is_place;
    !is_plain && words().any(says_so)
}

/// Why a secret of a server is refused that stands elsewhere, and where it goes.
pub(crate) fn is_of_keys(server: &str, secret: &str) -> String {
    format!("a secret stands in keys.toml: `drawloom config set mcp.{server}.secrets.{secret} VALUE`")
}

/// What is to be done where a secret is named that is not there.
pub(crate) fn missing(server: &str, secret: &str) -> String {
    format!(
        "there is no secret {secret}: `drawloom config set mcp.{server}.secrets.{secret} VALUE` sets it, then `drawloom mcp \
         accept {server}` shows the tools"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_a_secret() {
        let secrets = "Authorization X-Api-Key X-Authentication Cookies X-Secret2 X-Credentials X-Passphrase API_TOKEN APIKEY \
                       API_TOKENS db_password PROXY_AUTHORIZATION PGPASSWORD PRIVATEKEY CLIENTSECRET OPENAIKEY BEARERTOKEN \
                       MYSECRET DBPASSWORD GITHUBTOKEN SESSIONCOOKIE MYSQL_PWD KEYFILE DB_PASS";
        for name in secrets.split_whitespace() {
            assert!(is_secret(name, "hunter2hunter2"), "{name}");
            assert!(is_secret(name, "12345678901234567890"), "{name}");
        }
        for (name, value) in [
            ("SSH_AUTH_SOCK", "/run/user/0/x"),
            ("KEYFILE", "/etc/ssl/k.pem"),
            ("AUTH_URL", "https://a.example/"),
        ] {
            assert!(!is_secret(name, value), "{name}");
            assert!(is_secret("API_KEY", value), "{value}");
        }
        assert!(is_secret("AUTH_URL", "https://me@a.example/"));
        assert!(is_secret("AUTH_URL", "https://a.example/?key=hunter2"));
        let plain =
            "X-Team X-Author AUTHORS LOG_LEVEL KEYBOARD X-Keyboard MONKEY turkey2 SECRETARY KEYWORDS BYPASS";
        for name in plain.split_whitespace() {
            assert!(!is_secret(name, "hunter2hunter2"), "{name}");
        }
        for value in ["4000", "true", "0.5", "", "1048576"] {
            assert!(!is_secret("X-Max-Tokens", value), "{value:?}");
        }
        for name in ["MS_PASSWORD", "PASSWORD_LIMIT_KEY", "MAX_PASSWORD"] {
            assert!(is_secret(name, "12345678"), "{name}");
        }
        for name in ["TOKEN_TTL_SECONDS", "AUTH_TIMEOUT_MS", "API_KEY_EXPIRES"] {
            assert!(!is_secret(name, "1735689600") && is_secret(name, "hunter2hunter2"), "{name}");
        }
    }
}
