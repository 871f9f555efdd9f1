//! Logins at servers of tools (OAuth): found out, said yes to, renewed, refused and forgotten (docs/mcp.md).

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use data_encoding::BASE64URL_NOPAD;
use loom::Digest;
use serde_json::{Value, json};

use crate::mcp::{allowed, called, script, there, world};
use crate::mcp_site::{Asked, McpSite, Reply, fields, said, tool, whole};
use crate::terminal::Terminal;
use crate::tools::nodes;
use crate::trust::with_terminal;
use crate::web::Site;
use crate::world::{World, piped};

/// What an issuer knows, and what it is to do.
#[derive(Default)]
struct Issued {
    number: usize,
    /// Access that is let in.
    access: BTreeSet<String>,
    /// What renews, once each.
    refresh: BTreeSet<String>,
    /// What renewed, and was said again.
    repeated: usize,
    renewals: usize,
    challenge: String,
    /// Seconds that an access lasts.
    lasts: u64,
    /// Whether whoever comes is greeted.
    greets: bool,
    /// Whether the tool `plain` wants more scopes.
    is_narrow: bool,
    /// Header by which the client proves to be it.
    proof: Option<&'static str>,
    /// Further members of what the resource says of itself.
    resource: Option<Value>,
    /// Secret that it gives to whoever registers, and repeats when it refuses them.
    secret: Option<&'static str>,
    /// Whether the issuer says that it names itself with each answer.
    names_itself: bool,
    /// Called when somebody is not let in.
    on_refused: Option<Box<dyn Fn() + Send>>,
}

#[derive(Clone, Default)]
struct Issuer(Arc<Mutex<Issued>>);

