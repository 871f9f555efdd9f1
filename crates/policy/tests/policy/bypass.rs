//! Lines that try to pass `allow git *`, `allow cargo test *` or `deny rm *` (spec: security §14).
//!
//! The table itself allows commands without network in a full sandbox, so what the allow rules let pass is tested where
//! it asks: with a host, which a rule of its own allows.

use drawloom_policy::{Attendance, Decision, NetworkWish, Policy, Reason, SandboxLevel, SessionFacts};

use crate::support::{CHAT, exec, online, policy};

pub(crate) fn rules() -> Policy {
    policy(&[
        "allow exec git *",
        "allow exec cargo test *",
        "deny exec rm *",
        "allow effect:net host=example.org",
    ])
}

/// Lines of which a part is no plain command that a rule allows.
const NOT_ALLOWED: &[&str] = &[
    // Options by which git runs a program.
    "git -c core.pager='sh -c id' log",
    "git -ccore.pager=id log",
    "git --config-env=core.pager=X log",
    "git --exec-path=/tmp/x status",
    "git -C /tmp/evil status",
    "git --git-dir=/tmp/evil/.git status",
    "git --git-dir /tmp/evil/.git status",
    "git --work-tree=/tmp status",
    "git fetch ext::sh%20-c%20id",
    "git clone 'ext::sh -c id' x",
    "git fetch --upload-pack=./x origin",
    "git fetch --upload-pa ./x origin",
    "git push --receive-pack=./x origin",
    "git push --exec=./x origin",
    "git clone -u ./x a b",
    "git clone -qu ./x a b",
    "git clone --config core.fsmonitor=./x a b",
    "git clone --template=./x a b",
    "git rebase -x id HEAD~1",
    "git rebase --exec id HEAD~1",
    "git grep -O./x y",
    "git grep --open-files-in-pager=./x y",
    "git diff --ext-diff",
    "git difftool -x ./x",
    "git bisect run ./x",
    "git submodule foreach id",
    "git filter-branch --tree-filter id",
    "git config core.pager ./x",
    "git archive --output=x HEAD",
    // A second command.
    "git status; id",
    "git status && id",
    "git status || id",
    "git log | sh",
    "git status\nid",
    "git status & id",
    "git status |& tee x",
    "cargo test; curl example.org",
    "cargo test -p x && ./x",
    // Substitutions and expansions.
    "git log $(id)",
    "git log \"$(id)\"",
    "git log `id`",
    "git log \"`id`\"",
    "git diff <(id)",
    "git log $X",
    "git log \"${X:-$(id)}\"",
    "git log \"$\\\n(id)\"",
    "git {-c,core.pager=id} log",
    "git *",
    "git $'-c' x=y log",
    // Redirections.
    "git log > /etc/cron.d/x",
    "git log > ../x",
    "git log > ~/.bashrc",
    "git log > $HOME/x",
    "git log >> .git/hooks/pre-commit",
    "git log > AGENTS.md",
    "git apply < /etc/passwd",
    "git log &> ../x",
    "git apply <<E\nx\nE",
    "git apply <<< x",
    // Assignments.
    "PATH=/tmp/x git status",
    "LD_PRELOAD=./x.so git status",
    "GIT_SSH_COMMAND=id git fetch",
    "GIT_PAGER=id git log",
    "PAGER=id git log",
    "RUSTC_WRAPPER=./x cargo test",
    "X=1; git status",
    "PATH=/tmp/x; git status",
    "export GIT_PAGER=id; git log",
    // Other programs in front, and other programs of that name.
    "env git status",
    "sudo git status",
    "command git status",
    "xargs git show",
    "sh -c 'git status'",
    "./git status",
    "/tmp/git status",
    "~/git status",
    "gitx status",
    "git\u{a0}status",
    "\u{261}it status",
    // What is no simple command, or none at all.
    "(git status)",
    "{ git status; }",
    "! git status",
    "if git status; then git log; fi",
    "git() { id; }; git status",
    "git status 'x",
    "git status \u{1b}[2K",
    "git status \0",
    "",
    "# git status",
    "> x",
    // Cargo.
    "cargo test --config build.rustc-wrapper=./x",
    "cargo test --conf x",
    "cargo test --manifest-path /tmp/x/Cargo.toml",
    "cargo +nightly test",
    "cargo --config x test",
    "cargo testx",
];

