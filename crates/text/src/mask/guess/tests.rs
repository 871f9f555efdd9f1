use std::cell::Cell;

use proptest::prelude::*;

use super::super::Masker;
use super::ANCHORS;

thread_local! {
    /// Bytes that were run through on this thread.
    pub(super) static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// A body of letters and digits as a format has it, which stands in no list of examples.
fn body(length: usize) -> String {
    "q7Zk2VbN9xR4tLw8Ys3HdJ6mPc5GfT1aUeKoBiQ0".chars().cycle().take(length).collect()
}

/// A secret of each format with its kind, as it may stand in a text. Put together here, so that none stands in a file.
pub(in crate::mask) fn canaries() -> Vec<(&'static str, String)> {
    let upper = body(40).to_uppercase().replace('0', "A").replace(['1', '8', '9'], "B");
    let hex = "3f9a1c7e5b2d8064".repeat(2);
    let jwt = format!("{}{}.{}{}.{}", "eyJ", body(20), "eyJ", body(30), body(43));
    let lines = format!("{}\n{}\n{}\n", body(64), body(64), body(40));
    vec![
        ("aws_key_id", format!("AK{}{}", "IA", &upper[..16])),
        ("github", format!("gh{}{}", "p_", body(36))),
        ("github", format!("gh{}{}", "s_", body(36))),
        ("github", format!("github{}{}", "_pat_", body(82))),
        ("gitlab", format!("gl{}{}", "pat-", body(20))),
        ("slack", format!("xo{}{}-{}", "xb-", "248163264128", body(24))),
        ("stripe", format!("sk_{}{}", "live_", body(24))),
        ("stripe", format!("rk_{}{}", "live_", body(24))),
        ("openai", format!("sk{}{}", "-", body(48))),
        ("openai", format!("sk{}{}", "-proj-", body(64))),
        ("anthropic", format!("sk{}{}", "-ant-api03-", body(80))),
        ("google", format!("AI{}{}", "za", body(35))),
        ("npm", format!("np{}{}", "m_", body(36))),
        ("pypi", format!("py{}{}", "pi-AgEIcHlwaS5vcmc", body(60))),
        ("sendgrid", format!("S{}{}.{}", "G.", body(22), body(43))),
        ("twilio", format!("S{}{hex}", "K")),
        ("telegram", format!("{}:A{}{}", 712_345_698, "A", body(33))),
        ("jwt", jwt),
        ("private_key", format!("-----BEGIN RSA {} KEY-----\n{lines}-----END RSA {0} KEY-----", "PRIVATE")),
    ]
}

fn masked(text: &str) -> String {
    without_identities(&Masker::new(&[]).unwrap().mask_entering(text).text)
}

/// A text whose marks have no identity.
fn without_identities(text: &str) -> String {
    let mut parts = text.split('⟧').peekable();
    let mut out = String::new();
    while let Some(part) = parts.next() {
        let is_identity = |end: &str| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
        match part.rsplit_once('.').filter(|(_, end)| is_identity(end)) {
            Some((before, _)) if before.contains("⟦secret:guessed.") && parts.peek().is_some() => {
                out += before;
            }
            _ => out += part,
        }
        out += if parts.peek().is_some() { "⟧" } else { "" };
    }
    out
}

#[test]
fn a_secret_of_each_format_is_masked_where_it_stands() {
    for (kind, secret) in canaries() {
        for (before, after) in [
            ("", ""),
            ("it is ", ", and"),
            ("\"", "\"\n"),
            ("(", ")."),
            ("a=", "&b"),
            ("TOKEN=", "\n"),
            ("\"token\": \"", "\","),
            ("ä ", " ö"),
        ] {
            let expected = format!("{before}⟦secret:guessed.{kind}⟧{after}");
            assert_eq!(masked(&format!("{before}{secret}{after}")), expected, "{secret}");
        }
    }
}

#[test]
fn what_is_assigned_or_sent_with_a_request_is_masked_without_its_name() {
    let secret = body(24);
    for (before, kind) in [
        ("API_KEY=", "value"),
        ("export DB_PASSWORD=", "value"),
        ("  \"client_secret\": \"", "value"),
        ("auth_token: ", "value"),
        ("apiKey = '", "value"),
        ("Authorization: Bearer ", "bearer"),
        ("postgres://me:", "url_password"),
    ] {
        let after = match before.chars().last() {
            Some(quote @ ('"' | '\'')) => quote.to_string(),
            _ if kind == "url_password" => "@db.example/x".to_owned(),
            _ => "\n".to_owned(),
        };
        assert_eq!(
            masked(&format!("{before}{secret}{after}")),
            format!("{before}⟦secret:guessed.{kind}⟧{after}")
        );
    }
    let id = &canaries()[0].1;
    let text = format!("id {id}\nsecret {}/{}\n", body(20), &body(39)[20..]);
    assert_eq!(masked(&text), "id ⟦secret:guessed.aws_key_id⟧\nsecret ⟦secret:guessed.aws_secret⟧\n");
}

#[test]
fn a_text_that_is_masked_is_not_masked_again() {
    let masker = Masker::new(&[]).unwrap();
    for (_, secret) in canaries() {
        let once = masker.mask_entering(&format!("TOKEN={secret}\nAPI_KEY={}\n", body(24))).text.into_owned();
        assert_eq!(masker.mask_entering(&once).text, once);
        assert_eq!(super::super::marks_in(&once).count(), 2, "{once}");
    }
}

#[test]
fn a_value_has_one_mark_in_all_texts_and_another_one_another_by_its_key() {
    let masker = Masker::new(&[]).unwrap();
    let (one, two) = (&canaries()[1].1, &canaries()[2].1);
    let marked = |masker: &Masker, text: &str| masker.mask_entering(text).text.into_owned();
    let (first, second) = (marked(&masker, one), marked(&masker, two));
    assert_ne!(first, second);
    assert_eq!(marked(&masker, &format!("{two} {one} {two}")), format!("{second} {first} {second}"));
    let mut stream = masker.guess_stream();
    assert_eq!(stream.push(&format!("{two}\n")) + &stream.finish(), format!("{second}\n"));
    assert_ne!(marked(&masker.identifying_by([7; 16]), one), first, "who lacks the key confirms no value");
}

#[test]
fn a_secret_is_found_behind_escapes_quotes_and_colours() {
    let (token, value) = (&canaries()[1].1, body(24));
    let github = "⟦secret:guessed.github⟧";
    for before in [
        "{\"log\":\"first\\n",
        "a\\\\n",
        "a\\t",
        "u=a%3D",
        "u=a%3d",
        "\x1b[32m",
        "\x1b[01;31m\x1b[K",
        "\\u001b[32m",
        "\\x1b[m",
        "\\033[0m",
        "\\u0022",
        "\\x22",
        "k_",
        "k-",
    ] {
        assert_eq!(masked(&format!("{before}{token}\\n")), format!("{before}{github}\\n"));
    }
    let coloured = format!("\x1b[31m{}\x1b[m\x1b[K{}\n", &token[..4], &token[4..]);
    assert_eq!(masked(&coloured), format!("\x1b[31m{github}\n"));
    for (before, after) in [
        ("API_KEY=\\\"", "\\\"\\n"),
        ("{\\\"api_key\\\": \\\"", "\\\"}"),
        ("{\\\\\\\"api_key\\\\\\\":\\\\\\\"", "\\\\\\\"}"),
        ("API_KEY=\t", "\n"),
        ("API_KEY\t:\t'", "'"),
        ("api_key%3D", "\n"),
        ("X=1\\nAPI_KEY=", "\\nY"),
        ("\x1b[31mAPI_KEY\x1b[m\x1b[K=", "\n"),
    ] {
        assert_eq!(
            masked(&format!("{before}{value}{after}")),
            format!("{before}⟦secret:guessed.value⟧{after}")
        );
    }
    // Part of a longer word is none.
    for before in ["x", "0", "\\q", "%3", "[32m"] {
        assert_eq!(masked(&format!("{before}{token}\n")), format!("{before}{token}\n"));
    }
}

#[test]
fn every_secret_beside_the_id_of_a_key_is_masked() {
    let (id, token) = (&canaries()[0].1, &canaries()[1].1);
    let secret = format!("{}/{}", body(20), &body(39)[20..]);
    let text = format!("{id} {token} {secret} {token}\n");
    let kinds =
        ["aws_key_id", "github", "aws_secret", "github"].map(|kind| format!("⟦secret:guessed.{kind}⟧"));
    assert_eq!(masked(&text), format!("{}\n", kinds.join(" ")));
}

#[test]
fn a_private_key_is_masked_as_programs_print_it() {
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    let end = begin.replace("BEGIN", "END");
    let lines = [body(64), body(64).replace('q', "/"), "q7Zk2VbN9x==".to_owned()];
    let key = |before: &str, between: &str| {
        format!("{begin}{between}{before}{}{between}{before}{end}", lines.join(&format!("{between}{before}")))
    };
    for text in [
        key("", "\n"),
        key("", "\r\n"),
        key("", "\\n"),
        key("", " "),
        key("    ", "\n"),
        key("> ", "\n"),
        key("+", "\n"),
        key("-", "\n"),
        key("12:", "\n"),
        key("    12\t", "\n"),
        key("\x1b[32m+", "\x1b[m\n"),
        key("\"", "\\n\" +\n"),
        key("", "\n").replace('/', "\\/"),
        format!(
            "{begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{}\n\n{}\n{end}",
            "3F9A1C7E".repeat(4),
            lines.join("\n")
        ),
    ] {
        assert_eq!(masked(&format!("{text}\nZ=1\n")), "⟦secret:guessed.private_key⟧\nZ=1\n", "{text}");
    }
    let cut = format!("{begin}\n{}\nand so on\n", lines.join("\n"));
    assert_eq!(masked(&cut), "⟦secret:guessed.private_key⟧\nand so on\n");
}

#[test]
fn code_between_the_lines_of_a_private_key_stays_as_it_is() {
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    let code = format!(
        "BEGIN = \"{begin}\"\ndef strip(text):\n    # honest code between the two markers, which nobody would call a key\n    \
         lines = [line for line in text.splitlines() if line]\n    start = lines.index(BEGIN)\n    return \
         lines[start + 1:lines.index(\"{}\")]\n",
        begin.replace("BEGIN", "END")
    );
    assert_eq!(masked(&code), code);
    let digest = format!("const A: &str = \"{begin}\";\nconst B: &str = \"{}\";\n", "3f9a1c7e".repeat(8));
    assert_eq!(masked(&digest), digest);
}

#[test]
fn a_password_in_an_address_is_masked_unless_it_is_an_example() {
    for password in
        ["hunter2secret", "s3cr3tPassw0rd99", "correcthorsebattery", "p4ss", "kX9vLq2mZt7pW4", "user.X9v"]
    {
        let text = format!("postgres://me:{password}@db.example.org/x");
        assert_eq!(
            masked(&text),
            "postgres://me:⟦secret:guessed.url_password⟧@db.example.org/x",
            "{password}"
        );
    }
    for password in [
        "password",
        "pass",
        "test1234",
        "my-password",
        "mysecretpassword1",
        "8080",
        "changeme9",
        "postgres",
        "me",
        "bird",
    ] {
        let text = format!("postgres://me:{password}@db.example.org/x");
        assert_eq!(masked(&text), text);
    }
}

/// Bytes that guessing runs through for one byte of a text, at most.
const STEPS_PER_BYTE: usize = 200;

#[test]
fn guessing_costs_in_proportion_to_the_text_whatever_is_repeated_in_it() {
    let cost = |text: &str| {
        STEPS.set(0);
        let _masked = Masker::new(&[]).unwrap().mask_entering(text);
        STEPS.get()
    };
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    let mut parts: Vec<String> = ANCHORS
        .iter()
        .flat_map(|(anchor, _)| ["=", "_", ".", "\\n", "a1B="].map(|end| format!("{anchor}{end}")))
        .collect();
    parts.extend([begin.clone(), format!("{begin}\n{}", body(64)), format!("TOKEN={}\n", body(24))]);
    parts.extend(canaries().into_iter().map(|(_, secret)| secret));
    let anchors = ANCHORS.iter().map(|(anchor, _)| ((*anchor).to_owned(), 1 << 20));
    for (part, bytes) in parts.into_iter().map(|part| (part, 1 << 16)).chain(anchors) {
        let cost = cost(&part.repeat(bytes / part.len()));
        assert!(cost <= STEPS_PER_BYTE * bytes, "{part:?}: {cost}");
    }
    let honest: String =
        (0..40_000).map(|line| format!("TOKEN={line:08x}{}\n", "3f9a1c7e5b2d8064".repeat(2))).collect();
    assert!(cost(&honest) <= STEPS_PER_BYTE * honest.len());
}

#[test]
fn what_is_no_secret_stays_as_it_is() {
    let sha = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let integrity = format!("\"integrity\": \"sha512-{}{}==\",", body(40), body(40));
    let picture =
        format!("![](data:image/png;base64,iVBORw0KGgo{}eyJ{}SG.{})", body(400), body(400), body(300));
    let texts = [
        format!("checksum = \"{sha}\"\ncommit {}\n", &sha[..40]),
        format!("cache_key = \"{sha}\"\npublic_key: {sha}\n"),
        integrity,
        picture,
        "password = get_password()\ntoken = self.tokens[3].next_token2_of(4)\n".to_owned(),
        "TOKEN = \"changeme\"\nSECRET=your-secret-goes-here-2024\nAPI_KEY=xxxxxxxxxxxxxxxxxxxx1a2b\n".to_owned(),
        "let token: Token = parse_token_v2(input1)?; if token == other_token_1a2b3c4d5e { }\n".to_owned(),
        "AKIAIOSFODNN7EXAMPLE sk-canary-0123456789abcdef ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n".to_owned(),
        "postgres://user:password@localhost/db https://a.example:8080/@me ssh://git@host.example\n".to_owned(),
        "session_token: 123e4567-e89b-42d3-a456-426614174000\nsecret_key_file=/run/secrets/k3y/v2/f1le\n".to_owned(),
        "Authorization: Bearer $TOKEN\nBearer <token>\na risk-based, task-oriented design\n".to_owned(),
        "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----\n".to_owned(),
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAq7Zk2VbN9x\n-----END PUBLIC KEY-----\n".to_owned(),
        "max_tokens = 4096\ntoken_type: \"urn:ietf:params:oauth:token-type:access_token\"\n".to_owned(),
        "key=⟦secret:providers.openai.key⟧ TOKEN=⟦secret:guessed.github⟧\n".to_owned(),
    ];
    for text in texts {
        assert_eq!(masked(&text), text);
    }
}

fn streamed(text: &str, cuts: &[usize]) -> String {
    let mut stream = Masker::new(&[]).unwrap().guess_stream();
    let (mut told, mut from) = (String::new(), 0);
    for cut in cuts.iter().copied().chain([text.len()]) {
        told += &stream.push(&text[from..cut]);
        from = cut;
    }
    without_identities(&(told + &stream.finish()))
}

#[test]
fn a_secret_that_comes_in_two_pieces_is_masked_wherever_it_is_cut() {
    for (kind, secret) in canaries() {
        let text = format!("it is {secret} and more\n");
        for cut in 0..=text.len() {
            let told = streamed(&text, &[cut]);
            assert!(!told.contains(&secret[secret.len() / 2..]), "{kind} {cut}: {told}");
            assert!(told.contains(&format!("⟦secret:guessed.{kind}⟧")), "{kind} {cut}: {told}");
            assert!(told.ends_with(" and more\n"), "{kind} {cut}: {told}");
        }
        let each: Vec<usize> = (0..text.len()).collect();
        let told = streamed(&text, &each);
        assert!(!told.contains(&secret[secret.len() / 2..]), "{kind} by single bytes: {told}");
    }
}

#[test]
fn a_prompt_is_told_at_once_and_a_word_once_it_ends() {
    let mut stream = Masker::new(&[]).unwrap().guess_stream();
    assert_eq!(stream.push("Password: "), "Password: ");
    assert_eq!(stream.push("\nName:"), "\nName:");
    assert_eq!(stream.push(" 40 %...."), " 40 %....");
    assert_eq!(stream.push("ready"), "ready");
    assert_eq!(stream.push(" g"), " ");
    assert_eq!(stream.push("ood\n"), "good\n");
    let secret = body(24);
    assert_eq!(stream.push("TOKEN="), "");
    assert_eq!(stream.push(&secret), "");
    assert_eq!(without_identities(&stream.push("\n")), "TOKEN=⟦secret:guessed.value⟧\n");
    assert_eq!(stream.push(&secret[..20]), "");
    stream.skip();
    assert_eq!(stream.push(&format!("{} and on", &secret[4..])), " and on");
    assert_eq!(stream.finish(), "");
}

proptest! {
    #[test]
    fn whatever_comes_is_told_whole_in_pieces(text in "[a-z0-9 :=.\\-\n\"üé]{0,200}", at in any::<prop::sample::Index>()) {
        let cut = crate::grapheme::floor(&text, at.index(text.len() + 1));
        prop_assert_eq!(streamed(&text, &[cut]), masked(&text));
    }
}
