//! The protocol on the wire, both directions, byte-faithful.