impl Issuer {
    fn with<T>(&self, change: impl FnOnce(&mut Issued) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// A server that lets in who has an access of this issuer, which is at the same address.
    fn site(&self) -> McpSite {
        let this = self.clone();
        McpSite::start(
            |_| json!([tool("plain", "Tool plain."), tool("echo", "Tool echo.")]),
            move |asked| this.answer(asked),
        )
    }

    fn answer(&self, asked: &Asked) -> Option<Reply> {
        let host = format!("http://{}", asked.header("host").unwrap());
        let told = |value: Value| Some(whole("200 OK", "application/json", "", &value.to_string()));
        let mut issued = self.0.lock().unwrap();
        match asked.path() {
            "/.well-known/oauth-protected-resource/mcp" => {
                let own = json!({"resource": format!("{host}/mcp"), "authorization_servers": [host], "scopes_supported": ["read"]});
                told(issued.resource.clone().unwrap_or(own))
            }
            "/.well-known/oauth-authorization-server" => told(json!({
                "issuer": host,
                "authorization_endpoint": format!("{host}/authorize?tenant=1"),
                "token_endpoint": format!("{host}/token"),
                "registration_endpoint": format!("{host}/register"),
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": issued.names_itself,
            })),
            "/register" => {
                assert!(asked.body["redirect_uris"][0].as_str().unwrap().starts_with("http://127.0.0.1:"));
                let mut client = json!({"client_id": "client-1"});
                if let Some(secret) = issued.secret {
                    client["client_secret"] = secret.into();
                }
                told(client)
            }
            "/token" => {
                assert_eq!(asked.field("resource").as_deref(), Some(&*format!("{host}/mcp")));
                if let Some(secret) = issued.secret {
                    let header = asked.header("authorization").unwrap_or_default();
                    let repeated =
                        format!("{secret} of {header} is no secret, and {} {secret}", "no ".repeat(9));
                    let error = json!({"error": "invalid_client", "error_description": repeated}).to_string();
                    return Some(whole("401 Unauthorized", "application/json", "", &error));
                }
                assert_eq!(asked.header("authorization"), issued.proof);
                let client = asked.field("client_id");
                assert_eq!(client.as_deref(), issued.proof.is_none().then_some("client-1"));
                let is_right = match asked.field("grant_type").as_deref() {
                    Some("authorization_code") => {
                        let verifier = asked.field("code_verifier").unwrap();
                        let digest = Digest::of(verifier.as_bytes());
                        asked.field("code").as_deref() == Some("code-1")
                            && BASE64URL_NOPAD.encode(&digest.0) == issued.challenge
                    }
                    _ => {
                        let refresh = asked.field("refresh_token").unwrap();
                        let is_known = issued.refresh.remove(&refresh);
                        issued.repeated += usize::from(!is_known);
                        issued.renewals += usize::from(is_known);
                        is_known
                    }
                };
                if !is_right {
                    let error = json!({"error": "invalid_grant"}).to_string();
                    return Some(whole("400 Bad Request", "application/json", "", &error));
                }
                issued.number += 1;
                let number = issued.number;
                let [access, refresh] =
                    ["access", "refresh"].map(|kind| format!("{kind}-{number}-0123456789abcdef"));
                issued.access = [access.clone()].into();
                issued.refresh = [refresh.clone()].into();
                let lasts = issued.lasts;
                told(
                    json!({"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": lasts}),
                )
            }
            "/mcp" => {
                let header = asked.header("authorization").unwrap_or_default();
                let access = header.strip_prefix("Bearer ").unwrap_or_default();
                if issued.greets
                    && matches!(
                        asked.body["method"].as_str(),
                        Some("initialize" | "notifications/initialized")
                    )
                {
                    return None;
                }
                if issued.is_narrow && issued.access.contains(access) && asked.tool() == "plain" {
                    let wanted =
                        "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"notes admin\"\r\n";
                    return Some(whole("403 Forbidden", "text/plain", wanted, ""));
                }
                if !issued.access.contains(access) {
                    if let Some(act) = issued.on_refused.take() {
                        act();
                    }
                    let challenge = format!(
                        "www-authenticate: Bearer resource_metadata=\"{host}/.well-known/oauth-protected-resource/mcp\", scope=\"notes\"\r\n"
                    );
                    return Some(whole("401 Unauthorized", "text/plain", &challenge, ""));
                }
                let echoed = || whole("200 OK", "application/json", "", &said(asked, header).to_string());
                (asked.tool() == "echo").then(echoed)
            }
            _ => Some(whole("404 Not Found", "text/plain", "", "")),
        }
    }
}

/// A world whose server `site` is at this address, and whose tools may be called.
fn at(url: &str) -> World {
    world(&[], &format!("[mcp.site]\nurl = {url:?}\n{}", allowed(&["site:plain", "site:echo"])))
}

/// `mcp login`, up to where it waits for its browser, and the address that it is to open.
fn begun(world: &World) -> (Child, BufReader<std::process::ChildStderr>, Vec<(String, String)>) {
    let mut child = piped(&mut world.command(&["mcp", "login", "site"]));
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("/authorize?tenant=1&") {
        line.clear();
        assert_ne!(told.read_line(&mut line).unwrap(), 0, "it tells where to go");
    }
    let query = line.trim().split_once('?').unwrap().1.to_owned();
    (child, told, fields(&query).collect())
}

fn field<'q>(query: &'q [(String, String)], name: &str) -> &'q str {
    query.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

#[test]
fn the_address_to_log_in_at_is_a_row_of_its_own() {
    let site = Issuer::default().site();
    let world = at(&site.url());
    let mut terminal = Terminal::of_width(with_terminal(&world.command(&["mcp", "login", "site"])), 60);
    terminal.shows("&state=");
    let is_whole = |row: &str| {
        row.starts_with("http://")
            && ["response_type", "code_challenge", "state"].iter().all(|key| row.contains(&format!("{key}=")))
    };
    terminal.until("it whole", |terminal| terminal.plain().lines().any(is_whole));
}

/// What a browser gets that comes back with this query.
fn comes_back(query: &[(String, String)], with: &str) -> String {
    let place = field(query, "redirect_uri").strip_prefix("http://").unwrap();
    let (host, path) = place.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path}?{with} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    std::io::read_to_string(stream).unwrap()
}

/// Logs in as an owner who says yes.
fn log_in(world: &World, issuer: &Issuer) {
    let (mut child, _told, query) = begun(world);
    issuer.with(|issued| field(&query, "code_challenge").clone_into(&mut issued.challenge));
    let answer = comes_back(&query, &format!("code=code-1&state={}", field(&query, "state")));
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(child.wait().unwrap().success());
}

