//! Programs that run nothing of a text that is their input, and what of a line may change what their names mean.

use crate::programs::{HARMLESS, launches};
use crate::shell::{SimpleCommand, UNREADABLE, Word};

/// Programs that run nothing of their input, whatever their arguments are; `sort` but for those that launch.
const TAKE_DATA: &[&str] = &[
    "base64",
    "cat",
    "cksum",
    "cmp",
    "column",
    "comm",
    "curl",
    "cut",
    "diff",
    "echo",
    "egrep",
    "fgrep",
    "fold",
    "grep",
    "head",
    "jq",
    "md5sum",
    "nl",
    "od",
    "paste",
    "patch",
    "printf",
    "rev",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sort",
    "tac",
    "tail",
    "tee",
    "tr",
    "true",
    "uniq",
    "wc",
    "xxd",
];

/// Folders in which such a program is the one of the machine.
const SYSTEM_FOLDERS: &[&str] = &["/bin/", "/usr/bin/"];

/// Commands of git that take data, and those that start an editor unless they are given a message.
const TAKE_DATA_OF_GIT: &[&str] = &[
    "am",
    "apply",
    "cat-file",
    "check-ignore",
    "commit",
    "hash-object",
    "mktree",
    "notes",
    "stripspace",
    "tag",
    "update-index",
];
const EDIT: &[&str] = &["commit", "notes", "tag"];
/// Options of `tag` that start the program of signatures with the text.
const SIGN: &[&str] = &["-s", "-v"];
const MESSAGE: &[&str] = &["-F", "-qF", "-aF", "-aqF", "-qaF", "--file", "--file="];

/// Other options of these commands, up to their `=`, that start no program. None but `-m` takes a word for its value: it
/// could be that of a message.
const OPTIONS_OF_GIT: &[&str] = &[
    "-",
    "--",
    "-3",
    "-R",
    "-a",
    "-f",
    "-k",
    "-m",
    "-n",
    "-p0",
    "-p1",
    "-p2",
    "-q",
    "-s",
    "-v",
    "-w",
    "-z",
    "-qa",
    "-aq",
    "--3way",
    "--add",
    "--all",
    "--allow-empty",
    "--amend",
    "--annotate",
    "--author=",
    "--batch",
    "--batch-check",
    "--cached",
    "--check",
    "--cleanup=",
    "--date=",
    "--force",
    "--index",
    "--index-info",
    "--keep-cr",
    "--message",
    "--message=",
    "--no-edit",
    "--no-verify",
    "--numstat",
    "--quiet",
    "--recount",
    "--reject",
    "--remove",
    "--reverse",
    "--signoff",
    "--stat",
    "--stdin",
    "--summary",
    "--verbose",
    "--whitespace=",
];

/// Commands of a shell that assign to what their words name, and options by which a name stands for another, or what is
/// assigned is arithmetic.
const ASSIGNING: &[&str] = &[
    "declare",
    "export",
    "getopts",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "typeset",
    "unset",
];
const SPECIAL_KINDS: [char; 2] = ['n', 'i'];

/// Whether a command runs nothing of a text that it gets.
pub(crate) fn takes_data(command: &SimpleCommand) -> bool {
    let words = named(&command.words);
    let all: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let Some((first, arguments)) = all.split_first() else { return false };
    let in_folder = SYSTEM_FOLDERS.iter().find_map(|folder| first.strip_prefix(folder));
    let is_known = words.iter().all(|word| word.known);
    match in_folder.unwrap_or(first) {
        "git" => is_known && git_takes_data(arguments),
        "sort" => is_known && !launches(all.iter().copied()),
        program => words[0].known && TAKE_DATA.contains(&program),
    }
}

fn git_takes_data(mut arguments: &[&str]) -> bool {
    while let ["-C", _, rest @ ..] | ["--no-pager", rest @ ..] = arguments {
        arguments = rest;
    }
    let Some((action, arguments)) = arguments.split_first() else { return false };
    let is_of =
        |word: &str, table: &[&str]| table.contains(&word.find('=').map_or(word, |equals| &word[..=equals]));
    let has_message = arguments.iter().any(|word| is_of(word, MESSAGE));
    let is_harmless =
        |word: &&str| !word.starts_with('-') || is_of(word, MESSAGE) || is_of(word, OPTIONS_OF_GIT);
    TAKE_DATA_OF_GIT.contains(action)
        && arguments.iter().all(is_harmless)
        && !(*action == "tag" && arguments.iter().any(|word| SIGN.contains(word)))
        && (has_message || !EDIT.contains(action))
}

/// Words from the one that names the program on.
fn named(mut words: &[Word]) -> &[Word] {
    while let [first, rest @ ..] = words
        && matches!(first.text.as_str(), "command" | "builtin")
    {
        let options = rest.iter().take_while(|word| word.text.starts_with('-')).count();
        words = &rest[options..];
    }
    words
}

/// Whether a command may change what the names of programs mean in its line, what the programs get from their environment,
/// or where the input of commands comes from.
pub(crate) fn changes_names(command: &SimpleCommand) -> bool {
    let Some((first, arguments)) = named(&command.words).split_first() else { return false };
    let is_special = |word: &Word| word.text.starts_with('-') && word.text.contains(SPECIAL_KINDS);
    let is_harmful = |word: &Word| {
        let name = word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name);
        !word.known || is_special(word) || !is_harmless_setting(name, word)
    };
    match first.text.as_str() {
        "exec" | "eval" | "let" | "trap" => true,
        "for" => arguments.first().is_some_and(is_harmful),
        "printf" => arguments.first().is_some_and(|format| !format.known || format.text.starts_with("-v")),
        "[" | "test" => arguments.iter().any(|word| word.text == "-v"),
        "set" | "shopt" => arguments.iter().any(|word| {
            let is_option = word.text.starts_with('-') && word.text.contains(['a', 'k']);
            !word.known || is_option || ["allexport", "keyword"].contains(&word.text.as_str())
        }),
        "wait" => arguments.iter().any(|word| word.text.starts_with("-p")),
        name => UNREADABLE.contains(&name) || (ASSIGNING.contains(&name) && arguments.iter().any(is_harmful)),
    }
}

/// Whether an assignment can name no program and no folder of some: the variable is known, or is one of a script, whose
/// names are in small letters, with a value that is known. Some shells have the folders of programs in `path`.
pub(crate) fn is_harmless_setting(name: &str, word: &Word) -> bool {
    let is_of_script = !name.contains(|c: char| c.is_ascii_uppercase()) && !name.ends_with("path");
    HARMLESS.contains(&name) || (is_of_script && word.known)
}

/// Whether a word of a program that starts others may be a setting of theirs that is not harmless.
pub(crate) fn may_set(word: &Word) -> bool {
    let name =
        word.text.split_once('=').map(|(name, _)| name).filter(|name| !name.contains(char::is_whitespace));
    name.is_some_and(|name| !HARMLESS.contains(&name))
}
