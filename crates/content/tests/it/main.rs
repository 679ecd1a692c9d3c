//! The toolset on real databases.

mod servers;
mod vectors;

mod mariadb;
mod postgres;
mod sqlite;