/// What came of these calls of one request, in a conversation of its own.
fn turn(world: &World, session: &str, tools: &[&str]) -> Vec<String> {
    let (code, said) = there(world, &["chat", "--session", session, "-m", "Go on."]);
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let found =
        said["calls"].as_array().unwrap().iter().map(|call| call["status"].as_str().unwrap().to_owned());
    let found: Vec<String> = found.collect();
    assert_eq!(found.len(), tools.len(), "{said}");
    found
}

fn scripted(world: &World, tools: &[&str]) {
    let calls: Vec<Value> =
        tools.iter().map(|tool| called(&format!("site:{tool}"), &json!({"q": tool}))).collect();
    script(world, &[json!({"tool_calls": calls}), json!({"text": "Done."})]);
}

/// The same, with what was said.
fn told(world: &World, tools: &[&str]) -> Vec<String> {
    scripted(world, tools);
    let (code, said) = there(world, &["chat", "--new", "-m", "Go on."]);
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let is_of_it = |node: &Value| node["author"].as_str().unwrap_or_default().starts_with("site:");
    let found = nodes(world).into_iter().filter(is_of_it);
    found.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn m7_a_login_is_found_out_said_yes_to_and_forgotten() {
    let issuer = Issuer::default();
    issuer.with(|issued| issued.lasts = 3600);
    let site = issuer.site();
    let world = at(&site.url());
    let (code, refused) = there(&world, &["mcp", "accept", "site", "--yes"]);
    assert!(
        code == Some(5) && refused.to_string().contains("`drawloom mcp login site` tells it"),
        "{refused}"
    );

    let (mut child, _told, query) = begun(&world);
    let expected = [
        ("response_type", "code"),
        ("client_id", "client-1"),
        ("code_challenge_method", "S256"),
        ("resource", &site.url()),
        ("scope", "notes"),
    ];
    assert!(expected.iter().all(|(name, value)| field(&query, name) == *value), "{query:?}");
    issuer.with(|issued| field(&query, "code_challenge").clone_into(&mut issued.challenge));
    // Who does not know what was asked is not listened to.
    assert!(comes_back(&query, "code=stolen&state=guessed").starts_with("HTTP/1.1 404"));
    let answer = comes_back(&query, &format!("code=code-1&state={}", field(&query, "state")));
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(child.wait().unwrap().success());

    let kept = world.home().join("oauth/site.json");
    assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(kept.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    assert_eq!(there(&world, &["mcp", "accept", "site", "--yes"]).0, Some(0));
    let echoed = told(&world, &["plain", "echo"]);
    assert_eq!(echoed[0], "this is plain");
    assert!(
        echoed[1].contains("⟦secret:mcp.site.login⟧") && !echoed[1].contains("0123456789abcdef"),
        "{echoed:?}"
    );
    let (_, listed) = there(&world, &["mcp", "list"]);
    assert!(listed["servers"][0]["notes"].to_string().contains("you are logged in there"), "{listed}");

    // It is for this address alone.
    let elsewhere = McpSite::start(|_| json!([]), |_| None);
    world.ok(&["config", "set", "mcp.site.url", &elsewhere.url()]);
    assert_eq!(there(&world, &["mcp", "test", "site"]).0, Some(0));
    assert!(elsewhere.asked().iter().all(|asked| asked.header("authorization").is_none()));
    world.ok(&["config", "set", "mcp.site.url", &site.url()]);

    let (code, out) = there(&world, &["mcp", "logout", "site"]);
    assert_eq!((code, &out["servers"][0]["status"]), (Some(0), &json!("logged_out")), "{out}");
    assert!(!kept.exists());
    assert!(told(&world, &["plain"])[0].contains("`drawloom mcp login site`"));
    assert_eq!(there(&world, &["mcp", "logout", "site"]).0, Some(3));
}

#[test]
fn a_login_is_renewed_before_it_ends_once_among_all_processes() {
    let issuer = Issuer::default();
    // Each access is about to end.
    issuer.with(|issued| issued.lasts = 1);
    let site = issuer.site();
    let world = at(&site.url());
    log_in(&world, &issuer);
    assert_eq!(there(&world, &["mcp", "accept", "site", "--yes"]).0, Some(0));
    let before = issuer.with(|issued| issued.renewals);
    assert!(before > 0);
    // What an issuer takes back when it gives a new one is no more let in: processes may meet that, and renew.
    scripted(&world, &["plain", "plain"]);
    thread::scope(|scope| {
        for session in ["one", "two", "three"] {
            let world = &world;
            scope.spawn(move || turn(world, session, &["plain", "plain"]));
        }
    });
    assert_eq!(issuer.with(|issued| issued.repeated), 0, "nothing that renewed was said twice");
    assert!(issuer.with(|issued| issued.renewals) > before);
    assert!(world.home().join("oauth/site.json").exists());
}

#[test]
fn an_access_that_is_refused_is_renewed_once_and_a_login_that_is_not_renewed_is_dropped_and_counts_again_at_once()
 {
    let issuer = Issuer::default();
    issuer.with(|issued| issued.lasts = 3600);
    let site = issuer.site();
    let world = at(&site.url());
    log_in(&world, &issuer);
    assert_eq!(there(&world, &["mcp", "accept", "site", "--yes"]).0, Some(0));
    issuer.with(|issued| issued.access.clear());
    assert_eq!(told(&world, &["plain"]), ["this is plain"]);
    assert_eq!(issuer.with(|issued| (issued.renewals, issued.repeated)), (1, 0));
    let kept = world.home().join("oauth/site.json");
    let good = fs::read(&kept).unwrap();

    // It is taken back, and given again while the conversation goes on.
    let taken = issuer.with(|issued| {
        let taken = (std::mem::take(&mut issued.access), std::mem::take(&mut issued.refresh));
        issued.on_refused = None;
        taken
    });
    let lost = told(&world, &["plain"]);
    assert!(
        lost[0].contains("the login was not renewed, and is dropped: `drawloom mcp login site`"),
        "{lost:?}"
    );
    let trust =
        || nodes(&world).into_iter().rfind(|node| node["author"] == "site:plain").unwrap()["trust"].clone();
    assert_ne!(trust(), "outside", "no word of it is of the server");
    assert!(!kept.exists());
    issuer.with(|issued| {
        (issued.access, issued.refresh) = taken;
        let kept = kept.clone();
        issued.on_refused = Some(Box::new(move || {
            fs::write(&kept, &good).unwrap();
        }));
    });
    let again = told(&world, &["plain", "plain"]);
    assert!(again[0].contains("`drawloom mcp login site`"), "{again:?}");
    assert_eq!((again[1].as_str(), trust()), ("this is plain", json!("outside")));

    // An issuer that fails takes nothing away.
    let broken = Issuer::default();
    broken.with(|issued| issued.lasts = 3600);
    let site = broken.site();
    world.ok(&["config", "set", "mcp.site.url", &site.url()]);
    log_in(&world, &broken);
    assert_eq!(there(&world, &["mcp", "accept", "site", "--yes"]).0, Some(0));
    let text = fs::read_to_string(&kept).unwrap().replace("/token\"", "/mcp?fails\"");
    fs::write(&kept, text).unwrap();
    broken.with(|issued| issued.access.clear());
    assert!(told(&world, &["plain"])[0].contains("the login could not be renewed (HTTP 404)"));
    assert!(kept.exists());
}

#[test]
fn nobody_is_logged_in_where_a_server_points_elsewhere_or_its_owner_says_no() {
    let private = Site::start(|_| panic!("it is not asked"));
    let issuer = Issuer::default();
    let site = issuer.site();
    let world = at(&site.url());
    for (resource, why) in [
        (
            json!({"resource": "https://other.example/mcp", "authorization_servers": ["https://id.example"]}),
            "describes itself as another one",
        ),
        (json!({"resource": site.url(), "authorization_servers": [private.url("")]}), "is not reached: only"),
        (
            json!({"resource": site.url(), "authorization_servers": ["http://192.168.1.5/"]}),
            "it is of a private network",
        ),
        (json!({"resource": site.url(), "authorization_servers": ["http://8.8.8.8/"]}), "is not encrypted"),
        (json!({"resource": site.url(), "authorization_servers": []}), "does not say who lets in"),
    ] {
        issuer.with(|issued| issued.resource = Some(resource));
        let (code, refused) = there(&world, &["mcp", "login", "site"]);
        assert!(code == Some(5) && refused.to_string().contains(why), "{why}: {refused}");
        let hint = refused["error"]["hint"].as_str().unwrap();
        assert!(hint.starts_with("`drawloom mcp login site` begins anew"), "{hint}");
    }
    assert!(private.paths().is_empty());
    issuer.with(|issued| issued.resource = None);
    let (mut child, mut told, query) = begun(&world);
    comes_back(&query, &format!("error=access_denied&state={}", field(&query, "state")));
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("it was not let in: access_denied"), "{rest}");
    // One that answers for another is not believed.
    let (mut child, _told, query) = begun(&world);
    comes_back(
        &query,
        &format!("code=code-1&iss=https%3A%2F%2Fevil.example&state={}", field(&query, "state")),
    );
    assert_eq!(child.wait().unwrap().code(), Some(5));
    // Nor what could be read in two ways, and no code is none.
    for (given, why) in [
        ("code=code-1&code=code-2&state=STATE", "`code` twice"),
        ("code=code-1&state=STATE&state=other", "`state` twice"),
        ("code=code-1&iss=a&iss=b&state=STATE", "`iss` twice"),
        ("code=&state=STATE", "it gave no code"),
    ] {
        let (mut child, mut told, query) = begun(&world);
        comes_back(&query, &given.replace("STATE", field(&query, "state")));
        assert_eq!(child.wait().unwrap().code(), Some(5), "{given}");
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        assert!(rest.contains(why), "{given}: {rest}");
    }
    // Nor one that does not say who it is, where the issuer always does.
    issuer.with(|issued| issued.names_itself = true);
    let (mut child, _told, query) = begun(&world);
    comes_back(&query, &format!("code=code-1&state={}", field(&query, "state")));
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert!(!world.home().join("oauth/site.json").exists());
    assert!(site.asked().iter().all(|asked| asked.path() != "/token"));
}

#[test]
fn s11_an_issuer_repeats_no_secret_that_it_gave() {
    let issuer = Issuer::default();
    let secret = "registered-0123456789abcdef";
    issuer.with(|issued| issued.secret = Some(secret));
    let site = issuer.site();
    let world = at(&site.url());
    let (mut child, mut told, query) = begun(&world);
    comes_back(&query, &format!("code=code-1&state={}", field(&query, "state")));
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("(HTTP 401) invalid_client: ⟦secret:login⟧ of Basic "), "{rest}");
    let encoded = data_encoding::BASE64.encode(format!("client-1:{secret}").as_bytes());
    for part in [&secret[..12], &encoded[12..]] {
        assert!(!rest.contains(part), "{part}: {rest}");
    }
}

