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

/// Whether this is a secret by the name of its variable or header: a word of it begins or ends with one that says so. Numbers
/// and `true` or `false` are none, whatever they are called.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
    let says_so = |word: &str| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let word = word.strip_suffix('s').unwrap_or(word);
        !PLAIN.contains(&word)
            && SECRET.iter().any(|secret| word.starts_with(secret) || word.ends_with(secret))
    };
    let is_text = !value.is_empty() && value.parse::<f64>().is_err() && value.parse::<bool>().is_err();
    is_text && name.to_ascii_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).any(says_so)
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
                       MYSECRET DBPASSWORD GITHUBTOKEN SESSIONCOOKIE MYSQL_PWD KEYFILE MAX_TOKENS";
        for name in secrets.split_whitespace() {
            assert!(is_secret(name, "hunter2hunter2"), "{name}");
        }
        let plain = "X-Team X-Author AUTHORS LOG_LEVEL KEYBOARD X-Keyboard MONKEY turkey2 SECRETARY KEYWORDS";
        for name in plain.split_whitespace() {
            assert!(!is_secret(name, "hunter2hunter2"), "{name}");
        }
        for value in ["4000", "true", "0.5", ""] {
            assert!(!is_secret("X-Max-Tokens", value), "{value:?}");
        }
    }
}
