//! Pictures and sounds, from a file to the server and back, and out of the home again.

use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use image::codecs::gif::GifEncoder;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::seer::Seer;
use crate::terminal::Terminal;
use crate::world::{Run, World, heeds_ctrl_c, piped, text};

const SEES: &str = "images = true";

/// A picture with something to see in it.
fn drawn(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([(x * 7) as u8, (y * 5) as u8, (x ^ y) as u8]))
}

/// One of which nothing can be packed.
fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    RgbImage::from_fn(width, height, |_, _| Rgb([next(), next(), next()]))
}

fn encoded(image: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn file(world: &World, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = world.path("here").join(name);
    std::fs::write(&path, bytes).unwrap();
    text(&path)
}

/// The blobs that lie in the home.
pub(crate) fn blobs(world: &World) -> Vec<PathBuf> {
    let Ok(shards) = std::fs::read_dir(world.home().join("blobs")) else { return Vec::new() };
    let files = shards.flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

fn size(bytes: &[u8]) -> (u32, u32) {
    let image = image::load_from_memory(bytes).unwrap();
    (image.width(), image.height())
}

/// What `main` holds: the text of each node.
fn texts(world: &World) -> Vec<String> {
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let (_, shown) = world.json(&["tree", "show", session["tree"].as_str().unwrap()]);
    let nodes = shown["nodes"].as_array().unwrap().iter();
    let texts = nodes.map(|node| node["text"].as_str().unwrap().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

fn refused(run: &Run, said: &[&str]) {
    assert_eq!(run.code, Some(2), "{run:?}");
    for said in said {
        assert!(run.err.contains(said), "{said}: {run:?}");
    }
}

#[test]
fn files_go_along_in_order_and_the_server_gets_the_pictures_as_they_are_kept() {
    let world = World::new();
    let seer = Seer::of(&world, SEES);
    let large = file(&world, "sea.png", encoded(&drawn(3_136, 400), ImageFormat::Png));
    let notes = file(&world, "notes.txt", "the tide is out");
    // Told by its first bytes: its name says something else.
    let small = file(&world, "shell.png", encoded(&drawn(40, 30), ImageFormat::Jpeg));
    let webp = file(&world, "crab", encoded(&drawn(24, 24), ImageFormat::WebP));
    let mut moving = Vec::new();
    let frame = DynamicImage::ImageRgb8(drawn(16, 8)).to_rgba8();
    GifEncoder::new(&mut moving).encode_frames([frame.clone(), frame].map(image::Frame::new)).unwrap();
    let gif = file(&world, "wave.gif", moving);
    let files = [&large, &notes, &small, &webp, &gif].into_iter().flat_map(|path| ["--file", path]);
    let arguments: Vec<&str> = ["chat", "-m", "what is this?"].into_iter().chain(files).collect();
    assert_eq!(world.ok(&arguments), "I see.\n");
    let shown = seer.shown();
    let kinds: Vec<&str> = shown.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "Picture sea.png, 1568×200:",
            "image/png",
            "File notes.txt:\n```\nthe tide is out\n```",
            "Picture shell.png, 40×30:",
            "image/jpeg",
            "Picture crab, 24×24:",
            "image/png",
            "Picture wave.gif, 16×8:",
            "image/png",
            "what is this?",
        ]
    );
    assert_eq!([1, 4, 6, 8].map(|at| size(&shown[at].1)), [(1568, 200), (40, 30), (24, 24), (16, 8)]);
    let kept: Vec<Vec<u8>> = blobs(&world).iter().map(|blob| std::fs::read(blob).unwrap()).collect();
    assert_eq!(kept.len(), 4);
    assert!([1, 4, 6, 8].iter().all(|at| kept.contains(&shown[*at].1)), "what is kept is what was sent");
    assert_eq!(texts(&world)[0], "Picture sea.png, 1568×200:");
}

/// A PNG whose header says this size, with a pixel behind it.
fn header_of(width: u32, height: u32) -> Vec<u8> {
    let mut png = encoded(&drawn(1, 1), ImageFormat::Png);
    png[16..20].copy_from_slice(&width.to_be_bytes());
    png[20..24].copy_from_slice(&height.to_be_bytes());
    let crc = !png[12..29].iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    png
}

#[test]
fn hostile_pictures_are_refused_by_name_and_nothing_is_kept() {
    let world = World::new();
    let seer = Seer::of(&world, SEES);
    let whole = encoded(&drawn(64, 64), ImageFormat::Jpeg);
    let vector = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><script/></svg>";
    for (name, bytes, said) in [
        ("huge.png", header_of(60_000, 60_000), &["60000×60000", "limits.picture"][..]),
        ("cut.jpg", whole[..whole.len() / 2].to_vec(), &["damaged JPEG"]),
        ("text.png", b"just words".to_vec(), &["first bytes"]),
        ("vector.png", vector.into(), &["first bytes"]),
        ("script.gif", b"GIF89a/*\x01\0*/=1;alert(1)//".to_vec(), &["damaged GIF"]),
        ("camera.heic", b"\0\0\0\x18ftypheic".to_vec(), &["convert it"]),
        ("song.ogg", b"OggS\0".to_vec(), &["convert it"]),
    ] {
        let path = file(&world, name, bytes);
        let run = world.run(&["chat", "-m", "look", "--file", &path]);
        refused(&run, &[&[name], said].concat());
    }
    // What is behind the end of a picture is none of it.
    let mut behind = encoded(&drawn(8, 8), ImageFormat::Png);
    behind.extend_from_slice(b"PK\x03\x04<script>steal()</script>");
    world.ok(&["chat", "-m", "look", "--file", &file(&world, "both.png", behind)]);
    let (_, sent) = &seer.shown()[1];
    assert!(sent.ends_with(b"IEND\xaeB`\x82") && sent.len() < 400, "{sent:?}");
    assert_eq!((seer.asked().len(), blobs(&world).len()), (1, 1), "of the others nothing was sent or kept");
    assert_eq!(texts(&world), ["Picture both.png, 8×8:", "look", "I see."]);
}

#[test]
fn the_limit_of_pixels_can_be_moved_and_the_picture_itself_is_good() {
    let world = World::new();
    let seer = Seer::of(&world, &format!("{SEES}\n[limits]\npicture = 9999"));
    let path = file(&world, "sea.png", encoded(&drawn(100, 100), ImageFormat::Png));
    let say = ["chat", "-m", "look", "--file", &path];
    refused(&world.run(&say), &["100×100", "limits.picture is 9999 pixels"]);
    world.ok(&["config", "set", "limits.picture", "10000"]);
    world.ok(&say);
    assert_eq!(seer.asked().len(), 1);
}

#[test]
fn a_model_that_takes_none_is_asked_nothing_and_the_setting_is_named() {
    let world = World::new();
    let seer = Seer::of(&world, "images = false");
    let picture = file(&world, "sea.png", encoded(&drawn(9, 9), ImageFormat::Png));
    let sound = file(&world, "gull.wav", wav());
    for (path, said) in [
        (&picture, ["takes no pictures", "models.\"seer/m\".images = true", "your message were not sent"]),
        (&sound, ["takes no sounds", "models.\"seer/m\".audio = true", "your message were not sent"]),
    ] {
        let run = world.run(&["chat", "-m", "look", "--file", path]);
        refused(&run, &said);
    }
    assert_eq!((seer.asked().len(), blobs(&world).len()), (0, 0));
    assert_eq!(world.json(&["tree", "list"]).1["trees"], json!([]), "no session began");
}

fn wav() -> Vec<u8> {
    let mut wav =
        b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x08\0\0\0"
            .to_vec();
    wav.extend_from_slice(&[128; 8]);
    wav
}

#[test]
fn a_sound_goes_to_who_takes_it() {
    let world = World::new();
    let seer = Seer::of(&world, "audio = true");
    world.ok(&["chat", "-m", "who is this?", "--file", &file(&world, "gull", wav())]);
    let shown = seer.shown();
    assert_eq!(shown[0].0, "Sound gull, WAV, 52 B:");
    assert_eq!(shown[1], ("wav".to_owned(), wav()));
}

/// Bytes of the store's files.
fn stored(world: &World) -> u64 {
    let files = ["loom.db", "loom.db-wal"].map(|name| std::fs::metadata(world.home().join(name)));
    files.into_iter().filter_map(|file| Some(file.ok()?.len())).sum()
}

#[test]
fn a_picture_is_not_stored_again_with_every_turn() {
    let world = World::new();
    let seer = Seer::of(&world, SEES);
    let path = file(&world, "noise.jpg", encoded(&noise(1_095, 1_095), ImageFormat::Jpeg));
    world.ok(&["chat", "-m", "look", "--file", &path]);
    let picture = std::fs::metadata(&blobs(&world)[0]).unwrap().len();
    let first = stored(&world);
    for turn in ["and now?", "and what else?", "and at last?"] {
        world.ok(&["chat", "-m", turn]);
        assert_eq!(seer.shown()[1].1.len() as u64, picture, "the whole picture is sent each time");
    }
    let more = stored(&world).saturating_sub(first);
    assert!(picture > 400_000 && more < picture / 4, "{picture} bytes, then {more} more in three turns");
    assert_eq!(blobs(&world).len(), 1);
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let (_, shown) = world.json(&["tree", "show", session["tree"].as_str().unwrap()]);
    let last = shown["nodes"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    world.ok(&["context", "replay", &last]);
    assert_eq!(seer.asked()[3], seer.asked()[4], "what was sent is read back byte for byte");
}

#[test]
fn a_picture_a_model_makes_is_kept_shown_and_sent_back() {
    let world = World::new();
    let png = encoded(&drawn(32, 20), ImageFormat::Png);
    let url = format!("data:image/png;base64,{}", BASE64.encode(&png));
    let message = json!({
        "role": "assistant", "content": "Here:",
        "images": [{"type": "image_url", "image_url": {"url": url}}],
    });
    let seer = Seer::saying(&world, SEES, message);
    let said = world.ok(&["chat", "-m", "draw the sea"]);
    let kept = blobs(&world);
    assert_eq!(std::fs::read(&kept[0]).unwrap(), png);
    let file = kept[0].display();
    assert_eq!(said, format!("Here:\n[picture PNG 32×20, {} B, saved as {file}]\n", png.len()));
    let (_, again) = world.json(&["chat", "-m", "redder"]);
    let medium = &again["media"][0];
    assert_eq!(
        (&medium["kind"], &medium["width"], &medium["file"]),
        (&json!("PNG"), &json!(32), &json!(text(&kept[0])))
    );
    let shown = seer.shown();
    let at = shown.iter().position(|(kind, _)| kind == "image/png").unwrap();
    assert_eq!(shown[at].1, png);
    assert!(shown[at - 1].0.ends_with("made by the assistant]"), "{:?}", shown[at - 1].0);
    assert_eq!(world.json(&["tree", "verify", &tree(&world)]).1["status"], "valid");
    let name: String =
        text(&kept[0]).replace('/', "").split("blobs").last().unwrap().chars().take(16).collect();
    assert!(world.ok(&["tree", "show", &tree(&world)]).contains(&format!("[image/png {name}]")));
}

#[test]
fn a_forgotten_picture_a_model_made_is_nowhere_in_the_home() {
    let world = World::new();
    let png = encoded(&noise(40, 40), ImageFormat::Png);
    let url = format!("data:image/png;base64,{}", BASE64.encode(&png));
    let message = json!({"role": "assistant", "images": [{"type": "image_url", "image_url": {"url": url}}]});
    let _seer = Seer::saying(&world, SEES, message);
    let (_, first) = world.json(&["chat", "-m", "draw the sea"]);
    let (_, second) = world.json(&["chat", "-m", "again"]);
    let inside = BASE64.encode(&png);
    let inside = &inside.as_bytes()[inside.len() / 2..][..48];
    world.ok(&["forget", first["node"].as_str().unwrap(), "--yes", "--yes"]);
    assert_eq!(blobs(&world).len(), 1, "another node shows the same one");
    world.ok(&["forget", second["node"].as_str().unwrap(), "--yes", "--yes"]);
    assert!(blobs(&world).is_empty());
    assert!(!stands(&world.home(), inside));
}

fn tree(world: &World) -> String {
    world.json(&["sessions", "show", "main"]).1["tree"].as_str().unwrap().to_owned()
}

/// Whether bytes stand anywhere in a folder.
fn stands(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return stands(&path, bytes);
        }
        std::fs::read(&path).is_ok_and(|read| read.windows(bytes.len()).any(|window| window == bytes))
    })
}

