use std::collections::HashSet;

use tokio::task::JoinSet;

use super::*;

const SESSION: &str = "s";

fn session() -> SessionId {
    SessionId(SESSION.to_owned())
}

fn message(text: &str, fence: u64) -> Message {
    Message { session: session(), view: ViewName::default(), fence, text: text.to_owned() }
}

#[test]
fn what_is_put_while_the_door_is_open_comes_out_in_order() {
    let inputs = InputQueues::default();
    let mut door = inputs.open(&session(), Fence(1));
    let heard: Vec<_> = (0..10)
        .map(|number| inputs.put(message(&number.to_string(), 1)).unwrap_or_else(|_| panic!()))
        .collect();
    let texts: Vec<String> = std::iter::from_fn(|| door.next()).map(|handed| handed.text).collect();
    assert_eq!(texts, (0..10).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(heard.len(), 10);
    assert_eq!(inputs.put(message("late", 1)).err(), Some(Reply::Closed));
}

#[test]
fn the_sixty_fifth_is_refused_by_number_and_the_first_is_still_there() {
    let inputs = InputQueues::default();
    let mut door = inputs.open(&session(), Fence(1));
    let heard: Vec<_> =
        (0..MAX_WAITING).map(|_| inputs.put(message("one of many", 1)).ok().unwrap()).collect();
    let Err(Reply::Refused { why }) = inputs.put(message("too many", 1)) else { panic!("taken in") };
    assert!(why.contains("64 messages wait"), "{why}");
    drop(door.next().unwrap());
    assert!(inputs.put(message("room again", 1)).is_ok());
    assert_eq!(heard.len(), MAX_WAITING);
}

#[test]
fn a_door_takes_in_what_is_meant_for_its_turn_alone() {
    let inputs = InputQueues::default();
    let mut door = inputs.open(&session(), Fence(7));
    assert_eq!(inputs.put(message("for the turn before", 6)).err(), Some(Reply::Closed));
    let elsewhere = Message { session: SessionId("t".to_owned()), ..message("elsewhere", 7) };
    assert_eq!(inputs.put(elsewhere).err(), Some(Reply::Closed));
    assert!(door.next().is_none());
}

#[test]
fn a_turn_that_was_taken_over_does_not_close_the_door_of_the_next() {
    let inputs = InputQueues::default();
    let mut sleeper = inputs.open(&session(), Fence(1));
    let mut next = inputs.open(&session(), Fence(2));
    assert!(sleeper.next().is_none());
    drop(sleeper);
    assert!(inputs.put(message("hello", 2)).is_ok());
    assert_eq!(next.next().map(|handed| handed.text).as_deref(), Some("hello"));
}

/// Whatever is taken in comes out, and whatever is not is told so, however puts and the closing fall.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_put_while_the_door_closes_is_never_lost() {
    const WRITERS: usize = 8;
    for round in 0..200_u64 {
        let inputs = InputQueues::default();
        let mut door = inputs.open(&session(), Fence(round));
        let mut writers = JoinSet::new();
        let gate = Arc::new(tokio::sync::Barrier::new(WRITERS + 1));
        for writer in 0..WRITERS {
            let (inputs, gate) = (inputs.clone(), Arc::clone(&gate));
            writers.spawn(async move {
                gate.wait().await;
                let mut taken = Vec::new();
                for number in 0..6 {
                    let text = format!("{writer}/{number}");
                    match inputs.put(message(&text, round)) {
                        Ok(_) => taken.push(text),
                        Err(reply) => assert_eq!(reply, Reply::Closed),
                    }
                    if (round as usize + writer + number).is_multiple_of(3) {
                        tokio::task::yield_now().await;
                    }
                }
                taken
            });
        }
        gate.wait().await;
        let mut out = Vec::new();
        while let Some(handed) = door.next() {
            out.push(handed.text);
            if round.is_multiple_of(2) {
                tokio::task::yield_now().await;
            }
        }
        let taken: Vec<Vec<String>> = writers.join_all().await;
        let all: HashSet<&String> = taken.iter().flatten().collect();
        assert_eq!(all, out.iter().collect(), "round {round}");
        assert_eq!(all.len(), out.len(), "round {round}: one came out twice");
        for own in &taken {
            let order: Vec<&String> = out.iter().filter(|text| own.contains(text)).collect();
            assert_eq!(order, own.iter().collect::<Vec<_>>(), "round {round}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_does_not_wait_long_for_one_who_does_not_read() {
    let inputs = InputQueues::default();
    let mut door = inputs.open(&session(), Fence(1));
    let heard = inputs.put(message("hello", 1)).ok().unwrap();
    let handed = door.next().unwrap();
    let began = tokio::time::Instant::now();
    handed.kept(NodeId::from_bytes([1; 16])).await;
    assert!(began.elapsed() >= TO_TELL && began.elapsed() < 2 * TO_TELL, "{:?}", began.elapsed());
    drop(heard);
    // One who is gone is not waited for at all.
    let began = tokio::time::Instant::now();
    handed.kept(NodeId::from_bytes([1; 16])).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}
