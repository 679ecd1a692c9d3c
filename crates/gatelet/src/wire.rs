//! Where things are connected: the only place that spawns tasks and opens
//! connections, and the only place that knows every crate.