#[test]
fn a_forgotten_picture_is_nowhere_in_the_home() {
    let world = World::new();
    let seer = Seer::of(&world, SEES);
    let path = file(&world, "a.png", encoded(&noise(60, 60), ImageFormat::Png));
    world.ok(&["chat", "-m", "look", "--file", &path]);
    world.ok(&["chat", "-m", "and now?"]);
    let picture = seer.shown()[1].1.clone();
    let raw = &picture[picture.len() / 2..][..48];
    assert!(stands(&world.home(), raw), "it was there");
    let (_, shown) = world.json(&["tree", "show", &tree(&world)]);
    let nodes = shown["nodes"].as_array().unwrap();
    let node = nodes.iter().find(|node| node["text"].as_str().unwrap().starts_with("Picture")).unwrap();
    world.ok(&["forget", node["id"].as_str().unwrap(), "--yes", "--yes"]);
    let inside = BASE64.encode(&picture);
    assert!(!stands(&world.home(), raw));
    assert!(!stands(&world.home(), &inside.as_bytes()[inside.len() / 2..][..48]));
    assert!(blobs(&world).is_empty());
    assert_eq!(world.json(&["store", "check"]).1["ok"], true);
    world.ok(&["chat", "-m", "do you remember?"]);
    assert!(seer.shown().iter().all(|(_, bytes)| bytes.is_empty()));
}

