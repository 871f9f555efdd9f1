//! Commands with network: the hosts that a call names, through a proxy of their own, and no other (spec: security §10).

use std::net::UdpSocket;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::exec::{exec, world_with};
use crate::headless::question;
use crate::tools::{calls, chat, nodes};
use crate::web::{Site, answer, moved, named, script};
use crate::world::{World, lacks, text};

/// A rule that allows every command and host that a rule may.
pub(crate) const ALLOW: &str = "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"exec\"]\n";

pub(crate) fn exec_with(command: &str, net: impl Into<Value>) -> Value {
    json!({"name": "exec", "arguments": {"command": command, "net": net.into()}})
}

fn site() -> Site {
    Site::start(|_| answer("text/plain", "from the site, and no more\n"))
}

/// What the calls of a conversation said.
fn said(world: &World) -> Vec<String> {
    let results = nodes(world).into_iter().filter(|node| node["role"] == "tool");
    results.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

/// The world of a model that calls these, whose owner named these sites and has these rules.
fn calling(batch: &[Value], sites: &[&Site], rules: &str) -> World {
    world_with(&[calls(&json!(batch)), json!({"text": "Done."})], &(named(sites) + rules))
}

#[test]
fn s10_a_command_reaches_the_host_that_is_named_through_its_proxy_and_nothing_else() {
    if lacks(&["curl", "git", "perl", "wget"]) {
        return;
    }
    let (site, sink) = (site(), site());
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let name_server = datagrams.local_addr().unwrap().port();
    let udp = format!(
        "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(Proto => \"udp\", PeerAddr => \"127.0.0.1:{name_server}\")->send(\"x\")'"
    );
    let line = |sink_url: &str| {
        format!(
            "curl -sS {}\ncurl -sS {sink_url}\ncurl -sS --noproxy '*' {sink_url}\n{udp}\ngit ls-remote {}\nwget -qO- {}\n\
             curl -sS https://secret.evil.test/\ntrue",
            site.url("/page"),
            site.url("/repository"),
            site.url("/wget"),
        )
    };
    let world = calling(&[exec_with(&line(&sink.url("/")), json!([site.place()]))], &[&site, &sink], ALLOW);
    let (code, done) = chat(&world, "Do it.");
    assert_eq!((code, done["text"].as_str()), (Some(0), Some("Done.")), "{done}");
    let told = &said(&world)[0];
    let paths = ["/page", "/repository/info/refs?service=git-upload-pack", "/wget"];
    assert_eq!(site.paths(), paths, "{told}");
    assert!(
        told.starts_with("exit 0 (") && told.contains("[output]\nfrom the site, and no more\n"),
        "{told}"
    );
    let network = told.split_once("\n[network]\n").unwrap().1;
    assert!(network.contains(&format!("reached {} (3 times): ", site.place())), "{told}");
    for host in [sink.place(), "secret.evil.test:443".to_owned()] {
        let refused = format!("{host} is not reached: it is none of the hosts that were named");
        assert!(network.contains(&refused), "{told}");
    }
    assert_eq!(sink.paths(), [""; 0], "{told}");
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "{told}");
    // The control: the same lines outside of the walls reach them.
    let mut control = std::process::Command::new("sh");
    control.args(["-c", &line(&sink.url("/"))]).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(control.status().unwrap().success());
    assert_eq!(sink.paths(), ["/", "/"]);
    assert!(datagrams.recv(&mut [0; 8]).is_ok());
}

