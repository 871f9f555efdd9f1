//! Lanes: which stretches a path is made of, so that what was chosen on it is found without walking it.
//!
//! One child of a position goes on with its lane, every other begins one, named by its number. A path is some lanes
//! down to where it leaves each; in a lane one position stands at a depth. A choice names the lane and the depth of its
//! position, and those on a path are asked for lane by lane ([`super::cell::choices`]), whatever was chosen elsewhere.
//!
//! Where a path grows on from what began a lane, and that is soon twice as long as what the lane above goes on with
//! beside it, it takes that lane over. So a path crosses lanes where it just grew and where what stands beside it is long,
//! not one for each branch. Lanes are derived, no hash binds them.

use crate::db::{Db, TreeKey, get};
use crate::error::StoreError;

/// At each so many depths a path is looked at, no less far above its end.
const STRIDE: u32 = 16;

/// How far up it is looked at, in positions. A lane that is longer is left as it is: so many rows are written, at most.
const LONGEST: i64 = 1_024;

/// The number of the position that goes on with lane `$lane` below the position numbered `$parent`, in the tree whose
/// keys are between ?1 and ?2. A child that comes right behind its parent is found by its number.
macro_rules! next {
    ($parent:literal, $lane:literal) => {
        concat!(
            "coalesce((SELECT pk & 4294967295 FROM positions WHERE pk = ?1 + ",
            $parent,
            " + 1 AND parent = ",
            $parent,
            " AND lane = ",
            $lane,
            "), (SELECT pk & 4294967295 FROM positions WHERE parent = ",
            $parent,
            " AND parent <> (pk & 4294967295) - 1 AND pk > ?1 AND pk < ?2 AND lane = ",
            $lane,
            " LIMIT 1))"
        )
    };
}

/// Positions that go on with lane ?4 below the one numbered ?3, at most ?5.
macro_rules! tail {
    () => {
        concat!(
            "WITH RECURSIVE tail (n, step) AS (SELECT ",
            next!("?3", "?4"),
            ", 1 UNION ALL SELECT ",
            next!("tail.n", "?4"),
            ", step + 1 FROM tail WHERE n IS NOT NULL AND step < ?5) "
        )
    };
}

/// Where a position stands.
#[derive(Clone, Copy)]
struct Place {
    lane: i64,
    depth: i64,
    /// The number of the position above that its lane begins with; none for the lane of the genesis.
    fork: Option<i64>,
}

impl Place {
    fn of(db: &Db<'_>, tree: TreeKey, position: i64) -> Result<Self, StoreError> {
        let sql = "SELECT p.lane, p.depth, head.parent FROM positions p JOIN positions head ON head.pk = ?2 + p.lane
            WHERE p.pk = ?1";
        let place = db.one(sql, (tree.node(position), tree.first()), |row| {
            Ok(Self { lane: get(row, 0)?, depth: get(row, 1)?, fork: get(row, 2)? })
        })?;
        place.ok_or_else(|| StoreError::Damaged(format!("position {position} or its lane is missing")))
    }
}

/// The lane of the new position `new` below `parent`, which stands at `depth`.
pub(super) fn below(
    db: &Db<'_>,
    tree: TreeKey,
    (parent, depth): (i64, u32),
    new: i64,
) -> Result<i64, StoreError> {
    let sql = "SELECT lane FROM positions WHERE pk = ?1";
    let lane = db.one(sql, [tree.node(parent)], |row| get::<i64>(row, 0))?;
    let lane = lane.ok_or_else(|| StoreError::Damaged(format!("position {parent} is missing")))?;
    // What comes right behind its parent is its first child.
    if new != parent + 1 {
        let sql = concat!("SELECT ", next!("?3", "?4"));
        let keys = (tree.first(), tree.last(), parent, lane);
        if db.one(sql, keys, |row| get::<Option<i64>>(row, 0))?.flatten().is_some() {
            return Ok(new);
        }
    }
    if depth.is_multiple_of(STRIDE) { straighten(db, tree, Place::of(db, tree, parent)?) } else { Ok(lane) }
}

/// Lets the path to the end of a lane cross fewer of them. Returns the lane that the end is in then.
fn straighten(db: &Db<'_>, tree: TreeKey, end: Place) -> Result<i64, StoreError> {
    let mut lane = end.lane;
    let mut here = end;
    while let Some(fork) = here.fork {
        let above = Place::of(db, tree, fork)?;
        if above.depth >= here.depth {
            return Err(StoreError::Damaged(format!(
                "position {fork} stands no higher than what is below it"
            )));
        }
        let below = end.depth - above.depth;
        if below > LONGEST {
            break;
        }
        // What stood apart when last looked at is looked at again when the path has doubled.
        let before = below - i64::from(STRIDE);
        let doubled = before >= 0 && below.ilog2() > before.max(1).ilog2();
        if doubled && take_over(db, tree, (fork, &above), here.lane, below / 2)? && lane == here.lane {
            lane = above.lane;
        }
        here = above;
    }
    Ok(lane)
}

/// Gives a lane that begins below `fork` the place of the one that `fork` is in, if that goes on for at most `most`
/// positions, and says whether it did.
fn take_over(
    db: &Db<'_>,
    tree: TreeKey,
    (fork, above): (i64, &Place),
    lane: i64,
    most: i64,
) -> Result<bool, StoreError> {
    let length = |below: i64, lane: i64, limit: i64| {
        let sql = concat!(tail!(), "SELECT count(n), min(CASE step WHEN 1 THEN n END) FROM tail");
        let keys = (tree.first(), tree.last(), below, lane, limit);
        let found = db.one(sql, keys, |row| Ok((get::<i64>(row, 0)?, get::<Option<i64>>(row, 1)?)))?;
        Ok::<_, StoreError>(found.unwrap_or_default())
    };
    let rename = |below: i64, from: i64, limit: i64, to: i64| {
        let sql = concat!(
            tail!(),
            "UPDATE positions SET lane = ?6 WHERE pk IN (SELECT ?1 + n FROM tail WHERE n IS NOT NULL)"
        );
        db.run(sql, (tree.first(), tree.last(), below, from, limit, to))
    };
    let (beside, first) = length(fork, above.lane, most + 1)?;
    if beside > most || length(lane, lane, LONGEST)?.0 >= LONGEST {
        return Ok(false);
    }
    if let Some(first) = first {
        rename(fork, above.lane, beside, first)?;
        let sql = "UPDATE cells SET lane = ?4 WHERE tree = ?1 AND lane = ?2 AND depth > ?3";
        db.run(sql, (tree.0, above.lane, above.depth, first))?;
    }
    rename(lane, lane, LONGEST, above.lane)?;
    db.run("UPDATE positions SET lane = ?2 WHERE pk = ?1", (tree.node(lane), above.lane))?;
    db.run("UPDATE cells SET lane = ?3 WHERE tree = ?1 AND lane = ?2", (tree.0, lane, above.lane))?;
    Ok(true)
}