#[test]
fn a_temporary_conversation_leaves_no_picture() {
    let world = World::new();
    let seer = Seer::of(&world, SEES);
    let path = file(&world, "a.png", encoded(&drawn(60, 60), ImageFormat::Png));
    world.ok(&["chat", "--private", "-m", "look", "--file", &path]);
    assert_eq!(size(&seer.shown()[1].1), (60, 60));
    assert!(blobs(&world).is_empty());
}

#[test]
fn backup_and_export_carry_pictures_and_the_check_misses_them() {
    let world = World::new();
    let seer = Seer::of(&world, SEES);
    let path = file(&world, "a.png", encoded(&drawn(60, 60), ImageFormat::Png));
    world.ok(&["chat", "-m", "look", "--file", &path]);
    let picture = seer.shown()[1].1.clone();
    let [backup, export] = ["it.backup", "it.jsonl"].map(|name| text(&world.path("here").join(name)));
    world.ok(&["backup", "-o", &backup]);
    world.ok(&["tree", "export", &tree(&world), "-o", &export]);
    assert_eq!(world.json(&["store", "check"]).1["ok"], true);
    let blob = blobs(&world).remove(0);
    std::fs::remove_file(&blob).unwrap();
    let (_, checked) = world.json(&["store", "check"]);
    assert!(checked["problems"][0].as_str().unwrap().contains("is not there"), "{checked}");
    world.ok(&["chat", "-m", "what was it?"]);
    assert_eq!(seer.shown()[0].0, "Picture a.png, 60×60:[picture left out: image/png]\n\nlook");
    for (command, argument) in [("restore", &backup), ("import", &export)] {
        let elsewhere = World::new();
        elsewhere.ok(&[command, argument]);
        let found = blobs(&elsewhere);
        assert_eq!(found.len(), 1, "{command}");
        assert_eq!(std::fs::read(&found[0]).unwrap(), picture, "{command}");
        assert_eq!(elsewhere.json(&["store", "check"]).1["ok"], true, "{command}");
    }
}

