use proptest::prelude::*;

use super::*;

fn key(caller: u64, session: u64) -> Key {
    Key { caller, session }
}

fn queue(permits: usize, reserved: usize, waiting: usize) -> Queue {
    Queue::new(Limits { permits, reserved, waiting })
}

/// Asks so often, and says how many got a permit at once.
fn take(queue: &mut Queue, key: Key, times: usize) -> usize {
    (0..times).filter(|_| queue.request(key, Priority::Normal) == Ok(Turn::Now)).count()
}

#[test]
fn one_who_asks_once_waits_for_one_turn_behind_one_who_asks_often() {
    let mut queue = queue(8, 0, 1000);
    assert_eq!(take(&mut queue, key(1, 1), 500), 8);
    let Ok(Turn::Later(light)) = queue.request(key(2, 1), Priority::Normal) else { panic!() };
    let mut before = 0;
    loop {
        queue.release(key(1, 1));
        if queue.grant() == Some(light) {
            break;
        }
        before += 1;
    }
    assert!(before <= 1, "{before} others came first");
}

#[test]
fn the_sessions_of_one_caller_share_what_the_caller_gets() {
    let mut queue = queue(1, 0, 10);
    assert_eq!(take(&mut queue, key(9, 9), 1), 1);
    for session in 0..3 {
        take(&mut queue, key(1, session), 4);
    }
    take(&mut queue, key(2, 0), 4);
    queue.release(key(9, 9));
    let mut order = Vec::new();
    while let Some(ticket) = queue.grant() {
        order.push(ticket.key.caller);
        queue.release(ticket.key);
    }
    assert_eq!(order[..8], [1, 2, 1, 2, 1, 2, 1, 2]);
    assert_eq!(order.len(), 16);
}

#[test]
fn no_caller_takes_the_reserve_and_a_greeting_and_a_newcomer_find_room() {
    let mut queue = queue(16, 8, 100);
    assert_eq!(take(&mut queue, key(1, 1), 100), 8);
    assert_eq!(queue.request(key(1, 1), Priority::Handshake), Ok(Turn::Now), "a handshake");
    assert_eq!(take(&mut queue, key(1, 2), 1), 1, "another session of the same caller");
    for session in 3..100 {
        take(&mut queue, key(1, session), 1);
    }
    assert_eq!(queue.free(), 4, "however many sessions it opens");
    assert_eq!(take(&mut queue, key(2, 1), 1), 1, "somebody else");
    assert_eq!(queue.free(), 3);
}

#[test]
fn a_queue_that_is_full_says_so_and_nobody_else_is_touched() {
    let mut queue = queue(1, 0, 2);
    assert_eq!(take(&mut queue, key(1, 1), 3), 1);
    assert_eq!(queue.request(key(1, 1), Priority::Normal), Err(TooManyWaiting));
    assert!(matches!(queue.request(key(2, 1), Priority::Normal), Ok(Turn::Later(_))));
}

/// What may happen to a queue.
#[derive(Clone, Debug)]
enum Step {
    Ask(Key, Priority),
    /// One of those who hold a permit gives it back.
    GiveBack(usize),
    /// One of those who wait stops waiting.
    Leave(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = (0..4u64, 0..3u64).prop_map(|(caller, session)| Key { caller, session });
    let priority = prop_oneof![Just(Priority::Normal), Just(Priority::Handshake)];
    let step = prop_oneof![
        4 => (key, priority).prop_map(|(key, priority)| Step::Ask(key, priority)),
        2 => any::<usize>().prop_map(Step::GiveBack),
        1 => any::<usize>().prop_map(Step::Leave),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// Whatever happens: never more permits than there are, never a longer
    /// queue than allowed, nobody passed over, nothing left in the end.
    #[test]
    fn permits_are_counted_and_go_round(
        permits in 1..6usize, reserved in 0..4usize, waiting in 0..5usize, steps in steps(),
    ) {
        let mut queue = queue(permits, reserved, waiting);
        let (mut held, mut tickets) = (Vec::new(), Vec::new());
        let mut last: Option<(u64, Vec<Ticket>)> = None;
        for step in steps {
            match step {
                Step::Ask(key, priority) => match queue.request(key, priority) {
                    Ok(Turn::Now) => held.push(key),
                    Ok(Turn::Later(ticket)) => tickets.push(ticket),
                    Err(TooManyWaiting) => {
                        let own = tickets.iter().filter(|ticket: &&Ticket| ticket.key == key);
                        prop_assert_eq!(own.count(), waiting);
                    }
                },
                Step::GiveBack(at) if !held.is_empty() => {
                    queue.release(held.swap_remove(at % held.len()));
                }
                Step::Leave(at) if !tickets.is_empty() => {
                    queue.leave(tickets.swap_remove(at % tickets.len()));
                }
                Step::GiveBack(_) | Step::Leave(_) => {}
            }
            while let Some(ticket) = queue.grant() {
                let at = tickets.iter().position(|other| *other == ticket);
                prop_assert!(at.is_some(), "only who waits is granted");
                tickets.swap_remove(at.unwrap());
                held.push(ticket.key);
                // Without reserved permits nobody is served twice while another waits.
                if reserved == 0 && let Some((served, others)) = &last {
                    let again = *served == ticket.key.caller;
                    prop_assert!(!again || !others.iter().any(|other| tickets.contains(other)));
                }
                let others = tickets.iter().copied();
                let others = others.filter(|it| it.key.caller != ticket.key.caller).collect();
                last = Some((ticket.key.caller, others));
            }
            prop_assert!(held.len() <= permits);
            prop_assert_eq!(queue.free(), permits - held.len());
            prop_assert_eq!(queue.waiting(), tickets.len());
            prop_assert!(reserved > 0 || tickets.is_empty() || queue.free() == 0);
        }
        while let Some(key) = held.pop() {
            queue.release(key);
            while let Some(ticket) = queue.grant() {
                tickets.retain(|other| *other != ticket);
                held.push(ticket.key);
            }
        }
        for ticket in tickets {
            queue.leave(ticket);
        }
        prop_assert!(queue.callers.is_empty() && queue.turns.is_empty());
    }
}
