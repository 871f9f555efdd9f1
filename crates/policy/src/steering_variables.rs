//! Variables that say with which programs, libraries or options commands run: no value of one is data for a command.

use crate::programs::is_program_variable;

/// Variables in which a loader or an interpreter finds libraries, code or options, and those that commands have of their
/// own.
const LOADER_VARIABLES: &[&str] = &[
    "CLASSPATH",
    "GCONV_PATH",
    "HOME",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "TMPDIR",
    "ZDOTDIR",
];

/// Beginning of the variables that loaders of programs read.
const OF_LOADERS: [&str; 2] = ["LD_", "DYLD_"];

/// Whether a variable is one of them.
pub fn steers_programs(variable: &str) -> bool {
    is_program_variable(variable)
        || LOADER_VARIABLES.contains(&variable)
        || OF_LOADERS.iter().any(|begins| variable.starts_with(begins))
}
