//! A terminal with somebody at it: what the program writes is shown on an emulated screen, and the questions a
//! program asks a terminal are answered.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, kill_process, prlimit, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use vt100::{Callbacks, Parser, Screen};

/// Nothing here takes this long; what does, hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const ROWS: u16 = 100;
pub(crate) const COLUMNS: u16 = 120;

/// What a terminal was made to do besides showing text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Obeyed(pub(crate) Vec<&'static str>);

impl Callbacks for Obeyed {
    fn audible_bell(&mut self, _: &mut Screen) {
        self.0.push("bell");
    }
    fn resize(&mut self, _: &mut Screen, _: (u16, u16)) {
        self.0.push("resize");
    }
    fn set_window_icon_name(&mut self, _: &mut Screen, _: &[u8]) {
        self.0.push("icon");
    }
    fn set_window_title(&mut self, _: &mut Screen, _: &[u8]) {
        self.0.push("title");
    }
    fn copy_to_clipboard(&mut self, _: &mut Screen, _: &[u8], _: &[u8]) {
        self.0.push("copy");
    }
    fn paste_from_clipboard(&mut self, _: &mut Screen, _: &[u8]) {
        self.0.push("paste");
    }
}

/// An emulated screen.
pub(crate) fn screen() -> Parser<Obeyed> {
    screen_of(ROWS, COLUMNS)
}

fn screen_of(rows: u16, columns: u16) -> Parser<Obeyed> {
    let of = |n| NonZeroU16::new(n).unwrap();
    Parser::new_with_callbacks(of(rows), of(columns), 0, Obeyed::default())
}

/// A program at a terminal.
pub(crate) struct Terminal {
    child: Child,
    person: File,
    screen: Parser<Obeyed>,
    /// Everything it wrote.
    raw: Vec<u8>,
    /// Whether it says where its cursor is.
    answers: bool,
}

impl Terminal {
    pub(crate) fn start(command: Command) -> Self {
        Self::of_width(command, COLUMNS)
    }

    /// At a terminal of so many columns; `TERM` is xterm's, unless the command has its own.
    pub(crate) fn of_width(mut command: Command, columns: u16) -> Self {
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        Self::sized(command, ROWS, columns)
    }

    /// The same of another size, and of the kind that the command's environment says.
    pub(crate) fn sized(mut command: Command, rows: u16, columns: u16) -> Self {
        let person: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&person, size).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let side = || -> File {
            rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap().into()
        };
        command.stdin(side()).stdout(side()).stderr(side());
        let child = command.spawn().unwrap();
        Self {
            child,
            person: person.into(),
            screen: screen_of(rows, columns),
            raw: Vec::new(),
            answers: true,
        }
    }

    /// The same, which never says where its cursor is.
    pub(crate) fn mute(mut self) -> Self {
        self.answers = false;
        self
    }

    /// Types.
    pub(crate) fn types(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).unwrap();
    }

    /// Types once the prompt is there, and waits for the next one.
    pub(crate) fn says(&mut self, keys: &str) {
        self.at_prompt();
        self.says_on(keys);
    }

    /// Types further lines, and waits for the next prompt.
    pub(crate) fn says_on(&mut self, keys: &str) {
        let before = self.prompts();
        self.types(keys);
        self.until("the next prompt", |terminal| terminal.prompts() > before && terminal.is_at_prompt());
    }

    pub(crate) fn at_prompt(&mut self) {
        self.until("the prompt", Self::is_at_prompt);
    }

    /// Waits until something is on the screen.
    pub(crate) fn shows(&mut self, text: &str) {
        self.until(text, |terminal| terminal.contents().contains(text));
    }

    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is(self) {
            assert!(began.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}:\n{}", self.contents());
            assert!(self.listen() || is(self), "{what}: it has ended:\n{}", self.contents());
        }
    }

    /// The most memory the program ever had, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1_024
    }

    /// Sends a signal, as a terminal does for Ctrl-C.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Lets it write files of so many bytes at most, as a full disk does; of any size again without.
    pub(crate) fn limits_files(&self, bytes: Option<u64>) {
        let (pid, limit) = (Pid::from_child(&self.child), Rlimit { current: bytes, maximum: None });
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
    }

    /// Waits until it is stopped, as a shell does.
    pub(crate) fn stops(&mut self) {
        let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
        self.until("its stop", |terminal| {
            let found = waitpid(Some(Pid::from_child(&terminal.child)), options).unwrap();
            found.is_some_and(|(_, status)| status.stopped())
        });
        // What it wrote before.
        self.listen();
        self.listen();
    }

    /// Waits for the end, and gives the exit code; none if a signal ended it.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "it hangs:\n{}", self.contents());
            self.listen();
        }
    }

    /// What it wrote, once it has ended well; line ends as programs write them.
    pub(crate) fn written(self) -> String {
        let (code, written) = self.seen();
        assert_eq!(code, Some(0), "{written}");
        written
    }

    /// The exit code, and what it wrote.
    pub(crate) fn seen(mut self) -> (Option<i32>, String) {
        let code = self.ended();
        while self.listen() {}
        let written = String::from_utf8(std::mem::take(&mut self.raw)).unwrap().replace("\r\n", "\n");
        (code, written)
    }

    /// What it wrote, without colours; line ends as programs write them.
    pub(crate) fn plain(&self) -> String {
        let written = String::from_utf8_lossy(&self.raw).replace("\r\n", "\n");
        let mut parts = written.split("\u{1b}[");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
    }

    pub(crate) fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    pub(crate) fn screen(&self) -> &Screen {
        self.screen.screen()
    }

    pub(crate) fn obeyed(&self) -> &Obeyed {
        self.screen.callbacks()
    }

    /// Whether it wrote this at any time.
    pub(crate) fn wrote(&self, bytes: &[u8]) -> bool {
        self.raw.windows(bytes.len()).any(|window| window == bytes)
    }

    /// Whether the cursor stands behind an empty prompt.
    pub(crate) fn is_at_prompt(&self) -> bool {
        let (row, column) = self.screen.screen().cursor_position();
        // Rows, as lines that are wrapped count as one among the contents.
        let columns = self.screen.screen().size().1;
        let line = self.screen.screen().rows(0, columns.get()).nth(row.into()).unwrap_or_default();
        line.trim_end().ends_with('>') && usize::from(column) == line.trim_end().len() + 1
    }

    /// How often it wrote this.
    pub(crate) fn times(&self, sign: &[u8]) -> usize {
        self.raw.windows(sign.len()).filter(|bytes| bytes == &sign).count()
    }

    /// How often a prompt was asked for or a turn begun: each sets the terminal to take pastes as such, unless it takes
    /// none.
    fn prompts(&self) -> usize {
        match self.times(b"\x1b[?2004h") {
            0 => self.times(b"> "),
            edited => edited,
        }
    }

    /// Takes in what the program writes. False once nothing more can come.
    pub(crate) fn listen(&mut self) -> bool {
        let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut [PollFd::new(&self.person, PollFlags::IN)], Some(&wait)).unwrap() == 0 {
            return true;
        }
        let mut piece = [0; 4096];
        let Ok(read @ 1..) = self.person.read(&mut piece) else { return false };
        for byte in &piece[..read] {
            self.raw.push(*byte);
            self.screen.process(&[*byte]);
            if self.answers && self.raw.ends_with(b"\x1b[6n") {
                let (row, column) = self.screen.screen().cursor_position();
                self.types(&format!("\x1b[{};{}R", row + 1, column + 1));
            }
        }
        true
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
