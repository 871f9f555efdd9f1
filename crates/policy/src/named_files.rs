//! Files that a line of a shell may name, for whoever looks whether they became others while a person was asked about the
//! line (spec: security §14). Nothing is expanded: a word that an expansion changes names all that it may mean.

use std::collections::BTreeSet;

use crate::programs::launches;
use crate::shell::{CommandLine, Obstacle, Word};

/// Folders that `cd` may lead to in a line, and names of it, that are told apart; beyond, it may name any file.
const MAX_FOLDERS: usize = 16;
const MAX_FILES: usize = 1024;
/// Deepest nesting of lines in lines (`sh -c "sh -c …"`).
const MAX_DEPTH: usize = 4;

/// What a line may name: paths as it has them, from the folder it runs in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedFile {
    File(String),
    /// Files that a glob may mean: below a folder, so many names deep at most.
    Below {
        folder: String,
        depth: usize,
    },
    /// Any file: what it names is known only once it runs.
    Any,
}

/// Files that a line may name.
pub fn named_files(line: &str) -> BTreeSet<NamedFile> {
    let mut reader = Reader { files: BTreeSet::new(), folders: vec![String::new()] };
    reader.line(line, 0);
    if reader.files.len() > MAX_FILES {
        reader.files.insert(NamedFile::Any);
    }
    reader.files
}

struct Reader {
    files: BTreeSet<NamedFile>,
    /// Where its commands may run: `cd` may fail, or hold for a part of the line.
    folders: Vec<String>,
}

impl Reader {
    fn line(&mut self, line: &str, depth: usize) {
        let read = CommandLine::read(line);
        let hides = [Obstacle::Substitution, Obstacle::Assignment];
        let is_opaque = hides.iter().any(|obstacle| read.obstacles.contains(obstacle));
        // A program may take names from its input.
        let is_opaque = is_opaque || !read.documents.is_empty();
        if !read.complete || is_opaque || line.contains("$'") || depth > MAX_DEPTH {
            self.files.insert(NamedFile::Any);
        }
        for command in &read.commands {
            let moves = |word: &Word| matches!(word.text.as_str(), "cd" | "pushd" | "popd");
            if let Some(at) = command.words.iter().position(moves) {
                self.goes_to(&command.words[at].text, command.words[at + 1..].last());
            }
        }
        for command in &read.commands {
            command.words.iter().for_each(|word| self.word(word));
            if depth <= MAX_DEPTH && launches(command.words.iter().map(|word| word.text.as_str())) {
                let texts = command.words.iter().skip(1).filter(|word| word.known);
                let lines = texts.filter(|word| word.text.contains(|c: char| !is_plain(c)));
                lines.for_each(|word| self.line(&word.text, depth + 1));
            }
        }
        read.redirections.iter().for_each(|redirection| self.word(&redirection.target));
    }

    fn goes_to(&mut self, program: &str, target: Option<&Word>) {
        let target = target.filter(|target| target.known && !target.text.is_empty() && target.text != "-");
        match target.filter(|_| program == "cd" && self.folders.len() < MAX_FOLDERS) {
            Some(target) => {
                let further: Vec<String> =
                    self.folders.iter().map(|folder| joined(folder, &target.text)).collect();
                self.folders.extend(further);
            }
            None => {
                self.files.insert(NamedFile::Any);
            }
        }
    }

    fn word(&mut self, word: &Word) {
        if self.files.len() > MAX_FILES {
            return;
        }
        if word.known {
            let value = word.text.split_once('=').map(|(_, value)| value);
            [Some(word.text.as_str()), value].into_iter().flatten().for_each(|name| self.file(name));
            return;
        }
        let literal = word.text.get(..word.bare).unwrap_or_default();
        let literal = &literal[..literal.find('{').unwrap_or(literal.len())];
        let (folder, rest) = word.text.split_at(literal.rfind('/').map_or(0, |at| at + 1));
        if rest.contains("..") {
            self.files.insert(NamedFile::Any);
        }
        let depth = rest.matches('/').count() + 1;
        let below = |from: &String| NamedFile::Below { folder: joined(from, folder), depth };
        self.files.extend(self.folders.iter().map(below));
    }

    fn file(&mut self, name: &str) {
        for folder in &self.folders {
            let path = joined(folder, name);
            // Behind a link its parent is another folder than the words say.
            let mut names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
            let climbs = names.by_ref().any(|name| name != "..") && names.any(|name| name == "..");
            self.files.extend(climbs.then_some(NamedFile::Any));
            self.files.insert(NamedFile::File(path));
        }
    }
}

/// Whether a character means nothing to a shell.
fn is_plain(c: char) -> bool {
    !(c.is_whitespace() || "|&;<>()$`\\\"'*?[".contains(c))
}

fn joined(folder: &str, name: &str) -> String {
    let between = if folder.is_empty() || folder.ends_with('/') { "" } else { "/" };
    if name.starts_with('/') { name.to_owned() } else { format!("{folder}{between}{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> NamedFile {
        NamedFile::File(name.to_owned())
    }

    #[test]
    fn a_file_is_named_however_it_is_written() {
        for (line, name) in [
            ("sh run.sh", "run.sh"),
            ("sh 'my run.sh'", "my run.sh"),
            ("sh my\\ run.sh", "my run.sh"),
            ("sh r\\un.sh", "run.sh"),
            ("sh r\"un\".sh", "run.sh"),
            ("cd sub && sh run.sh", "sub/run.sh"),
            ("cd a; cd -- b; ./run.sh", "a/b/./run.sh"),
            ("cd /w && ./run.sh", "/w/./run.sh"),
            ("sh -c 'cd sub; sh run.sh'", "sub/run.sh"),
            ("python3 --rcfile='my run.sh'", "my run.sh"),
            ("cat < run.sh", "run.sh"),
            ("(cd sub; true); sh run.sh", "run.sh"),
        ] {
            let named = named_files(line);
            assert!(named.contains(&file(name)) && !named.contains(&NamedFile::Any), "{line}: {named:?}");
        }
    }

    #[test]
    fn a_glob_names_what_is_so_deep_below_its_folder() {
        for (line, folder, depth) in [
            ("sh ./r*.sh", "./", 1),
            ("sh sub/*/r?n.sh", "sub/", 2),
            ("sh {run,walk}.sh", "", 1),
            ("cd sub; sh *.sh", "sub/", 1),
        ] {
            let named = named_files(line);
            let below = NamedFile::Below { folder: folder.to_owned(), depth };
            assert!(named.contains(&below) && !named.contains(&NamedFile::Any), "{line}: {named:?}");
        }
    }

    #[test]
    fn what_is_known_only_once_it_runs_may_be_any_file() {
        for line in [
            "sh $X",
            "sh $(cat name)",
            "sh $'run.sh'",
            "X=run sh -c 'sh $X.sh'",
            "cd $X; sh run.sh",
            "cd; sh run.sh",
            "cd - && sh run.sh",
            "PATH=bin run",
            "sh <<E\nsh run.sh\nE",
            "sh sub/../run.sh",
            "cd sub; sh ../run.sh",
            "sh */../run.sh",
            "case a in a) sh run.sh;; esac",
        ] {
            assert!(named_files(line).contains(&NamedFile::Any), "{line}");
        }
        let many: String = (0..=MAX_FILES).map(|number| format!(" f{number}")).collect();
        assert!(named_files(&format!("cat{many}")).contains(&NamedFile::Any));
        assert!(!named_files("git commit -m \"it's 5 $\"").contains(&NamedFile::Any), "the control");
    }
}