/// By ways of their own: a push, a client of a language, and sockets that know no proxy.
#[test]
fn s10_a_push_and_the_sockets_of_a_program_reach_no_host_that_was_not_named() {
    if lacks(&["git", "python3"]) {
        return;
    }
    let (site, sink) = (site(), site());
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let (place, port) = (sink.place(), datagrams.local_addr().unwrap().port());
    let (host, tcp) = place.split_once(':').unwrap();
    let python = |line: &str| format!("/usr/bin/python3 -c 'import socket, urllib.request\n{line}'");
    let lines = [
        "git init -q pushed && git -C pushed -c user.name=n -c user.email=n@example.org commit -q --allow-empty -m one"
            .to_owned(),
        format!("git -C pushed push -q {} HEAD:main", sink.url("/repository")),
        python(&format!("urllib.request.urlopen(\"{}\", timeout=9).read()", sink.url("/client"))),
        python(&format!(
            "s = socket.create_connection((\"{host}\", {tcp}), 9); s.send(b\"GET /socket HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n\"); s.recv(9)"
        )),
        python(&format!(
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"secret\", (\"127.0.0.1\", {port}))"
        )),
    ];
    let line = format!("{}\ntrue", lines.join("\n"));
    let mut here = None;
    for net in [json!([site.place()]), json!("off")] {
        let world = calling(&[exec_with(&line, net)], &[&site, &sink], ALLOW);
        let (code, done) = chat(&world, "Do it.");
        assert_eq!((code, done["text"].as_str()), (Some(0), Some("Done.")), "{done}");
        let told = &said(&world)[0];
        assert!(told.starts_with("exit 0 ("), "{told}");
        assert_eq!(sink.paths(), [""; 0], "{told}");
        assert!(datagrams.recv(&mut [0; 8]).is_err(), "{told}");
        here = Some(world);
    }
    let world = here.unwrap();
    // The control: the same lines outside of the walls reach it.
    let mut control = std::process::Command::new("sh");
    control.args(["-c", &line]).current_dir(world.path("here")).env("GIT_TERMINAL_PROMPT", "0");
    assert!(control.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    assert_eq!(sink.paths(), ["/repository/info/refs?service=git-receive-pack", "/client", "/socket"]);
    assert!(datagrams.recv(&mut [0; 8]).is_ok());
}

/// A package manager with a registry of its own choice, and datagrams of a shell, with a list of hosts and without network.
#[test]
fn s10_npm_and_netcat_reach_no_host_that_was_not_named() {
    if lacks(&["nc", "npm"]) {
        return;
    }
    let (site, sink) = (site(), site());
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let port = datagrams.local_addr().unwrap().port();
    let npm = |direct: &str| {
        format!(
            "npm view secret --registry {} --fetch-retries 0 {direct} --cache \"$PWD/npm\"",
            sink.url("/npm/")
        )
    };
    let lines = [npm(""), npm("--noproxy 127.0.0.1"), format!("echo secret | nc -u -w 1 127.0.0.1 {port}")];
    let line = format!("{}\necho tried", lines.join("\n"));
    for net in [json!([site.place()]), json!("off")] {
        let world = calling(&[exec_with("sh tries.sh", net)], &[&site, &sink], ALLOW);
        std::fs::write(world.path("project/tries.sh"), &line).unwrap();
        let (code, done) = chat(&world, "Do it.");
        assert_eq!((code, done["text"].as_str()), (Some(0), Some("Done.")), "{done}");
        let told = &said(&world)[0];
        assert!(told.starts_with("exit 0 (") && told.contains("tried"), "{told}");
        assert_eq!(sink.paths(), [""; 0], "{told}");
        assert!(datagrams.recv(&mut [0; 8]).is_err(), "{told}");
    }
    // The control: the same lines outside of the walls reach it.
    let folder = tempfile::tempdir().unwrap();
    let mut control = std::process::Command::new("sh");
    control.args(["-c", &line]).current_dir(folder.path()).env("HOME", folder.path());
    assert!(control.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    assert_eq!(sink.paths().iter().filter(|path| *path == "/npm/secret").count(), 2, "{:?}", sink.paths());
    assert!(datagrams.recv(&mut [0; 8]).is_ok());
}

#[test]
fn s10_neither_a_redirect_nor_an_address_of_this_machine_leads_past_the_list() {
    if lacks(&["curl"]) {
        return;
    }
    let sink = site();
    let to = sink.url("/");
    let site = Site::start(move |_| moved(&to));
    let batch = [
        exec_with(&format!("curl -sSL {}", site.url("/")), json!([site.place()])),
        // It is named by the call, and not by the owner.
        exec_with(&format!("curl -sS {}", sink.url("/")), json!([sink.place()])),
        exec_with("curl -sS http://169.254.169.254/", json!(["169.254.169.254"])),
    ];
    let world = calling(&batch, &[&site], ALLOW);
    chat(&world, "Do it.");
    let told = said(&world);
    assert!(told[0].contains("it is none of the hosts that were named"), "{}", told[0]);
    assert!(
        told[1].contains(&format!("{} is not reached: only {} is opened", sink.place(), site.place())),
        "{}",
        told[1]
    );
    assert!(told[2].contains("where cloud machines ask for their keys"), "{}", told[2]);
    assert_eq!((site.paths(), sink.paths()), (vec!["/".to_owned()], Vec::new()));
}

#[test]
fn s10_commands_with_network_see_neither_each_others_proxy_nor_a_server_of_their_session() {
    if lacks(&["curl", "perl"]) {
        return;
    }
    let (one, two) = (site(), site());
    let server = "perl -MIO::Socket::INET -e '$|=1; my $s=IO::Socket::INET->new(LocalAddr=>\"127.0.0.1\",LocalPort=>8000,\
                  Listen=>5); print \"listening\\n\"; while(my $c=$s->accept){print $c \"session\"; close $c}'";
    let start = |command: &str, net: Value| json!({"name": "exec", "arguments": {"command": command, "background": true, "net": net}});
    let wait = |number: u32, text: &str| json!({"name": "process", "arguments": {"process": number, "wait_for": text, "timeout": 20}});
    let fetch = |site: &Site, more: &str| format!("curl -sS {more} {}\ntrue", site.url("/"));
    let batch = [
        start(server, json!("off")),
        start(&format!("curl -sS {}\nsleep 300", one.url("/")), json!([one.place()])),
        wait(1, "listening"),
        wait(2, "from the site"),
        // Its own proxy is at the same address, and is another one.
        exec_with(&fetch(&one, ""), json!([two.place()])),
        exec_with("curl -sS --noproxy '*' http://127.0.0.1:8000/\ntrue", json!([two.place()])),
        exec(&fetch(&one, "--proxy http://127.0.0.1:3128")),
        exec("curl -sS --http0.9 http://127.0.0.1:8000/\ntrue"),
    ];
    let world = calling(&batch, &[&one, &two], ALLOW);
    chat(&world, "Do it.");
    let told = said(&world);
    // Looks run beside each other.
    let reached = format!("\n[network]\nreached {}: ", one.place());
    let looks = told[2].clone() + &told[3];
    assert!(looks.contains("from the site") && looks.contains(&reached), "{told:?}");
    assert!(told[4].contains("it is none of the hosts that were named"), "{}", told[4]);
    for told in &told[5..7] {
        assert!(told.contains("onnect to 127.0.0.1") && !told.contains("session"), "{told}");
    }
    assert!(told[7].contains("session"), "the control: {}", told[7]);
    assert_eq!((one.paths().len(), two.paths().len()), (1, 0));
}

#[test]
fn s10_network_is_asked_about_and_denied_where_nobody_is_and_nothing_is_reached_before_a_yes() {
    if lacks(&["curl"]) {
        return;
    }
    let site = site();
    let fetch = |net: Value| exec_with(&format!("curl -sS {}", site.url("/")), net);
    let hosts = || fetch(json!([site.place()]));
    for (call, rules, more, why) in [
        (hosts(), "", &[][..], "no rule allows all of its commands and hosts"),
        (fetch(json!("open")), ALLOW, &[], "any host, the local network included"),
        (hosts(), ALLOW, &["--plan"], "plan mode is on: commands have no network"),
        (fetch(json!("open")), ALLOW, &["--plan"], "plan mode is on: commands have no network"),
    ] {
        let world = calling(&[call], &[&site], rules);
        let project = text(&world.path("project"));
        let words = [&["--workspace", &project, "chat", "-m", "Do it."], more].concat();
        let (_, done) = world.json(&words);
        assert!(done["denied"][0]["why"].to_string().contains(why), "{why}: {done}");
    }
    assert_eq!(site.paths(), [""; 0]);
    let world = calling(&[hosts()], &[&site], "");
    let project = text(&world.path("project"));
    let mut waits = world.command(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60"]);
    let mut waits = waits.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let asked = question(&world, &mut waits);
    let about = asked["about"].as_str().unwrap();
    assert!(about.contains(&format!("reaches {}", site.place())), "{about}");
    assert_eq!(site.paths(), [""; 0]);
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    assert!(waits.wait().unwrap().success());
    assert_eq!(site.paths(), ["/"]);
}

#[test]
fn s3_what_a_command_with_network_says_and_makes_is_from_outside() {
    if lacks(&["curl"]) {
        return;
    }
    let site = site();
    let fetch = exec_with(&format!("curl -sS -o page.txt {}", site.url("/")), json!([site.place()]));
    let read = json!({"name": "read", "arguments": {"path": "page.txt"}});
    let world = calling(&[], &[&site], ALLOW);
    let project = text(&world.path("project"));
    let turn = |session: &str, batches: &[&[Value]]| {
        script(&world, batches);
        let words = ["--workspace", &project, "chat", "--session", session, "-m", "Do it."];
        let (code, done) = world.json(&words);
        assert_eq!(code, Some(0), "{done}");
        let denied = done["denied"].as_array().cloned().unwrap_or_default();
        let is_tainted = |call: &Value| call["why"].to_string().contains("text from outside is in view");
        assert!(denied.iter().all(is_tainted), "{done}");
        denied.len()
    };
    assert_eq!(turn("before", &[&[exec("true")], &[exec("true")]]), 0, "the control");
    // A rule allows it, but for what the first one brought into view.
    assert_eq!(turn("one", &[std::slice::from_ref(&fetch), std::slice::from_ref(&fetch)]), 1);
    // In other sessions a command in a workspace with such a file, and the file itself.
    assert_eq!(turn("two", &[&[exec("true")], std::slice::from_ref(&fetch)]), 1);
    assert_eq!(turn("three", &[&[read], std::slice::from_ref(&fetch)]), 1);
    assert_eq!(site.paths(), ["/"]);
    std::fs::remove_file(world.path("project/page.txt")).unwrap();
    assert_eq!(turn("four", &[&[exec("true")], &[fetch]]), 0, "the control");
}

#[test]
fn s3_what_such_a_command_made_is_from_outside_also_where_it_was_cut_off_with_its_process() {
    let site = site();
    for (net, denied) in [(json!([site.place()]), 1), (json!("off"), 0)] {
        let made = exec_with("echo what came from somewhere > page.txt; sleep 300", net);
        let world = calling(&[made], &[&site], ALLOW);
        let (project, page) = (text(&world.path("project")), world.path("project/page.txt"));
        let mut child = world.command(&["--workspace", &project, "chat", "-m", "Do it."]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !std::fs::read_to_string(&page).is_ok_and(|text| text.ends_with('\n')) {
            assert!(Instant::now() < deadline, "the command does not run");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        script(&world, &[]);
        chat(&world, "What now?");
        let read = json!({"name": "read", "arguments": {"path": "page.txt"}});
        let fetch = exec_with(&format!("curl -sS {}", site.url("/")), json!([site.place()]));
        script(&world, &[&[read], &[fetch]]);
        let words = ["--workspace", &project, "chat", "--session", "other", "-m", "Go on."];
        let (_, done) = world.json(&words);
        assert_eq!(done["denied"].as_array().map_or(0, Vec::len), denied, "{done}");
    }
}

#[test]
fn what_is_handed_to_a_command_with_network_is_a_command_with_network() {
    let site = site();
    let start =
        |net: Value| json!({"name": "exec", "arguments": {"command": "sh", "background": true, "net": net}});
    let hand = |number: u32| {
        let input = format!("curl -sS {}\n", site.url("/"));
        json!({"name": "process", "arguments": {"process": number, "input": input}})
    };
    let rules =
        "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"exec sh\", \"effect:net host=127.0.0.1\"]\n";
    let batch = [start(json!("off")), hand(1), start(json!([site.place()])), hand(2)];
    let world = calling(&batch, &[&site], rules);
    let (_, done) = chat(&world, "Do it.");
    let denied = done["denied"].as_array().unwrap();
    assert!(denied.len() == 1 && denied[0]["why"].to_string().contains("commands and hosts"), "{done}");
    assert!(said(&world)[2].contains("process 2 runs"), "{:?}", said(&world));
    assert_eq!(site.paths(), [""; 0]);
}

#[test]
fn a_call_that_names_no_host_or_too_much_is_refused_with_the_reason() {
    let background =
        json!({"name": "exec", "arguments": {"command": "sleep 1", "background": true, "net": "open"}});
    let refused = [
        (exec_with("true", json!([])), "net names 0 hosts"),
        (exec_with("true", json!(["example.org", "open"])), "net names open among hosts"),
        (exec_with("true", json!(["https://example.org/"])), "is no HOST or HOST:PORT"),
        (exec_with("true", json!(["*.example.org"])), "each host is named by itself"),
        (exec_with("true", "on"), "Invalid parameters of exec"),
        (background, "a command in the background has no open network"),
    ];
    for (call, why) in refused {
        let world = calling(&[call], &[], ALLOW);
        let project = text(&world.path("project"));
        // Nobody is asked about it.
        world.ok(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60"]);
        let told = &said(&world)[0];
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn x5_without_network_a_command_fails_by_itself_and_its_result_says_what_would_help() {
    if lacks(&["curl"]) {
        return;
    }
    let site = site();
    let world =
        calling(&[exec(&format!("curl -sS {}; curl -sS https://example.org", site.url("/")))], &[&site], "");
    chat(&world, "Do it.");
    let told = &said(&world)[0];
    assert!(told.contains("[notes]\nit seems to need a network: `net` of exec names the hosts"), "{told}");
    assert_eq!(site.paths(), [""; 0]);
}

#[test]
fn a_command_that_waits_for_a_network_until_its_time_is_over_is_told_that_it_has_none() {
    let line = "echo $PIP_RETRIES $npm_config_fetch_retries; PIP_RETRIES=5; echo $PIP_RETRIES; \
                echo 'Temporary failure in name resolution' | tail -1; exec sleep 300";
    let waits = json!({"name": "exec", "arguments": {"command": line, "timeout": 5}});
    let world = calling(&[waits, exec("echo 'Network is unreachable' | tail -1")], &[], "");
    chat(&world, "Do it.");
    let told = said(&world);
    assert!(
        told[0].starts_with("ended: its time was over while it seemed to wait for a network ("),
        "{told:?}"
    );
    assert!(told[0].contains("0 0\n5\n") && !told[0].contains("longer timeout"), "{told:?}");
    for told in &told {
        assert!(
            told.contains("[notes]\nit seems to need a network: `net` of exec names the hosts"),
            "{told}"
        );
    }
}
