//! The HTTP edge: routes, identity, manifest, limits.
