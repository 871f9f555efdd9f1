//! Logins at servers by OAuth 2.1, as the Model Context Protocol has it: who lets in is found out (RFC 9728, RFC 8414), the
//! owner says yes in a browser (PKCE, RFC 7636), and what is got goes to that server alone (RFC 8707). It is kept in the home
//! (spec: security §15).

mod bearer;
mod client;
mod issuer;
mod login;
mod saved;

pub(crate) use bearer::{Bearer, LoginEnded};
pub(crate) use issuer::parameter;
pub use login::{LoginRequest, login};
pub use saved::SavedLogin;
