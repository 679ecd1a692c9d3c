//! Which tools exist right now; find, rank and describe them.
