use proptest::prelude::*;

use super::*;

const LIFE: u64 = 1000;

fn new(binding: &str, caller: &str) -> NewRequest {
    let subject = Subject {
        question: "may it?".to_owned(),
        ended_by_trust: true,
        caller: caller.to_owned(),
        client: "c".to_owned(),
        upstream: "up".to_owned(),
        tool: "t".to_owned(),
        arguments: "{}".to_owned(),
        arguments_cut_from: None,
        digest: None,
    };
    NewRequest { binding: binding.to_owned(), caller_hash: caller.to_owned(), subject }
}

#[test]
fn what_is_allowed_is_used_once_by_the_same_call_before_it_expires() {
    let mut queue = Queue::default();
    let number = queue.add(new("a", "ann"), 10, LIFE).unwrap();
    assert!(!queue.use_approval("a", 11), "nobody decided");
    assert_eq!(queue.add(new("a", "ann"), 12, LIFE), Ok(number), "it waits already");
    queue.decide(number, Verdict::Allow, "op", 20, LIFE).unwrap();
    assert!(!queue.use_approval("b", 21), "another call");
    assert!(queue.use_approval("a", 21));
    assert!(!queue.use_approval("a", 21), "a second time");
    assert_eq!(queue.decide(number, Verdict::Deny, "op", 22, LIFE), Err(DecideError::Used(number)));
    let next = queue.add(new("a", "ann"), 30, LIFE).unwrap();
    assert_ne!(next, number, "a number is never given twice");
    queue.decide(next, Verdict::Allow, "op", 40, LIFE).unwrap();
    assert!(!queue.use_approval("a", 40 + LIFE), "too late");
}

#[test]
fn what_expired_can_be_neither_decided_nor_used() {
    let mut queue = Queue::default();
    let number = queue.add(new("a", "ann"), 0, LIFE).unwrap();
    let late = queue.decide(number, Verdict::Allow, "op", LIFE, LIFE);
    assert_eq!(late, Err(DecideError::Unknown(number)));
    assert_eq!(queue.status("a", LIFE), CallStatus::Unasked);
    assert_eq!(queue.decide(7, Verdict::Allow, "op", 0, LIFE), Err(DecideError::Unknown(7)));
}

#[test]
fn what_was_made_by_a_clock_that_was_set_back_counts_no_more() {
    let mut queue = Queue::default();
    let day = 24 * 60 * 60 * 1000;
    let number = queue.add(new("a", "ann"), day, LIFE).unwrap();
    queue.decide(number, Verdict::Allow, "op", day, LIFE).unwrap();
    assert!(!queue.use_approval("a", 5));
    assert!(queue.use_approval("a", day - 30_000), "machines differ by seconds");
}

#[test]
fn a_decision_may_be_changed_until_it_is_used() {
    let mut queue = Queue::default();
    let number = queue.add(new("a", "ann"), 0, LIFE).unwrap();
    queue.decide(number, Verdict::Allow, "op", 1, LIFE).unwrap();
    queue.decide(number, Verdict::Deny, "op", 2, LIFE).unwrap();
    assert!(!queue.use_approval("a", 3));
    let denied = CallStatus::Denied { number, by: "op".to_owned() };
    assert_eq!(queue.status("a", 3), denied);
}

#[test]
fn one_caller_cannot_fill_the_queue_for_others() {
    let mut queue = Queue::default();
    for n in 0..MAX_WAITING_PER_CALLER {
        queue.add(new(&n.to_string(), "eve"), 0, LIFE).unwrap();
    }
    assert_eq!(queue.add(new("more", "eve"), 0, LIFE), Err(QueueFull::Caller));
    assert!(queue.add(new("mine", "ann"), 0, LIFE).is_ok());
    let mut n_waiting = MAX_WAITING_PER_CALLER + 1;
    while n_waiting < MAX_WAITING {
        queue.add(new(&n_waiting.to_string(), &n_waiting.to_string()), 0, LIFE).unwrap();
        n_waiting += 1;
    }
    assert_eq!(queue.add(new("more", "eve"), 0, LIFE), Err(QueueFull::Caller));
    assert!(queue.add(new("last", "zoe"), 0, LIFE).is_ok(), "who has the most gives way");
    assert_eq!(queue.status("last", 0), CallStatus::Waiting(201));
    assert_eq!(queue.status("19", 0), CallStatus::Unasked, "the latest of them");
    assert_eq!(queue.unexpired(0).count(), MAX_WAITING);
    let mut n_more = 0;
    while queue.add(new(&format!("another {n_more}"), &format!("{n_more} more")), 0, LIFE).is_ok() {
        n_more += 1;
    }
    assert_eq!(n_more, 18, "until everybody has one");
    // What expired makes room.
    assert!(queue.add(new("next", "yan"), LIFE, LIFE).is_ok());
}

