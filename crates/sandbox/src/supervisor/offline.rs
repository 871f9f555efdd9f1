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

/// Lines at the end that are looked at, unless the command failed: what it printed before may be what it read.
const LAST_LINES: usize = 5;

pub(super) fn seems_offline(output: &str, has_failed: bool) -> bool {
    let lines: Vec<&str> = output.lines().collect();
    let of = if has_failed { 0 } else { lines.len().saturating_sub(LAST_LINES) };
    let output = lines[of..].join("\n").to_lowercase();
    let says = |words: &&str| output.contains(*words);
    let says_word = |word: &&str| {
        let is_part = |at: usize| output[..at].ends_with(|before: char| before.is_alphanumeric());
        output.match_indices(*word).any(|(at, _)| !is_part(at))
    };
    SAID.iter().any(says) || (has_failed && SAID_OF_A_FAILURE.iter().any(says_word))
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
        assert!(!seems_offline(shown, false));
        assert!(seems_offline(shown, true));
        assert!(!seems_offline("test result: ok", true));
        assert!(!seems_offline("FileNotFoundError: [Errno 2] No such file or directory: 'zzz'", true));
        assert!(seems_offline("npm error code ENOTFOUND", true));
        let read = format!("connect: Network is unreachable\n{}", "test result: ok\n".repeat(LAST_LINES));
        assert!(!seems_offline(&read, false) && seems_offline(&read, true));
    }
}
