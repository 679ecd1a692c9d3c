//! Where state lives: memory, disk, Redis, object stores.
