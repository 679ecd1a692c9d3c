//! The faults: one cell each.

/// One upstream with one fault.
#[derive(Debug)]
pub(crate) struct Cell {
    /// The fault, and the upstream's label.
    pub(crate) name: &'static str,
    pub(crate) transport: Transport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// What a program on a pipe can do wrong, after the deed is done.
const STDIO: &[&str] = &[
    "healthy",
    "die",          // killed before it answers
    "exit",         // ends before it answers
    "die-after",    // answers, then dies
    "hang",         // never answers
    "late",         // answers after the limit
    "slow",         // answers within the limit
    "dup",          // answers twice
    "garbage",      // writes what is no JSON instead
    "garbage-ok",   // writes what is no JSON, then answers
    "half",         // half a line, and silence
    "half-die",     // half a line, and death
    "wrong-id",     // answers under an id that nobody used
    "error",        // a protocol error
    "tool-error",   // a result that is an error
    "no-object",    // a result that is no object
    "flood",        // a thousand notifications, then the answer
    "log-flood",    // a megabyte on stderr, then the answer
    "big",          // an answer of as much as the gate lets through
    "stop-reading", // answers, and reads nothing more for a while
    "stopped",      // is stopped by a signal, like a program under a debugger
    "kept",         // an answer that is too long to go out, and is kept
    "slow-client",  // answers well, and the client does not read for a while
];

/// What a server over HTTP can do wrong, after the deed is done.
const HTTP: &[&str] = &[
    "http-healthy",
    "http-sse",        // answers in an event stream
    "http-sse-cut",    // an event stream that ends before the answer
    "http-sse-half",   // cut within the answer
    "http-close",      // closed before anything is said
    "http-close-head", // closed within the head
    "http-close-body", // closed within the body
    "http-hang",       // never answers
    "http-late",       // answers after the limit
    "http-garbage",    // a body that is no JSON
    "http-html",       // a page
    "http-empty",      // nothing
    "http-wrong-id",   // another id
    "http-accepted",   // 202, and nothing
    "http-error",      // a protocol error, with 200
    "http-error-400",  // a protocol error, with 400
    "http-302",
    "http-307",
    "http-400",
    "http-401",
    "http-401-bearer", // refused before it ran, as the challenge says
    "http-403",
    "http-403-scope", // refused before it ran, for want of a scope
    "http-kept",      // an answer that is kept
    "http-404",
    "http-408",
    "http-409",
    "http-413",
    "http-429",
    "http-500",
    "http-502",
    "http-503",
    "http-503-after", // with Retry-After
    "http-504",
];

/// Every cell.
pub(crate) fn all() -> Vec<Cell> {
    let stdio = STDIO.iter().map(|name| Cell { name, transport: Transport::Stdio });
    let http = HTTP.iter().map(|name| Cell { name, transport: Transport::Http });
    stdio.chain(http).collect()
}
