//! Secrets of `[mcp.NAME]`: they stand in `keys.toml`, whatever uses them.

/// Words in names of variables and headers whose values are secrets, alone or at the end of another word.
const SECRET: [&str; 7] = ["auth", "authorization", "cookie", "key", "password", "secret", "token"];

/// Whether the value of a variable or header of this name is a secret.
pub(crate) fn says_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(['_', '-']).any(|word| SECRET.iter().any(|secret| word.ends_with(secret)))
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
        for name in
            ["API_TOKEN", "Authorization", "X-Api-Key", "APIKEY", "Proxy-Authorization", "db_password"]
        {
            assert!(says_secret(name), "{name}");
        }
        for name in ["LOG_LEVEL", "X-Team", "AUTHOR", "MAX_TOKENS", "KEYBOARD"] {
            assert!(!says_secret(name), "{name}");
        }
    }
}
