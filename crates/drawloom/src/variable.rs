//! Values of environment variables that hold keys and passwords.

/// Value of a variable; none where it is not set, or holds nothing but blanks.
pub(crate) fn held(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}