/// Lines that run rm, or may.
const DENIED: &[&str] = &[
    "rm x",
    "rm",
    "r\"\"m x",
    "r\\m x",
    "'rm' x",
    "/bin/rm x",
    "../../bin/rm x",
    "sudo rm x",
    "sudo -u root rm x",
    "env rm x",
    "env -i A=b /bin/rm x",
    "command rm x",
    "exec rm x",
    "nohup rm x",
    "nice -n 5 rm x",
    "timeout 5 rm x",
    "busybox rm x",
    "git status; rm x",
    "git status && rm x",
    "git log | rm x",
    "git log & rm x",
    "git status\nrm x",
    "git log $(rm x)",
    "git log \"`rm x`\"",
    "A=1 rm x",
    "A=$(rm x) git status",
    "PA\\\nTH=1 rm x",
    "r\\\nm x",
    "2>/dev/null rm x",
    "> x rm y",
    "find . -exec rm {} +",
    "find . -name x | xargs rm",
    "xargs -0 -n1 rm < x",
    "sh -c 'rm x'",
    "bash -lc \"cd a; rm x\"",
    "bash <<E\nrm x\nE",
    "bash <<< 'rm x'",
    "eval 'rm x'",
    "eval r'm' x",
    "ssh host rm x",
    "trap 'rm x' EXIT",
    "(rm x)",
    "{ rm x; }",
    "f() { rm x; }; f",
    "if a; then rm x; fi",
    "for i in 1; do rm x; done",
    "while a; do rm x; done",
    "case a in a) rm x;; esac",
    "git -c core.pager='rm x' log",
    "git -c core.pager=rm log",
    "tar --to-command='rm x' -xf a",
    "awk 'BEGIN { system(\"rm x\") }'",
    "python3 -c 'import os; os.system(\"r\" + \"m x\")'",
    "echo \"$(case x in x) rm y;; esac)\"",
    // A value attached to a short option.
    "env -S\"rm x\"",
    "env -vS'rm x'",
    "env -Srm x",
    "git grep -O\"rm\" fn",
    "git rebase -x'rm x' HEAD~1",
    "fd -xrm",
    "flock -c'rm x' f",
    "rsync -e'rm x' a b",
    "sudo env -Srm x",
    "RUSTC_WRAPPER=$W cargo build",
    // Programs that start others, by rarer names.
    "linux64 rm x",
    "linux32 rm x",
    "i386 rm x",
    "uname26 rm x",
    "setpriv --no-new-privs rm x",
    "setpriv rm x",
    "rbash -c 'rm x'",
    "split --filter='rm x' keep",
    "time -p rm x",
    "time -- rm x",
    "choom -n 0 -- rm x",
    "numactl -N 0 rm x",
    "fakeroot rm x",
    "xvfb-run -a rm x",
    "direnv exec . rm x",
    "ip netns exec a rm x",
    "ip -all netns exec rm x",
    "/lib/ld.so /bin/rm x",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "mapfile -C 'rm x' -c 1 a < f",
    "mapfile -tC 'rm x' a < f",
    "compgen -C 'rm x'",
    "bind -x '\"\\C-a\": rm x'",
    // A variable that names a program.
    "GIT_PAGER='rm x' git -p log",
    "PAGER='rm x' man ls",
    "PAGER=rm man ls",
    "GIT_SSH_COMMAND='rm x' git fetch",
    "GIT_SSH=rm git fetch",
    "GIT_EXTERNAL_DIFF='rm x' git diff",
    "GIT_EDITOR='rm x' git commit",
    "EDITOR='sh -c \"rm x\"' git commit",
    "VISUAL=$X crontab -e",
    "BASH_ENV='$(rm x)' bash -c :",
    "ENV='`rm x`' sh -c :",
    "export GIT_PAGER='rm x'; git -p log",
    "GIT_PAGER='rm x'",
    "sh -c \"GIT_PAGER='rm x' git log\"",
    "echo $(PAGER='rm x' man ls)",
    // A program that takes commands from its input.
    "echo rm x | sh",
    "echo rm x |& sh",
    "echo rm x | bash -s",
    "echo rm x | bash -s -- a",
    "echo rm x | bash -o pipefail",
    "echo rm x | bash /dev/stdin",
    "echo rm x | bash //dev/stdin",
    "echo rm x | sh /proc/self/fd/0",
    "echo rm x | (sh)",
    "echo rm x | { sh; }",
    "echo rm x | sudo -u root sh",
    "echo rm x | env A=b bash -x",
    "echo rm x | timeout 5 sh",
    "echo rm x | ssh host sh",
    "echo rm x | docker exec -i c sh",
    "echo rm x | bash -c sh",
    "echo rm x | bash -c 'sh; true'",
    "echo rm x | source /dev/stdin",
    "echo rm x | at now",
    "echo rm x | sudo -s",
    "echo rm x | find . -exec sh \\;",
    "cat x | python3",
    "echo rm x | tee >(sh)",
    "bash <<< \"$(cat x)\"",
    "echo rm x | xargs env",
    "echo rm x | xargs -n1 sudo -u root",
    "echo rm x | xargs timeout 5",
    "echo rm x | xargs -I{} sh -c {}",
    "echo rm x | xargs -I % bash -c '%'",
    "echo 'rm x' | xargs -d '\\n' sh -c",
    "echo rm x | xargs -a list sh",
    "echo rm x | xargs sh",
    "echo rm x | parallel",
    "echo rm x | parallel -j4",
    "echo rm x | parallel sh -c {}",
    "echo rm x | sudo -u root -s",
    "echo rm x | sudo -nu root sh",
    "echo rm x | sudo --user root sh",
    "echo rm x | env -Ssh",
    "echo rm x | env -S 'sh -x'",
    "echo rm x | eval 'sh -x'",
    "echo rm x | nice -n 5 timeout -k 1 5 sh",
    "echo rm x | nsenter -t 1 -m",
    "echo rm x | unshare -r",
    "echo rm x | script -q /dev/null",
    "echo rm x | chroot /",
    "echo rm x | chroot / sh",
    "echo rm x | perf stat bash",
    "echo rm x | bwrap --ro-bind / / bash",
    "echo rm x | poetry run sh",
    "echo rm x | poetry shell",
    "echo x | uv run python",
    "echo x | uv run -",
    "echo rm x | git shell",
    "echo rm x | nix-shell",
    "echo rm x | nix-shell -p jq",
    "echo x | python3 -W ignore",
    "echo x | python3 -X dev -u",
    "echo x | python3 -v",
    "echo x | perl -I lib",
    "echo x | ruby -r json",
    "echo x | node -r x",
    "echo rm x | bash -v",
    "echo rm x | bash --rcfile a",
    "echo '.shell rm x' | sqlite3 db",
    "echo '\\! rm x' | psql base",
    "echo '\\! rm x' | psql -d base -f -",
    "echo 'shell rm x' | gdb a",
    "echo '$(shell rm x)' | make -f -",
    "echo '$(shell rm x)' | make --file=-",
    "echo '!rm x' | vim -es x",
    "echo ':!rm x' | vim",
    "echo rm x | ssh host",
    "echo rm x | ssh -p 22 host",
    "echo rm x | ssh host 'bash -s'",
    "echo rm x | kubectl exec -i pod -- sh",
    "echo rm x | while read l; do sh; done",
    "echo rm x | if true; then sh; fi",
    "echo rm x | for i in 1; do sh; done",
    "echo rm x | { true; sh; }",
    "echo rm x | (true && sh)",
    "echo rm x | { { true; }; sh; }",
    "echo rm x |\nsh",
    "echo rm x | # to a shell\n\nsh",
    "echo rm x | echo $(sh)",
    "echo rm x | echo `sh`",
    "f() { sh; }; echo rm x | f",
    "f()\n{ sh; }; echo rm x | f",
    "true; echo a | cat && echo rm x | sh",
    "{ sh; } <<< 'rm x'",
    "<<< 'rm x' sh",
    "ed <<< '!rm x'",
    "echo '!rm x' | ed x",
    "echo '!rm x' | ex -s x",
    "python3 <<< 'import os; os.system(\"rm x\")'",
    // What only a run of the line would tell.
    "$X x",
    "$'\\x72m' x",
    "${X:-rm} x",
    "r? x",
    "/bin/r* x",
    "{rm,x}",
    "eval $X",
    "alias x=rm; x y",
    "git status 'x",
];

