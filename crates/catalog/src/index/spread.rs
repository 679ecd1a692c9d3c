//! Keeps one server from taking all hits where others are nearly as good.
//!
//! A server with twenty tools that claim everything would otherwise fill the first page.
//! Honest servers lose little: of five relevant tools of one server, three are among the
//! first five hits and the others right after, and only where another server's tool
//! scores almost as high.

use super::rank::Ranked;

/// The number of hits of a page.
const PAGE: usize = 5;
/// The most hits of one server on a page.
const MOST: usize = 3;
/// A hit with this fraction of the score is nearly as good.
const NEARLY: f32 = 0.93;

/// Moves hits of other servers forward, within the first `limit`; everything
/// else keeps its order. Documents without a server (0) are left alone.
pub(crate) fn over_servers(ranked: &mut [Ranked], limit: usize, server: impl Fn(&Ranked) -> u32) {
    for at in 0..limit.min(ranked.len()) {
        let page = &ranked[at - at % PAGE..at];
        let full = |one: &Ranked| {
            let own = server(one);
            own != 0 && MOST <= page.iter().filter(|other| server(other) == own).count()
        };
        if !full(&ranked[at]) {
            continue;
        }
        let enough = NEARLY * ranked[at].score;
        let next = ranked[at..].iter().take_while(|one| enough <= one.score);
        if let Some(next) = next.into_iter().position(|one| !full(one)) {
            ranked[at..=at + next].rotate_right(1);
        }
    }
}

/// Two scores this close (as a proportion) are equally good.
const EQUAL: f32 = 0.97;

/// Moves documents that declare their arguments before equally good ones that do not.
pub(crate) fn declared_first(ranked: &mut [Ranked], is_declared: impl Fn(&Ranked) -> bool) {
    for at in 1..ranked.len() {
        let (before, one) = (&ranked[at - 1], &ranked[at]);
        if !is_declared(before) && is_declared(one) && EQUAL * before.score <= one.score {
            ranked.swap(at - 1, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &[(u32, f32)], limit: usize, expected: &[u32]) {
        let one = |(entry, (_, score)): (usize, &(u32, f32))| Ranked {
            entry,
            score: *score,
            features: Default::default(),
            cosine: 0.0,
        };
        let mut ranked: Vec<Ranked> = given.iter().enumerate().map(one).collect();
        over_servers(&mut ranked, limit, |one| given[one.entry].0);
        let servers: Vec<u32> = ranked.iter().map(|one| given[one.entry].0).collect();
        assert_eq!(servers, expected);
    }

    #[test]
    fn the_fourth_of_a_server_lets_others_by_that_are_nearly_as_good() {
        let given = [(1, 9.0), (1, 9.0), (1, 9.0), (1, 9.0), (1, 9.0), (2, 8.6), (3, 8.5)];
        check(&given, 5, &[1, 1, 1, 2, 3, 1, 1]);
    }

    #[test]
    fn who_declares_arguments_stands_first_among_equals() {
        let one = |entry: usize, score: f32| Ranked {
            entry,
            score,
            features: Default::default(),
            cosine: 0.0,
        };
        // The first declares nothing, and neither does the third.
        let mut ranked = [one(0, 9.0), one(1, 8.9), one(2, 8.0), one(3, 5.0)];
        declared_first(&mut ranked, |one| one.entry % 2 == 1);
        assert_eq!(ranked.map(|one| one.entry), [1, 0, 2, 3]);
    }

    #[test]
    fn what_is_much_worse_stays_behind() {
        let given = [(1, 9.0), (1, 9.0), (1, 9.0), (1, 9.0), (1, 9.0), (2, 5.0)];
        check(&given, 5, &[1, 1, 1, 1, 1, 2]);
    }

    #[test]
    fn one_server_alone_and_documents_without_one_keep_their_order() {
        check(&[(1, 9.0); 7], 7, &[1; 7]);
        check(&[(0, 9.0), (0, 9.0), (0, 9.0), (0, 9.0), (2, 9.0)], 5, &[0, 0, 0, 0, 2]);
    }
}
