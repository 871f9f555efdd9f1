//! `tree show`, `compare`.

use loom::plan::{EditAs, NewText};
use loom::{NodeId, Op, OpTarget, TreeId, ViewName};

use crate::home::{TestHome, field, homes};

#[tokio::test]
async fn the_path_is_paged_from_the_tip_upwards() {
    for home in homes() {
        let tree = home.tree("buffer", "0").await;
        for n in 1..=9 {
            home.append(&tree, &n.to_string()).await;
        }
        let mut seen = Vec::new();
        let mut from: Option<String> = None;
        loop {
            let mut words = vec!["tree", "show", tree.as_str(), "--limit", "4"];
            if let Some(from) = &from {
                words.extend(["--from", from.as_str()]);
            }
            let page = home.ok(&words).await;
            let mut texts: Vec<_> =
                page["nodes"].as_array().unwrap().iter().map(|node| field(node, "text")).collect();
            assert!(texts.len() <= 4);
            texts.append(&mut seen);
            seen = texts;
            match page["next"].as_str() {
                Some(next) => from = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(
            seen,
            ["", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
            "genesis first, nothing twice"
        );
        let depths: Vec<_> = home.nodes(&tree, &["--depth", "2"]).await;
        assert_eq!(depths.iter().map(|node| field(node, "text")).collect::<Vec<_>>(), ["", "0", "1"]);
        assert_eq!(home.err(&["tree", "show", &tree, "--limit", "0"]).await.code, "usage");
    }
}

#[tokio::test]
async fn all_lists_every_node_in_the_order_it_was_made() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let a = field(&home.nodes(&tree, &[]).await[1], "id");
        home.append(&tree, "b").await;
        home.ok(&["tree", "edit", &tree, &a, "--text", "A"]).await;
        home.ok(&["tree", "edit", &tree, &a, "--text", "x", "--as", "branch"]).await;
        home.ok(&["tree", "annotate", &tree, &a, "a remark"]).await;
        home.ok(&["tree", "undo", &tree]).await;
        let all = home.nodes(&tree, &["--all"]).await;
        let texts: Vec<_> = all.iter().map(|node| field(node, "text")).collect();
        assert_eq!(texts, ["", "a", "b", "A", "x", "a remark"], "what was undone is there still");
        assert_eq!((&all[3]["versions"], &all[3]["edited_from"]), (&2.into(), &a.clone().into()));
        assert_eq!((&all[4]["siblings"], &all[1]["siblings"]), (&2.into(), &2.into()));
        assert_eq!((&all[5]["kind"], &all[5]["siblings"]), (&"annotation".into(), &1.into()));

        let mut paged = Vec::new();
        let mut from: Option<String> = None;
        loop {
            let mut words = vec!["tree", "show", tree.as_str(), "--all", "--limit", "2"];
            words.extend(from.iter().flat_map(|from| ["--from", from.as_str()]));
            let page = home.ok(&words).await;
            paged.extend(page["nodes"].as_array().unwrap().iter().map(|node| field(node, "text")));
            match page["next"].as_str() {
                Some(next) => from = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(paged, texts);
        let high: Vec<_> = home.nodes(&tree, &["--all", "--depth", "1"]).await;
        assert_eq!(high.iter().map(|node| field(node, "text")).collect::<Vec<_>>(), ["", "a", "A", "x"]);
    }
}

#[tokio::test]
async fn a_node_says_where_it_stands() {
    for home in homes() {
        let tree = home.tree("dialogue", "hello").await;
        let nodes = home.nodes(&tree, &[]).await;
        let (genesis, first) = (&nodes[0], &nodes[1]);
        assert_eq!((&genesis["parent"], &genesis["depth"]), (&serde_json::Value::Null, &0.into()));
        assert_eq!(first["parent"], genesis["position"]);
        for (name, value) in [
            ("author", "owner"),
            ("author_kind", "human"),
            ("kind", "path"),
            ("role", "user"),
            ("trust", "owner"),
        ] {
            assert_eq!(first[name], value, "{name}");
        }
        for name in ["drifted", "pruned", "excluded", "pending", "purged"] {
            assert_eq!(first[name], false, "{name}");
        }
        for name in ["edited_from", "finish", "bookmark"] {
            assert_eq!(first[name], serde_json::Value::Null, "{name}");
        }
    }
}

#[tokio::test]
async fn what_is_pruned_above_hides_what_is_below() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let b = home.append(&tree, "b").await;
        let c = home.append(&tree, "c").await;
        home.ok(&["tree", "prune", &tree, &b]).await;
        assert_eq!(home.text(&tree).await, "a", "the tip moved up");
        let all = home.nodes(&tree, &["--all"]).await;
        let pruned: Vec<_> = all.iter().map(|node| node["pruned"].as_bool().unwrap()).collect();
        assert_eq!(pruned, [false, false, true, true]);
        let path = home.nodes(&tree, &["--from", &c, "--limit", "1"]).await;
        assert_eq!((field(&path[0], "id"), &path[0]["pruned"]), (c.clone(), &true.into()));
        let alone = home.nodes(&tree, &["--all", "--from", &b]).await;
        assert_eq!(alone[0]["pruned"], true, "known without the nodes above on the page");
        home.ok(&["tree", "restore", &tree, &b]).await;
        assert_eq!(home.node(&tree, &c).await["pruned"], false);
    }
}

#[tokio::test]
async fn compare_gives_what_only_one_path_says() {
    for home in homes() {
        let tree = home.tree("buffer", "same ").await;
        let same = field(&home.nodes(&tree, &[]).await[1], "id");
        let left = home.append(&tree, "left").await;
        let end = home.append(&tree, " end").await;
        let right = field(
            &home.ok(&["tree", "edit", &tree, &left, "--text", "right", "--as", "branch"]).await,
            "node",
        );
        let found = home.ok(&["tree", "compare", &tree, &end, &right]).await;
        assert_eq!((field(&found, "only_a"), field(&found, "only_b")), ("left end".into(), "right".into()));
        assert_eq!(found["common"]["position"], same);
        assert_eq!((&found["common"]["depth"], &found["common"]["chars"]), (&1.into(), &5.into()));

        let version = field(
            &home.ok(&["tree", "edit", &tree, &left, "--text", "LEFT", "--as", "version"]).await,
            "node",
        );
        let found = home.ok(&["tree", "compare", &tree, &left, &version]).await;
        assert_eq!((field(&found, "only_a"), field(&found, "only_b")), ("left".into(), "LEFT".into()));
        assert_eq!(found["common"]["position"], same, "two versions of one place part above it");
        let found = home.ok(&["tree", "compare", &tree, &version, &end]).await;
        assert_eq!((field(&found, "only_a"), field(&found, "only_b")), ("".into(), " end".into()));

        let remark = field(&home.ok(&["tree", "annotate", &tree, &same, "hm"]).await, "node");
        assert_eq!(home.err(&["tree", "compare", &tree, &remark, &same]).await.exit, 2);
    }
}

/// A change of the tree.
async fn change(home: &TestHome, tree: TreeId, op: Op) -> store::Applied {
    let (owner, view) = (store::Principal::Owner, ViewName::default());
    home.app.runtime.change(&owner, tree, &view, op, store::AttachedWrites::nothing()).await.unwrap()
}

/// The statements and steps of a show, once everything was read before.
async fn show_cost(home: &TestHome, tree: TreeId) -> store::StatementCounts {
    let tree = tree.to_string();
    let words = ["tree", "show", &tree, "--limit", "50"];
    home.ok(&words).await;
    let mut least = store::StatementCounts { statements: u64::MAX, steps: u64::MAX };
    // The store's own work now and then only adds to it.
    for _ in 0..3 {
        let before = home.app.runtime.store.statement_counts();
        home.ok(&words).await;
        let after = home.app.runtime.store.statement_counts();
        least.statements = least.statements.min(after.statements - before.statements);
        least.steps = least.steps.min(after.steps - before.steps);
    }
    least
}

/// Prunes, leaves out, marks and edits positions in turns.
async fn choose(home: &TestHome, tree: TreeId, nodes: &[NodeId]) {
    for (number, node) in nodes.iter().enumerate() {
        let position = node.as_position();
        let op = match number % 4 {
            0 => Op::Prune(OpTarget::Position(position)),
            1 => Op::Exclude(OpTarget::Position(position)),
            2 => Op::Bookmark { position, title: Some("elsewhere".to_owned()) },
            _ => Op::Edit { position, text: "It snowed.".to_owned(), edit_as: EditAs::Version },
        };
        change(home, tree, op).await;
    }
}

/// Positions off the path at which something is chosen.
const ELSEWHERE: usize = 120;

#[tokio::test]
async fn what_is_chosen_elsewhere_costs_a_show_no_step() {
    for home in homes() {
        let tree: TreeId = home.tree("buffer", "It rained.").await.parse().unwrap();
        let append = || Op::Append(NewText::owner("And it rained.", None));
        let mut trunk = Vec::new();
        for _ in 0..60 {
            trunk.push(change(&home, tree, append()).await.nodes[0].0.as_position());
        }
        let (fork, tip) = (trunk[30], trunk[59]);
        let mut elsewhere = Vec::new();
        for _ in 0..ELSEWHERE {
            change(&home, tree, Op::Move(fork)).await;
            elsewhere.push(change(&home, tree, append()).await.nodes[0].0);
        }
        // Few flags in a whole tree are looked at one by one, which takes fewer steps.
        let (first, more) = elsewhere.split_at(ELSEWHERE * 2 / 3);
        choose(&home, tree, first).await;
        change(&home, tree, Op::Switch(tip)).await;
        let before = show_cost(&home, tree).await;
        choose(&home, tree, more).await;
        change(&home, tree, Op::Switch(tip)).await;
        assert_eq!(show_cost(&home, tree).await, before);
        // Control: what is chosen on the path is read.
        change(&home, tree, Op::Exclude(OpTarget::Position(trunk[40]))).await;
        assert!(show_cost(&home, tree).await.steps > before.steps);
    }
}

/// The steps of a show in a tree whose path grew to this length while beside each passage of it another way was tried
/// for three passages first.
async fn cost_beside_branches(home: &TestHome, length: usize) -> u64 {
    let tree: TreeId = home.tree("buffer", "It rained.").await.parse().unwrap();
    let append = || Op::Append(NewText::owner("And it rained.", None));
    let mut end = change(home, tree, append()).await.nodes[0].0.as_position();
    for _ in 0..length {
        let next = change(home, tree, append()).await.nodes[0].0.as_position();
        change(home, tree, Op::Move(end)).await;
        for _ in 0..3 {
            change(home, tree, append()).await;
        }
        change(home, tree, Op::Move(next)).await;
        end = next;
    }
    show_cost(home, tree).await.steps
}

#[tokio::test]
async fn a_show_costs_the_same_however_many_branches_grew_beside_its_path() {
    let [home, _] = homes();
    let (short, long) = (cost_beside_branches(&home, 64).await, cost_beside_branches(&home, 256).await);
    assert!(long * 10 < short * 11, "{short} steps beside 64 branches, {long} beside 256");
}

#[tokio::test]
async fn what_stands_around_a_passage_is_shown() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let mut path = vec![field(&home.nodes(&tree, &[]).await[1], "id")];
        for text in ["b", "c", "d", "e"] {
            path.push(home.append(&tree, text).await);
        }
        let beside = field(
            &home.ok(&["tree", "edit", &tree, &path[2], "--text", "C", "--as", "branch"]).await,
            "node",
        );
        let around = home.nodes(&tree, &["--around", &beside, "--depth", "1"]).await;
        let ids: Vec<String> = around.iter().map(|node| field(node, "id")).collect();
        assert_eq!(ids, [path[1].clone(), path[2].clone(), beside.clone(), path[3].clone()]);
        let active: Vec<bool> = around.iter().map(|node| node["active"].as_bool().unwrap()).collect();
        assert_eq!(active, [true, false, true, false], "the branch is where the view is now");
        home.ok(&["tree", "edit", &tree, &path[0], "--text", "A"]).await;
        let all = home.nodes(&tree, &["--all"]).await;
        let versions: Vec<(&str, bool)> = all
            .iter()
            .filter(|node| node["position"] == path[0].as_str())
            .map(|node| (node["text"].as_str().unwrap(), node["shown"].as_bool().unwrap()))
            .collect();
        assert_eq!(versions, [("a", false), ("A", true)]);
    }
}

#[tokio::test]
async fn the_place_from_which_the_model_sees_is_said() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let b = home.append(&tree, "b").await;
        assert!(home.ok(&["tree", "show", &tree]).await["window"].is_null());
        home.ok(&["tree", "compact", &tree, "--to", &b]).await;
        assert_eq!(home.ok(&["tree", "show", &tree]).await["window"], b.as_str());
    }
}
