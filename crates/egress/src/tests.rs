//! What the gate lets through, and what not. Of the addresses of this machine a test has some for public ones, so that there
//! is somebody to answer there.

mod proxying;

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::address::{is_own, not_public};
use crate::resolve::{Resolve, Resolving};
use crate::{
    ClientOptions, FetchError, FetchLimits, Fetched, Gate, HostPort, Purpose, Reach, Redirects, Refusal,
    Rule, fetch,
};

/// Lookups that are answered from a list, and counted. After its last line that is repeated.
struct Answers {
    lines: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Answers {
    fn of(lines: &[&[&str]]) -> Arc<Self> {
        let parsed = |line: &&[&str]| line.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self { lines: Mutex::new(lines.iter().map(parsed).collect()), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for Answers {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut lines = self.lines.lock().unwrap();
        let line = if lines.len() > 1 { lines.pop_front() } else { lines.front().cloned() };
        Box::pin(async move { line.ok_or_else(|| io::Error::other("nobody answers")) })
    }
}

/// A server at an address of this machine that gives every request one answer, and counts requests.
async fn server(at: &str, answer: impl Fn(&str) -> String + Send + 'static) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(at).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&heard);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let _ = stream.write_all(answer(&request).as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, heard)
}

fn page(text: &str) -> String {
    let length = text.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
    )
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

const LIMITS: FetchLimits = FetchLimits { bytes: 1 << 10, redirects: 3, time: Duration::from_secs(20) };

/// Has this one address for a public one.
fn gate(answers: &Arc<Answers>) -> Gate {
    let mut gate = Gate::resolving(Arc::<Answers>::clone(answers));
    gate.public = vec!["127.0.0.2".parse().unwrap()];
    gate
}

fn rule(named: &[&str]) -> Rule {
    let named = named.iter().map(|place| place.parse().unwrap()).collect();
    Rule { purpose: Purpose::Fetch, reach: Reach::Public { named } }
}

async fn fetched(gate: &Gate, named: &[&str], url: &str) -> Result<Fetched, FetchError> {
    let options = ClientOptions {
        redirects: Redirects::No,
        connect_timeout: Duration::from_secs(5),
        read_timeout: None,
        proxy: None,
    };
    let client = gate.client(rule(named), &options).unwrap();
    fetch(&client, Url::parse(url).unwrap(), LIMITS, &|_| Ok(())).await
}

#[test]
fn x29_addresses_that_are_not_public_are_told_in_every_block() {
    let refused = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.0.1 169.254.169.254 172.16.0.1 \
        172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 \
        224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:7f00:1 \
        64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:10::1 2001:db8::1 2002:7f00:1::1 3fff::1 5f00::1 \
        fc00::1 fd00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1";
    for address in refused.split_whitespace() {
        assert!(not_public(address.parse().unwrap()).is_some(), "{address}");
    }
    let public = "1.1.1.1 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.1 \
        ::ffff:1.1.1.1 64:ff9b::101:101 2001:200::1 2001:4860:4860::8888 2606:4700::1111 2a00::1 3ffe::1";
    for address in public.split_whitespace() {
        assert_eq!(not_public(address.parse().unwrap()), None, "{address}");
    }
}

#[tokio::test]
async fn x29_no_spelling_of_a_private_host_is_reached_and_none_is_looked_up() {
    let answers = Answers::of(&[&["1.1.1.1"]]);
    let gate = gate(&answers);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a00:1]",
        "[fd00::1]",
        "[fe80::1]",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "192.168.1.1",
        "224.0.0.1",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "x.y.localhost.",
        "printer.local",
        "metadata.google.internal",
        "nas.home.arpa",
        "nas.lan",
        "intranet",
        "intranet.",
    ] {
        let url = Url::parse(&format!("http://{host}/")).unwrap();
        assert!(gate.judge(&rule(&[]), &url).is_err(), "{host}");
    }
    for (url, why) in [
        ("ftp://example.org/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("http://me:canary@example.org/", "user name or a password"),
        ("http://me@example.org/", "user name or a password"),
    ] {
        let said = fetched(&gate, &[], url).await.unwrap_err().to_string();
        assert!(said.contains(why) && !said.contains("canary"), "{said}");
    }
    assert_eq!(answers.asked(), 0);
    let public = HostPort::of(&Url::parse("http://example.org./").unwrap()).unwrap();
    assert_eq!(gate.addresses(&rule(&[]), &public).await.unwrap(), ["1.1.1.1:80".parse().unwrap()]);
}

#[tokio::test]
async fn x29_a_name_that_leads_to_a_private_address_is_refused_also_beside_a_public_one() {
    for found in [&["10.0.0.1"][..], &["1.1.1.1", "127.0.0.1"], &["::ffff:169.254.169.254"], &["fd00::1"]] {
        let answers = Answers::of(&[found]);
        let refused = fetched(&gate(&answers), &[], "http://rebind.test/").await.unwrap_err();
        assert!(matches!(refused, FetchError::Refused(Refusal::Address { .. })), "{refused}");
    }
    assert!(is_own("127.0.0.1".parse().unwrap()) && !is_own("1.1.1.1".parse().unwrap()));
}

#[tokio::test]
async fn x29_a_name_is_looked_up_once_and_the_connection_goes_to_what_was_judged() {
    let (port, heard) = server("127.0.0.2:0", |_| page("pinned")).await;
    let (_, sink) = server(&format!("127.0.0.1:{port}"), |_| page("rebound")).await;
    let answers = Answers::of(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let found = fetched(&gate(&answers), &[], &format!("http://rebind.test:{port}/")).await.unwrap();
    assert_eq!(found.body, b"pinned");
    let counted = (answers.asked(), heard.load(Ordering::SeqCst), sink.load(Ordering::SeqCst));
    assert_eq!(counted, (1, 1, 0));
}

#[tokio::test]
async fn x29_a_name_that_answers_differently_the_second_time_is_refused_then() {
    let to_itself = |_: &str| moved("/again");
    let (port, heard) = server("127.0.0.2:0", to_itself).await;
    let (_, sink) = server(&format!("127.0.0.1:{port}"), |_| page("rebound")).await;
    let url = format!("http://rebind.test:{port}/");
    let answers = Answers::of(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let refused = fetched(&gate(&answers), &[], &url).await.unwrap_err();
    assert!(matches!(refused, FetchError::Refused(Refusal::Address { .. })), "{refused}");
    assert_eq!((heard.load(Ordering::SeqCst), sink.load(Ordering::SeqCst)), (1, 0));
    // The control: what the owner named is followed there.
    let answers = Answers::of(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let named = format!("rebind.test:{port}");
    let found = fetched(&gate(&answers), &[&named], &url).await.unwrap();
    assert_eq!((found.body.as_slice(), sink.load(Ordering::SeqCst)), (&b"rebound"[..], 1));
}

#[tokio::test]
async fn x29_a_redirect_to_a_private_host_is_refused() {
    let (port, sink) = server("127.0.0.1:0", |_| page("secret")).await;
    let answers = Answers::of(&[&["127.0.0.2"]]);
    for host in ["127.0.0.1", "2130706433", "localhost", "[::ffff:127.0.0.1]"] {
        let to = format!("http://{host}:{port}/");
        let (public, _) = server("127.0.0.2:0", move |_| moved(&to)).await;
        let refused =
            fetched(&gate(&answers), &[], &format!("http://site.test:{public}/")).await.unwrap_err();
        assert!(matches!(refused, FetchError::Refused(_)), "{refused}");
    }
    assert_eq!(sink.load(Ordering::SeqCst), 0);
    // The control: where the owner named it, the same redirect arrives.
    let to = format!("http://127.0.0.1:{port}/");
    let (public, _) = server("127.0.0.2:0", move |_| moved(&to)).await;
    let (named, url) = (format!("127.0.0.1:{port}"), format!("http://site.test:{public}/"));
    let found = fetched(&gate(&answers), &[&named], &url).await.unwrap();
    assert_eq!((found.body.as_slice(), found.redirected_from.len()), (&b"secret"[..], 1));
    // What is named is a port, not a machine.
    let other = format!("http://127.0.0.1:{public}/");
    assert!(matches!(
        fetched(&gate(&answers), &[&named], &other).await,
        Err(FetchError::Refused(Refusal::Port { .. }))
    ));
}

#[tokio::test]
async fn a_redirect_that_its_caller_does_not_admit_is_not_even_looked_up() {
    let (port, heard) = server("127.0.0.2:0", |_| moved("http://elsewhere.test/")).await;
    let answers = Answers::of(&[&["127.0.0.2"]]);
    let options = ClientOptions {
        redirects: Redirects::No,
        connect_timeout: Duration::from_secs(5),
        read_timeout: None,
        proxy: None,
    };
    let client = gate(&answers).client(rule(&[]), &options).unwrap();
    let url = Url::parse(&format!("http://site.test:{port}/")).unwrap();
    let refused = fetch(&client, url, LIMITS, &|to| Err(format!("not {to}"))).await.unwrap_err();
    assert!(refused.to_string().ends_with("not http://elsewhere.test/"), "{refused}");
    assert_eq!((answers.asked(), heard.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn bytes_redirects_and_time_are_bounded() {
    let said = |url: String| async move {
        let answers = Answers::of(&[&["127.0.0.2"]]);
        fetched(&gate(&answers), &[], &url).await.map(|found| found.body.len())
    };
    let fits = server("127.0.0.2:0", |_| page(&"x".repeat(1 << 10))).await.0;
    assert_eq!(said(format!("http://a.test:{fits}/")).await.unwrap(), 1 << 10);
    let told = server("127.0.0.2:0", |_| page(&"x".repeat((1 << 10) + 1))).await.0;
    let error = said(format!("http://a.test:{told}/")).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLong { said: Some(1025), .. }), "{error}");
    let untold = |_: &str| format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1 << 12));
    let untold = server("127.0.0.2:0", untold).await.0;
    let error = said(format!("http://a.test:{untold}/")).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLong { said: None, .. }), "{error}");
    let circle = server("127.0.0.2:0", |_| moved("/")).await.0;
    let error = said(format!("http://a.test:{circle}/")).await.unwrap_err();
    assert!(matches!(error, FetchError::TooManyRedirects(3)), "{error}");
    let silent = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let url = format!("http://a.test:{}/", silent.local_addr().unwrap().port());
    tokio::time::pause();
    let error = said(url).await.unwrap_err();
    assert!(matches!(error, FetchError::TooSlow(_)), "{error}");
}
