//! Package caches of the owner that commands in the sandbox read (`[exec] caches`): which folders may be one (spec: security
//! §1).
//!
//! A cache is shown below the `HOME` of commands at the place it has below the owner's home. It must be a part that holds
//! packages and nothing else: what lies beside it, as `~/.cargo/credentials.toml` does, is the owner's alone.

use std::path::{Component, Path, PathBuf};

use sandbox::PackageCache;

/// Package cache of a usual tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCache {
    pub tool: &'static str,
    /// Folder below the owner's home.
    pub folder: &'static str,
}

/// Package caches of usual tools.
pub const KNOWN_CACHES: [KnownCache; 26] = [
    known("cargo", ".cargo/registry"),
    known("cargo", ".cargo/git"),
    known("npm", ".npm/_cacache"),
    known("pip", ".cache/pip"),
    known("uv", ".cache/uv"),
    known("poetry", ".cache/pypoetry"),
    known("go", "go/pkg/mod"),
    known("go", ".cache/go-build"),
    known("yarn", ".cache/yarn"),
    known("yarn", ".yarn/berry/cache"),
    known("pnpm", ".local/share/pnpm/store"),
    known("bun", ".bun/install/cache"),
    known("deno", ".cache/deno"),
    known("maven", ".m2/repository"),
    known("gradle", ".gradle/caches"),
    known("nuget", ".nuget/packages"),
    known("composer", ".cache/composer"),
    known("ivy", ".ivy2/cache"),
    known("pub", ".pub-cache/hosted"),
    known("hex", ".hex/packages"),
    known("opam", ".opam/download-cache"),
    known("conan", ".conan2/p"),
    known("cabal", ".cabal/packages"),
    known("julia", ".julia/packages"),
    known("terraform", ".terraform.d/plugin-cache"),
    known("bundler", ".bundle/cache"),
];

const fn known(tool: &'static str, folder: &'static str) -> KnownCache {
    KnownCache { tool, folder }
}

/// Folders below a home that hold credentials and settings, and no cache.
const PRIVATE: [&str; 15] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config",
    ".password-store",
    ".mozilla",
    ".claude",
    ".codex",
    ".openclaw",
    ".local/share/keyrings",
    ".local/state",
    ".pki",
];

/// Parts of `~/.cache` that hold credentials, or what a person reads and writes.
const PRIVATE_CACHES: [&str; 12] = [
    "huggingface",
    "mozilla",
    "thunderbird",
    "chromium",
    "google-chrome",
    "BraveSoftware",
    "microsoft-edge",
    "evolution",
    "keyring",
    "gnupg",
    "gcloud",
    "drawloom",
];

/// Folders of a home for what a person keeps.
const PERSONAL: [&str; 8] =
    ["Desktop", "Documents", "Downloads", "Music", "Pictures", "Public", "Templates", "Videos"];

/// Where any other tool has a folder for what it can fetch again.
const CACHES: &str = ".cache";

/// What a cache may neither be nor hold.
#[derive(Debug, Clone, Copy)]
pub struct CacheSurroundings<'a> {
    /// Home of the owner.
    pub user_home: Option<&'a Path>,
    /// Home of Drawloom.
    pub home: &'a Path,
    pub workspace: Option<&'a Path>,
}

