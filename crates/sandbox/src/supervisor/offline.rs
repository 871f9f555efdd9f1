//! Output of programs that found no network.

/// What they say, in lower case. Through `| tail` there is no more of it than the last line, and the exit code is that of
/// `tail`.
const SAID: [&str; 15] = [
    "could not resolve host",
    "couldn't resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "network is unreachable",
    "getaddrinfo enotfound",
    "getaddrinfo eai_again",
    "getaddrinfo failed",
    "no address associated with hostname",
    "failed to lookup address information",
    "dial tcp: lookup ",
    "npm error network",
    "npm err! network",
    "no matching distribution found for",
];

/// Words of errors that stand in source texts, too: they count where the command failed.
const SAID_OF_A_FAILURE: [&str; 4] = ["getaddrinfo", "enotfound", "eai_again", "unknownhostexception"];

pub(super) fn seems_offline(output: &str, has_succeeded: bool) -> bool {
    let output = output.to_lowercase();
    let says = |words: &&str| output.contains(*words);
    SAID.iter().any(says) || (!has_succeeded && SAID_OF_A_FAILURE.iter().any(says))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_without_a_network_is_known_also_from_its_last_line() {
        for said in [
            "curl: (6) Could not resolve host: example.com",
            "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
            "ERROR: No matching distribution found for requests",
            "npm error network In most cases you are behind a proxy or have bad network settings.",
            "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
            "connect: Network is unreachable",
        ] {
            assert!(seems_offline(said, true) && seems_offline(said, false), "{said}");
        }
    }

    #[test]
    fn source_that_a_command_shows_is_no_missing_network() {
        let shown = "int found = getaddrinfo(host, NULL, &hints, &all); /* EAI_AGAIN */";
        assert!(!seems_offline(shown, true));
        assert!(seems_offline(shown, false));
        assert!(!seems_offline("test result: ok", false));
    }
}
