//! The client as which Drawloom asks an issuer for an access, and how it proves to be it (RFC 6749, section 2.3).

use data_encoding::BASE64;
use egress::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Kind of a form.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// A client that an issuer knows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegisteredClient {
    #[serde(rename = "client_id")]
    pub(super) id: String,
    #[serde(rename = "client_secret", default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    #[serde(rename = "token_endpoint_auth_method", alias = "client_proof", default)]
    pub(super) auth_method: TokenEndpointAuthMethod,
}

/// How a client authenticates at the token endpoint, by the names of RFC 7591. The default is that of logins that were kept
/// without one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TokenEndpointAuthMethod {
    /// The secret stands in a header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// The secret stands in the form.
    #[default]
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "none")]
    None,
}

impl TokenEndpointAuthMethod {
    /// The method that an issuer takes, as it describes itself; one that says nothing of it takes the header (RFC 8414).
    pub(super) fn of(described: &Value) -> Self {
        let Some(taken) = described["token_endpoint_auth_methods_supported"].as_array() else {
            return Self::Basic;
        };
        [Self::Basic, Self::Post]
            .into_iter()
            .find(|method| taken.contains(&json!(method)))
            .unwrap_or(Self::None)
    }

    /// The method of this name; none of another one.
    pub(super) fn named(name: &Value) -> Option<Self> {
        serde_json::from_value(name.clone()).ok()
    }
}

impl RegisteredClient {
    /// The form in which it asks for something, and the header that goes along.
    pub(super) fn asks(&self, fields: &[(&str, &str)]) -> (String, Option<String>) {
        let mut fields = fields.to_vec();
        let header = match (&self.secret, self.auth_method) {
            (Some(secret), TokenEndpointAuthMethod::Basic) => {
                let of = |text: &str| form(&[("", text)]).split_off(1);
                let both = format!("{}:{}", of(&self.id), of(secret));
                return (form(&fields), Some(format!("Basic {}", BASE64.encode(both.as_bytes()))));
            }
            (Some(secret), TokenEndpointAuthMethod::Post) => {
                fields.push(("client_secret", secret));
                None
            }
            _ => None,
        };
        fields.push(("client_id", &self.id));
        (form(&fields), header)
    }
}

fn form(fields: &[(&str, &str)]) -> String {
    let Ok(mut url) = Url::parse("http://localhost/") else { return String::new() };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_proves_to_be_it_as_its_issuer_takes_it() {
        for (taken, method) in [
            (json!({}), TokenEndpointAuthMethod::Basic),
            (json!(["client_secret_post", "client_secret_basic", "none"]), TokenEndpointAuthMethod::Basic),
            (json!(["private_key_jwt", "client_secret_post"]), TokenEndpointAuthMethod::Post),
            (json!(["none"]), TokenEndpointAuthMethod::None),
            (json!([]), TokenEndpointAuthMethod::None),
        ] {
            let described = json!({"token_endpoint_auth_methods_supported": taken});
            let described = if taken.is_object() { taken } else { described };
            assert_eq!(TokenEndpointAuthMethod::of(&described), method, "{described}");
        }
        let asks = |auth_method, secret: Option<&str>| {
            let client =
                RegisteredClient { id: "a b".to_owned(), secret: secret.map(str::to_owned), auth_method };
            client.asks(&[("code", "1&2")])
        };
        let header = format!("Basic {}", BASE64.encode(b"a+b:s%3A%2F"));
        assert_eq!(
            asks(TokenEndpointAuthMethod::Basic, Some("s:/")),
            ("code=1%262".to_owned(), Some(header))
        );
        let form = "code=1%262&client_secret=s%3A%2F&client_id=a+b";
        assert_eq!(asks(TokenEndpointAuthMethod::Post, Some("s:/")), (form.to_owned(), None));
        for public in
            [asks(TokenEndpointAuthMethod::None, Some("s:/")), asks(TokenEndpointAuthMethod::Basic, None)]
        {
            assert_eq!(public, ("code=1%262&client_id=a+b".to_owned(), None));
        }
    }

    #[test]
    fn a_login_that_was_kept_before_goes_on_with_its_form() {
        let kept = json!({"client_id": "a", "client_secret": "b"});
        let client: RegisteredClient = serde_json::from_value(kept).unwrap();
        assert!(client.auth_method == TokenEndpointAuthMethod::Post && client.secret.is_some());
    }
}