impl CacheSurroundings<'_> {
    /// The caches that are configured and there.
    ///
    /// # Errors
    /// One may not be shown, and why.
    pub fn caches(&self, configured: &[PathBuf]) -> Result<Vec<PackageCache>, String> {
        let mut caches: Vec<PackageCache> = Vec::new();
        for written in configured {
            let refused = |why: String| format!("exec.caches: {}: {why}", written.display());
            let Some(cache) = self.cache(written).map_err(refused)? else { continue };
            let is_near = |other: &&PackageCache| {
                cache.folder.starts_with(&other.folder) || other.folder.starts_with(&cache.folder)
            };
            if let Some(other) = caches.iter().find(is_near) {
                return Err(refused(format!(
                    "it lies in another one or holds it ({})",
                    other.folder.display()
                )));
            }
            caches.push(cache);
        }
        Ok(caches)
    }

    /// A cache as it is configured; none where it is missing.
    ///
    /// # Errors
    /// Why it may not be shown.
    pub fn cache(&self, written: &Path) -> Result<Option<PackageCache>, String> {
        let user_home = self.user_home.ok_or("it has no place, as there is no HOME")?;
        let path = match written.strip_prefix("~") {
            Ok(below) => user_home.join(below),
            Err(_) => written.to_owned(),
        };
        let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(is_plain) {
            return Err("write it as ~/FOLDER, without `..`".to_owned());
        }
        // Anything that is written is refused for what it is, whether it is there or not.
        let place = self.place(&path, user_home)?;
        let folder = match path.canonicalize() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            folder => folder.map_err(|error| error.to_string())?,
        };
        let led = |why: String| match folder == path {
            true => why,
            false => format!("it leads to {}: {why}", folder.display()),
        };
        self.place(&folder, &resolved(user_home)).map_err(led)?;
        if !folder.is_dir() {
            return Err("it is no folder".to_owned());
        }
        Ok(Some(PackageCache { folder, place }))
    }

    /// Place of a folder below a home.
    fn place(&self, folder: &Path, user_home: &Path) -> Result<PathBuf, String> {
        if user_home.starts_with(folder) {
            return Err("it is your home or holds it".to_owned());
        }
        let Ok(place) = folder.strip_prefix(user_home) else {
            return Err("it does not lie in your home".to_owned());
        };
        let home = [self.home.to_owned(), resolved(self.home)];
        if home.iter().any(|home| home.starts_with(folder) || folder.starts_with(home)) {
            return Err("it is the home of Drawloom, or lies in it or holds it".to_owned());
        }
        let workspace = self.workspace.map(resolved);
        if workspace.is_some_and(|workspace| workspace.starts_with(folder)) {
            return Err("it is the workspace or holds it".to_owned());
        }
        if let Some(private) = PRIVATE.iter().find(|private| place.starts_with(private)) {
            return Err(format!("~/{private} may hold credentials"));
        }
        Self::require_packages(place)?;
        if PRIVATE.iter().any(|private| Path::new(private).starts_with(place)) {
            return Err("it holds folders of credentials".to_owned());
        }
        Ok(place.to_owned())
    }

    /// Refuses a place below a home that is known to hold something else than packages, or where folders are hidden of which
    /// that is not known.
    fn require_packages(place: &Path) -> Result<(), String> {
        if KNOWN_CACHES.iter().any(|known| place.starts_with(known.folder)) {
            return Ok(());
        }
        let mut names = place.iter().map(|name| name.to_string_lossy());
        let (first, second) = (names.next().unwrap_or_default(), names.next());
        let is = |name: &str, known: &&str| name.eq_ignore_ascii_case(known);
        let is_of_caches = first == CACHES && second.is_some();
        let is_hidden = first.starts_with('.') && !is_of_caches;
        let parts: Vec<_> = KNOWN_CACHES
            .iter()
            .filter(|known| match is_hidden {
                true => Path::new(known.folder).starts_with(&*first),
                false => Path::new(known.folder).starts_with(place),
            })
            .map(|known| format!("~/{}", known.folder))
            .collect();
        if !parts.is_empty() {
            return Err(format!(
                "it holds more than packages, or something else: name the part that is meant ({})",
                parts.join(", ")
            ));
        }
        if is_hidden {
            return Err(format!(
                "~/{first} may hold credentials or settings: of hidden folders only those of ~/{CACHES} and the known caches of \
                 packages are shown"
            ));
        }
        if is_of_caches && second.is_some_and(|second| PRIVATE_CACHES.iter().any(|known| is(&second, known)))
        {
            return Err("it may hold credentials, or what you read and wrote".to_owned());
        }
        if PERSONAL.iter().any(|known| is(&first, known)) {
            return Err(format!("~/{first} is for what you keep, not for packages"));
        }
        Ok(())
    }
}

/// Caches of usual tools that are in a home and may be shown, none within another one.
pub fn found_caches(surroundings: &CacheSurroundings<'_>) -> Vec<KnownCache> {
    let is_there = |known: &KnownCache| {
        surroundings.cache(&Path::new("~").join(known.folder)).is_ok_and(|cache| cache.is_some())
    };
    KNOWN_CACHES.into_iter().filter(is_there).collect()
}

fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn asked(home: &Path, written: &str) -> Result<Option<PackageCache>, String> {
        let (drawloom, workspace) = (home.join(".drawloom"), home.join("work/here"));
        let surroundings =
            CacheSurroundings { user_home: Some(home), home: &drawloom, workspace: Some(&workspace) };
        surroundings.cache(Path::new(written))
    }

    #[test]
    fn a_folder_that_is_no_cache_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for name in [".ssh", ".cargo/registry", ".npm", "go", "work/here", ".drawloom/sandbox", "big"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        fs::write(home.join("file"), "").unwrap();
        for (link, target) in [("keys", ".ssh"), ("out", "/usr"), ("all", ".cargo"), ("mine", "big")] {
            std::os::unix::fs::symlink(home.join(target), home.join(link)).unwrap();
        }
        let outside = home.parent().unwrap().to_string_lossy().into_owned();
        for (written, why) in [
            ("~", "your home or holds it"),
            (outside.as_str(), "your home or holds it"),
            ("/", "your home or holds it"),
            ("/usr/share", "does not lie in your home"),
            ("cache", "write it as ~/FOLDER"),
            ("~/../x", "write it as ~/FOLDER"),
            ("~/.ssh", "~/.ssh may hold credentials"),
            ("~/.aws/cli/cache", "~/.aws may hold credentials"),
            ("~/.config", "~/.config may hold credentials"),
            ("~/.cargo", "name the part that is meant (~/.cargo/registry, ~/.cargo/git)"),
            ("~/.cargo/credentials.toml", "name the part that is meant (~/.cargo/registry, ~/.cargo/git)"),
            ("~/.thunderbird", "~/.thunderbird may hold credentials"),
            ("~/.local/share/gnupg", "name the part that is meant (~/.local/share/pnpm/store)"),
            ("~/.minikube/cache", "may hold credentials"),
            ("~/.cache/huggingface", "it may hold credentials"),
            ("~/.cache/mozilla/firefox", "it may hold credentials"),
            ("~/Documents", "is for what you keep"),
            ("~/downloads/x", "is for what you keep"),
            ("~/.npm", "name the part that is meant (~/.npm/_cacache)"),
            ("~/go", "name the part that is meant (~/go/pkg/mod)"),
            ("~/.cache", "name the part that is meant (~/.cache/pip, "),
            ("~/.local", "name the part that is meant"),
            ("~/.drawloom", "the home of Drawloom"),
            ("~/.drawloom/sandbox", "the home of Drawloom"),
            ("~/work", "it is the workspace or holds it"),
            ("~/work/here", "it is the workspace or holds it"),
            ("~/keys", "/.ssh: ~/.ssh may hold credentials"),
            ("~/out", "it leads to /usr: it does not lie in your home"),
            ("~/all", "name the part that is meant"),
            ("~/file", "it is no folder"),
        ] {
            let refused = asked(&home, written).unwrap_err();
            assert!(refused.contains(why), "{written}: {refused}");
        }
        let shown = |written| asked(&home, written).unwrap();
        let cache =
            |folder: &str, place: &str| Some(PackageCache { folder: home.join(folder), place: place.into() });
        assert_eq!(shown("~/.cargo/registry"), cache(".cargo/registry", ".cargo/registry"));
        assert_eq!(shown("~/mine"), cache("big", "mine"));
        assert_eq!(shown("~/.cargo/git"), None, "one that is missing is no error");
        assert_eq!(shown("~/.cache/elsewhere"), None);
        assert_eq!(shown("~/.ivy2/cache/x"), None);
    }

    #[test]
    fn caches_within_one_another_are_refused_and_those_that_are_there_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join(".cargo/registry/index")).unwrap();
        let drawloom = home.join(".drawloom");
        let surroundings = CacheSurroundings { user_home: Some(&home), home: &drawloom, workspace: None };
        let caches =
            |written: &[&str]| surroundings.caches(&written.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(caches(&["~/.cargo/registry", "~/.npm/_cacache"]).unwrap().len(), 1);
        let both = caches(&["~/.cargo/registry/index", "~/.cargo/registry"]).unwrap_err();
        assert!(both.starts_with("exec.caches: ~/.cargo/registry: it lies in another one"), "{both}");
        assert_eq!(found_caches(&surroundings), [KNOWN_CACHES[0]]);
    }
}