#[test]
fn a_backup_that_is_interrupted_while_it_looks_at_pictures_leaves_nothing() {
    let world = World::new();
    let _seer = Seer::of(&world, SEES);
    let path = file(&world, "a.png", encoded(&drawn(60, 60), ImageFormat::Png));
    world.ok(&["chat", "-m", "look", "--file", &path]);
    let blob = blobs(&world).remove(0);
    // Hashing it takes longer than it takes to press Ctrl-C, and it fits in no memory.
    std::fs::File::options().write(true).open(&blob).unwrap().set_len(64 << 30).unwrap();
    let mut child = piped(&mut world.command(&["backup", "-o", "b"]));
    let open = format!("/proc/{}/fd", child.id());
    let is_open = || {
        let open = std::fs::read_dir(&open).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|path| path == blob)
    };
    while !(heeds_ctrl_c(&child) && is_open()) {
        assert_eq!(child.try_wait().unwrap(), None, "it is not done yet");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left = |folder: &Path| {
        let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('.')).collect::<Vec<_>>()
    };
    assert_eq!((left(&world.path("here")), left(&world.home())), (Vec::new(), Vec::new()));
}

#[test]
fn at_a_terminal_files_go_along_with_what_is_said_next() {
    let world = World::new();
    let seer = Seer::of(&world, SEES);
    file(&world, "the sea.png", encoded(&drawn(60, 40), ImageFormat::Png));
    let mut terminal = Terminal::start(world.command(&["chat", "--color", "never"]));
    terminal.says("/file 'the sea.png'\r");
    terminal.shows("Picture the sea.png, 60×40 will be sent");
    terminal.says("/file\r");
    terminal.shows("files removed: 1");
    terminal.says("/file\r");
    terminal.shows("no file was waiting");
    terminal.says("/file nothing.png\r");
    terminal.shows("there is no file nothing.png");
    terminal.says("/file the sea.png\r");
    terminal.says("look\r");
    terminal.says("and now?\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let asked: Vec<Value> = seer.asked();
    assert_eq!(asked.len(), 2);
    let kinds: Vec<String> = seer.shown().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["Picture the sea.png, 60×40:", "image/png", "look", "and now?"]);
}

