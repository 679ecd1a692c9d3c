//! The native CMS toolset.
