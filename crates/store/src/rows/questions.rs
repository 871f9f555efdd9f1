//! Questions as rows.

use loom::{Millis, TreeId};

use super::events;
use super::jobs::RETENTION;
use super::leases::check_guards;
use super::reader::limit_of;
use super::trees::{find_mut, json, seen, to_json};
use crate::db::{Db, TreeKey, get, id16, unsigned};
use crate::engine::{Row, Value, params};
use crate::error::StoreError;
use crate::event::EventKind;
use crate::fence::{Claim, Fence, LeaseOwner, end_of};
use crate::principal::Principal;
use crate::question::{
    DEADLINE, Decision, NewAnswer, NewQuestion, Question, QuestionAnswer, QuestionId, StoredAnswers,
};
use crate::session::SessionId;

const QUESTION: &str = "q.id, t.id, t.session, q.kind, q.asker, q.payload, q.answers, q.created, q.expires,
    q.owner, q.fence, q.decision, q.word, q.reason, q.answered_by, q.answered";

/// Questions a principal sees; more conditions may follow.
fn questions_sql(who: &Principal) -> (String, Value<'static>) {
    let (seen, param) = seen(who);
    (format!("SELECT {QUESTION} FROM questions q JOIN trees t ON t.pk = q.tree WHERE {seen}"), param)
}

fn read(row: &Row<'_>) -> Result<Question, StoreError> {
    let answer = match get::<Option<bool>>(row, 11)? {
        None => None,
        Some(approved) => Some(QuestionAnswer {
            decision: if approved { Decision::Approved } else { Decision::Denied },
            word: get(row, 12)?,
            reason: get(row, 13)?,
            by: get(row, 14)?,
            at: Millis(get(row, 15)?),
        }),
    };
    let (answers, form) = json::<StoredAnswers>(&get::<String>(row, 6)?)?.into_parts();
    Ok(Question {
        id: QuestionId::from_bytes(id16(row, 0)?),
        tree: TreeId::from_bytes(id16(row, 1)?),
        session: get::<Option<String>>(row, 2)?.map(SessionId),
        kind: get(row, 3)?,
        asker: get(row, 4)?,
        payload: get(row, 5)?,
        answers,
        form,
        created: Millis(get(row, 7)?),
        expires: Millis(get(row, 8)?),
        claim: Claim { owner: LeaseOwner(get(row, 9)?), fence: Fence(unsigned(row, 10)?) },
        answer,
    })
}

/// As [`crate::Store::ask`].
pub(crate) fn ask(db: &Db<'_>, who: &Principal, new: &NewQuestion) -> Result<Question, StoreError> {
    let tree = find_mut(db, who, new.tree)?;
    check_guards(db, who, &new.guards)?;
    let now = db.now()?;
    // Those of a tree without a session are counted by themselves.
    let open = db.one(
        "SELECT count(*) FROM questions q JOIN trees t ON t.pk = q.tree
         WHERE (t.pk = ?1 OR t.session = (SELECT session FROM trees WHERE pk = ?1))
         AND q.decision IS NULL AND q.expires > ?2",
        [tree.key.0, now.0],
        |row| unsigned(row, 0),
    )?;
    if open.is_some_and(|open| open >= new.most) {
        return Err(StoreError::TooManyQuestions { limit: new.most });
    }
    db.run(
        "INSERT INTO questions (id, tree, kind, asker, payload, answers, created, expires, owner, fence)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            new.id.to_bytes(),
            tree.key.0,
            &new.kind,
            &new.asker,
            &new.payload,
            to_json(&StoredAnswers::new(&new.answers, new.form.as_ref()))?,
            now.0,
            end_of(now, new.ttl).0,
            &new.claim.owner.0,
            new.claim.fence.0 as i64,
        ],
    )?;
    events::append(db, tree.key, &EventKind::Question { id: new.id })?;
    question(db, who, new.id)
}

/// As [`crate::Store::question`].
pub(crate) fn question(db: &Db<'_>, who: &Principal, id: QuestionId) -> Result<Question, StoreError> {
    let (sql, param) = questions_sql(who);
    let found = db.one(&format!("{sql} AND q.id = ?2"), (param, id.to_bytes()), read)?;
    found.ok_or(StoreError::NotFound("question"))
}

