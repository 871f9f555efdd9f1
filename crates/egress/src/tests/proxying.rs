//! What a command reaches through its proxy, and what not.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use super::*;
use crate::Proxy;

/// A proxy to these hosts with the gate of a test, served on this machine, and where.
async fn served(answers: &Arc<Answers>, hosts: &[&str], private: &[&str]) -> (Proxy, SocketAddr) {
    let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let private = private.iter().map(|place| place.parse().unwrap()).collect();
    let proxy = gate(answers).proxy(hosts, private);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let serving = proxy.clone();
    tokio::spawn(async move { serving.serve(listener).await });
    (proxy, at)
}

/// What a proxy answers to some bytes, until it hangs up.
async fn said(proxy: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

fn get(host: &str) -> String {
    format!("GET http://{host}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
}

fn tunnel(host: &str) -> String {
    format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\nGET / HTTP/1.1\r\n\r\n")
}

#[tokio::test]
async fn s10_a_named_host_is_reached_by_tunnel_and_by_address_and_its_bytes_are_counted() {
    let (port, heard) = server("127.0.0.2:0", |request| {
        page(if request.contains("evil.test") { "wrong host" } else { "there" })
    })
    .await;
    let answers = Answers::of(&[&["127.0.0.2"]]);
    let place = format!("site.test:{port}");
    let (proxy, at) = served(&answers, &[&place], &[]).await;
    let tunnelled = said(at, &tunnel(&place)).await;
    assert!(tunnelled.starts_with("HTTP/1.1 200 ") && tunnelled.ends_with("there"), "{tunnelled}");
    let one = proxy.lines();
    let answered = page("there").len();
    let sent = "GET / HTTP/1.1\r\n\r\n".len();
    assert_eq!(one, [format!("reached {place}: {sent} bytes sent, {answered} received")]);
    assert!(said(at, &get(&place)).await.ends_with("there"));
    assert!(proxy.lines()[0].starts_with(&format!("reached {place} (2 times): ")), "{:?}", proxy.lines());
    assert_eq!((heard.load(Ordering::SeqCst), answers.asked()), (2, 2));
}

#[tokio::test]
async fn s10_a_host_that_is_not_named_is_neither_looked_up_nor_connected_to() {
    let (port, sink) = server("127.0.0.2:0", |_| page("sink")).await;
    let answers = Answers::of(&[&["127.0.0.2"]]);
    let (proxy, at) = served(&answers, &["site.test", "other.test:81"], &[]).await;
    for host in [
        format!("secret.evil.test:{port}"),
        format!("site.test:{port}"),
        format!("www.site.test:{port}"),
        format!("other.test:{port}"),
        "other.test:80".to_owned(),
        format!("127.0.0.2:{port}"),
    ] {
        for request in [tunnel(&host), get(&host)] {
            let refused = said(at, &request).await;
            let why = "is not reached: it is none of the hosts that were named\n";
            assert!(refused.starts_with("HTTP/1.1 403 ") && refused.ends_with(why), "{host}: {refused}");
        }
    }
    assert_eq!((answers.asked(), sink.load(Ordering::SeqCst)), (0, 0));
    let lines = proxy.lines();
    assert!(lines.contains(&format!(
        "secret.evil.test:{port} is not reached: it is none of the hosts that were named (2 times)"
    )));
    // The control: the same sink is reached by a name that is named.
    let place = format!("site.test:{port}");
    let (_, at) = served(&answers, &[&place], &[]).await;
    assert!(said(at, &get(&place)).await.ends_with("sink"));
    assert_eq!((answers.asked(), sink.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn s10_a_named_host_of_this_machine_or_its_network_is_refused_unless_the_owner_named_it() {
    let (port, sink) = server("127.0.0.1:0", |_| page("secret")).await;
    for (found, place) in [
        (&["127.0.0.1"][..], format!("rebind.test:{port}")),
        (&["127.0.0.2", "127.0.0.1"], format!("rebind.test:{port}")),
        (&["10.0.0.1"], "rebind.test:443".to_owned()),
        (&["1.1.1.1"], format!("127.0.0.1:{port}")),
        (&["1.1.1.1"], format!("localhost:{port}")),
        (&["1.1.1.1"], format!("[::ffff:127.0.0.1]:{port}")),
        (&["1.1.1.1"], "169.254.169.254:80".to_owned()),
        (&["1.1.1.1"], "nas.local:443".to_owned()),
    ] {
        let answers = Answers::of(&[found]);
        let (_, at) = served(&answers, &[&place], &[]).await;
        for request in [tunnel(&place), get(&place)] {
            let refused = said(at, &request).await;
            assert!(
                refused.starts_with("HTTP/1.1 403 ") && refused.contains("is not reached"),
                "{place}: {refused}"
            );
        }
    }
    assert_eq!(sink.load(Ordering::SeqCst), 0);
    // The control: what the owner named.
    let place = format!("127.0.0.1:{port}");
    let (_, at) = served(&Answers::of(&[]), &[&place], &[&place]).await;
    assert!(said(at, &tunnel(&place)).await.ends_with("secret"));
    // The owner named a port, not a machine; the call names another one.
    let other = format!("127.0.0.1:{}", port ^ 1);
    let (_, at) = served(&Answers::of(&[]), &[&other], &[&place]).await;
    assert!(said(at, &tunnel(&other)).await.starts_with("HTTP/1.1 403 "));
}

#[tokio::test]
async fn s10_each_connection_goes_to_the_addresses_that_were_judged_for_it() {
    let (port, heard) = server("127.0.0.2:0", |_| page("pinned")).await;
    let (_, sink) = server(&format!("127.0.0.1:{port}"), |_| page("rebound")).await;
    let answers = Answers::of(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let place = format!("rebind.test:{port}");
    let (_, at) = served(&answers, &[&place], &[]).await;
    assert!(said(at, &get(&place)).await.ends_with("pinned"));
    assert!(said(at, &get(&place)).await.starts_with("HTTP/1.1 403 "));
    assert_eq!((heard.load(Ordering::SeqCst), sink.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn a_password_in_an_address_goes_nowhere_and_no_host_is_said_to_be_found_that_is_not() {
    let answers = Answers::of(&[]);
    let (proxy, at) = served(&answers, &["site.test"], &[]).await;
    let refused = said(at, &get("me:canary@site.test")).await;
    assert!(refused.starts_with("HTTP/1.1 403 ") && !refused.contains("canary"), "{refused}");
    assert_eq!(answers.asked(), 0);
    let gone = said(at, &tunnel("site.test:443")).await;
    assert!(gone.starts_with("HTTP/1.1 502 ") && gone.contains("site.test was not found"), "{gone}");
    assert!(proxy.lines().iter().any(|line| line.contains("was not found")), "{:?}", proxy.lines());
}

#[tokio::test]
async fn connections_end_with_the_proxy() {
    let (port, _) = server("127.0.0.2:0", |_| page("there")).await;
    let place = format!("site.test:{port}");
    let proxy = gate(&Answers::of(&[&["127.0.0.2"]])).proxy(vec![place.parse().unwrap()], Vec::new());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { proxy.serve(listener).await });
    let mut open = TcpStream::connect(at).await.unwrap();
    open.write_all(format!("CONNECT {place} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    open.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    let mut rest = Vec::new();
    let _ = open.read_to_end(&mut rest).await;
    assert!(TcpStream::connect(at).await.is_err());
}