#[test]
fn what_a_killed_process_left_of_a_temporary_conversation_is_swept() {
    let world = World::new();
    let _seer = Seer::of(&world, SEES);
    let kept = file(&world, "kept.png", encoded(&drawn(20, 20), ImageFormat::Png));
    world.ok(&["chat", "-m", "look", "--file", &kept]);
    let stays = blobs(&world);
    let path = file(&world, "a.png", encoded(&drawn(60, 40), ImageFormat::Png));
    let mut terminal =
        Terminal::start(world.command(&["chat", "--private", "--color", "never", "--file", &path]));
    terminal.says("look\r");
    terminal.shows("% of the window");
    assert_eq!(blobs(&world).len(), 2);
    // As if it had died between the bytes and their node.
    std::fs::create_dir_all(world.home().join("blobs/00")).unwrap();
    let id = "0".repeat(62);
    std::fs::write(world.home().join("blobs/00").join(id), "left").unwrap();
    // And as if another one had died while it wrote them.
    std::fs::write(world.home().join("blobs/00/.left.0123456789abcdef"), "half").unwrap();
    terminal.signal(Signal::KILL);
    assert_eq!(terminal.ended(), None);
    world.ok(&["tree", "list"]);
    assert_eq!(blobs(&world), stays);
}

#[test]
fn a_backup_says_which_picture_is_missing_or_damaged() {
    let world = World::new();
    let _seer = Seer::of(&world, SEES);
    for name in ["sea.png", "shell.png"] {
        let picture = file(&world, name, encoded(&noise(30, 30 + name.len() as u32), ImageFormat::Png));
        world.ok(&["chat", "-m", "what is this?", "--file", &picture]);
    }
    let target = |name: &str| text(&world.path(name));
    world.ok(&["backup", "-o", &target("whole.backup")]);
    let kept = blobs(&world);
    std::fs::remove_file(&kept[0]).unwrap();
    std::fs::write(&kept[1], "something else").unwrap();
    let run = world.run(&["backup", "-o", &target("torn.backup")]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("is not there") && run.err.contains("is damaged"), "{run:?}");
    let (code, made) = world.json(&["backup", "-o", &target("again.backup")]);
    assert_eq!((code, made["problems"].as_array().unwrap().len()), (Some(1), 2), "{made}");
}
