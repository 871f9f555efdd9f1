//! Access to files that belong to a person.
//!
//! A workspace is somebody's folder: cloned from a stranger, open in an editor, shared with build
//! tools and with the agent's own commands. So nothing here trusts a path it was given, nothing
//! replaces a text it has not seen, and nothing is loaded before the folder is known:
//!
//! * [`Root`] opens files *beneath* one folder through descriptors, never by checking a path and
//!   opening it afterwards. [`StoreGuard`] keeps every such opener off the store's own files.
//! * [`FileArgument`] opens what a person named on a command line, wherever it is; [`check_output`] says where such
//!   a person's file may be written.
//! * [`Documents`] replaces a text by exchange, looks at what it displaced, and puts it back if a
//!   person saved meanwhile. [`WorkspaceLock`] keeps Drawloom's own processes apart.
//! * [`discovery`] finds the workspace of a folder, [`trust`] says whether it may be loaded,
//!   [`settings`] reads the few things a workspace may decide about itself.
//! * [`frontmatter`] reads the head of cards and skills as data; [`protected`] is the list of
//!   names that run, steer or remember something, [`ProtectedPlaces`] what is protected by what leads to it.
//!
//! All of it is synchronous: each call is a handful of system calls on local files. Callers on an
//! executor run it on a blocking thread. No part reads the environment or a clock: folders, user
//! ids and time stamps come in as arguments. It rests on Linux: `O_PATH`, `openat2`, `renameat2`
//! and a mounted `/proc`.

mod allowed_roots;
mod argument;
mod canonical;
mod descriptor;
pub mod discovery;
mod document;
mod error;
pub mod frontmatter;
mod git_configuration;
mod git_identity;
mod git_shape;
mod guard;
mod identity;
mod lock;
mod path;
pub mod protected;
mod protected_places;
mod root;
pub mod settings;
mod small_file;
mod touched_folder;
pub mod trust;

pub use allowed_roots::{AllowedRoots, FurtherRoot, RootLookupError, RootedPath};
pub use argument::{Accept, FileArgument, check_output, read_beginning, read_regular};
pub use canonical::canonical;
pub use descriptor::descriptor_path;
pub use document::{
    DocumentError, DocumentText, Documents, Expected, KnownTexts, RecoveredDocument, RemoveOutcome,
    ReplaceOutcome, Replacement, Saved, Stamp, Unmerged,
};
pub use error::{FileError, FileKind, FileProblem};
pub use git_configuration::{
    GIT_FILE_BYTES, GitConfiguration, GitSetting, GitWorkingTree, git_settings, git_working_trees,
    named_by_git, reached, reached_by_links,
};
pub use git_identity::GitIdentity;
pub use git_shape::GitShape;
pub use guard::StoreGuard;
pub use identity::FileId;
pub use lock::{LockError, WorkspaceLock};
pub use path::{PathProblem, RelativePath, file_name_of_key};
pub use protected_places::ProtectedPlaces;
pub use root::{
    Content, DirEntry, FileReader, FileStamp, LinkPolicy, Listing, Metadata, OpenFolder, OwnerAccess,
    ReadRules, Root, RootAccess, RootStamp, StampedListing,
};
pub use small_file::{
    open_lock_file, open_small_file, read_small_file, replace_small_file, replace_small_file_durably,
};
pub use touched_folder::{is_git_repository, lies_in_never, never_touched};
