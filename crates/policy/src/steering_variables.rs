//! Variables that say with which programs, libraries or options commands run: no value of one is data for a command. The
//! list is of those of common programs, and not of all.

use crate::programs::is_program_variable;

/// Variables in which a loader, an interpreter or a compiler finds programs, libraries, code or options, and those that
/// commands have of their own.
const LOADER_VARIABLES: &[&str] = &[
    "BASHOPTS",
    "CARGO",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_HOME",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "CXX",
    "DOTNET_STARTUP_HOOKS",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GOFLAGS",
    "GOROOT",
    "HOME",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "SHELLOPTS",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Beginnings of the variables that the loaders of programs, git, npm (in either case), a version of Lua and Drawloom read.
const OF_PROGRAMS: [&str; 7] =
    ["DRAWLOOM_", "DYLD_", "GIT_", "LD_", "LUA_INIT", "NPM_CONFIG_", "npm_config_"];

/// Whether a variable is one of them.
pub fn steers_programs(variable: &str) -> bool {
    is_program_variable(variable)
        || LOADER_VARIABLES.contains(&variable)
        || OF_PROGRAMS.iter().any(|begins| variable.starts_with(begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_programs_are_no_data_and_others_are() {
        let steering = "PATH LD_PRELOAD DYLD_INSERT_LIBRARIES NODE_OPTIONS EDITOR BASH_ENV GIT_EXEC_PATH GIT_CONFIG_GLOBAL \
            GIT_CONFIG_COUNT GIT_DIR GIT_SSH_COMMAND npm_config_registry NPM_CONFIG_REGISTRY GCONV_PATH PERLLIB PERL5DB \
            LUA_INIT LUA_INIT_5_4 JDK_JAVA_OPTIONS _JAVA_OPTIONS CARGO_HOME CARGO_BUILD_RUSTC_WRAPPER RUSTFLAGS GOFLAGS CC \
            CDPATH SHELLOPTS PYTHONBREAKPOINT PYTHONINSPECT DOTNET_STARTUP_HOOKS ZDOTDIR DRAWLOOM_HOME";
        for variable in steering.split_whitespace() {
            assert!(steers_programs(variable), "{variable}");
        }
        let data = "TRACKER_TOKEN GITHUB_TOKEN GITLAB_URL NPM_TOKEN CARGO_REGISTRY_TOKEN PGPASSWORD LANG CCACHE_HITS \
            MY_PATH_TOKEN DATABASE_URL path";
        for variable in data.split_whitespace() {
            assert!(!steers_programs(variable), "{variable}");
        }
    }
}
