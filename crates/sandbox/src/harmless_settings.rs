//! Settings of git that run, read, write and fetch nothing by themselves.
//!
//! A configuration that a command made stands where the owner's next git reads it, and what is not in this table is taken for
//! one that runs something. Left out on purpose are names of files and folders, forms of output that may hold line feeds
//! (`rebase.instructionFormat` is written into a plan), names of strategies (`pull.twohead`, `branch.*.mergeOptions`: git runs
//! `git-merge-NAME`), what fetches unasked (`remote.*.promisor`: `git status` would send names of its choice to an address
//! of its choice) and what lowers a protection of git (`core.protectHFS`, `fsck.*`).

use workspace::{GitConfiguration, GitSetting};

/// Every key of a section.
const ANY: &[&str] = &["*"];

/// Sections and their keys, with and without subsections, in lower case.
const HARMLESS: &[(&str, &[&str])] = &[
    ("advice", ANY),
    ("am", &["keepcr", "messageid", "threeway"]),
    ("apply", &["ignorewhitespace", "whitespace"]),
    ("author", &["email", "name"]),
    (
        "branch",
        &[
            "autosetupmerge",
            "autosetuprebase",
            "description",
            "gh-merge-base",
            "merge",
            "pushremote",
            "rebase",
            "remote",
            "sort",
            "vscode-merge-base",
        ],
    ),
    ("checkout", &["defaultremote", "guess", "thresholdforparallelism", "workers"]),
    ("clone", &["defaultremotename", "rejectshallow"]),
    ("color", ANY),
    ("column", ANY),
    ("commit", &["cleanup", "gpgsign", "status", "verbose"]),
    ("commitgraph", &["generationversion", "maxnewfilters", "readchangedpaths"]),
    ("committer", &["email", "name"]),
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "bigfilethreshold",
            "checkstat",
            "commentchar",
            "commentstring",
            "commitgraph",
            "compression",
            "eol",
            "filemode",
            "fscache",
            "fsync",
            "fsyncmethod",
            "hidedotfiles",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "loosecompression",
            "multipackindex",
            "precomposeunicode",
            "preloadindex",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sparsecheckout",
            "sparsecheckoutcone",
            "symlinks",
            "trustctime",
            "untrackedcache",
            "warnambiguousrefs",
            "whitespace",
        ],
    ),
    (
        "diff",
        &[
            "algorithm",
            "colormoved",
            "colormovedws",
            "context",
            "dirstat",
            "ignoresubmodules",
            "indentheuristic",
            "interhunkcontext",
            "mnemonicprefix",
            "noprefix",
            "relative",
            "renamelimit",
            "renames",
            "statgraphwidth",
            "submodule",
            "suppressblankempty",
            "wserrorhighlight",
        ],
    ),
    ("extensions", &["compatobjectformat", "noop", "objectformat", "preciousobjects", "refstorage"]),
    ("feature", &["experimental", "manyfiles"]),
    (
        "fetch",
        &[
            "all",
            "negotiationalgorithm",
            "output",
            "parallel",
            "prune",
            "prunetags",
            "showforcedupdates",
            "unpacklimit",
            "writecommitgraph",
        ],
    ),
    (
        "gc",
        &[
            "aggressivedepth",
            "aggressivewindow",
            "auto",
            "autodetach",
            "autopacklimit",
            "bigpackthreshold",
            "cruftpacks",
            "packrefs",
            "pruneexpire",
            "reflogexpire",
            "reflogexpireunreachable",
            "rerereresolved",
            "rerereunresolved",
            "worktreepruneexpire",
            "writecommitgraph",
        ],
    ),
    ("gpg", &["format", "mintrustlevel"]),
    ("grep", &["column", "extendedregexp", "fullname", "linenumber", "patterntype", "threads"]),
    ("http", &["lowspeedlimit", "lowspeedtime", "maxrequests", "postbuffer", "version"]),
    ("i18n", &["commitencoding", "logoutputencoding"]),
    ("index", &["recordendofindexentries", "recordoffsettable", "skiphash", "sparse", "threads", "version"]),
    ("init", &["defaultbranch", "defaultobjectformat", "defaultrefformat"]),
    (
        "lfs",
        &[
            "access",
            "activitytimeout",
            "allowincompletepush",
            "concurrenttransfers",
            "dialtimeout",
            "fetchexclude",
            "fetchinclude",
            "fetchrecentalways",
            "fetchrecentcommitsdays",
            "fetchrecentrefsdays",
            "fetchrecentremoterefs",
            "locksverify",
            "repositoryformatversion",
            "setlockablereadonly",
            "skipdownloaderrors",
            "tlstimeout",
        ],
    ),
    ("log", &["abbrevcommit", "date", "decorate", "diffmerges", "follow", "mailmap", "showroot"]),
    ("maintenance", &["auto", "autodetach"]),
    (
        "merge",
        &[
            "autostash",
            "branchdesc",
            "conflictstyle",
            "directoryrenames",
            "ff",
            "log",
            "renamelimit",
            "renames",
            "stat",
            "verbosity",
        ],
    ),
    (
        "pack",
        &[
            "compression",
            "deltacachelimit",
            "deltacachesize",
            "depth",
            "indexversion",
            "packsizelimit",
            "threads",
            "usebitmaps",
            "usesparse",
            "window",
            "windowmemory",
            "writereverseindex",
        ],
    ),
    ("protocol", &["version"]),
    ("pull", &["ff", "rebase"]),
    ("push", &["autosetupremote", "default", "followtags", "gpgsign", "negotiate", "useforceifincludes"]),
    (
        "rebase",
        &[
            "abbreviatecommands",
            "autosquash",
            "autostash",
            "backend",
            "forkpoint",
            "missingcommitscheck",
            "rebasemerges",
            "reschedulefailedexec",
            "stat",
            "updaterefs",
        ],
    ),
    (
        "receive",
        &[
            "advertiseatomic",
            "advertisepushoptions",
            "autogc",
            "denycurrentbranch",
            "denydeletecurrent",
            "denydeletes",
            "denynonfastforwards",
            "unpacklimit",
            "updateserverinfo",
        ],
    ),
    (
        "remote",
        &[
            "fetch",
            "gh-resolved",
            "mirror",
            "prune",
            "prunetags",
            "push",
            "pushdefault",
            "pushurl",
            "skipdefaultupdate",
            "skipfetchall",
            "tagopt",
            "url",
        ],
    ),
    ("repack", &["packkeptobjects", "updateserverinfo", "usedeltabaseoffset", "writebitmaps"]),
    ("rerere", &["autoupdate", "enabled"]),
    ("sparse", &["expectfilesoutsideofpatterns"]),
    ("stash", &["showincludeuntracked", "showpatch", "showstat"]),
    (
        "status",
        &[
            "aheadbehind",
            "branch",
            "displaycommentprefix",
            "relativepaths",
            "renamelimit",
            "renames",
            "short",
            "showstash",
            "showuntrackedfiles",
        ],
    ),
    ("submodule", &["active", "branch", "fetchjobs", "fetchrecursesubmodules", "ignore", "recurse", "url"]),
    ("tag", &["forcesignannotated", "gpgsign", "sort"]),
    (
        "uploadpack",
        &[
            "advertisebundleuris",
            "allowanysha1inwant",
            "allowfilter",
            "allowreachablesha1inwant",
            "allowtipsha1inwant",
        ],
    ),
    ("user", &["email", "name", "signingkey", "useconfigonly"]),
    ("versionsort", &["suffix"]),
    ("worktree", &["guessremote"]),
];

