//! Leases as rows.

use std::time::Duration;

use loom::Millis;

use crate::db::{Db, get, unsigned};
use crate::engine::{Lock, NONE, params};
use crate::error::StoreError;
use crate::fence::{Fence, Guard, Lease, LeaseOwner, end_of};
use crate::principal::Principal;

/// A lease as it stands.
pub(crate) fn lease(db: &Db<'_>, who: &Principal, name: &str) -> Result<Option<Lease>, StoreError> {
    if !who.may_lease(name) {
        return Ok(None);
    }
    let now = db.now()?;
    db.one("SELECT holder, fence, expires FROM leases WHERE name = ?1", [name], |row| {
        let holder: Option<String> = get(row, 0)?;
        let (fence, expires) = (Fence(unsigned(row, 1)?), Millis(get(row, 2)?));
        Ok(Lease {
            name: name.to_owned(),
            holder: holder.map(LeaseOwner),
            fence,
            expires,
            has_ended: expires <= now,
        })
    })
}

/// As [`crate::Store::acquire_lease`].
pub(crate) fn acquire(
    db: &Db<'_>,
    who: &Principal,
    name: &str,
    holder: &LeaseOwner,
    ttl: Duration,
) -> Result<Fence, StoreError> {
    if !who.may_lease(name) {
        return Err(StoreError::NotFound("lease"));
    }
    db.engine().lock(Lock::Lease(name))?;
    let now = db.now()?;
    let fresh =
        Lease { name: name.to_owned(), holder: None, fence: Fence::default(), expires: now, has_ended: true };
    let lease = lease(db, who, name)?.unwrap_or(fresh);
    let Some(fence) = lease.granted(holder) else {
        let holder = lease.holder.unwrap_or_else(|| holder.clone());
        return Err(StoreError::Held { name: name.to_owned(), holder });
    };
    write_lease(db, name, Some(holder), fence, end_of(now, ttl))?;
    Ok(fence)
}

fn write_lease(
    db: &Db<'_>,
    name: &str,
    holder: Option<&LeaseOwner>,
    fence: Fence,
    expires: Millis,
) -> Result<(), StoreError> {
    db.run(
        "INSERT INTO leases (name, holder, fence, expires) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = excluded.fence,
            expires = excluded.expires",
        params![name, holder.map(|holder| &holder.0), fence.0 as i64, expires.0],
    )?;
    Ok(())
}

/// A lease whose newest claim has this number.
fn current(db: &Db<'_>, who: &Principal, name: &str, fence: Fence) -> Result<Lease, StoreError> {
    db.engine().lock(Lock::Lease(name))?;
    let lease = lease(db, who, name)?.ok_or(StoreError::NotFound("lease"))?;
    if lease.is_current(fence) { Ok(lease) } else { Err(StoreError::Fenced { what: name.to_owned() }) }
}

/// As [`crate::Store::renew_lease`].
pub(crate) fn renew(
    db: &Db<'_>,
    who: &Principal,
    name: &str,
    fence: Fence,
    ttl: Duration,
) -> Result<(), StoreError> {
    let lease = current(db, who, name, fence)?;
    write_lease(db, name, lease.holder.as_ref(), fence, end_of(db.now()?, ttl))
}

/// As [`crate::Store::release_lease`].
pub(crate) fn release(db: &Db<'_>, who: &Principal, name: &str, fence: Fence) -> Result<(), StoreError> {
    let lease = current(db, who, name, fence)?;
    write_lease(db, name, None, fence, lease.expires)
}

/// Refuses a write whose leases were lost.
pub(crate) fn check_guards(db: &Db<'_>, who: &Principal, guards: &[Guard]) -> Result<(), StoreError> {
    for guard in guards {
        db.engine().lock(Lock::Lease(&guard.lease))?;
        let held = lease(db, who, &guard.lease)?.is_some_and(|lease| lease.is_current(guard.fence));
        if !held {
            return Err(StoreError::Fenced { what: guard.lease.clone() });
        }
    }
    Ok(())
}

/// Takes a lease from whoever holds it: what they write under it is refused from now on.
pub(crate) fn fence(db: &Db<'_>, name: &str) -> Result<(), StoreError> {
    db.engine().lock(Lock::Lease(name))?;
    db.run("UPDATE leases SET fence = fence + 1, holder = NULL WHERE name = ?1", [name])?;
    Ok(())
}

/// Fences everything that was running when the store was copied.
pub(crate) fn fence_everything(db: &Db<'_>) -> Result<(), StoreError> {
    db.engine().lock(Lock::Everything)?;
    db.run("UPDATE leases SET fence = fence + 1, holder = NULL", NONE)?;
    db.run("UPDATE generations SET fence = fence + 1 WHERE state = 0", NONE)?;
    db.run("UPDATE jobs SET fence = fence + 1 WHERE state = 1", NONE)?;
    Ok(())
}
