//! Plans as a store asks for them.

use loom::id::Entropy;
use loom::plan::{Request, plan};
use loom::{
    Author, IdSource, Millis, Op, Plan, PlanError, ReadSet, Refusal, TreeId, TreeReader, Trust, ViewName,
};

/// The tree of every fixture.
pub const TREE: TreeId = TreeId::from_bytes([7; 16]);

/// Rounds after which a plan never ends.
const ROUNDS: usize = 200;

/// Ids and a clock of its own: the same requests make the same plans.
#[derive(Debug, Clone)]
pub struct Planner {
    ids: IdSource,
    now: i64,
}

impl Planner {
    /// Begins at a time in ms.
    pub fn at(now: i64) -> Self {
        Self { ids: IdSource::default(), now }
    }

    /// A millisecond later.
    pub fn tick(&mut self) -> Millis {
        self.now += 1;
        Millis(self.now)
    }

    pub fn entropy(&mut self) -> Entropy<'_> {
        Entropy { ids: &mut self.ids, random: self.now as u128 }
    }

    /// A request of the owner.
    pub fn request(&mut self, view: &ViewName, op: Op) -> Request {
        let (author, now) = (Author::owner(), self.tick());
        Request { tree: TREE, view: view.clone(), author, trust: Trust::Owner, now, op }
    }

    /// A plan over rows read as it asks for them, and the number of rounds that took.
    ///
    /// # Errors
    /// What the planner refuses.
    pub fn plan(&mut self, rows: &dyn TreeReader, view: &ViewName, op: Op) -> Result<(Plan, usize), Refusal> {
        let request = self.request(view, op);
        let mut slice = ReadSet::default();
        for round in 0..ROUNDS {
            match plan(&request, &slice, &mut self.entropy()) {
                Ok(plan) => return Ok((plan, round)),
                Err(PlanError::Refused(refusal)) => return Err(refusal),
                Err(PlanError::Needs(needs)) => slice.load(&needs, rows).unwrap(),
            }
        }
        panic!("a plan that never ends")
    }
}
