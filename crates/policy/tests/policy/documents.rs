//! Here-documents that a line runs, or may, though programs get them that take data.

use crate::bypass::passes_no_deny_rule;

const RUN: &[&str] = &[
    // A document is no data where a program may start another one with it.
    "GIT_EDITOR=sh git commit --allow-empty -e -F - <<'E'\nrm x\nE",
    "git commit -e -F - <<'E'\n:!rm x\nE",
    "git commit -F - -qe <<'E'\n:!rm x\nE",
    "git commit --edi -F - <<'E'\n:!rm x\nE",
    "git commit -F - $X <<'E'\n:!rm x\nE",
    "git commit <<'E'\n:!rm x\nE",
    "git commit --author -F <<'E'\n:!rm x\nE",
    "git -c core.editor=sh commit -e -F - <<'E'\nrm x\nE",
    "VISUAL=sh git tag -a -e -F - t <<'E'\nrm x\nE",
    "git tag -s -F - t <<'E'\nrm x\nE",
    "EDITOR=sh TERM=xterm git notes add -f -F - -e HEAD <<'E'\nrm x\nE",
    "git hash-object --path a.x --stdin <<'E'\nrm x\nE",
    "git hash-object --pat=a.x --stdin <<'E'\nrm x\nE",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gpg.program GIT_CONFIG_VALUE_0=sh git commit -F - <<'E'\nrm x\nE",
    "HOME=. git commit -F - <<'E'\nrm x\nE",
    "sort -S 1k --compress-program=sh <<'E'\nrm x\nE",
    "sort -S 1k --comp sh <<'E'\nrm x\nE",
    "/usr/bin/sort --compress-program=sh <<'E'\nrm x\nE",
    "command sort --compress-program=sh <<'E'\nrm x\nE",
    "x=--compress-program=sh; sort $x <<'E'\nrm x\nE",
    "read GIT_EDITOR <<'E'\nrm x\nE\nexport GIT_EDITOR; git commit",
    "set -a; read -r RUSTC_WRAPPER <<'E'\nrm x\nE\ncargo build",
    "read x <<'E'\na[$(rm x)]\nE\necho $((x))",
    // Nor where names of programs may mean others.
    "ln -s /bin/sh cat; PATH=.:$PATH; cat <<'E'\nrm x\nE",
    "ln -s /bin/sh cat; PATH=. command cat <<'E'\nrm x\nE",
    "export PATH=.; cat <<'E'\nrm x\nE",
    "command -p export PATH=.; cat <<'E'\nrm x\nE",
    "x=PATH; export $x=.; cat <<'E'\nrm x\nE",
    "declare -n x=PATH; x=.; cat <<'E'\nrm x\nE",
    "read PATH < f; cat <<'E'\nrm x\nE",
    "printf -v PATH .; cat <<'E'\nrm x\nE",
    "set -k; cat PATH=. <<'E'\nrm x\nE",
    "for PATH in .; do cat <<'E'\nrm x\nE\ndone",
    "path=.; cat <<'E'\nrm x\nE",
    "trap PATH=. DEBUG; cat <<'E'\nrm x\nE",
    "echo $((PATH=0)); cat <<'E'\nrm x\nE",
    "((1,PATH=0)); cat <<'E'\nrm x\nE",
    "echo $[1,PATH=0]; cat <<'E'\nrm x\nE",
    "unset PATH; echo ${PATH:=.}; cat <<'E'\nrm x\nE",
    "builtin hash -p /bin/sh cat; cat <<'E'\nrm x\nE",
    "PATH=. bash -c \"cat <<'E'\nr''m x\nE\"",
    "env PATH=. bash -c \"cat <<'E'\nr''m x\nE\"",
    "env 'BASH_FUNC_cat%%=() { sh; }' bash -c \"cat <<'E'\nr''m x\nE\"",
    "bash -c \"PATH=.; cat <<'E'\nr''m x\nE\"",
    "./cat <<'E'\nrm x\nE",
    "/usr/bin/../../tmp/cat <<'E'\nrm x\nE",
    // Nor where it is computed, or comes to another command of the line.
    "x=$(cat <<'E'\na[$(rm x)]\nE\n); echo $((x))",
    "x=$(cat <<'E'\na[$(rm x)]\nE\n); [[ $x -eq 1 ]]",
    "[ -v \"$(cat <<'E'\na[$(rm x)]\nE\n)\" ]",
    "echo ${a[$(cat <<'E'\nb[$(rm x)]\nE\n)]}",
    "cat <<'E' | tee f | awk '{system($0)}'\nrm x\nE",
    "ls; cat <<'E' |\nrm x\nE\nawk '{system($0)}'",
    "cat <<'E' > >(awk '{system($0)}')\nrm x\nE",
    "exec > >(awk '{system($0)}'); cat <<'E'\nrm x\nE",
    "builtin exec > >(awk '{system($0)}'); cat <<'E'\nrm x\nE",
    "{ ls; cat <<'E'\nrm x\nE\n} | awk '{system($0)}'",
    "while :; do CI=1 done; cat <<'E'; break\nrm x\nE\ndone | awk '{system($0)}'",
    "f() { awk '{system($0)}'; }; cat <<'E' | f\nrm x\nE",
    "cat() { awk '{system($0)}'; }; cat <<'E'\nrm x\nE",
];

#[test]
fn no_document_is_run_past_a_deny_rule() {
    RUN.iter().for_each(|line| passes_no_deny_rule(line));
}