/// Whether a configuration has only settings of the table, and that of its working tree where this is known to point back.
/// What git would refuse is not harmless: somebody may mend it.
pub(crate) fn is_harmless(configuration: &GitConfiguration, is_of_submodule: bool) -> bool {
    let is_tree = |setting: &GitSetting| setting.section == "core" && setting.key == "worktree";
    configuration.is_whole
        && configuration
            .settings
            .iter()
            .all(|setting| is_of_submodule && is_tree(setting) || is_harmless_setting(setting))
}

fn is_harmless_setting(setting: &GitSetting) -> bool {
    let (section, key) = (setting.section.as_str(), setting.key.as_str());
    // `ext::sh -c …` is an address that runs a program.
    let is_plain = !setting.value.windows(2).any(|two| two == b"::");
    let is_known =
        HARMLESS.iter().any(|(known, keys)| *known == section && (keys.contains(&key) || *keys == ANY));
    // `files://PATH` is a folder that git writes.
    let is_place = (section, key) == ("extensions", "refstorage") && setting.value.contains(&b'/');
    is_plain && is_known && !is_place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_harmless(text: &str, is_of_submodule: bool) -> bool {
        super::is_harmless(&GitConfiguration::parse(text.as_bytes()), is_of_submodule)
    }

    const FRESH: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
        \tlogallrefupdates = true\n[remote \"origin\"]\n\turl = https://example.com/x.git\n\
        \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

    #[test]
    fn what_git_makes_is_harmless() {
        assert!(is_harmless(FRESH, false));
        assert!(is_harmless("", false));
        assert!(
            !is_harmless("[remote \"origin\"] uploadpack = ./evil ;]\n", false),
            "a key behind a section's head"
        );
    }

    #[test]
    fn what_people_and_tests_configure_is_harmless() {
        for more in [
            "[commit]\n\tgpgsign = false",
            "[pull]\n\trebase = true",
            "[gc]\n\tauto = 0",
            "[core]\n\tlongpaths = true",
            "[init]\n\tdefaultBranch = main",
            "[remote \"origin\"]\n\tmirror = true",
            "[lfs]\n\trepositoryformatversion = 0",
            "[lfs \"https://example.com/x.git/info/lfs\"]\n\taccess = basic\n\tlocksverify = true",
            "[color \"status\"]\n\tadded = green",
            "[advice]\n\tdetachedHead = false",
            "[receive]\n\tdenyCurrentBranch = updateInstead",
            "[extensions]\n\trefstorage = reftable\n\tobjectformat = sha256",
            "[user]\n\tuseConfigOnly",
        ] {
            assert!(is_harmless(&format!("{FRESH}{more}\n"), false), "{more}");
        }
    }

    #[test]
    fn what_names_a_program_or_another_file_or_fetches_unasked_is_not() {
        for more in [
            "[core]\n\tfsmonitor = ./evil",
            "[core]\n\thooksPath = x",
            "[CORE]\n\tsshCommand=x",
            "[core] fsmonitor = x",
            "[core]\n\tworktree = ../..",
            "[core]\n\tprotectHFS = false",
            "[alias]\n\tst = !x",
            "[include]\n\tpath = ../evil",
            "[includeIf \"gitdir:.\"]\n\tpath = ../evil",
            "[filter \"x\"]\n\tclean = x",
            "[diff \"x\"]\n\ttextconv = x",
            "[diff]\n\texternal = x",
            "[merge \"x\"]\n\tdriver = x",
            "[gpg \"ssh\"]\n\tprogram = x",
            "[gpg]\n\tprogram = x",
            "[gc]\n\trecentObjectsHook = x",
            "[gc]\n\trepackFilterTo = ../x",
            "[pull]\n\ttwohead = x/../evil",
            "[branch \"main\"]\n\tmergeOptions = -s x/../evil",
            "[rebase]\n\tinstructionFormat = %n exec x",
            "[lfs]\n\tstandalonetransferagent = x",
            "[lfs \"customtransfer.x\"]\n\tpath = x",
            "[init]\n\ttemplateDir = x",
            "[uploadpack]\n\tpackObjectsHook = x",
            "[credential]\n\thelper = x",
            "[remote \"x\"]\n\tuploadpack = x",
            "[remote \"x\"]\n\tvcs = x",
            "[remote \"x\"]\n\tproxy = x",
            "[remote \"x\"]\n\turl = ext::sh -c x",
            "[remote \"x\"]\n\tpromisor = true",
            "[remote \"x\"]\n\tpartialCloneFilter = blob:none",
            "[extensions]\n\tpartialClone = x",
            "[extensions]\n\trefStorage = files:///tmp/x",
            "[submodule \"x\"]\n\tupdate = !x",
            "[core]\n\tfsmonitor",
            "[remote \"x\"] uploadpack = ./evil ;]",
            "[user]\n\tname = \"x",
            "[extensions]\n\tworktreeConfig = true",
        ] {
            assert!(!is_harmless(&format!("{FRESH}{more}\n"), false), "{more}");
            // In quotes, and in two of them.
            let Some((name, value)) = more.split_once(" = ") else { continue };
            for at in 0..value.len() {
                let (one, two) = value.split_at(at);
                let more = format!("{name} = \"{one}\"\"{two}\"");
                assert!(!is_harmless(&format!("{FRESH}{more}\n"), false), "{more}");
            }
        }
        assert!(
            is_harmless("[core]\n\tautocrlf = \\\nfsmonitor = x\n", false),
            "the control: it is one value"
        );
    }

    #[test]
    fn names_of_the_table_are_in_lower_case() {
        for (section, keys) in HARMLESS {
            for name in keys.iter().chain([section]) {
                assert_eq!(name.to_ascii_lowercase(), *name);
            }
        }
    }
}
