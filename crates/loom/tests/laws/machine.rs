//! Any sequence of operations leaves what a plain list edited the same way would (spec: loom §10.1, §10.2,
//! §10.3, §10.5): rendered text, tips and windows of every view after every step, drafts included.

use drawloom_loom::verify::Status;
use proptest::prelude::*;

use crate::support::cases;
use crate::support::pair::{Pair, actions};

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn any_sequence_renders_as_the_naive_model(actions in actions(40)) {
        let mut pair = Pair::new();
        for action in &actions {
            pair.act(action);
            pair.agree();
        }
        pair.nothing_lost();
        let report = pair.desk.verify();
        prop_assert_eq!(report.status, Status::Valid, "{:?}", report.problems);
    }
}
