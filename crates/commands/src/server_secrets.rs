//! Secrets of `[mcp.NAME]`: they stand in `keys.toml`, whatever uses them.

/// Words in names of variables and headers whose values are secrets.
const SECRET: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];
/// Names of variables that join such a word to another one.
const JOINED: [&str; 6] = ["accesskey", "accesstoken", "apikey", "authorization", "authtoken", "secretkey"];

/// Whether the value of a header of this name is a secret: headers are few, and their names have no rule.
pub(crate) fn header_says_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|secret| name.contains(secret))
}

/// Whether the value of a variable of this name is a secret: one of its words says so.
pub(crate) fn variable_says_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_secret = |word: &str| SECRET.contains(&word) || JOINED.contains(&word);
    name.split(['_', '-']).any(|word| is_secret(word) || word.strip_suffix('s').is_some_and(is_secret))
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
        for name in ["Authorization", "X-Api-Key", "X-Authentication", "Cookies", "X-Secret2"] {
            assert!(header_says_secret(name), "{name}");
        }
        assert!(!header_says_secret("X-Team"));
        for name in ["API_TOKEN", "APIKEY", "API_TOKENS", "db_password", "PROXY_AUTHORIZATION"] {
            assert!(variable_says_secret(name), "{name}");
        }
        for name in ["LOG_LEVEL", "AUTHOR", "KEYBOARD", "MONKEY"] {
            assert!(!variable_says_secret(name), "{name}");
        }
    }
}
