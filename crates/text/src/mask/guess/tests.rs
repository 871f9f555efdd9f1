use proptest::prelude::*;

use super::super::Masker;

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
    Masker::new(&[]).unwrap().mask_entering(text).text.into_owned()
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
fn the_same_value_has_the_same_mark_and_another_one_another() {
    let (one, two) = (&canaries()[1].1, &canaries()[2].1);
    assert_eq!(
        masked(&format!("{one} {two} {one}")),
        "⟦secret:guessed.github⟧ ⟦secret:guessed.github.2⟧ ⟦secret:guessed.github⟧"
    );
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
    told + &stream.finish()
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
    assert_eq!(stream.push("\n"), "TOKEN=⟦secret:guessed.value⟧\n");
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