#[test]
fn a_server_that_greets_whoever_comes_is_logged_in_at_as_its_issuer_takes_it_and_says_which_scopes_it_wants()
{
    let issuer = Issuer::default();
    // The name of the client and its secret, each as a form has it.
    let proof = Some("Basic Y2xpZW50LTE6cyUzQSUyRnRoZS1zZWNyZXQ=");
    issuer.with(|issued| {
        (issued.lasts, issued.greets, issued.is_narrow, issued.proof) = (3600, true, true, proof);
    });
    let site = issuer.site();
    let world = at(&site.url());
    world.ok(&["config", "set", "mcp.site.client_id", "client-1"]);
    world.ok(&["config", "set", "mcp.site.secrets.CLIENT_SECRET", "s:/the-secret"]);
    let (code, refused) = there(&world, &["mcp", "accept", "site", "--yes"]);
    assert!(
        code == Some(5) && refused.to_string().contains("`drawloom mcp login site` tells it"),
        "{refused}"
    );
    log_in(&world, &issuer);
    assert_eq!(there(&world, &["mcp", "accept", "site", "--yes"]).0, Some(0));
    let said = told(&world, &["plain", "echo"]);
    assert!(
        said[0].contains(
            "write the scopes `notes admin` into its entry, and then `drawloom mcp login site` asks for them"
        ),
        "{said:?}"
    );
    assert!(said[1].contains("⟦secret:mcp.site.login⟧"), "the rest of the login is good: {said:?}");
    world.ok(&["config", "set", "mcp.site.scopes", "[\"notes\", \"admin\"]"]);
    let (mut child, _told, query) = begun(&world);
    assert_eq!(field(&query, "scope"), "notes admin");
    child.kill().unwrap();
    child.wait().unwrap();
}
