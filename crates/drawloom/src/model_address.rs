//! Names of models that begin with the address of a server.

use std::borrow::Cow;

use commands::CommandError;
use text::terminal::one_line;

/// The server of a model's name, as it stands before the `/`: the address, or the provider; and the model's own name.
pub(crate) fn server_and_model(full: &str) -> Option<(Cow<'_, str>, &str)> {
    match address(full).ok()? {
        Some((address, model)) => Some((Cow::Owned(address), model)),
        None => full.split_once('/').map(|(provider, model)| (Cow::Borrowed(provider), model)),
    }
}

/// An address with a model's name behind it: the base is scheme, host and port, and the path up to a version
/// where there is one.
pub(crate) fn address(name: &str) -> Result<Option<(String, &str)>, CommandError> {
    let Some(scheme) = ["http://", "https://"].into_iter().find(|scheme| name.starts_with(scheme)) else {
        return Ok(None);
    };
    let (authority, path) = name[scheme.len()..].split_once('/').unwrap_or((&name[scheme.len()..], ""));
    let mut base = format!("{scheme}{authority}");
    let mut model = path;
    let is_version = |segment: &str| {
        segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if let Some(place) = path.split('/').position(is_version) {
        let end: usize = path.split('/').take(place + 1).map(|segment| segment.len() + 1).sum();
        base = format!("{base}/{}", path[..end.min(path.len())].trim_end_matches('/'));
        model = path.get(end..).unwrap_or("");
    }
    if model.is_empty() {
        return Err(CommandError::usage(
            format!("{} names a server but no model", one_line(name)),
            "write the model's name after the address, as http://localhost:8080/NAME",
        ));
    }
    Ok(Some((base, model)))
}

/// Host and port of an address.
pub(crate) fn host(address: &str) -> String {
    let authority = address.split("://").nth(1).unwrap_or(address);
    authority.split('/').next().unwrap_or(authority).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_ends_where_the_name_begins() {
        for (name, base, model) in [
            ("http://localhost:8080/qwen", "http://localhost:8080", "qwen"),
            ("http://localhost:8080/meta/Llama-3", "http://localhost:8080", "meta/Llama-3"),
            ("http://localhost:8080/v1/qwen", "http://localhost:8080/v1", "qwen"),
            ("https://host/api/v1/meta/Llama-3", "https://host/api/v1", "meta/Llama-3"),
            ("http://[::1]:1/v1beta/a:7b", "http://[::1]:1/v1beta", "a:7b"),
        ] {
            assert_eq!(address(name).unwrap(), Some((base.to_owned(), model)), "{name}");
        }
        assert_eq!(address("openai/gpt").unwrap(), None);
        for name in
            ["http://localhost:8080", "http://localhost:8080/", "http://localhost:8080/v1", "https://h/v1/"]
        {
            assert_eq!(address(name).unwrap_err().exit, 2, "{name}");
        }
    }
}