/// Sessions with the decision that a question becomes in them.
fn sessions() -> [(SessionFacts, Decision); 2] {
    let job = SessionFacts { attendance: Attendance::Unattended, ..CHAT };
    [(CHAT, Decision::Ask), (job, Decision::Deny)]
}

#[test]
fn the_control_is_allowed() {
    for line in [
        "git status",
        "cargo test -p x",
        "cargo test",
        "git status && cargo test -p x 2>&1 | git log -p; git push -u origin main\ngit log --oneline -- src/*.rs",
        "RUST_BACKTRACE=1 cargo test > out/x.txt 2> /dev/null",
        "cargo test \\\n  -p x",
        "git commit -m 'rm old; $(x) & more'",
    ] {
        for (session, _) in sessions() {
            let verdict = rules().decide(&online(line), &session);
            assert_eq!(verdict.decision, Decision::Allow, "{line}: {}", verdict.reason);
            assert!(matches!(verdict.reason, Reason::Rule(_)), "{line}: {}", verdict.reason);
        }
    }
}

#[test]
fn no_line_passes_an_allow_rule() {
    assert!(NOT_ALLOWED.len() >= 60);
    for line in NOT_ALLOWED {
        for (session, expected) in sessions() {
            let verdict = rules().decide(&online(line), &session);
            assert_eq!(verdict.decision, expected, "{line}: {}", verdict.reason);
            // Without network the sandbox allows it, not a rule.
            let verdict = rules().decide(&exec(line, NetworkWish::Off), &session);
            assert!(
                !matches!(&verdict.reason, Reason::Rule(rule) if rule.rule.starts_with("allow")),
                "{line}: {}",
                verdict.reason
            );
        }
    }
}

#[test]
fn no_line_passes_a_deny_rule() {
    for line in DENIED {
        for (session, _) in sessions() {
            for sandbox in [SandboxLevel::None, SandboxLevel::Partial, SandboxLevel::Full] {
                let session = SessionFacts { sandbox, ..session };
                for call in [online(line), exec(line, NetworkWish::Off), exec(line, NetworkWish::Open)] {
                    let verdict = rules().decide(&call, &session);
                    let passes = match session.attendance {
                        Attendance::Attended => verdict.decision == Decision::Allow,
                        Attendance::Unattended => verdict.decision != Decision::Deny,
                    };
                    assert!(!passes, "{line}: {}", verdict.reason);
                    let named = matches!(verdict.reason, Reason::Rule(_) | Reason::Unread(_));
                    assert!(named || verdict.decision == Decision::Deny, "{line}: {}", verdict.reason);
                }
            }
        }
    }
}
