use store::home::HomeOptions;
use tokio::io::Lines;
use tokio::net::unix::OwnedReadHalf;

use super::*;

struct Listening {
    home: Home,
    instance: InstanceId,
    _listener: Listener,
    _folder: tempfile::TempDir,
}

impl Listening {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A path longer than the 107 bytes a socket's name may have.
        let path = folder.path().join("h".repeat(120));
        let home = Home::open(&path, HomeOptions::default()).unwrap();
        let instance = InstanceId::generate(1_760_000_000_000).unwrap();
        let listener = Listener::start(&home, instance, &Sessions::default()).unwrap();
        Self { home, instance, _listener: listener, _folder: folder }
    }

    async fn says(&self, bytes: &[u8]) -> Lines<BufReader<OwnedReadHalf>> {
        let (near, _) = socket(&self.home, self.instance).unwrap();
        let (read, mut write) = UnixStream::connect(near.path()).await.unwrap().into_split();
        write.write_all(bytes).await.unwrap();
        write.shutdown().await.unwrap();
        BufReader::new(read).lines()
    }
}

async fn reply(lines: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<Reply> {
    lines.next_line().await.unwrap().map(|line| serde_json::from_str(&line).unwrap())
}

#[tokio::test]
async fn only_this_user_reaches_the_socket_and_it_goes_with_the_listener() {
    let listening = Listening::start();
    let (_, path) = socket(&listening.home, listening.instance).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    drop(listening);
    assert!(!path.exists());
}

#[test]
fn a_process_of_another_user_or_of_nobody_known_is_not_heard() {
    assert!(is_of(Some(1000), 1000));
    assert!(!is_of(Some(1001), 1000));
    assert!(!is_of(Some(0), 1000), "the administrator has other ways");
    assert!(!is_of(None, 1000));
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_half_of_one_is_not_taken_in() {
    let listening = Listening::start();
    let without_end = br#"{"session":"s","fence":3,"text":"hello"}"#;
    for nonsense in [&b"nonsense\n"[..], b"{}\n", b"\xff\xfe\n", b"{\"session\":\"s\",\"fe", without_end] {
        let mut lines = listening.says(nonsense).await;
        assert_eq!(reply(&mut lines).await, Some(Reply::Ready { version: VERSION }));
        let after = reply(&mut lines).await;
        assert!(matches!(after, None | Some(Reply::Refused { .. })), "{after:?}");
    }
    let mut lines = listening.says(b"").await;
    assert_eq!(reply(&mut lines).await, Some(Reply::Ready { version: VERSION }));
    assert_eq!(reply(&mut lines).await, None);
    // The control: a whole message is read. No session is here to take it in.
    let identity = serde_json::json!({
        "tree": loom::TreeId::from_bytes([1; 16]), "model": "box/m", "place": "local",
        "settings": loom::Digest::of(b""),
    });
    let message = serde_json::json!({
        "ask": "say", "session": "s", "view": "main", "fence": 3, "key": "k", "identity": identity,
        "texts": [{"content": [{"type": "text", "text": "hello"}], "trust": "owner"}],
        "author": loom::Author::owner(), "trust": "owner",
    });
    let wish = serde_json::json!({"ask": "follow", "session": "s", "from": 1});
    for (asked, answer) in [(message, Reply::Closed), (wish, Reply::Gone)] {
        let mut lines = listening.says(format!("{asked}\n").as_bytes()).await;
        assert_eq!(reply(&mut lines).await, Some(Reply::Ready { version: VERSION }));
        assert_eq!(reply(&mut lines).await, Some(answer));
    }
}

/// A crowd that connects and says nothing keeps nobody out for long, and does not grow without bound.
#[tokio::test]
async fn those_who_say_nothing_keep_others_waiting_for_a_bounded_time() {
    let listening = Listening::start();
    let (near, _) = socket(&listening.home, listening.instance).unwrap();
    let mut silent = Vec::new();
    for _ in 0..MAX_PEERS {
        let mut lines = BufReader::new(UnixStream::connect(near.path()).await.unwrap()).lines();
        let greeting = lines.next_line().await.unwrap().unwrap();
        assert!(greeting.contains("ready"), "{greeting}");
        silent.push(lines);
    }
    let mut late = BufReader::new(UnixStream::connect(near.path()).await.unwrap()).lines();
    let early = timeout(Duration::from_millis(50), late.next_line()).await;
    assert!(early.is_err(), "there is no bound: {early:?}");
    // One of them goes: the next is greeted.
    silent.pop();
    let greeting = late.next_line().await.unwrap().unwrap();
    assert!(greeting.contains("ready"), "{greeting}");
}