/// A request of somebody who is known by address only.
fn anonymous(binding: &str, address: &str) -> NewRequest {
    let mut request = new(binding, address);
    request.subject.caller.clear();
    request
}

#[test]
fn callers_from_many_addresses_leave_places_for_those_who_are_known() {
    let mut queue = Queue::default();
    for n in 0..MAX_WAITING {
        let address = format!("address {}", n / MAX_WAITING_PER_CALLER);
        queue.add(anonymous(&n.to_string(), &address), 0, LIFE).unwrap();
    }
    for n in 0..MAX_WAITING_PER_CALLER {
        queue.add(new(&format!("ann {n}"), "ann"), 0, LIFE).unwrap();
    }
    let full = queue.add(new("ann 20", "ann"), 0, LIFE);
    assert_eq!(full, Err(QueueFull::Caller));
    let mut queue = Queue::default();
    for n in 0..MAX_WAITING {
        queue.add(anonymous(&n.to_string(), &format!("address {n}")), 0, LIFE).unwrap();
    }
    let one_more = queue.add(anonymous("one more", "address 200"), 0, LIFE);
    assert_eq!(one_more, Err(QueueFull::Everybody), "they have one each");
    assert!(queue.add(new("mine", "ann"), 0, LIFE).is_ok(), "all of them count as one");
    let eve = queue.add(anonymous("again", "address 200"), 0, LIFE);
    assert_eq!(eve, Err(QueueFull::Everybody), "known callers do not give way to them");
}

/// Something that happens to a queue.
#[derive(Clone, Debug)]
enum Step {
    Ask(u8),
    Decide(u64, bool),
    Take(u8),
    Wait(u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8).prop_map(Step::Ask),
        (0..8_u64, any::<bool>()).prop_map(|(number, allow)| Step::Decide(number, allow)),
        (0..4_u8).prop_map(Step::Take),
        (0..LIFE).prop_map(Step::Wait),
        Just(Step::Restart),
    ]
}

proptest! {
    /// Held against the plainest account of what was agreed to: by call, until
    /// when, taken away by every use and by every later no.
    #[test]
    fn whatever_happens_only_what_was_agreed_to_gets_through_and_only_once(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let (mut queue, mut now) = (Queue::default(), 1_000_000_u64);
        let mut agreed: std::collections::HashMap<u8, (u64, u64)> = std::collections::HashMap::new();
        let mut asked: std::collections::HashMap<u64, u8> = std::collections::HashMap::new();
        for step in steps {
            match step {
                Step::Ask(call) => {
                    let number = queue.add(new(&call.to_string(), "ann"), now, LIFE).unwrap();
                    asked.insert(number, call);
                }
                Step::Decide(number, allow) => {
                    let verdict = if allow { Verdict::Allow } else { Verdict::Deny };
                    if queue.decide(number, verdict, "op", now, LIFE).is_ok() {
                        let call = asked[&number];
                        match verdict {
                            Verdict::Allow => { agreed.insert(call, (number, now + LIFE)); }
                            Verdict::Deny => { agreed.remove(&call); }
                        }
                    }
                }
                Step::Take(call) => {
                    let may = agreed.remove(&call).is_some_and(|(_, until)| now < until);
                    prop_assert_eq!(queue.use_approval(&call.to_string(), now), may);
                }
                Step::Wait(millis) => now += millis,
                Step::Restart => {
                    let kept = serde_json::to_string(&queue).unwrap();
                    queue = serde_json::from_str(&kept).unwrap();
                }
            }
        }
    }
}