/// As [`crate::Store::open_questions`].
pub(crate) fn open(
    db: &Db<'_>,
    who: &Principal,
    after: Option<(Millis, QuestionId)>,
    limit: usize,
) -> Result<Vec<Question>, StoreError> {
    let (sql, param) = questions_sql(who);
    let sql = format!(
        "{sql} AND q.decision IS NULL AND q.expires > ?2 AND (q.created, q.id) > (?3, ?4)
         ORDER BY q.created, q.id LIMIT ?5"
    );
    let (created, id) = after.map_or((i64::MIN, Vec::new()), |(at, id)| (at.0, id.to_bytes().to_vec()));
    db.all(&sql, (param, db.now()?.0, created, id, limit_of(limit)), read)
}

/// As [`crate::Store::resolve_question`].
pub(crate) fn resolve(db: &Db<'_>, who: &Principal, name: &str) -> Result<QuestionId, StoreError> {
    let (sql, param) = questions_sql(who);
    let all = db.all(&format!("{sql} ORDER BY q.created, q.id"), [param], read)?;
    let short = loom::short_id::normalise(name);
    let fits = |question: &&Question| {
        question.id.to_string().eq_ignore_ascii_case(name)
            || (short.len() >= loom::short_id::SHORTEST && question.id.short().starts_with(&short))
    };
    let mut fitting: Vec<&Question> = all.iter().filter(fits).collect();
    if fitting.iter().any(|question| question.answer.is_none()) {
        fitting.retain(|question| question.answer.is_none());
    }
    match fitting[..] {
        [] => Err(StoreError::NotFound("question")),
        [one] => Ok(one.id),
        ref several => Err(StoreError::Ambiguous(several.iter().map(|one| one.id.short()).collect())),
    }
}

/// As [`crate::Store::answer_question`].
pub(crate) fn answer(
    db: &Db<'_>,
    who: &Principal,
    id: QuestionId,
    new: &NewAnswer,
) -> Result<Option<QuestionAnswer>, StoreError> {
    let tree = question(db, who, id)?.tree;
    // What is read from here on is what others committed who answered first.
    let tree = find_mut(db, who, tree)?;
    let found = question(db, who, id)?;
    if let Some(earlier) = found.answer {
        return Ok(Some(earlier));
    }
    let now = db.now()?;
    if now >= found.expires {
        return close(db, tree.key, &found, now).map(Some);
    }
    let word = match new.decision {
        Decision::Approved => new.word.clone().or_else(|| found.answers.first().cloned()),
        Decision::Denied => None,
    };
    if let Some(word) = &word
        && !found.answers.contains(word)
    {
        return Err(StoreError::NotAnAnswer { word: word.clone(), answers: found.answers });
    }
    let NewAnswer { decision, reason, by, .. } = new.clone();
    write(db, tree.key, id, &QuestionAnswer { decision, word, reason, by, at: now })?;
    Ok(None)
}

/// As [`crate::Store::expire_question`].
pub(crate) fn expire(db: &Db<'_>, who: &Principal, id: QuestionId) -> Result<Question, StoreError> {
    let tree = question(db, who, id)?.tree;
    let tree = find_mut(db, who, tree)?;
    let mut found = question(db, who, id)?;
    let now = db.now()?;
    if found.answer.is_none() && now >= found.expires {
        found.answer = Some(close(db, tree.key, &found, now)?);
    }
    Ok(found)
}

/// Denies a question that nobody answered in time.
fn close(db: &Db<'_>, tree: TreeKey, found: &Question, now: Millis) -> Result<QuestionAnswer, StoreError> {
    let reason = Some("nobody answered in time".to_owned());
    let answer =
        QuestionAnswer { decision: Decision::Denied, word: None, reason, by: DEADLINE.to_owned(), at: now };
    write(db, tree, found.id, &answer)?;
    Ok(answer)
}

fn write(db: &Db<'_>, tree: TreeKey, id: QuestionId, answer: &QuestionAnswer) -> Result<(), StoreError> {
    db.run(
        "UPDATE questions SET decision = ?2, word = ?3, reason = ?4, answered_by = ?5, answered = ?6 WHERE id = ?1",
        params![
            id.to_bytes(),
            answer.decision == Decision::Approved,
            answer.word.as_deref(),
            answer.reason.as_deref(),
            &answer.by,
            answer.at.0,
        ],
    )?;
    db.run("DELETE FROM questions WHERE answered < ?1", [answer.at.0 - RETENTION])?;
    events::append(db, tree, &EventKind::Question { id })
}
